//! The test runs itself again as the process that is killed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::redis::{Access, BlockingClient, Server, until};

const NAME: &str = "redis::tests::reaper::no_server_outlives_a_process_that_is_killed";
const CHILD: &str = "TIDEGATE_TEST_IS_CHILD";

#[test]
fn no_server_outlives_a_process_that_is_killed() {
    if std::env::var_os(CHILD).is_some() {
        return start_and_wait();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    let port: u16 = said
        .map_while(Result::ok)
        .find_map(|line| line.split_once("port=")?.1.parse().ok())
        .unwrap();
    let is_there = || BlockingClient::connect(port, &Access::default()).is_ok();
    assert!(is_there());
    child.kill().unwrap();
    child.wait().unwrap();
    until("the server has gone too", || !is_there());
}

/// Body of the process that is killed.
fn start_and_wait() {
    let server = Server::start();
    println!("port={}", server.port());
    // No input ever comes; it ends with the other process at the latest.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

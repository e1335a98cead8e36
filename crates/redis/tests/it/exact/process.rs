//! An instance in a separate process: this test binary, run with [`instance`] only.

use super::{asks, limits};
use crate::world;
use std::fmt::Write;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tidegate_core::Store;
use tidegate_redis::{HashTag, RedisBuckets, RedisOptions};
use tidegate_redis_client::{Address, ConnectionSettings, RedisTopology};
use tidegate_testkit::history::History;
use tidegate_testkit::redis::{Cluster, Server};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const TASKS: usize = 16;

/// The maximum time that an instance may run longer than its orders.
const PATIENCE: Duration = Duration::from_secs(300);

/// The variable with an instance's orders. Without it, the test does nothing.
const VARIABLE: &str = "TIDEGATE_TEST_INSTANCE";

/// The orders of an instance, as words of a line.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    /// The port of the server, or of all nodes of a Cluster.
    ports: Vec<u16>,
    prefix: String,
    /// `None` means no Cluster.
    tag: Option<HashTag>,
    is_forgetful: bool,
    until_us: u64,
}

impl Orders {
    pub(super) fn standalone(server: &Server, prefix: &str) -> Self {
        Self {
            ports: vec![server.port()],
            prefix: prefix.to_owned(),
            tag: None,
            is_forgetful: false,
            until_us: 0,
        }
    }

    pub(super) fn cluster(cluster: &Cluster, prefix: &str, tag: HashTag) -> Self {
        Self {
            ports: cluster.nodes().iter().map(Server::port).collect(),
            tag: Some(tag),
            ..Self::standalone(&cluster.nodes()[0], prefix)
        }
    }

    /// Turns the deny cache off.
    pub(super) fn forgetful(self) -> Self {
        Self {
            is_forgetful: true,
            ..self
        }
    }

    pub(super) fn until(self, until_us: u64) -> Self {
        Self { until_us, ..self }
    }

    fn line(&self) -> String {
        let ports: Vec<_> = self.ports.iter().map(u16::to_string).collect();
        let tag = match self.tag {
            None => "none",
            Some(HashTag::Policy) => "policy",
            Some(HashTag::Subject) => "subject",
        };
        let (prefix, until_us) = (&self.prefix, self.until_us);
        format!(
            "{} {prefix} {tag} {} {until_us}",
            ports.join(","),
            self.is_forgetful
        )
    }

    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let [ports, prefix, tag, is_forgetful, until_us] = words[..] else {
            panic!("not orders: {line}");
        };
        Self {
            ports: ports
                .split(',')
                .map(|it| it.parse().expect("a port"))
                .collect(),
            prefix: prefix.to_owned(),
            tag: match tag {
                "policy" => Some(HashTag::Policy),
                "subject" => Some(HashTag::Subject),
                _ => None,
            },
            is_forgetful: is_forgetful == "true",
            until_us: until_us.parse().expect("an instant"),
        }
    }

    fn settings(&self) -> ConnectionSettings {
        let mode = match self.tag {
            None => RedisTopology::Standalone,
            Some(_) => RedisTopology::Cluster,
        };
        let addresses = self
            .ports
            .iter()
            .map(|port| Address::new("127.0.0.1", *port));
        world::patient(ConnectionSettings::new(mode, addresses.collect()))
    }

    fn options(&self) -> RedisOptions {
        let options = RedisOptions::default().prefix(self.prefix.clone());
        let options = options.tag(self.tag.unwrap_or_default());
        if self.is_forgetful {
            options.deny_cache(0)
        } else {
            options
        }
    }

    /// Limits in several slots are token buckets only: across slots, instants are not exact.
    fn only_tokens(&self) -> bool {
        self.tag == Some(HashTag::Subject)
    }
}

/// The results of an instance.
#[derive(Default)]
pub(super) struct ProcessReport {
    pub(super) history: History,
    pub(super) slowest_us: u64,
}

/// A process that runs its orders and exits.
pub(super) struct Instance(Child);

impl Instance {
    pub(super) fn start(orders: &Orders) -> Self {
        let program = std::env::current_exe().expect("this program");
        let child = Command::new(program)
            .args([
                "exact::process::instance",
                "--exact",
                "--ignored",
                "--nocapture",
            ])
            .env(VARIABLE, orders.line())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        Self(child.expect("it starts"))
    }

    /// Sends a signal by name.
    pub(super) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let status = Command::new("sh")
            .args(["-c", "kill -s \"$0\" \"$1\"", name, &id])
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "no signal {name}"
        );
    }

    /// Waits for its exit; returns its results.
    pub(super) fn finish(mut self) -> ProcessReport {
        let mut out = self.0.stdout.take().expect("stdout is piped");
        let (sender, read) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).expect("it is text");
            sender.send(text).ok();
        });
        // Dropped, it is killed.
        let text = read.recv_timeout(PATIENCE).expect("it ends in time");
        drop(self.0.wait());
        let mut said = ProcessReport::default();
        for line in text.lines().filter_map(|line| line.strip_prefix('@')) {
            let number = |word: &str| word.parse::<u64>().expect("a number");
            match line.split_once(' ') {
                Some(("admitted", at_us)) => said.history.admit(number(at_us), 1),
                Some(("refused", count)) => said.history.merge(refused(number(count))),
                Some(("slowest", micros)) => said.slowest_us = number(micros),
                _ => panic!("output of the instance: {line}"),
            }
        }
        said
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn refused(count: u64) -> History {
    let mut history = History::default();
    history.refuse(count);
    history
}

#[test]
#[ignore = "not a test: the tests of this file start it as another process"]
fn instance() {
    let Some(orders) = std::env::var_os(VARIABLE) else {
        return;
    };
    let orders = Orders::parse(&orders.to_string_lossy());
    let said = world::runtime().block_on(run(&orders));
    let mut text = String::new();
    for at_us in said.history.instants_us() {
        writeln!(text, "\n@admitted {at_us}").expect("there is room");
    }
    println!(
        "{text}\n@refused {}\n@slowest {}",
        said.history.refused(),
        said.slowest_us
    );
}

async fn run(orders: &Orders) -> ProcessReport {
    let store = RedisBuckets::connect(orders.settings(), orders.options()).await;
    let store = store.expect("the servers are up");
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        tasks.spawn(hammer(store.clone(), orders.clone()));
    }
    let mut all = ProcessReport::default();
    for said in tasks.join_all().await {
        all.history.merge(said.history);
        all.slowest_us = all.slowest_us.max(said.slowest_us);
    }
    all
}

/// Sends requests until the time is up, by the store's clock.
async fn hammer(store: RedisBuckets, orders: Orders) -> ProcessReport {
    let limits = limits(orders.only_tokens());
    let asks = asks(&limits);
    let mut said = ProcessReport::default();
    loop {
        let began = Instant::now();
        let reply = store.decide(&asks).await;
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        said.history.record(1, &reply);
        let reply = reply.expect("the store answers");
        if reply.passed {
            said.slowest_us = said.slowest_us.max(took);
        }
        if reply.at.as_micros() >= orders.until_us {
            return said;
        }
        if !reply.passed {
            // Leaves CPU time for the servers.
            sleep(Duration::from_millis(1)).await;
        }
    }
}

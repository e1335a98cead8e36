//! Webhooks for alerts.

use super::kit::{PATIENCE, by, config, eventually};
use crate::admin::samples;
use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use crate::kit::{Client, get};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_net::tasks::Tasks;
use tidegate_testkit::redis::{FaultProxy, ProxyFaults, Server, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The secret part of the webhook's URL.
const SECRET: &str = "hush-hush";

/// A webhook receiver that fails the first attempt of the first alert.
pub(crate) struct Hook {
    address: SocketAddr,
    told: mpsc::Receiver<Value>,
    _tasks: Tasks,
}

impl Hook {
    pub(crate) async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, told) = mpsc::channel(64);
        let tasks = Tasks::new();
        tasks.spawn(async move {
            let mut is_first = true;
            while let Ok((mut stream, _)) = listener.accept().await {
                let said = read(&mut stream).await;
                let status = if is_first {
                    "503 Service Unavailable"
                } else {
                    "204 No Content"
                };
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.ok();
                if !is_first && tell.send(said).await.is_err() {
                    return;
                }
                is_first = false;
            }
        });
        Self {
            address,
            told,
            _tasks: tasks,
        }
    }

    /// Returns the configuration of alerts to this receiver.
    pub(crate) fn config(&self) -> String {
        let address = self.address;
        format!("alerts: {{ webhook: 'http://{address}/{SECRET}/1' }}\n")
    }

    async fn next(&mut self) -> (String, String) {
        self.next_within(PATIENCE).await
    }

    /// Returns the kind and the subject of the next alert.
    pub(crate) async fn next_within(&mut self, patience: Duration) -> (String, String) {
        let said = timeout(patience, self.told.recv()).await;
        let said = said.expect("an alert in time").unwrap();
        let text = |name: &str| said[name].as_str().unwrap().to_owned();
        assert!(!said.to_string().contains(SECRET), "{said}");
        (text("kind"), text("subject"))
    }
}

async fn read(stream: &mut TcpStream) -> Value {
    let mut asked = Vec::new();
    while !asked.ends_with(b"}") {
        assert!(stream.read_buf(&mut asked).await.unwrap() > 0, "cut off");
    }
    let text = String::from_utf8(asked).unwrap();
    assert!(text.starts_with(&format!("POST /{SECRET}/1 ")), "{text}");
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

pub(crate) fn own(kind: &str, subject: &str) -> (String, String) {
    (kind.to_owned(), subject.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn bans_and_outages_alert_once_and_logs_hide_the_webhook() {
    let redis = Server::start();
    let wire = FaultProxy::start(redis.port());
    let mut hook = Hook::listen().await;
    let url = redis.url_at(wire.port());
    let more = "threshold: 20, ban: { guard: blacklist, for: 1h }";
    let alerts = hook.config();
    let text = config(&url, more).replace("timeout: 5s", "timeout: 500ms") + &alerts;
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", text);
    let mut command = tidegate(&["serve", "--config", &file]);
    command.env("TIDEGATE_LOG", "debug");
    let mut process = Process::start(command);
    let http = process.address("http").await;
    let admin = process.address("admin").await;
    let mut client = Client::connect(http).await;

    ask_until_banned(&redis, &mut client).await;
    assert_eq!(hook.next().await, own("ban", "192.0.2.1"));
    redis
        .command(&["SREM", "BlacklistIPsSet", "192.0.2.1"])
        .done();
    ask_until_banned(&redis, &mut client).await;
    let repeated = "tidegate_alerts_total{kind=\"ban\",outcome=\"repeated\"}";
    eventually("it is not told again", async || {
        let page = samples(&get(admin, "/metrics").await.body);
        (page.get(repeated) == Some(&1.0)).then_some(())
    })
    .await;

    wire.set(ProxyFaults::refuse());
    wire.reset();
    client.post(&by("192.0.2.2")).await;
    // The second ban causes no further alert.
    assert_eq!(hook.next().await, own("store", "away"));
    wire.set(ProxyFaults::none());
    assert_eq!(hook.next().await, own("store", "back"));
    let sent = "tidegate_alerts_total{kind=\"store\",outcome=\"sent\"}";
    let page = samples(&get(admin, "/metrics").await.body);
    assert!(page.get(sent).is_some_and(|sent| *sent >= 1.0));

    drop(client);
    process.signal("TERM").await;
    let ended = process.ended().await;
    assert!(ended.status.success());
    let said = ended.stdout + &ended.stderr;
    assert!(!said.contains(SECRET), "{said}");
    assert!(said.contains("address banned: too many requests"), "{said}");
}

/// Exceeds the threshold within one period, regardless of period boundaries. Repeats after the ban
/// ends, because requests of banned clients are not counted.
async fn ask_until_banned(redis: &Server, client: &mut Client) {
    eventually("it is let in", async || {
        let answer = client.post(&by("192.0.2.1")).await;
        answer.body.contains("\"allowed\":true").then_some(())
    })
    .await;
    for _ in 0..200 {
        client.post(&by("192.0.2.1")).await;
    }
    until("it is banned", || {
        let found = redis.command(&["SISMEMBER", "BlacklistIPsSet", "192.0.2.1"]);
        found.int() == 1
    });
}

#[tokio::test]
async fn an_invalid_webhook_is_rejected_at_startup_and_not_shown() {
    let folder = Folder::make();
    for webhook in [
        format!("http://ann:{SECRET}@127.0.0.1/"),
        format!("ftp://127.0.0.1/{SECRET}"),
        format!("http:///{SECRET}"),
    ] {
        let text = format!(
            "{}\nalerts: {{ webhook: '{webhook}' }}\n",
            crate::kit::PLENTY
        );
        let file = folder.write("tidegate.yaml", text);
        let ended = crate::kit::process::run(tidegate(&["serve", "--config", &file])).await;
        assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("webhook"), "{}", ended.stderr);
        assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
    }
}

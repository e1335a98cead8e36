use super::kit::{ADMIN, Administered, admin};
use crate::admin::samples;
use crate::kit::folder::Folder;
use crate::kit::{Client, get};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use tidegate_testkit::redis::{FaultProxy, ProxyFaults, Server, until};

/// What is around a server whose policies live in a Redis behind a network that a test can make as bad as
/// it wants. The source is asked again only when somebody says so.
pub(super) struct Slow {
    pub(super) redis: Server,
    pub(super) proxy: FaultProxy,
    folder: Folder,
    audit_file: String,
    config: String,
}

/// A policy to be made.
pub(super) fn policy() -> Value {
    json!({ "name": "api", "limits": [{ "name": "all", "rate": "1/s" }] })
}

/// Replies come so much later: time enough for a test to do something meanwhile.
pub(super) fn late() -> ProxyFaults {
    ProxyFaults {
        delay_replies: Duration::from_secs(3),
        ..ProxyFaults::none()
    }
}

/// How often the source was asked.
async fn asked(server: &Administered) -> f64 {
    let page = get(server.address, "/metrics").await.body;
    let loads = samples(&page).into_iter();
    let is_it = |name: &str| name.starts_with("tidegate_source_loads_total{source=\"redis\"");
    loads
        .filter(|(name, _)| is_it(name))
        .map(|(_, count)| count)
        .sum()
}

impl Slow {
    /// A server with so many seconds to drain, and a source that has `timeout` to answer.
    pub(super) async fn start(drain: &str, timeout: &str) -> (Administered, Self) {
        let redis = Server::start();
        let proxy = FaultProxy::start(redis.port());
        let folder = Folder::make();
        let audit_file = folder.write("audit.jsonl", "");
        let secret_file = folder.write("secret", "hunter2");
        let config = format!(
            "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ key_secret_file: '{secret_file}' }}
sources:
  - redis:
      url: 'redis://{}'
      key: 'tidegate:policies'
      refresh: 1h
      timeout: {timeout}
      writable: true
policies: [{{ name: own, limits: [{{ name: all, key: ip, rate: 1/min }}] }}]
{}",
            proxy.address(),
            admin(&format!("file: '{audit_file}'"))
        );
        let file = folder.write("tidegate.yaml", &config);
        let server = Administered::draining_for(&file, drain).await;
        // At the start, and once it listens: from then on nobody asks unless told to.
        while asked(&server).await < 2.0 {}
        let slow = Self {
            redis,
            proxy,
            folder,
            audit_file,
            config,
        };
        (server, slow)
    }

    /// The lines of the audit so far.
    pub(super) fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.audit_file).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Asks for the policy to be made, and waits until it stands in the source.
    pub(super) async fn begin(&self, server: &Administered) -> Client {
        let call = server.call("POST", "/policies").by(ADMIN);
        let client = call.json(&policy().to_string()).begin().await;
        until("it is written", || self.is_written("policy/api"));
        client
    }

    pub(super) fn is_written(&self, field: &str) -> bool {
        let asked = ["HEXISTS", "tidegate:policies", field];
        self.redis.command(&asked).int() == 1
    }

    /// Puts a document there by hand. Whether anybody is told is another matter.
    pub(super) fn put(&self, field: &str, document: &str) {
        let put = ["HSET", "tidegate:policies", field, document];
        self.redis.command(&put).done();
        let count = ["HINCRBY", "tidegate:policies", "version", "1"];
        self.redis.command(&count).done();
    }

    /// Lets the file say something else.
    pub(super) fn write(&self, from: &str, to: &str) {
        assert!(self.config.contains(from), "{}", self.config);
        let text = self.config.replace(from, to);
        self.folder.write("tidegate.yaml", text);
    }

    /// Takes away a file that the configuration names, or brings it back.
    pub(super) fn has_secret(&self, is_there: bool) {
        let path = self.folder.write("secret", "hunter2");
        if !is_there {
            fs::remove_file(path).unwrap();
        }
    }
}

use super::kit::{ADMIN, AdminServer, admin};
use crate::admin::samples;
use crate::kit::folder::Folder;
use crate::kit::{Client, get};
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;
use tidegate_testkit::redis::{FaultProxy, ProxyFaults, Server, until};

/// A server whose policies are in a Redis behind a network with configurable faults. The source is
/// loaded again only on request.
pub(super) struct SlowRedis {
    pub(super) redis: Server,
    pub(super) proxy: FaultProxy,
    folder: Folder,
    audit_file: String,
    config: String,
}

/// Returns a policy to create.
pub(super) fn policy() -> Value {
    json!({ "name": "api", "limits": [{ "name": "all", "rate": "1/s" }] })
}

/// Replies are delayed: enough time for a test to act in between.
pub(super) fn late() -> ProxyFaults {
    ProxyFaults {
        delay_replies: Duration::from_secs(3),
        ..ProxyFaults::none()
    }
}

/// Returns the number of loads of the source.
async fn asked(server: &AdminServer) -> f64 {
    let page = get(server.address, "/metrics").await.body;
    let loads = samples(&page).into_iter();
    let is_it = |name: &str| name.starts_with("tidegate_source_loads_total{source=\"redis\"");
    loads
        .filter(|(name, _)| is_it(name))
        .map(|(_, count)| count)
        .sum()
}

impl SlowRedis {
    /// Starts a server with this many seconds to drain, and this timeout of its source.
    pub(super) async fn start(drain: &str, timeout: &str) -> (AdminServer, Self) {
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
      writable: true
    refresh: 1h
    timeout: {timeout}
policies: [{{ name: own, limits: [{{ name: all, key: ip, rate: 1/min }}] }}]
{}",
            proxy.address(),
            admin(&format!("file: '{audit_file}'"))
        );
        let file = folder.write("tidegate.yaml", &config);
        let server = AdminServer::draining_for(&file, drain).await;
        // Loaded at startup, and again once it listens; from then on only on request.
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

    /// Returns the lines of the audit log so far.
    pub(super) fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.audit_file).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Starts to create the policy, and waits until it is in the source.
    pub(super) async fn begin(&self, server: &AdminServer) -> Client {
        let call = server.call("POST", "/policies").by(ADMIN);
        let client = call.json(&policy().to_string()).begin().await;
        until("it is written", || self.is_written("policy/api"));
        client
    }

    pub(super) fn is_written(&self, field: &str) -> bool {
        let asked = ["HEXISTS", "tidegate:policies", field];
        self.redis.command(&asked).int() == 1
    }

    /// Writes a document there by hand, without a notification.
    pub(super) fn put(&self, field: &str, document: &str) {
        let put = ["HSET", "tidegate:policies", field, document];
        self.redis.command(&put).done();
        let count = ["HINCRBY", "tidegate:policies", "version", "1"];
        self.redis.command(&count).done();
    }

    /// Replaces text in the file.
    pub(super) fn write(&self, from: &str, to: &str) {
        assert!(self.config.contains(from), "{}", self.config);
        let text = self.config.replace(from, to);
        self.folder.write("tidegate.yaml", text);
    }

    /// Removes a file that the configuration names, or restores it.
    pub(super) fn has_secret(&self, is_there: bool) {
        let path = self.folder.write("secret", "hunter2");
        if !is_there {
            fs::remove_file(path).unwrap();
        }
    }
}

//! A server with administrators.

use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use crate::kit::{Client, Reply};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use tidegate_policy::text::Sha256;
use tidegate_testkit::redis::Server;

/// Tokens with the roles read, operate and admin.
pub(super) const READ: &str = "tga_of-one-who-reads";
pub(super) const OPERATE: &str = "tga_of-one-who-operates";
pub(super) const ADMIN: &str = "tga_of-one-who-changes";

/// Returns the `admin` section with these tokens.
pub(super) fn admin(audit: &str) -> String {
    let tokens = [
        ("rita", "read", READ),
        ("oskar", "operate", OPERATE),
        ("ann", "admin", ADMIN),
    ];
    let mut text = String::from("admin:\n  tokens:\n");
    for (name, role, token) in tokens {
        let hash = Sha256::of(token.as_bytes());
        writeln!(
            text,
            "    - {{ name: {name}, role: {role}, hash: '{hash}' }}"
        )
        .unwrap();
    }
    if !audit.is_empty() {
        writeln!(text, "  audit: {{ {audit} }}").unwrap();
    }
    text
}

/// A server as a separate process.
pub(super) struct AdminServer {
    pub(super) process: Process,
    pub(super) address: SocketAddr,
    pub(super) http: SocketAddr,
}

/// A server with writable policies, and the Redis that holds them.
pub(super) struct WritableServer {
    pub(super) server: AdminServer,
    pub(super) redis: Server,
    pub(super) folder: Folder,
    audit_file: String,
    config: String,
}

impl AdminServer {
    pub(super) async fn start(file: &str) -> Self {
        Self::draining_for(file, "10").await
    }

    /// Starts the same with this many seconds to drain.
    pub(super) async fn draining_for(file: &str, seconds: &str) -> Self {
        let serve = tidegate(&["serve", "--config", file, "--drain", seconds]);
        let mut process = Process::start(serve);
        let http = process.address("http").await;
        let address = process.address("admin").await;
        Self {
            process,
            address,
            http,
        }
    }

    /// Returns a call.
    pub(super) fn call(&self, verb: &str, path: &str) -> Call {
        Call {
            address: self.address,
            head: format!(
                "{verb} /admin/v1{path} HTTP/1.1\r\nhost: {}\r\n",
                self.address
            ),
            body: None,
        }
    }

    pub(super) async fn get(&self, path: &str) -> Reply {
        self.call("GET", path).by(READ).send().await
    }

    /// Returns the body at `path`, and its version.
    pub(super) async fn seen(&self, path: &str) -> (Value, String) {
        let reply = self.get(path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        let etag = reply.header("etag").unwrap().to_owned();
        (reply.json(), etag)
    }

    /// Sends a change as an administrator, for any version.
    pub(super) async fn change(&self, verb: &str, path: &str, body: &Value) -> Reply {
        let call = self.call(verb, path).by(ADMIN).header("if-match", "*");
        call.json(&body.to_string()).send().await
    }
}

impl WritableServer {
    pub(super) async fn start() -> Self {
        Self::with("").await
    }

    /// Starts the same with `more` in its file.
    pub(super) async fn with(more: &str) -> Self {
        let redis = Server::start();
        let folder = Folder::make();
        let audit_file = folder.write("audit.jsonl", "");
        let audit = format!("file: '{audit_file}', stream: 'tidegate:audit', max: 1000");
        let config = format!(
            "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0', gateway: '127.0.0.1:0' }}
store: {{ url: '{}', timeout: 10s }}
sources:
  - redis: {{ key: 'tidegate:policies', writable: true }}
    refresh: 1s
guards:
  - {{ name: bans, deny: ip, redis: {{ set: Banned }}, refresh: 100ms }}
  - {{ name: keys, deny: api-key, redis: {{ set: BadKeys }}, refresh: 100ms }}
  - {{ name: written, deny: ip, list: [192.0.2.250] }}
addresses: {{ threshold: 1000000, ban: {{ guard: bans, for: 1h }} }}
routes:
  - {{ name: old, upstreams: ['http://127.0.0.1:1'], match: {{ path: /old }}, policy: own }}
policies:
  - name: own
    limits:
      - {{ name: per-client, key: ip, rate: 1/min burst 5 }}
      - {{ name: watched, key: ip, rate: 1/min, mode: shadow }}
{more}
{}",
            redis.url(),
            admin(&audit)
        );
        let file = folder.write("tidegate.yaml", &config);
        let server = AdminServer::start(&file).await;
        Self {
            server,
            redis,
            folder,
            audit_file,
            config,
        }
    }

    /// Starts another instance of the same.
    pub(super) async fn another(&self) -> AdminServer {
        let file = self.folder.write("another.yaml", &self.config);
        AdminServer::start(&file).await
    }

    /// Starts another instance, whose file has `to` in place of `from`.
    pub(super) async fn differing(&self, from: &str, to: &str) -> AdminServer {
        assert!(self.config.contains(from), "{}", self.config);
        let file = self
            .folder
            .write("differing.yaml", self.config.replace(from, to));
        AdminServer::start(&file).await
    }

    /// Makes the file of that instance equal to the others.
    pub(super) fn agree(&self) {
        self.folder.write("differing.yaml", &self.config);
    }

    /// Returns the lines of the audit log so far.
    pub(super) fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.audit_file).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// A call under construction.
pub(super) struct Call {
    address: SocketAddr,
    head: String,
    body: Option<String>,
}

impl Call {
    pub(super) fn by(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        write!(self.head, "{name}: {value}\r\n").unwrap();
        self
    }

    pub(super) fn json(self, body: &str) -> Self {
        self.header("content-type", "application/json").body(body)
    }

    pub(super) fn body(mut self, body: &str) -> Self {
        self.body = Some(body.to_owned());
        self
    }

    fn text(self) -> String {
        match self.body {
            Some(body) => {
                format!("{}content-length: {}\r\n\r\n{body}", self.head, body.len())
            }
            None => format!("{}\r\n", self.head),
        }
    }

    pub(super) async fn send(self) -> Reply {
        self.begin().await.reply().await
    }

    /// Sends the call without waiting for the response.
    pub(super) async fn begin(self) -> Client {
        let mut client = Client::connect(self.address).await;
        let text = self.text();
        // A server that refuses early may not read all of it.
        client.try_send(&text).await.ok();
        client
    }

    /// Returns all bytes until the server closes.
    pub(super) async fn send_for_text(self) -> String {
        let mut client = Client::connect(self.address).await;
        client
            .send(&self.header("connection", "close").text())
            .await;
        client.rest().await
    }
}

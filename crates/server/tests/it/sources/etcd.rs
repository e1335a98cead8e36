//! Keys of a real etcd.

use super::admin::{admin, administrate};
use super::kit::{AWAY, Program, REFUSED, SERVED, nth_rate, policy, under_load};
use crate::kit::certificates::Certificates;
use crate::kit::folder::Folder;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;
use tidegate_testkit::etcd::EtcdServer as Server;
use tokio::time::timeout;

/// The time within which all instances must serve a change made by one of them.
const SOON: Duration = Duration::from_secs(5);

/// An etcd of one member, which ends when this is dropped.
pub(super) struct Etcd {
    pub(super) client: SocketAddr,
    server: Server,
    folder: Folder,
    /// The files that it uses.
    _certificates: Option<Certificates>,
}

/// A second listener of etcd, only for clients with a certificate.
struct SecuredEtcd {
    address: SocketAddr,
    certificates: Certificates,
}

impl Etcd {
    /// Starts it; `None` if it is not installed.
    pub(super) async fn start() -> Option<Self> {
        Self::start_with(None).await
    }

    async fn start_with(secured: Option<SecuredEtcd>) -> Option<Self> {
        let (mut urls, mut more) = (Vec::new(), Vec::new());
        if let Some(SecuredEtcd {
            address,
            certificates,
        }) = &secured
        {
            let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|it| certificates.path(it));
            urls.push(format!("https://{address}"));
            more.push("--client-cert-auth".to_owned());
            let files = [("cert", cert), ("key", key), ("trusted-ca", ca)];
            more.extend(files.map(|(name, path)| format!("--{name}-file={path}")));
        }
        let start = move || Server::start_with(&urls, &more);
        let server = tokio::task::spawn_blocking(start).await.unwrap()?;
        Some(Self {
            client: server.address(),
            server,
            folder: Folder::make(),
            _certificates: secured.map(|it| it.certificates),
        })
    }

    pub(super) async fn call(&self, path: &str, body: &Value) -> Option<Value> {
        let body = body.to_string();
        let request = format!(
            "POST /v3/{path} HTTP/1.1\r\nhost: etcd\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let stream = tokio::net::TcpStream::connect(self.client).await.ok()?;
        let mut client = crate::kit::Client::over(stream);
        client.try_send(&request).await.ok()?;
        let reply = client.try_reply().await.ok()??;
        (reply.status == 200).then(|| reply.json())
    }

    /// Sets a document; returns the new version.
    pub(super) async fn set(&self, name: &str, document: &str) -> String {
        let key = STANDARD.encode(format!("/tidegate/{name}"));
        let put = json!({ "key": key, "value": STANDARD.encode(document) });
        let put = self.call("kv/put", &put).await.unwrap();
        let revision = put["header"]["revision"].as_str().unwrap().to_owned();
        let all = json!({ "key": STANDARD.encode("/tidegate/"), "range_end": STANDARD.encode("/tidegate0"), "count_only": true });
        let all = self.call("kv/range", &all).await.unwrap();
        format!("{revision}-{}", all["count"].as_str().unwrap())
    }

    /// Removes a document.
    pub(super) async fn remove(&self, name: &str) {
        let key = STANDARD.encode(format!("/tidegate/{name}"));
        let gone = self.call("kv/deleterange", &json!({ "key": key })).await;
        assert_eq!(gone.unwrap()["deleted"], "1");
    }

    pub(super) fn config(&self, refresh: &str) -> String {
        let url = format!("http://{}", self.client);
        format!(
            "sources: [{{ etcd: {{ endpoints: ['http://127.0.0.1:1', '{url}'] }}, refresh: {refresh} }}]"
        )
    }
}

/// Returns a free address.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_change_is_served_at_once_without_errors() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", &nth_rate(0))).await;
    // A long refresh, so that polling notices nothing.
    let mut program = Program::start(&etcd.config("1h")).await;
    under_load(&mut program, "api", async |program, _, rate| {
        let version = etcd.set("policy/api", &policy("api", &rate)).await;
        program.serves("etcd", &version).await;
    })
    .await;
}

#[tokio::test]
async fn an_etcd_outage_keeps_the_config_and_recovers() {
    let Some(mut etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    let mut program = Program::start(&etcd.config("200ms")).await;
    etcd.set("policy/api", "{}").await;
    program.process.logs(REFUSED, ("source", "etcd")).await;
    assert_eq!(program.band("api").await, "5/s");
    etcd.server.kill();
    program.process.logs(AWAY, ("source", "etcd")).await;
    assert_eq!(program.band("api").await, "5/s");
    etcd.server.restart();
    let version = etcd.set("policy/api", &policy("api", "6/s")).await;
    program.serves("etcd", &version).await;
    assert_eq!(program.band("api").await, "6/s");
}

pub(super) fn limits(rate: &str) -> Value {
    json!({ "limits": [{ "name": "all", "rate": rate }] })
}

#[tokio::test]
async fn changes_through_a_server_are_written_to_etcd_and_served_by_all() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/api", &policy("api", "5/s")).await;
    let text = format!("{}\n{}", etcd.config("1h"), admin());
    let (a, mut b) = (Program::start(&text).await, Program::start(&text).await);
    let made: Value = serde_json::from_str(&policy("web", "1/s")).unwrap();
    let (status, said) = administrate(&a, "POST", "/policies", &made).await;
    assert_eq!(status, 201, "{said}");
    let (status, said) = administrate(&a, "PATCH", "/policies/api", &limits("6/s")).await;
    assert_eq!(status, 200, "{said}");
    let (status, said) = administrate(&a, "DELETE", "/policies/web", &Value::Null).await;
    assert!(status < 300, "{status} {said}");
    let heard = async {
        while b.band("api").await != "6/s" {
            b.process.logs(SERVED, ("source", "etcd")).await;
        }
    };
    let heard = timeout(SOON, heard).await;
    assert!(
        heard.is_ok(),
        "the other instance did not apply it within {SOON:?}"
    );
    // The other instance changes it next, based on the first change.
    let (status, said) = administrate(&b, "PATCH", "/policies/api", &limits("7/s")).await;
    assert_eq!(status, 200, "{said}");
    let key = json!({ "key": STANDARD.encode("/tidegate/policy/api") });
    let there = etcd.call("kv/range", &key).await.unwrap();
    let there = STANDARD.decode(there["kvs"][0]["value"].as_str().unwrap());
    let there = String::from_utf8(there.unwrap()).unwrap();
    assert!(there.contains("7/s"), "{there}");
}

#[tokio::test]
async fn a_key_deleted_by_hand_before_a_change_was_served_forever() {
    let Some(etcd) = Etcd::start().await else {
        return;
    };
    etcd.set("policy/old", &policy("old", "1/s")).await;
    etcd.set("policy/api", &policy("api", "5/s")).await;
    let text = format!("{}\n{}", etcd.config("200ms"), admin());
    let mut program = Program::start(&text).await;
    etcd.remove("policy/old").await;
    let (status, said) = administrate(&program, "PATCH", "/policies/api", &limits("6/s")).await;
    assert_eq!(status, 200, "{said}");
    let question = r#"{"policy": "old", "path": "/"}"#;
    while crate::kit::post(program.http, question).await.status == 200 {
        program.process.logs(SERVED, ("source", "etcd")).await;
    }
    assert_eq!(program.band("api").await, "6/s");
}

#[tokio::test]
async fn an_etcd_requiring_a_client_certificate_gets_one() {
    let certificates = Certificates::make();
    let (cert, key) = certificates.sign("tidegate");
    let ca = certificates.path("ca.pem");
    let address = free();
    let secured = SecuredEtcd {
        address,
        certificates,
    };
    let Some(etcd) = Etcd::start_with(Some(secured)).await else {
        return;
    };
    let cert = etcd.folder.write("cert.pem", cert);
    let key = etcd.folder.write("key.pem", key);
    etcd.set("policy/api", &policy("api", "5/s")).await;
    let tls = format!("ca: '{ca}', server_name: localhost, cert: '{cert}', key: '{key}'");
    let text = |tls: &str| {
        format!(
            "sources: [{{ required: false, etcd: {{ endpoints: 'https://{address}', tls: {{ {tls} }} }}, refresh: 1h }}]\n{}",
            super::kit::policies("own", "1/s")
        )
    };
    let mut program = Program::start(&text(&tls)).await;
    assert_eq!(program.band("api").await, "5/s");
    // The watch uses the same connection settings.
    let version = etcd.set("policy/api", &policy("api", "6/s")).await;
    program.serves("etcd", &version).await;
    assert_eq!(program.band("api").await, "6/s");
    // A client without a certificate is rejected.
    let without = format!("ca: '{ca}', server_name: localhost");
    let program = Program::start(&text(&without)).await;
    assert!(program.is_stale("etcd").await);
}

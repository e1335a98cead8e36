use super::kit::{AdminServer, OPERATE, WritableServer, admin};
use crate::kit::folder::Folder;
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn the_status_shows_everything() {
    let writable = WritableServer::with("").await;
    let status = writable.server.get("/status").await.json();
    assert_eq!(status["served"]["policies"], 1, "{status}");
    assert_eq!(status["served"]["guards"], 3);
    assert_eq!(status["served"]["limits"]["shadow"], 1);
    assert_eq!(
        (&status["status"], &status["reasons"]),
        (&"UP".into(), &serde_json::json!([]))
    );
    let sources = status["sources"].as_array().unwrap();
    let kinds: Vec<&str> = sources
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["file", "redis"]);
    assert_eq!(
        (&sources[0]["writable"], &sources[1]["writable"]),
        (&false.into(), &true.into())
    );
    assert_eq!(
        (&status["store"]["kind"], &status["store"]["status"]),
        (&"redis".into(), &"UP".into())
    );
    let instances = &status["instances"];
    assert_eq!(
        (&instances["counted"], &instances["versions_agree"]),
        (&true.into(), &true.into())
    );
    assert_eq!(status["lists"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_status_had_no_reason_for_stale_plans() {
    let shop = "  - name: shop
    limits:
      - { name: each, key: user, rate: { plan: consumers, subject: user, default: refuse } }
plans: [{ name: consumers, redis: { key: p }, refresh: 100ms }]
";
    let writable = WritableServer::with(shop).await;
    for (text, version, error) in [
        (r#"{"plan": "gone"}"#, "1", Some("unknown plan `gone`")),
        ("5/h", "2", None),
        ("{", "3", Some("it is not JSON")),
    ] {
        for (field, value) in [("subject/ann", text), ("version", version)] {
            writable.redis.command(&["HSET", "p", field, value]);
        }
        let seen = async || {
            let status = writable.server.get("/status").await.json();
            let plans = status["plans"][0].clone();
            plans["error"].as_str().map(str::to_owned)
        };
        let reached = async {
            while !match (error, seen().await) {
                (None, None) => true,
                (Some(words), Some(error)) => error.contains(words),
                _ => false,
            } {}
        };
        let reached = timeout(Duration::from_mins(1), reached).await;
        assert!(reached.is_ok(), "{text}: {:?}", seen().await);
    }
}

#[tokio::test]
async fn a_rejected_reload_reports_all_errors() {
    let folder = Folder::make();
    let text = |policies: &str| {
        let listen = "listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }";
        format!("{listen}\npolicies: {policies}\n{}", admin(""))
    };
    let good = text("[{ name: api, limits: [{ name: all, rate: 1/s }] }]");
    let file = folder.write("tidegate.yaml", &good);
    let server = AdminServer::start(&file).await;
    let reload = async || server.call("POST", "/reload").by(OPERATE).send().await;
    let before = server.get("/status").await.json()["version"].clone();
    folder.write(
        "tidegate.yaml",
        text("[{ name: api, limits: [{ name: all, rate: x, key: y }] }]"),
    );
    let refused = reload().await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!(
        refused.json()["errors"].as_array().unwrap().len(),
        2,
        "{}",
        refused.body
    );
    assert_eq!(server.get("/status").await.json()["version"], before);
    folder.write("tidegate.yaml", good.replace("1/s", "2/s"));
    let reloaded = reload().await;
    assert_eq!(reloaded.status, 200, "{}", reloaded.body);
    assert_ne!(reloaded.json()["version"], before);
}

use super::kit::{ADMIN, AdminServer, WritableServer, admin};
use crate::kit::folder::Folder;
use serde_json::json;

#[tokio::test]
async fn with_only_a_file_changes_are_rejected_naming_the_file() {
    let folder = Folder::make();
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0', gateway: '127.0.0.1:0' }}
guards: [{{ name: some, deny: ip, list: [192.0.2.1] }}]
routes: [{{ name: some, upstreams: ['http://127.0.0.1:1'] }}]
policies: [{{ name: api, limits: [{{ name: all, rate: 1/s }}] }}]
{}",
        admin("")
    );
    let file = folder.write("tidegate.yaml", &config);
    let server = AdminServer::start(&file).await;
    let policy = json!({ "name": "new", "limits": [{ "name": "all", "rate": "1/s" }] });
    for (verb, path, body) in [
        ("POST", "/policies", &policy),
        ("PATCH", "/policies/api", &json!({ "evaluate": "first" })),
        ("PUT", "/policies/api/mode", &json!({ "mode": "off" })),
        (
            "PATCH",
            "/policies/api/limits/all",
            &json!({ "rate": "2/s" }),
        ),
        ("PUT", "/guards/some/mode", &json!({ "mode": "off" })),
        ("PUT", "/routes/some/mode", &json!({ "mode": "off" })),
    ] {
        let refused = server.change(verb, path, body).await;
        assert_eq!(refused.status, 409, "{verb} {path}: {}", refused.body);
        let problem = refused.json();
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("tidegate.yaml") && detail.contains("file"),
            "{detail}"
        );
        let help = problem["errors"][0]["help"].as_str().unwrap();
        assert!(help.contains("in Redis, in etcd"), "{problem}");
    }
    let call = server
        .call("DELETE", "/policies/api")
        .by(ADMIN)
        .header("if-match", "*");
    assert_eq!(call.send().await.status, 409);
    // Reading is allowed with the role read.
    assert_eq!(server.get("/policies/api").await.json()["writable"], false);
}

#[tokio::test]
async fn items_of_the_file_are_read_only_next_to_writable_sources() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let refused = server
        .change("PUT", "/policies/own/mode", &json!({ "mode": "off" }))
        .await;
    assert_eq!(refused.status, 409);
    let problem = refused.json();
    assert!(
        problem["errors"][0]["help"]
            .as_str()
            .unwrap()
            .contains("`redis`"),
        "{problem}"
    );
    let policy = json!({ "name": "new", "limits": [{ "name": "all", "rate": "1/s" }] });
    let unknown = server
        .change("POST", "/policies?source=elsewhere", &policy)
        .await;
    assert_eq!(unknown.status, 422, "{}", unknown.body);
    let known = server
        .change("POST", "/policies?source=redis", &policy)
        .await;
    assert_eq!(known.status, 201, "{}", known.body);
}

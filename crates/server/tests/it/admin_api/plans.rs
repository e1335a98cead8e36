use super::kit::{ADMIN, AdminServer, admin};
use crate::kit::folder::Folder;
use serde_json::json;

#[tokio::test]
async fn the_effective_limits_of_a_consumer_are_shown() {
    let folder = Folder::make();
    let plans = folder.write(
        "plans.yaml",
        "
plans: { gold: { rate: 100/s } }
groups: { acme: { plan: gold } }
subjects: { ann: { group: acme }, bob: { rate: 5/s }, carl: { unlimited: true } }
",
    );
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
plans: [{{ name: consumers, file: '{plans}' }}]
policies:
  - name: api
    limits:
      - {{ name: each, key: user, rate: {{ plan: consumers, subject: user, default: 1/s }} }}
{}",
        admin("")
    );
    let file = folder.write("tidegate.yaml", &config);
    let server = AdminServer::start(&file).await;
    let listed = server.get("/plans").await.json();
    assert_eq!(listed["items"][0]["name"], "consumers");
    assert_eq!(listed["items"][0]["subjects"], 3, "{listed}");
    let users = json!([{ "kind": "limit", "name": "api/each" }]);
    assert_eq!(listed["items"][0]["used_by"], users);
    let ann = server.get("/plans/consumers/subjects/ann").await.json();
    let expected = json!({ "rate": "100/s", "group": "acme", "is_default": false });
    assert_eq!(ann["has"], expected);
    let bob = server.get("/plans/consumers/subjects/bob").await.json();
    assert_eq!(bob["has"]["rate"], "5/s");
    let one = server.get("/plans/consumers/subjects/carl").await.json();
    assert_eq!(one["has"]["rate"], "unlimited");
    assert_eq!(
        server.get("/plans/consumers/subjects/dora").await.status,
        404
    );
    assert_eq!(server.get("/plans/nobody/subjects/ann").await.status, 404);
    // They are in a file, which the API neither lists nor writes.
    for (verb, path) in [
        ("GET", "/plans/consumers/subjects"),
        ("POST", "/plans/consumers/subjects"),
    ] {
        let call = server.call(verb, path).by(ADMIN);
        let call = if verb == "POST" {
            call.json(r#"{"id": "x", "rate": "1/s"}"#)
        } else {
            call
        };
        let refused = call.send().await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(refused.body.contains("come from file"), "{}", refused.body);
    }
}

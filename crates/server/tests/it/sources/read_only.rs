//! Sources that the admin API cannot write.

use super::admin::{admin, administrate};
use super::double::Double;
use super::kit::{Program, policies};
use serde_json::{Value, json};

/// Tries every kind of change of the policy `api` of a source, and expects an error that
/// names the place for it.
async fn refuses_to_be_changed(program: &Program, source: &str) {
    let limit = json!({ "name": "more", "rate": "1/s" });
    for (verb, path, body) in [
        ("PATCH", "/policies/api", json!({ "evaluate": "first" })),
        ("PUT", "/policies/api/mode", json!({ "mode": "off" })),
        ("POST", "/policies/api/limits", limit),
        (
            "PATCH",
            "/policies/api/limits/all",
            json!({ "rate": "9/s" }),
        ),
        ("DELETE", "/policies/api/limits/all", Value::Null),
        ("DELETE", "/policies/api", Value::Null),
    ] {
        let (status, problem) = administrate(program, verb, path, &body).await;
        assert_eq!(status, 409, "{source}: {verb} {path}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("`{source}`")), "{detail}");
    }
    let made = json!({ "name": "new", "limits": [{ "name": "all", "rate": "1/s" }] });
    let path = format!("/policies?source={source}");
    let (status, problem) = administrate(program, "POST", &path, &made).await;
    assert_eq!(status, 409, "{source}: {problem}");
    let (status, policy) = administrate(program, "GET", "/policies/api", &Value::Null).await;
    assert_eq!(
        (status, &policy["source"], &policy["writable"]),
        (200, &source.into(), &false.into()),
        "{policy}"
    );
    assert_eq!(program.band("api").await, "5/s");
}

#[tokio::test]
async fn policies_of_a_keeper_or_url_are_read_only() {
    let (keeper, server) = (Double::unreachable().await, Double::unreachable().await);
    let text = policies("api", "5/s");
    keeper.say(None, &json!({ "value": text, "version": 1 }).to_string());
    server.say(None, &text);
    let of_keeper = format!(
        "keeper: {{ url: 'http://{}', key: limits, format: tidegate }}",
        keeper.address
    );
    let of_server = format!("http: {{ url: 'http://{}/' }}", server.address);
    for (name, source) in [("keeper", of_keeper), ("http", of_server)] {
        let text = format!("sources: [{{ {source} }}]\n{}", admin());
        let program = Program::start(&text).await;
        refuses_to_be_changed(&program, name).await;
    }
}

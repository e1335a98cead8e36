use super::kit::{ADMIN, AdminServer, OPERATE, READ, WritableServer, admin};
use crate::kit::folder::Folder;
use crate::kit::{TWO_A_MINUTE, get};
use serde_json::Value;

/// Returns every operation in the served document: its method, its path, its role, and true if it
/// has a body.
fn operations(document: &Value) -> Vec<(String, String, String, bool)> {
    let mut operations = Vec::new();
    for (path, at) in document["paths"].as_object().unwrap() {
        // The listener's status needs no role.
        let Some(path) = path.strip_prefix("/admin/v1") else {
            assert_eq!(path, "/status");
            continue;
        };
        for (verb, operation) in at.as_object().unwrap() {
            let about = operation["description"].as_str().unwrap();
            let role = about.split('`').nth(1).unwrap().to_owned();
            let path = path.split('/').map(|segment| {
                if segment.starts_with('{') {
                    "nobody"
                } else {
                    segment
                }
            });
            let path = path.collect::<Vec<_>>().join("/");
            let has_body = operation.get("requestBody").is_some();
            operations.push((verb.to_uppercase(), path, role, has_body));
        }
    }
    operations
}

#[tokio::test]
async fn every_route_requires_authentication_and_a_role() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let document = server.get("/openapi.json").await.json();
    let operations = operations(&document);
    assert!(operations.len() > 30, "{}", operations.len());
    let rank = |role: &str| {
        ["read", "operate", "admin"]
            .iter()
            .position(|it| *it == role)
    };
    for (verb, path, role, has_body) in operations {
        let call = || {
            let call = server.call(&verb, &path).header("if-match", "*");
            if has_body { call.json("{}") } else { call }
        };
        let what = format!("{verb} {path}");
        let nobody = call().send().await;
        assert_eq!(nobody.status, 401, "{what}");
        assert!(nobody.header("www-authenticate").is_some(), "{what}");
        let wrong = call().by("tga_of-nobody").send().await;
        assert!(
            [401, 429].contains(&wrong.status),
            "{what}: {}",
            wrong.status
        );
        for (token, has) in [(READ, "read"), (OPERATE, "operate"), (ADMIN, "admin")] {
            let reply = call().by(token).send().await;
            let may = rank(has) >= rank(&role);
            let is_forbidden = reply.status == 403;
            assert_eq!(is_forbidden, !may, "{what} as {has}: {}", reply.body);
            assert!(reply.status < 500, "{what} as {has}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn without_administrators_the_api_is_disabled() {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", TWO_A_MINUTE);
    let server = AdminServer::start(&file).await;
    for path in ["/status", "/openapi.json", ""] {
        let reply = server.call("GET", path).by(ADMIN).send().await;
        assert_eq!(reply.status, 404, "{path}");
    }
}

#[tokio::test]
async fn only_the_header_authenticates_and_cross_origin_pages_are_refused() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let call = || server.call("GET", "/status");
    let status = async |call: super::kit::Call| call.send().await.status;
    assert_eq!(status(call().by(READ)).await, 200);
    assert_eq!(
        status(call().header("cookie", &format!("token={READ}"))).await,
        401
    );
    assert_eq!(
        status(call().header("authorization", "Basic eDp5")).await,
        401
    );
    let twice = call().by(READ).by(READ);
    assert_eq!(status(twice).await, 401);
    let own = format!("http://{}", server.address);
    assert_eq!(status(call().by(READ).header("origin", &own)).await, 200);
    let foreign = call().by(READ).header("origin", "http://example.com");
    assert_eq!(status(foreign).await, 403);
    let foreign = call().by(READ).header("sec-fetch-site", "cross-site");
    assert_eq!(status(foreign).await, 403);
    // Without a valid token, a client cannot find out what exists.
    assert_eq!(status(server.call("GET", "/nothing")).await, 401);
    assert_eq!(status(server.call("GET", "/nothing").by(READ)).await, 404);
}

#[tokio::test]
async fn wrong_tokens_are_bounded_and_lock_out_no_valid_caller() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let mut statuses = Vec::new();
    for nth in 0..30 {
        let call = server.call("GET", "/status").by(&format!("tga_{nth}"));
        let reply = call.send().await;
        if reply.status == 429 {
            assert!(reply.header("retry-after").is_some());
        }
        statuses.push(reply.status);
    }
    assert_eq!(statuses[0], 401);
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(server.get("/status").await.status, 200);
    let page = get(server.address, "/metrics").await.body;
    assert!(page.contains(r#"tidegate_admin_requests_total{route="getStatus",code="429"}"#));
    assert!(page.contains(r#"tidegate_admin_requests_total{route="getStatus",code="200"}"#));
}

#[tokio::test]
async fn no_token_is_ever_logged() {
    let writable = WritableServer::start().await;
    let wrong = "tga_hunter2hunter2";
    writable
        .server
        .call("GET", "/status")
        .by(wrong)
        .send()
        .await;
    writable
        .server
        .get(&format!("/policies/{wrong}?name={wrong}"))
        .await;
    writable.server.process.signal("TERM").await;
    let ended = writable.server.process.ended().await;
    assert!(ended.stderr.contains("unknown token"), "{}", ended.stderr);
    for token in [wrong, READ, ADMIN] {
        assert!(!ended.stderr.contains(token), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn the_listener_token_gives_no_access_to_the_admin_api() {
    let folder = Folder::make();
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: {{ address: '127.0.0.1:0', token: listener }} }}
policies: [{{ name: api, limits: [{{ name: all, rate: 1/s }}] }}]
{}",
        admin("")
    );
    let file = folder.write("tidegate.yaml", &config);
    let server = AdminServer::start(&file).await;
    assert_eq!(get(server.address, "/metrics").await.status, 401);
    assert_eq!(server.get("/status").await.status, 200);
    assert_eq!(
        server
            .call("GET", "/status")
            .by("listener")
            .send()
            .await
            .status,
        401
    );
}

#[tokio::test]
async fn a_reload_changes_the_administrators() {
    let folder = Folder::make();
    let text = |admin: &str| {
        format!(
            "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
policies: [{{ name: api, limits: [{{ name: all, rate: 1/s }}] }}]
{admin}"
        )
    };
    let file = folder.write("tidegate.yaml", text(&admin("")));
    let server = AdminServer::start(&file).await;
    assert_eq!(server.get("/whoami").await.json()["role"], "read");
    folder.write(
        "tidegate.yaml",
        text(&admin("").replace("role: read", "role: operate")),
    );
    let reloaded = server.call("POST", "/reload").by(OPERATE).send().await;
    assert_eq!(reloaded.status, 200, "{}", reloaded.body);
    assert_eq!(server.get("/whoami").await.json()["role"], "operate");
}

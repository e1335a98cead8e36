use super::kit::{AdminServer, OPERATE, READ, WritableServer};
use crate::kit::client::Reply;
use crate::kit::{get, post};
use serde_json::{Value, json};

/// Sets the mode of the object at `path`, with the role operate.
async fn turn(server: &AdminServer, path: &str, mode: &str) -> Reply {
    let path = format!("{path}/mode");
    let call = server.call("PUT", &path).by(OPERATE);
    let body = json!({ "mode": mode }).to_string();
    call.header("if-match", "*").json(&body).send().await
}

/// Returns the names at `path`, which may have a query.
async fn names(server: &AdminServer, path: &str) -> Vec<String> {
    let page = server.get(path).await.json();
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns true if the guard `mine` refuses this address, regardless of limits.
async fn is_refused(server: &AdminServer, address: &str) -> bool {
    let question = json!({ "ip": address, "policy": "own", "path": "/" });
    let reply = post(server.http, &question.to_string()).await.json();
    reply["guard"] == "mine"
}

#[tokio::test]
async fn a_guard_is_unchanged_after_off_and_on() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let guard = json!({ "name": "mine", "deny": "ip", "list": ["192.0.2.1"] });
    let made = server.change("POST", "/guards", &guard).await;
    assert_eq!(
        (made.status, &made.json()["mode"]),
        (201, &"enforce".into())
    );
    assert!(is_refused(server, "192.0.2.1").await);
    for (mode, now, refuses) in [
        ("off", "off", false),
        ("off", "off", false),
        ("enforce", "enforce", true),
        ("shadow", "shadow", false),
        ("off", "off", false),
        ("shadow", "shadow", false),
        ("off", "off", false),
        ("enforce", "enforce", true),
    ] {
        let turned = turn(server, "/guards/mine", mode).await;
        assert_eq!(turned.status, 200, "{mode}: {}", turned.body);
        assert_eq!(turned.json()["mode"], now, "{mode}");
        assert_eq!(is_refused(server, "192.0.2.1").await, refuses, "{mode}");
    }
    let (item, _) = server.seen("/guards/mine").await;
    assert_eq!(item["document"], guard, "as created");
    for (path, mode) in [
        ("/guards/mine", "maybe"),
        ("/guards/mine", "quota"),
        ("/guards/mine", "on"),
        ("/routes/old", "on"),
    ] {
        let wrong = turn(server, path, mode).await;
        assert_eq!(wrong.status, 422, "{path} {mode}: {}", wrong.body);
    }
}

#[tokio::test]
async fn a_redis_list_applies_as_soon_as_its_guard_is_reenabled() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    writable.redis.command(&["SADD", "Mine", "192.0.2.1"]);
    let guard =
        json!({ "name": "mine", "deny": "ip", "redis": { "set": "Mine" }, "refresh": "1d" });
    assert_eq!(server.change("POST", "/guards", &guard).await.status, 201);
    assert!(is_refused(server, "192.0.2.1").await);
    assert_eq!(names_of_bans(server).await, ["192.0.2.1"]);
    turn(server, "/guards/mine", "off").await;
    assert!(!is_refused(server, "192.0.2.1").await);
    assert!(
        names_of_bans(server).await.is_empty(),
        "no address is banned"
    );
    let members = server.get("/guards/mine/members").await.json();
    assert_eq!(members["total"], 1, "still listed");
    let lists = server.get("/status").await.json()["lists"].clone();
    let status = |name: &str| {
        let lists = lists.as_array().unwrap();
        let list = lists.iter().find(|it| it["guard"] == name).unwrap();
        list["status"].clone()
    };
    assert_eq!(
        (status("mine"), status("bans")),
        ("OFF".into(), "UP".into())
    );
    turn(server, "/guards/mine", "enforce").await;
    assert!(is_refused(server, "192.0.2.1").await);
}

async fn names_of_bans(server: &AdminServer) -> Vec<String> {
    let page = server.get("/bans").await.json();
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|it| it["member"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn guards_and_routes_are_found_by_mode() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let guard = json!({
        "name": "mine", "deny": "ip", "list": ["192.0.2.1"], "mode": "off",
    });
    assert_eq!(server.change("POST", "/guards", &guard).await.status, 201);
    let route = json!({
        "name": "shop", "upstreams": ["http://127.0.0.1:1"], "match": { "path": "/shop" },
        "mode": "off", "policy": "own",
    });
    let made = server.change("POST", "/routes", &route).await;
    assert_eq!((made.status, &made.json()["mode"]), (201, &"off".into()));
    assert_eq!(names(server, "/guards?mode=off").await, ["mine"]);
    let enforced = names(server, "/guards?mode=enforce").await;
    assert_eq!(enforced, ["bans", "keys", "written"]);
    assert!(names(server, "/guards?mode=shadow").await.is_empty());
    assert_eq!(names(server, "/routes?mode=off").await, ["shop"]);
    assert_eq!(names(server, "/routes?mode=enforce&name=o").await, ["old"]);
    let (policy, _) = server.seen("/policies/own").await;
    assert_eq!(policy.get("mode"), None, "policies are in no such list");
    let used = policy["used_by"].as_array().unwrap().iter();
    assert!(used.clone().any(|it| it["name"] == "shop"), "off or not");
    for path in ["/guards?mode=on", "/routes?mode=on", "/policies?mode=off"] {
        let wrong = server.call("GET", path).by(READ).send().await;
        assert_eq!(wrong.status, 400, "{path}: {}", wrong.body);
    }
}

#[tokio::test]
async fn a_route_is_turned_off_and_on() {
    let writable = WritableServer::start().await;
    let gateway = writable.server.process.opened("gateway");
    let server = &writable.server;
    let route = json!({
        "name": "shop", "upstreams": ["http://127.0.0.1:1"], "match": { "path": "/shop" },
    });
    let made = server.change("POST", "/routes", &route).await;
    assert_eq!(
        (made.status, &made.json()["mode"]),
        (201, &"enforce".into())
    );
    let there = get(gateway, "/shop").await.status;
    assert!(there >= 500, "no upstream behind it: {there}");
    let (_, seen) = server.seen("/routes/shop").await;
    let turned = turn(server, "/routes/shop", "off").await;
    assert_eq!(turned.status, 200, "{}", turned.body);
    assert_eq!(turned.json()["mode"], "off");
    assert_eq!(turned.json()["document"]["mode"], "off");
    assert_eq!(get(gateway, "/shop").await.status, 404);

    // For the version that was read, and with a sufficient role.
    let call = server.call("PUT", "/routes/shop/mode").by(OPERATE);
    let stale = call.header("if-match", &seen).json(r#"{"mode":"enforce"}"#);
    assert_eq!(stale.send().await.status, 412);
    let call = server.call("PUT", "/routes/shop/mode").by(READ);
    let forbidden = call.header("if-match", "*").json(r#"{"mode":"enforce"}"#);
    assert_eq!(forbidden.send().await.status, 403);

    assert_eq!(
        turn(server, "/routes/shop", "enforce").await.json()["mode"],
        "enforce"
    );
    assert_eq!(get(gateway, "/shop").await.status, there);
    let (item, _) = server.seen("/routes/shop").await;
    assert_eq!(item["document"], route);
    let audit: Vec<Value> = writable.audit();
    let turned = audit.iter().filter(|it| it["action"] == "turnRoute");
    assert!(turned.count() >= 2, "{audit:?}");
}

use super::kit::{OPERATE, READ, WritableServer};
use crate::kit::post;
use serde_json::{Value, json};

async fn add(writable: &WritableServer, guard: &str, body: Value) -> crate::kit::Reply {
    let path = format!("/guards/{guard}/members");
    let call = writable.server.call("POST", &path).by(OPERATE);
    call.json(&body.to_string()).send().await
}

async fn is_refused(writable: &WritableServer, ip: &str) -> bool {
    // A cost of 0, so that no limit refuses it.
    let question = json!({ "ip": ip, "policy": "own", "path": "/", "cost": 0 }).to_string();
    !post(writable.server.http, &question).await.is_allowed()
}

#[tokio::test]
async fn a_member_is_banned_temporarily_and_unbanned() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let added = add(
        &writable,
        "bans",
        json!({ "member": "192.0.2.7", "for": "1h" }),
    )
    .await;
    assert_eq!(added.status, 201, "{}", added.body);
    assert_eq!(added.json()["new"], true);
    let again = add(&writable, "bans", json!({ "member": "192.0.2.7" })).await;
    assert_eq!((again.status, &again.json()["new"]), (200, &false.into()));
    let until = add(
        &writable,
        "bans",
        json!({ "member": "192.0.2.8", "for": "1h" }),
    )
    .await;
    assert_eq!(until.status, 201);
    let members = server.get("/guards/bans/members").await.json();
    assert_eq!(members["total"], 2, "{members}");
    assert_eq!(
        members["items"][0],
        json!({ "member": "192.0.2.7", "ends_in_ms": null })
    );
    let left = members["items"][1]["ends_in_ms"].as_u64().unwrap();
    assert!((3_000_000..=3_600_000).contains(&left), "{left}");
    while !is_refused(&writable, "192.0.2.7").await {}

    let remove = || {
        server
            .call("DELETE", "/guards/bans/members/192.0.2.7")
            .by(OPERATE)
    };
    assert_eq!(remove().send().await.status, 204);
    assert_eq!(remove().send().await.status, 404);
    while is_refused(&writable, "192.0.2.7").await {}
}

#[tokio::test]
async fn networks_and_pages_and_names() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    for member in ["10.0.0.0/8", "192.0.2.1", "192.0.2.2", "198.51.100.1"] {
        assert_eq!(
            add(&writable, "bans", json!({ "member": member }))
                .await
                .status,
            201
        );
    }
    let page = server
        .get("/guards/bans/members?limit=2&offset=1")
        .await
        .json();
    let names: Vec<&str> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["member"].as_str().unwrap())
        .collect();
    assert_eq!(
        (names, &page["total"]),
        (vec!["192.0.2.1", "192.0.2.2"], &4.into())
    );
    let some = server.get("/guards/bans/members?name=198.").await.json();
    assert_eq!(some["total"], 1);
    let call = server
        .call("DELETE", "/guards/bans/members/10.0.0.0%2F8")
        .by(OPERATE);
    assert_eq!(call.send().await.status, 204);
    for wrong in ["nobody", "192.0.2.1/33", ""] {
        let refused = add(&writable, "bans", json!({ "member": wrong })).await;
        assert_eq!(refused.status, 422, "{wrong}");
    }
    assert_eq!(
        add(
            &writable,
            "bans",
            json!({ "member": "192.0.2.1", "for": "soon" })
        )
        .await
        .status,
        422
    );
    assert_eq!(
        add(&writable, "nobody", json!({ "member": "192.0.2.1" }))
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn members_that_are_secrets_are_not_shown() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let added = add(&writable, "keys", json!({ "member": "hunter2" })).await;
    assert_eq!(added.status, 201, "{}", added.body);
    assert!(!added.body.contains("hunter2"));
    let shown = server.get("/guards/keys/members").await;
    assert_eq!(shown.json()["items"][0]["member"], "***");
    let looked_for = server.get("/guards/keys/members?name=hunter").await;
    assert_eq!(looked_for.status, 400);
    // Only lists of bans have members that expire.
    let refused = add(&writable, "keys", json!({ "member": "x", "for": "1h" })).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    let call = server
        .call("DELETE", "/guards/keys/members/hunter2")
        .by(OPERATE);
    assert_eq!(call.send().await.status, 204);
    assert!(!json!(writable.audit()).to_string().contains("hunter2"));
}

#[tokio::test]
async fn a_list_that_is_written_is_shown_and_not_changed() {
    let writable = WritableServer::start().await;
    let listed = writable.server.get("/guards/written/members").await.json();
    assert_eq!(listed["items"][0]["member"], "192.0.2.250");
    let refused = add(&writable, "written", json!({ "member": "192.0.2.1" })).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    let call = writable
        .server
        .call("POST", "/guards/bans/members")
        .by(READ);
    assert_eq!(
        call.json(r#"{"member": "192.0.2.1"}"#).send().await.status,
        403
    );
}

#[tokio::test]
async fn all_denied_members_are_listed_across_guards() {
    let writable = WritableServer::start().await;
    let server = &writable.server;
    let banned = json!({ "member": "192.0.2.7", "for": "1h" });
    assert_eq!(add(&writable, "bans", banned).await.status, 201);
    let banned = json!({ "member": "192.0.2.8" });
    assert_eq!(add(&writable, "bans", banned).await.status, 201);
    let key = json!({ "member": "hunter2" });
    assert_eq!(add(&writable, "keys", key).await.status, 201);

    let all = server.get("/bans").await.json();
    assert_eq!(all["total"], 3, "{all}");
    let first = &all["items"][0];
    assert_eq!(
        (&first["guard"], &first["member"]),
        (&"bans".into(), &"192.0.2.7".into())
    );
    let left = first["ends_in_ms"].as_u64().unwrap();
    assert!((1..=3_600_000).contains(&left), "{left}");
    assert!(all["items"][1]["ends_in_ms"].is_null());
    let hidden = json!({ "guard": "keys", "member": "***", "ends_in_ms": null });
    assert_eq!(all["items"][2], hidden);
    for (query, total) in [
        ("guard=keys", 1),
        ("name=192.0.2.8", 1),
        ("name=hunter", 0),
        ("guard=written", 0),
    ] {
        let some = server.get(&format!("/bans?{query}")).await.json();
        assert_eq!(some["total"], total, "{query}");
    }
    assert_eq!(server.get("/bans?guard=nobody").await.status, 400);
    let page = server.get("/bans?offset=1&limit=1").await.json();
    assert_eq!(page["items"][0]["member"], "192.0.2.8");
}

#[tokio::test]
async fn only_the_first_of_several_errors_was_reported() {
    let writable = WritableServer::start().await;
    let wrong = json!({ "member": "nobody", "for": "soon", "because": 1 });
    let refused = add(&writable, "bans", wrong).await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    let places = |reply: &crate::kit::Reply| {
        let reply = reply.json();
        let errors = reply["errors"].as_array().unwrap().iter();
        errors.map(|it| it["where"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(places(&refused), [r#""body""#, r#""member""#, r#""for""#]);
    let wrong = json!({ "limit": 1, "key": 2, "all": "x", "what": 3 });
    let call = writable.server.call("POST", "/buckets/reset").by(OPERATE);
    let refused = call.json(&wrong.to_string()).send().await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!(places(&refused).len(), 4, "{}", refused.body);
}

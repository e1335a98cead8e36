//! Consumers' plans in Redis, by name, changed through the API.

use super::kit::{ADMIN, AdminServer, OPERATE, READ, WritableServer};
use crate::kit::post;
use serde_json::{Value, json};

/// A policy with plans in Redis.
const SHOP: &str = "  - name: shop
    limits:
      - { name: each, key: user, rate: { plan: consumers, subject: user, default: 1/h } }
plans:
  - { name: consumers, redis: { key: 'tidegate:plans' }, refresh: 100ms }
";

/// The same, with consumers identified by keys.
const KEYS: &str = "  - name: shop
    limits:
      - { name: each, key: api-key, rate: { plan: consumers, subject: api-key, default: 1/h } }
plans:
  - { name: consumers, redis: {}, refresh: 100ms }
";

const AT: &str = "/plans/consumers";

/// Returns what a user has left after one more request.
async fn left(server: &AdminServer, user: &str) -> u64 {
    let question = json!({ "user": user, "policy": "shop" }).to_string();
    let answer = post(server.http, &question).await.json();
    answer["remaining"]
        .as_u64()
        .unwrap_or_else(|| panic!("{answer}"))
}

async fn make(server: &AdminServer, level: &str, entry: Value) {
    let made = server
        .change("POST", &format!("{AT}/{level}"), &entry)
        .await;
    assert_eq!(made.status, 201, "{}", made.body);
}

#[tokio::test]
async fn a_consumer_limit_is_created_and_changed() {
    let writable = WritableServer::with(SHOP).await;
    let server = &writable.server;
    let made = json!({ "id": "ann", "rate": "100/h" });
    let made = server
        .change("POST", &format!("{AT}/subjects"), &made)
        .await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(
        made.header("location"),
        Some("/admin/v1/plans/consumers/subjects/ann")
    );
    // The change applies immediately, and unknown subjects get the default.
    assert_eq!(
        (left(server, "ann").await, left(server, "bob").await),
        (99, 0)
    );

    let ann = format!("{AT}/subjects/ann");
    let (seen, etag) = server.seen(&ann).await;
    assert_eq!(seen["settings"], json!({ "rate": "100/h" }));
    let has = json!({ "rate": "100/h", "group": null, "is_default": false });
    assert_eq!((&seen["has"], &seen["writable"]), (&has, &true.into()));

    // Used units stay used: the refill time is kept, in which two units refill now.
    let raised = server
        .change("PATCH", &ann, &json!({ "rate": "200/h" }))
        .await;
    assert_eq!(raised.status, 200, "{}", raised.body);
    assert_eq!(left(server, "ann").await, 197);
    let late = server
        .call("PATCH", &ann)
        .by(ADMIN)
        .header("if-match", &etag);
    assert_eq!(late.json(r#"{"rate": "1/h"}"#).send().await.status, 412);
    let blind = server.call("PATCH", &ann).by(ADMIN);
    assert_eq!(blind.json(r#"{"rate": "1/h"}"#).send().await.status, 428);
}

#[tokio::test]
async fn a_consumer_has_rates_of_units_in_its_time_zone() {
    let text = SHOP
        .replace("user, rate: {", "user, unit: tokens, rate: {")
        .replace("refresh:", "rates: [tokens], refresh:");
    let writable = WritableServer::with(&text).await;
    let server = &writable.server;
    let pro = json!({ "id": "pro", "rate": "9/min", "rates": { "tokens": "1000/month" } });
    make(server, "plans", pro).await;
    let ann = json!({ "id": "ann", "plan": "pro", "time_zone": "Europe/Berlin", "anchor": 31 });
    make(server, "subjects", ann).await;
    let (seen, _) = server.seen(&format!("{AT}/subjects/ann")).await;
    let has = json!({
        "rate": "9/min", "rates": { "tokens": "1000/month" }, "time_zone": "Europe/Berlin",
        "anchor": "31", "group": null, "is_default": false,
    });
    assert_eq!(seen["has"], has);
    let question = json!({ "user": "ann", "policy": "shop", "cost": { "tokens": 150 } });
    let answer = post(server.http, &question.to_string()).await.json();
    assert_eq!(
        (&answer["remaining"], &answer["unit"]),
        (&850.into(), &"tokens".into())
    );

    for (settings, why) in [
        (
            json!({ "rates": { "tokns": "5/h" } }),
            "did you mean `tokens`?",
        ),
        (
            json!({ "time_zone": "Europe/Berln" }),
            "did you mean `Europe/Berlin`?",
        ),
        (json!({ "anchor": 32 }), "no month has a day `32`"),
        (
            json!({ "week_start": "sunday" }),
            "`anchor` conflicts with `week_start`",
        ),
    ] {
        let refused = server
            .change("PATCH", &format!("{AT}/subjects/ann"), &settings)
            .await;
        assert_eq!(refused.status, 422, "{}", refused.body);
        assert!(refused.body.contains(why), "{}", refused.body);
    }
}

#[tokio::test]
async fn a_consumer_limit_is_disabled_and_enabled() {
    let writable = WritableServer::with(SHOP).await;
    let server = &writable.server;
    make(server, "subjects", json!({ "id": "ann", "rate": "200/h" })).await;
    assert_eq!(left(server, "ann").await, 199);
    let turn = |to: &str| {
        let call = server.call("PUT", &format!("{AT}/subjects/ann/mode"));
        let call = call.by(OPERATE).header("if-match", "*");
        call.json(&json!({ "mode": to }).to_string())
    };
    let off = turn("off").send().await;
    assert_eq!((off.status, &off.json()["mode"]), (200, &"off".into()));
    assert_eq!(
        left(server, "ann").await,
        0,
        "the default, of which more is used"
    );
    let on = turn("enforce").send().await;
    assert_eq!((on.status, &on.json()["mode"]), (200, &"enforce".into()));
    assert_eq!(on.json()["settings"], json!({ "rate": "200/h" }));
}

#[tokio::test]
async fn a_consumer_is_given_a_plan_which_then_cannot_be_removed() {
    let writable = WritableServer::with(SHOP).await;
    let server = &writable.server;
    make(server, "plans", json!({ "id": "pro", "rate": "1000/h" })).await;
    make(server, "subjects", json!({ "id": "ann", "rate": "200/h" })).await;
    let ann = format!("{AT}/subjects/ann");
    let assigned = server
        .change("PUT", &format!("{ann}/plan"), &json!({ "plan": "pro" }))
        .await;
    assert_eq!(assigned.status, 200, "{}", assigned.body);
    let own = server.change("PATCH", &ann, &json!({ "rate": null })).await;
    assert_eq!(own.json()["has"]["rate"], "1000/h", "{}", own.body);
    let used = server
        .change("DELETE", &format!("{AT}/plans/pro"), &Value::Null)
        .await;
    // The method takes no body.
    assert_eq!(used.status, 400);
    let remove = |path: String| {
        server
            .call("DELETE", &path)
            .by(ADMIN)
            .header("if-match", "*")
    };
    let used = remove(format!("{AT}/plans/pro")).send().await;
    assert_eq!(used.status, 409, "{}", used.body);
    assert!(used.body.contains("subject `ann`"), "{}", used.body);
    assert_eq!(remove(ann.clone()).send().await.status, 204);
    assert_eq!(remove(ann.clone()).send().await.status, 404);
    assert_eq!(remove(format!("{AT}/plans/pro")).send().await.status, 204);
    assert_eq!(server.get(&ann).await.status, 404);

    let audit = writable.audit();
    let of_ann = |it: &&Value| it["target"] == "plans/consumers/subjects/ann";
    let actions = audit.iter().filter(of_ann);
    let actions: Vec<&str> = actions.map(|it| it["action"].as_str().unwrap()).collect();
    assert_eq!(
        actions,
        ["createEntry", "assignPlan", "changeEntry", "deleteEntry"]
    );
    let changed = audit
        .iter()
        .find(|it| it["action"] == "changeEntry")
        .unwrap();
    assert_eq!(changed["before"], json!({ "rate": "200/h", "plan": "pro" }));
    assert_eq!(changed["after"], json!({ "plan": "pro" }));
}

#[tokio::test]
async fn a_change_at_one_instance_applies_to_all() {
    let writable = WritableServer::with(SHOP).await;
    let other = writable.another().await;
    make(
        &writable.server,
        "subjects",
        json!({ "id": "ann", "rate": "100/h" }),
    )
    .await;
    loop {
        let seen = other.get(&format!("{AT}/subjects/ann")).await.json();
        if seen["has"]["rate"] == "100/h" {
            break;
        }
    }
    let (_, one) = writable.server.seen(&format!("{AT}/subjects/ann")).await;
    let (_, two) = other.seen(&format!("{AT}/subjects/ann")).await;
    assert_eq!(one, two, "the same version everywhere");
    assert_eq!(left(&other, "ann").await, 99);
    assert_eq!(left(&writable.server, "ann").await, 98);
}

#[tokio::test]
async fn consumers_are_listed_in_pages_and_by_prefix() {
    let writable = WritableServer::with(SHOP).await;
    let server = &writable.server;
    make(server, "groups", json!({ "id": "acme", "rate": "5/s" })).await;
    for id in ["ann", "anton", "bob"] {
        make(server, "subjects", json!({ "id": id, "group": "acme" })).await;
    }
    let ids = |page: Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let listed = server.get(&format!("{AT}/subjects?name=an")).await.json();
    assert_eq!(
        (ids(listed.clone()), &listed["total"]),
        (vec!["ann".into(), "anton".into()], &2.into())
    );
    assert_eq!(listed["items"][0]["has"]["rate"], "5/s");
    let page = server
        .get(&format!("{AT}/subjects?offset=2&limit=1"))
        .await
        .json();
    assert_eq!(ids(page), ["bob"]);
    let (acme, _) = server.seen(&format!("{AT}/groups/acme")).await;
    assert_eq!(acme["users"], 3);
    assert_eq!(
        acme["used_by"][0],
        json!({ "kind": "subject", "name": "ann" })
    );
    assert_eq!(server.get(&format!("{AT}/others")).await.status, 404);
    assert_eq!(server.get("/plans/nobody/subjects").await.status, 404);
}

#[tokio::test]
async fn invalid_consumers_are_rejected_with_all_errors() {
    let writable = WritableServer::with(SHOP).await;
    let server = &writable.server;
    make(server, "subjects", json!({ "id": "ann", "rate": "100/h" })).await;
    make(server, "plans", json!({ "id": "golf", "rate": "1/h" })).await;
    for (entry, expected) in [
        (json!({ "rate": "1/h" }), r#""where":"id""#),
        (json!({ "id": "", "rate": "1/h" }), r#""where":"id""#),
        (
            json!({ "id": "x", "rate": "often", "rat": 1 }),
            "did you mean `rate`",
        ),
        (json!({ "id": "x", "rate": "often", "rat": 1 }), "often"),
        (json!({ "id": "x", "rate": "***" }), "not shown"),
        (
            json!({ "id": "x", "plan": "gold" }),
            "unknown plan `gold`; did you mean `golf`",
        ),
        (json!({ "id": "x", "amount": "lots" }), "subject `x`"),
    ] {
        let refused = server
            .change("POST", &format!("{AT}/subjects"), &entry)
            .await;
        assert_eq!(refused.status, 422, "{entry}: {}", refused.body);
        assert!(refused.body.contains(expected), "{entry}: {}", refused.body);
    }
    let twice = json!({ "id": "ann", "rate": "1/h" });
    let twice = server
        .change("POST", &format!("{AT}/subjects"), &twice)
        .await;
    assert_eq!(twice.status, 409);
    let renamed = json!({ "id": "bob" });
    let renamed = server
        .change("PATCH", &format!("{AT}/subjects/ann"), &renamed)
        .await;
    assert_eq!(renamed.status, 422);
    let by_operator = server.call("POST", &format!("{AT}/subjects")).by(OPERATE);
    assert_eq!(by_operator.json(r#"{"id": "x"}"#).send().await.status, 403);
    let by_reader = server
        .call("PUT", &format!("{AT}/subjects/ann/mode"))
        .by(READ);
    assert_eq!(
        by_reader.json(r#"{"mode": "off"}"#).send().await.status,
        403
    );
    let listed = server.get(&format!("{AT}/subjects")).await.json();
    assert_eq!(listed["total"], 1);
    assert_eq!(left(server, "ann").await, 99);
}

#[tokio::test]
async fn entries_broken_by_hand_can_be_fixed_one_by_one() {
    let writable = WritableServer::with(SHOP).await;
    let server = &writable.server;
    make(server, "subjects", json!({ "id": "ann", "rate": "100/h" })).await;
    let mut hand = writable.redis.client();
    let set = |name: &str, text: &str| {
        vec![
            "HSET".to_owned(),
            "tidegate:plans".to_owned(),
            name.to_owned(),
            text.to_owned(),
        ]
    };
    hand.command(&set("subject/bob", "{ s3cr3t"));
    hand.command(&set("subject/carl", "often"));
    hand.command(&["HINCRBY", "tidegate:plans", "version", "1"]);
    loop {
        let plans = server.get("/plans").await.json();
        let error = plans["items"][0]["error"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if error.contains("subject `bob`") && error.contains("subject `carl`") {
            break;
        }
    }
    assert_eq!(left(server, "ann").await, 99, "keeps the last good version");
    // The rest of the document would not be loaded either.
    let more = json!({ "id": "dora", "rate": "1/h" });
    let more = server
        .change("POST", &format!("{AT}/subjects"), &more)
        .await;
    assert_eq!(more.status, 422, "{}", more.body);
    let (bob, _) = server.seen(&format!("{AT}/subjects/bob")).await;
    assert_eq!(bob["settings"], Value::Null);
    let (at, rate) = (format!("{AT}/subjects/bob"), json!({ "rate": "2/h" }));
    let less = server.change("PATCH", &at, &rate).await;
    assert_eq!(less.status, 422, "{}", less.body);
    assert!(less.body.contains("subject `carl`"), "{}", less.body);
    let last = writable.audit().pop().unwrap();
    assert_eq!(last["outcome"], "refused_after_writing", "{last}");
    assert_eq!(
        last["before"], "not JSON",
        "what cannot be read may be a secret"
    );
    let remove = server
        .call("DELETE", &format!("{AT}/subjects/carl"))
        .by(ADMIN);
    assert_eq!(remove.header("if-match", "*").send().await.status, 204);
    assert_eq!(left(server, "bob").await, 1);
}

#[tokio::test]
async fn consumer_keys_are_secrets_and_never_shown() {
    let writable = WritableServer::with(KEYS).await;
    let server = &writable.server;
    let made = json!({ "id": "s3cr3t", "rate": "100/h" });
    let made = server
        .change("POST", &format!("{AT}/subjects"), &made)
        .await;
    assert_eq!(made.status, 201, "{}", made.body);
    let listed = server.get(&format!("{AT}/subjects")).await;
    let wrong = json!({ "rate": "often" });
    let wrong = server
        .change("PATCH", &format!("{AT}/subjects/s3cr3t"), &wrong)
        .await;
    let looked = server.get(&format!("{AT}/subjects?name=s3")).await;
    assert_eq!(
        (listed.status, wrong.status, looked.status),
        (200, 422, 400)
    );
    let changed = json!({ "rate": "10/h" });
    let changed = server
        .change("PATCH", &format!("{AT}/subjects/s3cr3t"), &changed)
        .await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let audit = json!(writable.audit()).to_string();
    for text in [&made.body, &listed.body, &wrong.body, &changed.body, &audit] {
        assert!(!text.contains("s3cr3t"), "{text}");
    }
    assert!(audit.contains("plans/consumers/subjects/***"), "{audit}");
}

#[tokio::test]
async fn plans_of_other_sources_are_read_only_and_name_the_source() {
    let more = SHOP.replace(
        "redis: { key: 'tidegate:plans' }",
        "redis: { writable: false }",
    );
    let writable = WritableServer::with(&more).await;
    let server = &writable.server;
    let refused = json!({ "id": "ann", "rate": "1/h" });
    let refused = server
        .change("POST", &format!("{AT}/subjects"), &refused)
        .await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("come from redis"), "{}", refused.body);
    assert_eq!(
        server.get(&format!("{AT}/subjects")).await.json()["total"],
        0
    );
}

#[tokio::test]
async fn lost_plans_were_recreated_from_the_next_change_only() {
    let writable = WritableServer::with(SHOP).await;
    let server = &writable.server;
    make(server, "subjects", json!({ "id": "ann", "rate": "100/h" })).await;
    writable.redis.command(&["DEL", "tidegate:plans"]);
    let zed = json!({ "id": "zed", "rate": "1/h" });
    let refused = server.change("POST", &format!("{AT}/subjects"), &zed).await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(
        refused.body.contains("are missing in the source"),
        "{}",
        refused.body
    );
    assert_eq!(server.get(&format!("{AT}/subjects")).await.status, 503);
    assert_eq!(
        left(server, "ann").await,
        99,
        "keeps serving the last good version"
    );
    // An operator who wants an empty document sets its version.
    writable
        .redis
        .command(&["HSET", "tidegate:plans", "version", "1"]);
    make(server, "subjects", zed).await;
}

#[tokio::test]
async fn a_subject_with_a_missing_plan_could_not_be_disabled() {
    let writable = WritableServer::with(SHOP).await;
    let server = &writable.server;
    let ann = r#"{"plan": "gone", "rate": "5/h"}"#;
    for command in [
        ["HSET", "tidegate:plans", "subject/ann", ann],
        ["HSET", "tidegate:plans", "version", "1"],
    ] {
        writable.redis.command(&command);
    }
    let at = format!("{AT}/subjects/ann");
    let (_, etag) = server.seen(&at).await;
    let off = server.call("PUT", &format!("{at}/mode")).by(OPERATE);
    let off = off.header("if-match", &etag).json(r#"{"mode": "off"}"#);
    let off = off.send().await;
    assert_eq!(off.status, 200, "{}", off.body);
    let etag = off.header("etag").unwrap().to_owned();
    // The response has the current version.
    let on = server.call("PUT", &format!("{at}/mode")).by(OPERATE);
    let on = on.header("if-match", &etag).json(r#"{"mode": "enforce"}"#);
    let on = on.send().await;
    assert_eq!(on.status, 422, "{}", on.body);
    assert!(on.body.contains("unknown plan `gone`"), "{}", on.body);
}

#[tokio::test]
async fn a_plan_that_was_turned_off_lifted_the_limits_of_its_subjects() {
    let writable = WritableServer::with(SHOP).await;
    let server = &writable.server;
    make(server, "plans", json!({ "id": "pro", "rate": "5/h" })).await;
    make(server, "subjects", json!({ "id": "ann", "plan": "pro" })).await;
    let off = json!({ "mode": "off" });
    let off = server
        .change("PUT", &format!("{AT}/plans/pro/mode"), &off)
        .await;
    assert_eq!(off.status, 422, "{}", off.body);
    assert!(off.body.contains("subject `ann`"), "{}", off.body);
    assert_eq!(left(server, "ann").await, 4);
}

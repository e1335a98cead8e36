//! Rule sets in hashes of real servers.

use crate::live::origins::rules::RuleSetSource;
use crate::live::source::{LoadResult, PolicyFetcher, Revision, SourceError};
use std::time::Duration;
use tidegate_config::source::RuleSets;
use tidegate_testkit::redis::{Cluster, Server};
use tokio::time::timeout;

/// Longer than any step takes, and short enough to wait for.
const LONG: Duration = Duration::from_secs(20);

/// An interval that never elapses.
const NEVER: Duration = Duration::from_hours(1);

fn source(url: &str, every: Duration) -> RuleSetSource {
    let rule_sets = RuleSets {
        redis: tidegate_config::store_from_url(url).expect("a URL"),
        prefix: "fluxgate".to_owned(),
        channel: "fluxgate:rule-reload".to_owned(),
    };
    RuleSetSource::new("redis", &rule_sets, LONG, every).expect("a valid source")
}

/// Writes a rule set like the system: the hash, and its id.
fn save(server: &Server, id: &str, fields: &[&str]) {
    let key = format!("fluxgate:ruleset:{id}");
    let command = [&["HSET", key.as_str(), "ruleSetId", id], fields].concat();
    server.command(&command).int();
    server.command(&["SADD", "fluxgate:rulesets", id]).int();
}

async fn load(source: &RuleSetSource) -> (String, Revision) {
    match ask(source, None).await {
        Ok(LoadResult::Part(part)) => (part.text, part.version),
        other => panic!("{other:?}"),
    }
}

async fn ask(source: &RuleSetSource, seen: Option<&Revision>) -> Result<LoadResult, SourceError> {
    timeout(LONG, source.load(seen)).await.expect("it answers")
}

async fn changed(source: &RuleSetSource) {
    timeout(LONG, source.changed())
        .await
        .expect("a change notification");
}

#[tokio::test]
async fn rule_sets_are_policies_in_the_order_of_their_ids() {
    let server = Server::start();
    let rules = r#"[{ "id": "rule-1", "scope": "PER_IP", "bands": [{ "windowSeconds": 1, "capacity": 10, "label": "10-per-second" }] },
                    { "id": "rule-3", "scope": "GLOBAL", "bands": [{ "windowSeconds": 3600, "capacity": 1000 }] }]"#;
    save(&server, "b", &["rules", rules]);
    save(
        &server,
        "a",
        &[
            "capacity",
            "100",
            "windowSeconds",
            "60",
            "keyStrategyId",
            "userId",
        ],
    );
    server.command(&["SADD", "fluxgate:rulesets", "gone"]).int();
    let Ok(LoadResult::Part(part)) = ask(&source(&server.url(), NEVER), None).await else {
        panic!("the others are right");
    };
    let text = part.text;
    let at = |said: &str| text.find(said).unwrap_or_else(|| panic!("{said}: {text}"));
    assert!(
        at("- name: a\n") < at("100/min") && at("100/min") < at("- name: b\n"),
        "{text}"
    );
    assert!(
        at("rule-1") < at("10-per-second") && at("10-per-second") < at("1000/h"),
        "{text}"
    );
    assert!(
        !text.contains("gone"),
        "an id without a hash is no rule set: {text}"
    );
    let flaw = part.flaw.expect("a reported flaw");
    assert!(
        flaw.contains("the hash `fluxgate:ruleset:gone` is missing"),
        "{flaw}"
    );
}

#[tokio::test]
async fn without_rule_sets_the_source_is_empty() {
    let server = Server::start();
    let (text, _) = load(&source(&server.url(), NEVER)).await;
    assert_eq!(text, "");
}

#[tokio::test]
async fn unchanged_rule_sets_are_kept_and_changed_ones_reloaded() {
    let server = Server::start();
    save(&server, "a", &["capacity", "1", "windowSeconds", "60"]);
    let source = source(&server.url(), NEVER);
    let (_, first) = load(&source).await;
    let again = ask(&source, Some(&first)).await;
    assert!(matches!(again, Ok(LoadResult::Unchanged)), "{again:?}");
    save(&server, "a", &["capacity", "2"]);
    let Ok(LoadResult::Part(part)) = ask(&source, Some(&first)).await else {
        panic!("it has changed");
    };
    assert!(part.text.contains("2/min"), "{}", part.text);
    assert_ne!(part.version, first);
    save(&server, "a", &["capacity", "1"]);
    let (_, back) = load(&source).await;
    assert_eq!(back, first, "the same is the same, whenever it is read");
}

#[tokio::test]
async fn a_change_message_in_any_form_triggers_a_reload() {
    let server = Server::start();
    let source = source(&server.url(), NEVER);
    load(&source).await;
    // It is subscribed from here on; earlier messages are not known.
    changed(&source).await;
    for said in [
        "",
        "*",
        "api-limits",
        r#"{"ruleSetId":"api-limits","fullReload":false}"#,
    ] {
        let heard = server
            .command(&["PUBLISH", "fluxgate:rule-reload", said])
            .int();
        assert_eq!(heard, 1, "{said}");
        changed(&source).await;
    }
    server
        .command(&["PUBLISH", "another:rule-reload", "*"])
        .int();
    let told = timeout(Duration::from_millis(200), source.changed()).await;
    assert!(told.is_err(), "of another's changes nothing is heard");
}

#[tokio::test]
async fn a_change_without_a_message_is_seen_after_the_interval() {
    let server = Server::start();
    let source = source(&server.url(), Duration::from_millis(100));
    let (_, first) = load(&source).await;
    changed(&source).await;
    save(&server, "a", &["capacity", "3", "windowSeconds", "60"]);
    changed(&source).await;
    let Ok(LoadResult::Part(part)) = ask(&source, Some(&first)).await else {
        panic!("it has changed");
    };
    assert!(part.text.contains("3/min"), "{}", part.text);
}

#[tokio::test]
async fn a_lost_subscription_is_renewed_and_reloads_at_once() {
    let server = Server::start();
    let source = source(&server.url(), NEVER);
    load(&source).await;
    changed(&source).await;
    let killed = server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).int();
    assert_eq!(killed, 1);
    // Messages during the interruption are lost, so a reload is due.
    save(&server, "a", &["capacity", "4", "windowSeconds", "60"]);
    changed(&source).await;
    assert!(load(&source).await.0.contains("4/min"));
    assert_eq!(
        server
            .command(&["PUBLISH", "fluxgate:rule-reload", "a"])
            .int(),
        1
    );
    changed(&source).await;
}

#[tokio::test]
async fn an_invalid_rule_set_keeps_its_last_version_and_others_change() {
    let server = Server::start();
    save(&server, "a", &["capacity", "5", "windowSeconds", "60"]);
    save(&server, "b", &["capacity", "6", "windowSeconds", "60"]);
    let source = source(&server.url(), NEVER);
    load(&source).await;
    save(&server, "b", &["capacity", "7"]);
    for wrong in [
        vec!["HSET", "fluxgate:ruleset:a", "capacity", "many"],
        vec![
            "HSET",
            "fluxgate:ruleset:a",
            "capacity",
            "5",
            "capcity",
            "9",
        ],
        vec!["HSET", "fluxgate:ruleset:a", "rules", "[{]"],
        vec!["HSET", "fluxgate:ruleset:a", "rules", "", "ruleSetId", "b"],
        vec![
            "HSET",
            "fluxgate:ruleset:a",
            "ruleSetId",
            "a",
            "windowSeconds",
            "-1",
        ],
    ] {
        server.command(&wrong).int();
        let (text, _) = load(&source).await;
        assert!(
            text.contains("5/min"),
            "what it said before: {wrong:?}: {text}"
        );
        assert!(text.contains("7/min"), "what the other says now: {text}");
    }
    server.command(&["DEL", "fluxgate:ruleset:a"]).int();
    server
        .command(&["SET", "fluxgate:ruleset:a", "not a hash"])
        .text();
    assert!(load(&source).await.0.contains("5/min"));
    server.command(&["SREM", "fluxgate:rulesets", "a"]).int();
    server.command(&["DEL", "fluxgate:ruleset:a"]).int();
    let (text, _) = load(&source).await;
    assert!(
        !text.contains("- name: a\n"),
        "whoever is deleted is gone: {text}"
    );
    save(&server, "a", &["capacity", "8", "windowSeconds", "x"]);
    let (text, _) = load(&source).await;
    assert!(
        !text.contains("- name: a\n"),
        "and has nothing from before: {text}"
    );
    assert!(text.contains("7/min"), "{text}");
}

#[tokio::test]
async fn rule_sets_with_lost_hashes_were_lifted_though_their_ids_stayed() {
    let server = Server::start();
    save(&server, "a", &["capacity", "5", "windowSeconds", "60"]);
    save(&server, "b", &["capacity", "6", "windowSeconds", "60"]);
    let source = source(&server.url(), NEVER);
    let (before, version) = load(&source).await;
    for id in ["a", "b"] {
        let key = format!("fluxgate:ruleset:{id}");
        server.command(&["DEL", key.as_str()]).int();
    }
    let Ok(LoadResult::Part(part)) = ask(&source, Some(&version)).await else {
        panic!("what they said before stands");
    };
    assert_eq!(part.text, before);
    let flaw = part.flaw.expect("a decision");
    assert!(
        flaw.contains("the hash `fluxgate:ruleset:a` is missing"),
        "{flaw}"
    );
    // A replacement that is invalid does not lift their limits either.
    server
        .command(&["SREM", "fluxgate:rulesets", "a", "b"])
        .int();
    save(&server, "c", &["capacity", "many", "windowSeconds", "60"]);
    let other = ask(&source, Some(&part.version)).await;
    assert!(matches!(other, Ok(LoadResult::Wrong(_))), "{other:?}");
    save(&server, "c", &["capacity", "7"]);
    let (text, _) = load(&source).await;
    assert!(text.contains("7/min") && !text.contains("5/min"), "{text}");
}

#[tokio::test]
async fn invalid_rule_sets_are_summarized_until_fixed() {
    let server = Server::start();
    save(&server, "a", &["capacity", "many", "windowSeconds", "60"]);
    save(&server, "b", &["capacity", "1", "windowSeconds", "60"]);
    let source = source(&server.url(), NEVER);
    let Ok(LoadResult::Part(part)) = ask(&source, None).await else {
        panic!("the other is right");
    };
    let flaw = part.flaw.expect("one flaw");
    assert!(
        flaw.starts_with("rule set `a`: fluxgate:ruleset:a:")
            && flaw.contains("`capacity` is `many`"),
        "{flaw}"
    );
    save(&server, "a", &["capacity", "2"]);
    let Ok(LoadResult::Part(part)) = ask(&source, Some(&part.version)).await else {
        panic!("it has changed");
    };
    assert_eq!(part.flaw, None);
}

#[tokio::test]
async fn a_redis_that_lost_its_data_removes_no_rule_set() {
    let server = Server::start();
    save(&server, "a", &["capacity", "1", "windowSeconds", "60"]);
    let source = source(&server.url(), NEVER);
    let (_, version) = load(&source).await;
    server.command(&["FLUSHALL"]).text();
    let Err(SourceError(why)) = ask(&source, Some(&version)).await else {
        panic!("it is lost");
    };
    assert!(why.contains("`fluxgate:rulesets` is missing"), "{why}");
    save(&server, "b", &["capacity", "1", "windowSeconds", "60"]);
    let (text, _) = load(&source).await;
    assert!(
        text.contains("- name: b\n") && !text.contains("- name: a\n"),
        "{text}"
    );
}

#[tokio::test]
async fn an_unreadable_set_of_ids_rejects_the_whole_source() {
    let server = Server::start();
    let source = source(&server.url(), NEVER);
    server.command(&["SET", "fluxgate:rulesets", "x"]).text();
    let Err(SourceError(why)) = ask(&source, None).await else {
        panic!("it is no set");
    };
    assert!(why.contains("fluxgate:rulesets"), "{why}");
}

#[tokio::test]
async fn the_1001st_rule_set_rejected_all_others() {
    let server = Server::start();
    let source = source(&server.url(), NEVER);
    for nth in 0..1_000 {
        let id = format!("set-{nth}");
        save(&server, &id, &["capacity", "1", "windowSeconds", "60"]);
    }
    load(&source).await;
    // It would be the first by its name.
    save(&server, "a", &["capacity", "1", "windowSeconds", "60"]);
    save(&server, "set-0", &["capacity", "7"]);
    let Ok(LoadResult::Part(part)) = ask(&source, None).await else {
        panic!("the others are right");
    };
    assert!(part.text.contains("rate: 7/min"), "others change");
    assert!(part.text.contains("- name: set-999\n"), "others stay");
    assert!(!part.text.contains("- name: a\n"));
    let flaw = part.flaw.expect("it is named");
    let expected = "rule set `a`: there are 1001 rule sets; at most 1000 are supported";
    assert_eq!(flaw, expected);
}

#[tokio::test]
async fn a_message_did_not_wake_a_source_waiting_for_its_retry() {
    let server = Server::start();
    let source = source(&server.url(), NEVER);
    // Messages before the subscription are not known: that is reason enough to load.
    timeout(LONG, source.notified()).await.expect("it listens");
    let told = source.notified();
    let publish = async {
        // Subscribed already, so publishing once is enough.
        server
            .command(&["PUBLISH", "fluxgate:rule-reload", "*"])
            .int()
    };
    let (told, heard) = tokio::join!(timeout(LONG, told), publish);
    told.expect("a decision");
    assert_eq!(heard, 1);
}

#[tokio::test]
async fn in_a_cluster_rule_sets_are_read_from_any_slot() {
    let cluster = Cluster::start(3, 0);
    let command = |words: &[&str]| {
        let owner = cluster.owner_of(cluster.slot_of(words[1]));
        owner.command(words).int()
    };
    let ids: Vec<String> = (0..20).map(|nth| format!("set-{nth}")).collect();
    for id in &ids {
        let key = format!("fluxgate:ruleset:{id}");
        command(&["HSET", &key, "capacity", "5", "windowSeconds", "60"]);
        command(&["SADD", "fluxgate:rulesets", id]);
    }
    let source = source(&cluster.url(), NEVER);
    let (text, _) = load(&source).await;
    for id in &ids {
        assert!(text.contains(&format!("- name: {id}\n")), "{id}: {text}");
    }
    changed(&source).await;
    command(&["PUBLISH", "fluxgate:rule-reload", "*"]);
    changed(&source).await;
}

#[tokio::test]
async fn an_unreachable_server_is_reported_without_its_password() {
    let server = Server::start();
    let url = server.url().replace("redis://", "redis://:hunter2@");
    server.kill9();
    let Err(SourceError(why)) = ask(&source(&url, NEVER), None).await else {
        panic!("it is away");
    };
    assert!(!why.is_empty() && !why.contains("hunter2"), "{why}");
}

//! Guards, in the HTTP frontends.

use crate::admin::samples;
use crate::kit::folder::Folder;
use crate::kit::{Client, Server, ask, get, post};
use tidegate_testkit::redis::Server as Redis;

const GUARDED: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
client: { trusted_proxies: [127.0.0.1], attributes: { project: { header: x-project } } }
respond: { profile: collector }
guards:
  - { name: staff, allow: user, list: [root] }
  - { name: projects, deny: 'attr:project', list: [p1] }
  - { name: blacklist, deny: ip, list: [192.0.2.7, '2001:db8::1'] }
  - { name: soon, deny: user, list: [eve], mode: shadow }
policies:
  - name: api
    limits: [{ name: per-client, key: ip, rate: 1/min burst 2 }]
";

#[tokio::test]
async fn a_check_reports_reason_and_guard_only_with_guards() {
    let server = Server::start(GUARDED).await;
    for (question, answer) in [
        (
            r#"{"ip":"192.0.2.7"}"#,
            r#"{"allowed":false,"limit":null,"retry_after_ms":null,"reason":"blacklisted","guard":"blacklist"}"#,
        ),
        (
            r#"{"ip":"2001:db8::ff"}"#,
            r#"{"allowed":false,"limit":null,"retry_after_ms":null,"reason":"blacklisted","guard":"blacklist"}"#,
        ),
        (
            r#"{"ip":"192.0.2.8","attributes":{"project":"p1"}}"#,
            r#"{"allowed":false,"limit":null,"retry_after_ms":null,"reason":"blocked","guard":"projects"}"#,
        ),
        (
            r#"{"ip":"192.0.2.7","user":"root","policy":"api"}"#,
            r#"{"allowed":true,"limit":null,"reason":"exempt","guard":"staff"}"#,
        ),
        (
            r#"{"ip":"192.0.2.8","user":"eve"}"#,
            r#"{"allowed":true,"limit":"per-client","band":"1/min burst 2","remaining":1,"retry_after_ms":0,"reset_ms":60000,"reason":"allowed"}"#,
        ),
    ] {
        assert_eq!(post(server.http, question).await.body, answer);
    }
    let again = r#"{"ip":"192.0.2.8","cost":5}"#;
    assert_eq!(post(server.http, again).await.json()["reason"], "limited");

    let without = Server::start(crate::kit::TWO_A_MINUTE).await;
    let reply = post(without.http, r#"{"ip":"192.0.2.7"}"#).await;
    assert!(reply.json().get("reason").is_none(), "{}", reply.body);
}

#[tokio::test]
async fn forward_auth_answers_a_listed_address_with_429_and_a_blocked_project_with_402() {
    let server = Server::start(GUARDED).await;
    let listed = ask("/v1/auth/api").from("192.0.2.7").at(server.http).await;
    assert_eq!(listed.status, 429);
    assert_eq!(
        listed.body,
        r#"{"code":429,"error":true,"message":"Too Many Requests"}"#
    );
    assert_eq!(listed.header("retry-after"), None);
    assert_eq!(listed.header("x-denied-reason"), Some("limit"));
    let blocked = ask("/v1/auth/api").header("x-project", "p1");
    let blocked = blocked.at(server.http).await;
    assert_eq!(blocked.status, 402);
    assert_eq!(
        blocked.body,
        r#"{"code":402,"error":true,"message":"Project has exceeded the events limit"}"#
    );
    assert_eq!(ask("/v1/auth/api").at(server.http).await.status, 200);
}

#[tokio::test]
async fn a_listed_address_cannot_evade_with_its_own_headers() {
    let server = Server::start(GUARDED).await;
    for forged in [
        "198.51.100.1, 192.0.2.7",
        "nonsense, 192.0.2.7",
        "::ffff:192.0.2.7",
        "192.0.2.7:4711",
    ] {
        let reply = ask("/v1/auth/api").from(forged).at(server.http).await;
        assert_eq!(reply.status, 429, "{forged}");
    }
    // An untrusted client cannot name a denied address for another client.
    let other = ask("/v1/auth/api").from("192.0.2.7, 198.51.100.9");
    assert_eq!(other.at(server.http).await.status, 200);
}

#[tokio::test]
async fn a_guard_problem_names_the_subject_and_no_limits() {
    let text = GUARDED.replace("respond: { profile: collector }\n", "");
    let server = Server::start(&text).await;
    let listed = ask("/v1/auth/api").from("192.0.2.7").at(server.http).await;
    assert_eq!(
        listed.header("content-type"),
        Some("application/problem+json")
    );
    let problem = listed.json();
    assert_eq!(problem["type"], "about:blank");
    assert_eq!(problem["detail"], "This address is banned.");
    assert_eq!(problem["violated-policies"], serde_json::json!([]));
}

#[tokio::test]
async fn metrics_show_guard_decisions_and_list_sizes() {
    let server = Server::start(GUARDED).await;
    for question in [
        r#"{"ip":"192.0.2.7"}"#,
        r#"{"ip":"192.0.2.7"}"#,
        r#"{"user":"root"}"#,
        r#"{"user":"eve"}"#,
    ] {
        post(server.http, question).await;
    }
    let page = samples(&get(server.admin, "/metrics").await.body);
    for (series, count) in [
        (
            "tidegate_guard_refusals_total{guard=\"blacklist\",reason=\"blacklisted\"}",
            2.0,
        ),
        ("tidegate_guard_exemptions_total{guard=\"staff\"}", 1.0),
        ("tidegate_guard_shadow_matches_total{guard=\"soon\"}", 1.0),
        ("tidegate_list_members{guard=\"blacklist\"}", 2.0),
        ("tidegate_list_age_seconds{guard=\"blacklist\"}", 0.0),
        ("tidegate_list_failures_total{guard=\"blacklist\"}", 0.0),
        ("tidegate_list_stale{guard=\"blacklist\"}", 0.0),
        (
            "tidegate_decisions_total{policy=\"api\",limit=\"\",outcome=\"refused\",decided_by=\"store\",reason=\"blacklisted\"}",
            2.0,
        ),
        (
            "tidegate_decisions_total{policy=\"api\",limit=\"\",outcome=\"exempt\",decided_by=\"store\",reason=\"exempt\"}",
            1.0,
        ),
    ] {
        assert_eq!(page.get(series), Some(&count), "{series}");
    }
}

#[tokio::test]
async fn a_disabled_guard_is_not_evaluated_and_reported_as_off() {
    let text = GUARDED
        .replace("name: staff,", "name: staff, mode: off,")
        .replace("name: blacklist,", "name: blacklist, mode: off,")
        .replace("mode: shadow", "mode: off");
    let server = Server::start(&text).await;
    let listed = post(server.http, r#"{"ip":"192.0.2.7","user":"root"}"#).await;
    assert_eq!(listed.json()["limit"], "per-client", "{}", listed.body);
    assert_eq!(listed.json()["reason"], "allowed", "{}", listed.body);
    assert!(post(server.http, r#"{"user":"eve"}"#).await.is_allowed());
    let listed = ask("/v1/auth/api").from("192.0.2.7").at(server.http).await;
    assert_eq!(listed.status, 200);
    let blocked = ask("/v1/auth/api").header("x-project", "p1");
    assert_eq!(
        blocked.at(server.http).await.status,
        402,
        "this guard is enforced"
    );

    let page = samples(&get(server.admin, "/metrics").await.body);
    for (series, value) in [
        ("tidegate_guard_enabled{guard=\"blacklist\"}", Some(&0.0)),
        ("tidegate_guard_enabled{guard=\"projects\"}", Some(&1.0)),
        ("tidegate_list_members{guard=\"blacklist\"}", Some(&2.0)),
        ("tidegate_list_age_seconds{guard=\"blacklist\"}", None),
        ("tidegate_list_age_seconds{guard=\"projects\"}", Some(&0.0)),
        ("tidegate_list_stale{guard=\"blacklist\"}", None),
        ("tidegate_list_stale{guard=\"projects\"}", Some(&0.0)),
        ("tidegate_guard_shadow_matches_total{guard=\"soon\"}", None),
        ("tidegate_guard_exemptions_total{guard=\"staff\"}", None),
    ] {
        assert_eq!(page.get(series), value, "{series}");
    }
    let status = get(server.admin, "/status").await.json();
    let lists = status["lists"].as_array().unwrap().iter();
    let lists: Vec<&str> = lists.map(|it| it["status"].as_str().unwrap()).collect();
    assert_eq!(lists, ["OFF", "UP", "OFF", "OFF"], "{status}");
    assert_eq!(status["status"], "UP", "{status}");
}

#[tokio::test]
async fn sets_in_redis_take_effect_while_the_server_runs() {
    let redis = Redis::start();
    let config = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ url: '{}', timeout: 10s }}
guards: [{{ name: blacklist, deny: ip, redis: {{ set: BlacklistIPsSet }}, refresh: 100ms }}]
policies: [{{ name: api, limits: [{{ name: all, rate: 1000000/s }}] }}]
",
        redis.url()
    );
    let server = Server::start(&config).await;
    let mut client = Client::connect(server.http).await;
    for (verb, is_listed) in [("SADD", true), ("SREM", false)] {
        redis.command(&[verb, "BlacklistIPsSet", "10.0.0.50"]);
        let taking_effect = async {
            while client.post(r#"{"ip":"10.0.0.50"}"#).await.is_allowed() == is_listed {
                tokio::task::yield_now().await;
            }
        };
        let in_time = tokio::time::timeout(std::time::Duration::from_mins(1), taking_effect);
        in_time
            .await
            .unwrap_or_else(|_| panic!("{verb} took no effect"));
    }
}

#[tokio::test]
async fn a_missing_list_file_prevents_the_start() {
    let folder = Folder::make();
    let config = folder.write(
        "limits.yaml",
        "guards: [{ name: out, deny: ip, file: /nowhere/list }]
policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]
",
    );
    let arguments = ["serve", "--config", &config];
    let ended = crate::kit::process::run(crate::kit::process::tidegate(&arguments)).await;
    assert!(!ended.status.success());
    assert!(ended.stderr.contains("/nowhere/list"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_block_of_a_limit_was_reported_like_any_other_refusal() {
    let server = Server::start(
        "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
guards: [{ name: closed, deny: user, list: [eve] }]
policies:
  - { name: plain, limits: [{ name: x, key: ip, rate: 1/h }] }
  - { name: login, limits: [{ name: x, key: ip, rate: 1/h, block: 5m }] }
",
    )
    .await;
    let detail = async |policy: &str| {
        let asked = ask(&format!("/v1/auth/{policy}")).from("192.0.2.1");
        asked.at(server.http).await;
        let reply = asked.at(server.http).await;
        assert_eq!(reply.status, 429);
        reply.json()["detail"].as_str().unwrap().to_owned()
    };
    let plain = detail("plain").await;
    assert!(
        plain.starts_with("Rate limit exceeded. Try again in "),
        "{plain}"
    );
    let blocked = detail("login").await;
    assert!(
        blocked.starts_with("Blocked for exceeding the rate limit. Try again in "),
        "{blocked}"
    );
    let reason = async |question: &str| {
        let reply = post(server.http, question).await;
        reply.json()["reason"].as_str().unwrap().to_owned()
    };
    let login = r#"{"ip":"192.0.2.1","policy":"login"}"#;
    assert_eq!(reason(login).await, "limit-blocked");
    assert_eq!(
        reason(r#"{"ip":"192.0.2.1","policy":"plain"}"#).await,
        "limited"
    );
    assert_eq!(reason(r#"{"user":"eve"}"#).await, "blocked");
    let page = samples(&get(server.admin, "/metrics").await.body);
    let counted = |policy: &str, reason: &str| {
        let labels = format!("policy=\"{policy}\",limit=\"x\",outcome=\"refused\"");
        let name = format!(
            "tidegate_decisions_total{{{labels},decided_by=\"store\",reason=\"{reason}\"}}"
        );
        page.get(&name).copied()
    };
    assert_eq!(counted("login", "limit-blocked"), Some(2.0));
    assert_eq!(counted("plain", "limited"), Some(2.0));
}

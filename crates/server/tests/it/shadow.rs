//! Shadow mode: everything is decided and counted, and no request is refused.

use crate::admin::samples;
use crate::kit::folder::Folder;
use crate::kit::process::{Process, run, tidegate};
use crate::kit::{Server, ask, get, post};

const SHADOW: &str = "
mode: shadow
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
client: { trusted_proxies: [127.0.0.1], user: { header: x-user } }
guards: [{ name: closed, deny: user, list: [eve] }]
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 1/h, block: 5m }
      - { name: per-user, key: user, missing: refuse, rate: 100/h }
";

const TOLD: &str = "shadow mode: every request passes, refusals are only counted";

#[tokio::test]
async fn checks_and_forward_auth_pass_and_are_counted_by_limit_reason_and_guard() {
    let server = Server::start(SHADOW).await;
    for _ in 0..3 {
        let reply = post(server.http, r#"{"ip":"192.0.2.1","user":"eve"}"#).await;
        assert_eq!(
            reply.body,
            r#"{"allowed":true,"limit":null,"reason":"allowed"}"#
        );
    }
    for _ in 0..2 {
        let reply = ask("/v1/auth").from("192.0.2.2").at(server.http).await;
        assert_eq!((reply.status, reply.header("retry-after")), (200, None));
        assert_eq!(reply.header("x-ratelimit-limit"), None);
    }
    let page = samples(&get(server.admin, "/metrics").await.body);
    let would = |limit: &str, reason: &str| {
        let name = format!(
            "tidegate_decisions_total{{policy=\"api\",limit=\"{limit}\",outcome=\"shadow_refused\",decided_by=\"store\",reason=\"{reason}\"}}"
        );
        page.get(&name).copied()
    };
    assert_eq!(would("per-client", "limit-blocked"), Some(3.0));
    assert_eq!(would("per-user", "no-identity"), Some(2.0));
    let watched = page.get("tidegate_guard_shadow_matches_total{guard=\"closed\"}");
    assert_eq!(watched, Some(&3.0));
    let status = get(server.admin, "/status").await.json();
    assert_eq!(status["configuration"]["mode"], "shadow");
}

#[tokio::test]
async fn in_shadow_mode_an_unreadable_request_is_still_rejected() {
    let server = Server::start(SHADOW).await;
    assert_eq!(post(server.http, "{").await.status, 400);
    assert_eq!(post(server.http, r#"{"policy":"none"}"#).await.status, 400);
}

/// Returns a limit of one request per hour.
fn one_an_hour(mode: &str) -> String {
    format!(
        "{mode}\nlisten: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}\npolicies: [{{ name: api, limits: [{{ name: all, rate: 1/h }}] }}]"
    )
}

#[tokio::test]
async fn the_shadow_flag_is_logged_and_survives_a_reload() {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", one_an_hour("mode: enforce"));
    let flags = ["serve", "--no-watch", "--shadow", "--config", &file];
    let mut process = Process::start(tidegate(&flags));
    process.logs(TOLD, ("level", "WARN")).await;
    let http = process.address("http").await;
    folder.write("tidegate.yaml", one_an_hour("mode: enforce") + " # changed");
    process.signal("HUP").await;
    process.logs("config reloaded", ("level", "INFO")).await;
    for _ in 0..3 {
        assert_eq!(post(http, "{}").await.json()["allowed"], true);
    }
}

#[tokio::test]
async fn a_reload_changes_the_mode_and_logs_it() {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", one_an_hour(""));
    let mut process = Process::start(tidegate(&["serve", "--no-watch", "--config", &file]));
    let http = process.address("http").await;
    let allowed = async || post(http, "{}").await.json()["allowed"] == true;
    assert!(allowed().await && !allowed().await);
    folder.write("tidegate.yaml", one_an_hour("mode: shadow"));
    process.signal("HUP").await;
    process.logs(TOLD, ("level", "WARN")).await;
    assert!(allowed().await);
    folder.write("tidegate.yaml", one_an_hour("mode: enforce"));
    process.signal("HUP").await;
    let ended = "shadow mode ended; enforcing";
    process.logs(ended, ("level", "INFO")).await;
    assert!(!allowed().await);
}

#[tokio::test]
async fn the_shadow_flag_applies_to_envoy_policies() {
    let folder = Folder::make();
    let file = folder.write(
        "edge.yaml",
        "domain: edge\ndescriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 1 } }]",
    );
    let flags = ["serve", "--shadow", "--envoy-config", &file];
    let anywhere = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let mut process = Process::start(tidegate(&[&flags[..], &anywhere].concat()));
    let http = process.address("http").await;
    let question =
        r#"{"policy":"edge","descriptors":[{"entries":[{"key":"user","value":"ann"}]}]}"#;
    for _ in 0..3 {
        let reply = post(http, question).await;
        assert_eq!(reply.json()["allowed"], true, "{}", reply.body);
    }
}

#[tokio::test]
async fn validate_reports_shadow_mode() {
    let folder = Folder::make();
    let file = folder.write("tidegate.yaml", one_an_hour("mode: shadow"));
    let said = "Shadow mode: limits, guards, blocks and bans are evaluated and counted";
    for flags in [&["validate", &file][..], &["validate", "--explain", &file]] {
        let ended = run(tidegate(flags)).await;
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        assert_eq!(ended.stdout.matches(said).count(), 1, "{}", ended.stdout);
    }
}

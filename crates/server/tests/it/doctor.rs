//! `tidegate doctor`: settings that would break a guarantee.

use crate::kit::process::ProcessEnd;
use crate::kit::redis::{RunningConfig, config, every_algorithm, parsed, take};
use serde_json::Value;
use tidegate::Request;
use tidegate_testkit::redis::{
    Acl, Certificates, Cluster, RespReply, SentinelGroup, Server, ServerOptions, until,
};

fn on(store: &str) -> RunningConfig {
    RunningConfig::by(config(store))
}

fn at(url: &str) -> String {
    format!("url: '{url}'")
}

/// Returns the status of a check on all nodes, in order.
fn marks(report: &Value, check: &str) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let of = findings.filter(|finding| finding["check"] == check);
    of.map(|finding| finding["mark"].as_str().unwrap().to_owned())
        .collect()
}

fn text(report: &Value, check: &str) -> String {
    let findings = report["findings"].as_array().unwrap().iter();
    let of = findings.filter(|finding| finding["check"] == check);
    of.map(|finding| finding["text"].as_str().unwrap().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns a server without findings.
fn sound() -> ServerOptions {
    Server::builder()
        .setting("maxmemory", "64mb")
        .setting("appendonly", "yes")
}

async fn examined(operated: &RunningConfig) -> (ProcessEnd, Value) {
    let ended = operated.run(&["doctor", "--json"]).await;
    let report = parsed(&ended);
    (ended, report)
}

#[tokio::test]
async fn a_well_configured_server_has_no_findings() {
    let server = sound().start();
    let operated = on(&at(&server.url()));
    let ended = operated.run(&["doctor", "--strict"]).await;
    assert_eq!(
        ended.status.code(),
        Some(0),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
    assert_eq!(ended.stderr, "");
    for words in [
        "topology",
        "standalone: 127.0.0.1",
        "Redis 7.0",
        "ahead of ours",
        "PING p50",
        "EVALSHA p50",
        "noeviction",
        "scripts load and run on every master",
        "0 warnings, 0 failed, 0 not checked",
        "ACL SETUSER tidegate reset on >PASSWORD ~tg:* +evalsha",
    ] {
        let words = words.replace("ahead of ours", " the local clock, ± ");
        assert!(ended.stdout.contains(&words), "{words}: {}", ended.stdout);
    }
    assert_eq!(server.command(&["DBSIZE"]).int(), 0, "nothing is written");
}

#[tokio::test]
async fn eviction_of_buckets_fails_and_missing_persistence_warns() {
    let server = Server::builder()
        .setting("maxmemory", "64mb")
        .setting("maxmemory-policy", "allkeys-lru")
        .start();
    let operated = on(&at(&server.url()));
    let (ended, report) = examined(&operated).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("1 check failed"), "{}", ended.stderr);
    assert_eq!(
        (marks(&report, "eviction"), &report["result"]),
        (vec!["fail".into()], &"fail".into())
    );
    assert_eq!(marks(&report, "persistence"), ["warn"]);

    server
        .command(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"])
        .done();
    let (ended, report) = examined(&operated).await;
    assert_eq!(
        (ended.status.code(), &report["result"]),
        (Some(0), &"warn".into())
    );
    let strict = operated.run(&["doctor", "--strict"]).await;
    assert_eq!(strict.status.code(), Some(1));
    assert!(strict.stderr.contains("--strict"), "{}", strict.stderr);
}

#[tokio::test]
async fn missing_permissions_are_named() {
    let rules =
        "~tg:* -@all +evalsha +script|load +time +get +mget +del +ping +role +cluster|slots";
    let server = Server::builder().acl(Acl::limiter(rules)).start();
    let (ended, report) = examined(&on(&at(&server.url()))).await;
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(marks(&report, "permissions")[0], "fail");
    let said = text(&report, "permissions");
    assert!(
        said.contains("may not run set: decisions are not possible"),
        "{said}"
    );
    assert!(said.contains("may not run info"), "{said}");
    assert!(
        said.contains("pttl, exists, scan, config|get, acl|whoami, needed by inspect"),
        "{said}"
    );
    for check in ["version", "eviction", "persistence", "user"] {
        assert_eq!(marks(&report, check), ["unseen"], "{check}");
    }
    assert!(!(ended.stdout + &ended.stderr).contains("limiter-secret"));

    let rules = "~other:* -@all +@all";
    let server = Server::builder().acl(Acl::limiter(rules)).start();
    let (_, report) = examined(&on(&at(&server.url()))).await;
    let said = text(&report, "permissions");
    assert!(
        said.contains("has no access to Tidegate's keys (get, mget, set, del)"),
        "{said}"
    );
}

/// Creates the user of a printed line.
fn grant(server: &Server, line: &str) {
    let line = line.replace("PASSWORD", "hunter2");
    server.command(&line.split(' ').collect::<Vec<_>>()).done();
}

// The heartbeat continues while the test waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_printed_lines_grant_enough() {
    for layout in ["packed", "open"] {
        let server = sound().start();
        let store = format!("redis: {{ layout: {layout} }}, local_share: auto");
        let on = |store: &str| RunningConfig::by(every_algorithm(store));
        let (_, report) = examined(&on(&format!("url: '{}', {store}", server.url()))).await;
        for who in ["limiter", "operator"] {
            grant(&server, report["acl"][who].as_str().unwrap());
        }
        let as_user = |user| {
            let address = server.address();
            on(&format!("url: 'redis://{user}:hunter2@{address}', {store}"))
        };
        let serving = as_user("tidegate");
        let limiter = serving.limiter().await;
        let everything = Request::new()
            .ip("192.0.2.1".parse().unwrap())
            .user("ann")
            .route("orders")
            .api_key("k");
        for _ in 0..3 {
            take(&limiter, everything).await;
        }
        until("the instance is counted", || {
            server.command(&["ZCARD", "tg:instances"]).int() == 1
        });
        let (ended, report) = examined(&serving).await;
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stdout);
        assert_eq!(
            marks(&report, "permissions"),
            ["ok", "unseen"],
            "{}",
            ended.stdout
        );
        assert_eq!(marks(&report, "scripts"), ["ok"]);

        let operating = as_user("tidegate-operator");
        let ended = operating.run(&["doctor", "--strict"]).await;
        assert_eq!(
            ended.status.code(),
            Some(0),
            "{}{}",
            ended.stdout,
            ended.stderr
        );
        let seen = operating
            .json(&["inspect", "--limit", "bands", "--key", "orders", "ann"])
            .await;
        assert_eq!(seen["bands"][0]["remaining"], 7);
        for words in [
            vec!["reset", "--limit", "tokens", "--key", "192.0.2.1"],
            vec!["reset", "--limit", "fixed", "--key", "ann"],
            vec!["reset", "--limit", "bands", "--all", "--yes"],
        ] {
            let ended = operating.run(&words).await;
            assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        }
        let log = server.command(&["ACL", "LOG"]);
        let mut denied = log.list().iter().map(RespReply::texts);
        let operators = denied.find(|entry| entry.contains(&"tidegate-operator".to_owned()));
        assert_eq!(operators, None, "a command of the operator was denied");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    let server = Server::start();
    server.kill9();
    let (ended, report) = examined(&on(&at(&server.url()))).await;
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(marks(&report, "connection"), ["fail"]);
    let said = text(&report, "connection");
    assert!(
        said.contains(&format!("cannot reach Redis at {}", server.address())),
        "{said}"
    );
    assert!(report["acl"]["limiter"].is_string());
}

#[tokio::test]
async fn in_memory_there_is_nothing_to_examine() {
    let (ended, report) = examined(&on("url: memory")).await;
    assert_eq!(ended.status.code(), Some(0));
    assert!(text(&report, "store").contains("no Redis to check"));
}

#[tokio::test]
async fn every_master_of_a_cluster_is_examined() {
    let cluster = Cluster::builder()
        .setting("min-replicas-max-lag", "11")
        .setting("min-replicas-to-write", "0")
        .start_cluster(3, 3);
    let (ended, report) = examined(&on(&at(&cluster.url()))).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stdout);
    let said = text(&report, "topology");
    assert!(said.starts_with("cluster: 3 masters, "), "{said}");
    assert_eq!(marks(&report, "slots"), ["ok"]);
    for check in [
        "version",
        "clock",
        "eviction",
        "node timeout",
        "replicas",
        "permissions",
    ] {
        assert_eq!(
            marks(&report, check),
            ["ok"; 3],
            "{check}: {}",
            ended.stdout
        );
    }
    assert_eq!(marks(&report, "clocks"), ["ok"]);
    assert_eq!(marks(&report, "split brain"), ["warn"; 3]);
    assert_eq!(marks(&report, "latency"), ["ok"; 6]);
}

#[tokio::test]
async fn sentinels_are_examined_too() {
    let group = SentinelGroup::start();
    let (ended, report) = examined(&on(&at(&group.url()))).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stdout);
    let said = text(&report, "topology");
    assert!(said.starts_with("sentinel: `mymaster` is "), "{said}");
    assert_eq!(marks(&report, "sentinel"), ["ok"; 6], "{}", ended.stdout);
    assert!(text(&report, "sentinel").contains("3 sentinels, quorum 2"));
    group.sentinels()[0].kill9();
    let (ended, report) = examined(&on(&at(&group.url()))).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stdout);
    assert_eq!(marks(&report, "sentinel"), ["warn", "ok", "ok", "ok", "ok"]);
}

#[tokio::test]
async fn tls_and_users_are_as_configured() {
    let certificates = Certificates::make();
    let server = sound()
        .tls(&certificates)
        .ask_clients()
        .acl(Acl::limiter("~tg:* +@all"))
        .start();
    let tls = format!(
        "redis: {{ tls: {{ ca: '{}', cert: '{}', key: '{}' }} }}",
        certificates.authority().display(),
        certificates.client_certificate().display(),
        certificates.client_key().display()
    );
    let (ended, report) = examined(&on(&format!("{}, {tls}", at(&server.url())))).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stdout);
    assert_eq!(text(&report, "user"), "`limiter`");
    assert!(
        report["store"]
            .as_str()
            .unwrap()
            .starts_with("rediss://limiter:***@")
    );
    assert!(!(ended.stdout + &ended.stderr).contains("limiter-secret"));

    let (ended, report) = examined(&on(&at(&server.url()))).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        text(&report, "connection").contains("TLS to Redis"),
        "{}",
        ended.stdout
    );
}

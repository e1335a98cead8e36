//! `tidegate doctor`: what would break a promise.

use crate::kit::process::Ended;
use crate::kit::redis::{Operated, config, every_algorithm, parsed, take};
use serde_json::Value;
use tidegate::Request;
use tidegate_testkit::redis::{
    Acl, Certificates, Cluster, RespReply, SentinelGroup, Server, ServerOptions, until,
};

fn on(store: &str) -> Operated {
    Operated::by(config(store))
}

fn at(url: &str) -> String {
    format!("url: '{url}'")
}

/// The marks of a check, on all nodes, in order.
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

/// A server of which nothing is to be said.
fn sound() -> ServerOptions {
    Server::builder()
        .setting("maxmemory", "64mb")
        .setting("appendonly", "yes")
}

async fn examined(operated: &Operated) -> (Ended, Value) {
    let ended = operated.run(&["doctor", "--json"]).await;
    let report = parsed(&ended);
    (ended, report)
}

#[tokio::test]
async fn of_a_sound_server_nothing_is_to_be_said() {
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
        "they load on every master, and run",
        "0 to look at, 0 failed, 0 could not be seen",
        "ACL SETUSER tidegate reset on >PASSWORD ~tg:* +evalsha",
    ] {
        let words = words.replace("ahead of ours", " ours, give or take ");
        assert!(ended.stdout.contains(&words), "{words}: {}", ended.stdout);
    }
    assert_eq!(server.command(&["DBSIZE"]).int(), 0, "nothing is written");
}

#[tokio::test]
async fn what_would_drop_buckets_fails_and_what_forgets_them_is_warned_about() {
    let server = Server::builder()
        .setting("maxmemory", "64mb")
        .setting("maxmemory-policy", "allkeys-lru")
        .start();
    let operated = on(&at(&server.url()));
    let (ended, report) = examined(&operated).await;
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.stderr.contains("1 of the checks failed"),
        "{}",
        ended.stderr
    );
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
    assert!(said.contains("may not run set: no decision"), "{said}");
    assert!(said.contains("may not run info"), "{said}");
    assert!(
        said.contains("pttl, exists, scan, config|get, acl|whoami, as inspect"),
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
        said.contains("may not touch our keys (get, mget, set, del)"),
        "{said}"
    );
}

/// Makes the user that a printed line makes.
fn grant(server: &Server, line: &str) {
    let line = line.replace("PASSWORD", "hunter2");
    server.command(&line.split(' ').collect::<Vec<_>>()).done();
}

// The heartbeat goes on while the test waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_printed_lines_grant_enough() {
    for layout in ["packed", "open"] {
        let server = sound().start();
        let store = format!("layout: {layout}, local_share: auto");
        let on = |store: &str| Operated::by(every_algorithm(store));
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
        assert_eq!(operators, None, "the operator was refused something");
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_said_to_be() {
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
    assert!(text(&report, "store").contains("no server to examine"));
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
    assert!(text(&report, "sentinel").contains("3 sentinels, 2 of them have to agree"));
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
        "tls: {{ ca_file: '{}', cert_file: '{}', key_file: '{}' }}",
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
        text(&report, "connection").contains("no TLS with Redis"),
        "{}",
        ended.stdout
    );
}

//! `tidegate addresses`: who asks most, and who is kept out.

use super::kit::config;
use crate::kit::redis::{Operated, take};
use serde_json::{Value, json};
use tidegate::Request;
use tidegate_server::tasks::Tasks;
use tidegate_testkit::redis::{Cluster, Server, until};

const BAN: &str = "threshold: 1000, ban: { guard: blacklist, for: 1h }";

async fn ask(operated: &Operated, often: &[(&str, u32)]) {
    let limiter = operated.limiter().await;
    for (address, times) in often {
        for _ in 0..*times {
            take(&limiter, Request::new().ip(address.parse().unwrap())).await;
        }
    }
    limiter.send_counts().await;
}

/// What is told of who asks, without what time has to do with.
fn told(seen: &Value) -> Vec<(&str, u64, u64, bool)> {
    let lines = seen["addresses"].as_array().unwrap().iter();
    lines
        .map(|line| {
            (
                line["address"].as_str().unwrap(),
                line["period"].as_u64().unwrap(),
                line["total"].as_u64().unwrap(),
                line["banned"].as_bool().unwrap(),
            )
        })
        .collect()
}

#[tokio::test]
async fn who_asks_most_now_and_ever_is_told_with_both_counts() {
    let server = Server::start();
    let operated = Operated::by(config(&server.url(), BAN));
    let set = ["HSET", "AllIPsMap", "10.0.0.50", "8500"];
    server.command(&set).done();
    let often = [("192.0.2.1", 5), ("192.0.2.2", 3), ("2001:db8::1", 4)];
    ask(&operated, &often).await;
    let seen = operated.json(&["addresses", "--top", "1"]).await;
    assert_eq!(
        told(&seen),
        [("192.0.2.1", 5, 5, false), ("10.0.0.50", 0, 8_500, false)]
    );
    let seen = operated.json(&["addresses"]).await;
    assert_eq!(
        told(&seen),
        [
            ("192.0.2.1", 5, 5, false),
            ("2001:db8::/64", 4, 4, false),
            ("192.0.2.2", 3, 3, false),
            ("10.0.0.50", 0, 8_500, false),
        ]
    );
    assert_eq!(
        (&seen["period_map"], &seen["total_map"], &seen["threshold"]),
        (
            &json!("CurrentPeriodMap"),
            &json!("AllIPsMap"),
            &json!(1_000)
        )
    );
    assert_eq!((&seen["closed"], &seen["counted"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn people_see_a_table() {
    let server = Server::start();
    let operated = Operated::by(config(&server.url(), BAN));
    let ended = operated.run(&["addresses"]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("nobody has asked"),
        "{}",
        ended.stdout
    );
    ask(&operated, &[("192.0.2.1", 5)]).await;
    let ban = ["addresses", "--ban", "192.0.2.1"];
    assert_eq!(operated.run(&ban).await.status.code(), Some(0));
    let ended = operated.run(&["addresses", "--top", "3"]).await;
    let mut lines = ended.stdout.lines().map(str::trim_end);
    let row: Vec<&str> = lines.next_back().unwrap().split_whitespace().collect();
    assert_eq!(row, ["192.0.2.1", "banned", "5", "5"], "{}", ended.stdout);
}

#[tokio::test]
async fn who_is_banned_is_kept_out_until_that_ends_and_it_is_written_down() {
    let server = Server::start();
    let operated = Operated::by(config(&server.url(), BAN));
    ask(&operated, &[("192.0.2.1", 1), ("2001:db8::1", 1)]).await;
    for (words, said) in [
        (
            vec!["--ban", "192.0.2.1", "--for", "1h"],
            "192.0.2.1 is kept out\n",
        ),
        (
            vec!["--ban", "192.0.2.1"],
            "192.0.2.1 was kept out already\n",
        ),
        (vec!["--unban", "192.0.2.1"], "192.0.2.1 is let in again\n"),
        (vec!["--unban", "192.0.2.1"], "192.0.2.1 was not kept out\n"),
        (
            vec!["--ban", "192.0.2.1", "--for", "1h"],
            "192.0.2.1 is kept out\n",
        ),
        // As it counts.
        (vec!["--ban", "2001:db8::7"], "2001:db8::/64 is kept out\n"),
    ] {
        let words = [&["addresses"], &words[..]].concat();
        let ended = operated.run(&words).await;
        assert_eq!(ended.stdout, said, "{}", ended.stderr);
        let line: Value = serde_json::from_str(ended.stderr.trim()).unwrap();
        assert_eq!(
            (&line["message"], &line["who"], &line["set"]),
            (
                &json!("ban"),
                &json!("ann@gate-1"),
                &json!("BlacklistIPsSet")
            )
        );
    }
    let seen = operated.json(&["addresses"]).await;
    let lines = seen["addresses"].as_array().unwrap();
    let of = |address: &str| {
        lines
            .iter()
            .find(|line| line["address"] == address)
            .unwrap()
    };
    let left = of("192.0.2.1")["ends_in_ms"].as_u64().unwrap();
    assert!((1..=3_600_001).contains(&left), "{left}");
    assert_eq!(of("2001:db8::/64")["banned"], true);
    assert!(of("2001:db8::/64").get("ends_in_ms").is_none(), "for ever");

    let limiter = operated.limiter().await;
    let kept_out = Request::new().ip("192.0.2.1".parse().unwrap());
    let decision = limiter.check(&kept_out).await.unwrap();
    assert_eq!(decision.reason().as_str(), "blacklisted");
}

#[tokio::test]
async fn an_address_was_known_only_in_the_spelling_that_the_set_has() {
    let server = Server::start();
    let operated = Operated::by(config(&server.url(), BAN));
    let often = [("192.0.2.1", 3), ("2001:db8::1", 2), ("198.51.100.7", 1)];
    ask(&operated, &often).await;
    let spelt = [
        "::ffff:192.0.2.1",
        "192.0.2.1/32",
        "2001:DB8::77",
        "2001:0db8:0:0::/64",
        "198.51.100.0/24",
    ];
    server
        .command(&[&["SADD", "BlacklistIPsSet"], &spelt[..]].concat())
        .done();
    let seen = operated.json(&["addresses"]).await;
    assert_eq!(
        told(&seen),
        [
            ("192.0.2.1", 3, 3, true),
            ("2001:db8::/64", 2, 2, true),
            ("198.51.100.7", 1, 1, true),
        ]
    );
    for (address, said) in [
        ("::FFFF:192.0.2.1", "192.0.2.1 is let in again\n"),
        ("192.0.2.1", "192.0.2.1 was not kept out\n"),
        ("2001:DB8::9", "2001:db8::/64 is let in again\n"),
        (
            "198.51.100.7",
            "198.51.100.7 is not in the set, but a network is in it that holds it\n",
        ),
    ] {
        let ended = operated.run(&["addresses", "--unban", address]).await;
        assert_eq!(ended.stdout, said, "{}", ended.stderr);
    }
    let left = server.command(&["SMEMBERS", "BlacklistIPsSet"]).texts();
    assert_eq!(left, ["198.51.100.0/24"]);
}

#[tokio::test]
async fn in_a_cluster_it_is_the_same() {
    let cluster = Cluster::start(3, 0);
    let operated = Operated::by(config(&cluster.url(), BAN));
    ask(&operated, &[("192.0.2.1", 2), ("192.0.2.2", 1)]).await;
    let ended = operated.run(&["addresses", "--ban", "192.0.2.2"]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let seen = operated.json(&["addresses"]).await;
    assert_eq!(
        told(&seen),
        [("192.0.2.1", 2, 2, false), ("192.0.2.2", 1, 1, true)]
    );
    let ended = operated.run(&["addresses", "--unban", "192.0.2.2"]).await;
    assert_eq!(
        ended.stdout, "192.0.2.2 is let in again\n",
        "{}",
        ended.stderr
    );
}

// Counts are kept while the test waits for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_line_that_doctor_prints_grants_all_that_it_takes() {
    let server = Server::start();
    let more = "threshold: 5, total_lasts: 1h, ban: { guard: blacklist, for: 1s }";
    let report = Operated::by(config(&server.url(), more));
    let report = report.run(&["doctor", "--json"]).await;
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let line = report["acl"]["limiter"].as_str().unwrap();
    let line = line.replace("PASSWORD", "hunter2");
    server.command(&line.split(' ').collect::<Vec<_>>()).done();

    let url = format!("redis://tidegate:hunter2@{}", server.address());
    let operated = Operated::by(config(&url, more));
    let limiter = operated.limiter().await;
    for _ in 0..10 {
        take(&limiter, Request::new().ip("192.0.2.1".parse().unwrap())).await;
    }
    let tasks = Tasks::new();
    tasks.spawn(limiter.keep_lists());
    tasks.spawn(limiter.keep_counts(|_| {}));
    until("a ban comes and goes", || {
        limiter.counting().unwrap().lifted == 1
    });
    drop(tasks);
    let ban = operated.run(&["addresses", "--ban", "192.0.2.1"]).await;
    assert_eq!(ban.status.code(), Some(0), "{}", ban.stderr);
    let seen = operated.json(&["addresses"]).await;
    assert_eq!(told(&seen), [("192.0.2.1", 0, 10, true)]);
    let unban = operated.run(&["addresses", "--unban", "192.0.2.1"]).await;
    assert_eq!(unban.status.code(), Some(0), "{}", unban.stderr);
    let log = server.command(&["ACL", "LOG"]);
    assert_eq!(log.list().len(), 0, "{log:?}");
}

#[tokio::test]
async fn what_cannot_be_is_said_with_what_would_be_right() {
    let server = Server::start();
    let with = |more: &str| Operated::by(config(&server.url(), more));
    for (operated, words, said) in [
        (
            with("threshold: 5"),
            vec!["--ban", "192.0.2.1"],
            "this configuration bans nobody",
        ),
        (
            with(BAN),
            vec!["--ban", "localhost"],
            "`localhost` is neither an address nor a network",
        ),
        (
            with(BAN),
            vec!["--ban", "192.0.2.1", "--for", "5"],
            "`5` has no unit",
        ),
        (
            Operated::by("policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]".to_owned()),
            vec![],
            "memory",
        ),
    ] {
        let ended = operated.run(&[&["addresses"], &words[..]].concat()).await;
        assert_eq!(ended.status.code(), Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
    server.kill9();
    let ended = with(BAN).run(&["addresses"]).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
}

//! `tidegate top addresses`, `tidegate ban` and `tidegate unban`.

use super::kit::config;
use crate::kit::redis::{RunningConfig, take};
use serde_json::{Value, json};
use tidegate::Request;
use tidegate_net::tasks::Tasks;
use tidegate_testkit::redis::{Cluster, Server, until};

const BAN: &str = "threshold: 1000, ban: { guard: blacklist, for: 1h }";

async fn ask(operated: &RunningConfig, often: &[(&str, u32)]) {
    let limiter = operated.limiter().await;
    for (address, times) in often {
        for _ in 0..*times {
            take(&limiter, Request::new().ip(address.parse().unwrap())).await;
        }
    }
    limiter.send_counts().await;
}

/// Returns the listed clients without values that depend on time.
fn rows(seen: &Value) -> Vec<(&str, u64, u64, bool)> {
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
async fn top_lists_the_busiest_addresses_with_both_counts() {
    let server = Server::start();
    let operated = RunningConfig::by(config(&server.url(), BAN));
    let set = ["HSET", "tidegate:addresses:total", "10.0.0.50", "8500"];
    server.command(&set).done();
    let often = [("192.0.2.1", 5), ("192.0.2.2", 3), ("2001:db8::1", 4)];
    ask(&operated, &often).await;
    let seen = operated.json(&["top", "addresses", "-n", "1"]).await;
    assert_eq!(
        rows(&seen),
        [("192.0.2.1", 5, 5, false), ("10.0.0.50", 0, 8_500, false)]
    );
    let seen = operated.json(&["top", "addresses"]).await;
    assert_eq!(
        rows(&seen),
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
            &json!("tidegate:addresses:period"),
            &json!("tidegate:addresses:total"),
            &json!(1_000)
        )
    );
    assert_eq!((&seen["closed"], &seen["counted"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn people_see_a_table() {
    let server = Server::start();
    let operated = RunningConfig::by(config(&server.url(), BAN));
    let ended = operated.run(&["top", "addresses"]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("no requests were counted"),
        "{}",
        ended.stdout
    );
    ask(&operated, &[("192.0.2.1", 5)]).await;
    let ban = ["ban", "192.0.2.1"];
    assert_eq!(operated.run(&ban).await.status.code(), Some(0));
    let ended = operated.run(&["top", "addresses", "-n", "3"]).await;
    let mut lines = ended.stdout.lines().map(str::trim_end);
    let row: Vec<&str> = lines.next_back().unwrap().split_whitespace().collect();
    assert_eq!(row, ["192.0.2.1", "banned", "5", "5"], "{}", ended.stdout);
}

#[tokio::test]
async fn a_banned_address_is_refused_until_the_end_and_logged() {
    let server = Server::start();
    let operated = RunningConfig::by(config(&server.url(), BAN));
    ask(&operated, &[("192.0.2.1", 1), ("2001:db8::1", 1)]).await;
    for (words, said) in [
        (
            vec!["ban", "192.0.2.1", "--for", "1h"],
            "192.0.2.1 is banned\n",
        ),
        (vec!["ban", "192.0.2.1"], "192.0.2.1 was already banned\n"),
        (vec!["unban", "192.0.2.1"], "192.0.2.1 is unbanned\n"),
        (vec!["unban", "192.0.2.1"], "192.0.2.1 was not banned\n"),
        (
            vec!["ban", "192.0.2.1", "--for", "1h"],
            "192.0.2.1 is banned\n",
        ),
        // Networks are shown as they are counted.
        (vec!["ban", "2001:db8::7"], "2001:db8::/64 is banned\n"),
    ] {
        let ended = operated.run(&words).await;
        assert_eq!(ended.stdout, said, "{}", ended.stderr);
        let line: Value = serde_json::from_str(ended.stderr.trim()).unwrap();
        assert_eq!(
            (&line["message"], &line["who"], &line["set"]),
            (
                &json!("ban list changed by a command"),
                &json!("ann@gate-1"),
                &json!("BlacklistIPsSet")
            )
        );
    }
    let seen = operated.json(&["top", "addresses"]).await;
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
    assert!(of("2001:db8::/64").get("ends_in_ms").is_none(), "permanent");

    let limiter = operated.limiter().await;
    let kept_out = Request::new().ip("192.0.2.1".parse().unwrap());
    let decision = limiter.check(&kept_out).await.unwrap();
    assert_eq!(decision.reason().as_str(), "blacklisted");
}

#[tokio::test]
async fn an_address_was_found_only_in_the_notation_of_the_set() {
    let server = Server::start();
    let operated = RunningConfig::by(config(&server.url(), BAN));
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
    let seen = operated.json(&["top", "addresses"]).await;
    assert_eq!(
        rows(&seen),
        [
            ("192.0.2.1", 3, 3, true),
            ("2001:db8::/64", 2, 2, true),
            ("198.51.100.7", 1, 1, true),
        ]
    );
    for (address, said) in [
        ("::FFFF:192.0.2.1", "192.0.2.1 is unbanned\n"),
        ("192.0.2.1", "192.0.2.1 was not banned\n"),
        ("2001:DB8::9", "2001:db8::/64 is unbanned\n"),
        (
            "198.51.100.7",
            "198.51.100.7 is not in the set, but the set has a network that contains it\n",
        ),
    ] {
        let ended = operated.run(&["unban", address]).await;
        assert_eq!(ended.stdout, said, "{}", ended.stderr);
    }
    let left = server.command(&["SMEMBERS", "BlacklistIPsSet"]).texts();
    assert_eq!(left, ["198.51.100.0/24"]);
}

#[tokio::test]
async fn bans_work_alike_in_a_cluster() {
    let cluster = Cluster::start(3, 0);
    let operated = RunningConfig::by(config(&cluster.url(), BAN));
    ask(&operated, &[("192.0.2.1", 2), ("192.0.2.2", 1)]).await;
    let ended = operated.run(&["ban", "192.0.2.2"]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let seen = operated.json(&["top", "addresses"]).await;
    assert_eq!(
        rows(&seen),
        [("192.0.2.1", 2, 2, false), ("192.0.2.2", 1, 1, true)]
    );
    let ended = operated.run(&["unban", "192.0.2.2"]).await;
    assert_eq!(ended.stdout, "192.0.2.2 is unbanned\n", "{}", ended.stderr);
}

// Counts are kept while the test waits for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_acl_line_of_doctor_grants_enough_for_bans() {
    let server = Server::start();
    let more = "threshold: 5, total_lasts: 1h, ban: { guard: blacklist, for: 1s }";
    let report = RunningConfig::by(config(&server.url(), more));
    let report = report.run(&["doctor", "--json"]).await;
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let line = report["acl"]["limiter"].as_str().unwrap();
    let line = line.replace("PASSWORD", "hunter2");
    server.command(&line.split(' ').collect::<Vec<_>>()).done();

    let url = format!("redis://tidegate:hunter2@{}", server.address());
    let operated = RunningConfig::by(config(&url, more));
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
    let ban = operated.run(&["ban", "192.0.2.1"]).await;
    assert_eq!(ban.status.code(), Some(0), "{}", ban.stderr);
    let seen = operated.json(&["top", "addresses"]).await;
    assert_eq!(rows(&seen), [("192.0.2.1", 0, 10, true)]);
    let unban = operated.run(&["unban", "192.0.2.1"]).await;
    assert_eq!(unban.status.code(), Some(0), "{}", unban.stderr);
    let log = server.command(&["ACL", "LOG"]);
    assert_eq!(log.list().len(), 0, "{log:?}");
}

#[tokio::test]
async fn errors_of_ban_commands_name_the_valid_values() {
    let server = Server::start();
    let with = |more: &str| RunningConfig::by(config(&server.url(), more));
    for (operated, words, said) in [
        (
            with("threshold: 5"),
            vec!["ban", "192.0.2.1"],
            "this configuration has no bans",
        ),
        (
            with(BAN),
            vec!["ban", "localhost"],
            "`localhost` is neither an address nor a network",
        ),
        (
            with(BAN),
            vec!["ban", "192.0.2.1", "--for", "5"],
            "`5` has no unit",
        ),
        (
            RunningConfig::by(
                "policies: [{ name: p, limits: [{ name: l, rate: 1/s }] }]".to_owned(),
            ),
            vec!["top", "addresses"],
            "memory",
        ),
    ] {
        let ended = operated.run(&words).await;
        assert_eq!(ended.status.code(), Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
    server.kill9();
    let ended = with(BAN).run(&["top", "addresses"]).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
}

#[tokio::test]
async fn the_old_command_names_the_new_ones() {
    let operated = RunningConfig::by(config("redis://127.0.0.1:1", BAN));
    let ended = operated.run(&["addresses", "--top", "3"]).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("`tidegate top addresses`"),
        "{}",
        ended.stderr
    );
}

//! Every key that can be in Redis is listed in `docs/reference/redis-keys.md`.

use crate::kit::redis::{RunningConfig, every_algorithm, take};
use std::time::Duration;
use tidegate::redis::{Address, ConnectionSettings, RedisTopology};
use tidegate::{Request, Store, Throttle};
use tidegate_redis_client::Connection;
use tidegate_redis_shared::{Bans, Census, CensusLimits, CensusNames, CountBatch, PeriodClose};
use tidegate_testkit::redis::{Server, until};

const PAGE: &str = include_str!("../../../../docs/reference/redis-keys.md");

/// A row of the page's tables of keys.
#[derive(Debug)]
struct Row {
    /// The heading above it.
    section: &'static str,
    key: &'static str,
    kind: &'static str,
    expires: &'static str,
}

/// Returns the rows of tables whose first column is `key`.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut section, mut is_table) = ("", false);
    for line in PAGE.lines() {
        section = line.strip_prefix("## ").unwrap_or(section);
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        match cells.as_slice() {
            [
                "",
                "key",
                "type",
                "holds",
                "expires",
                "written by",
                "renamed by",
                "",
            ] => {
                is_table = true;
            }
            ["", key, kind, holds, expires, by, renamed, ""] if is_table => {
                assert!(
                    !holds.is_empty() && !by.is_empty() && !renamed.is_empty(),
                    "{line}"
                );
                if !key.starts_with("---") {
                    let key = key.strip_prefix('`').and_then(|key| key.strip_suffix('`'));
                    rows.push(Row {
                        section,
                        key: key.unwrap_or_else(|| panic!("a key in backticks: {line}")),
                        kind,
                        expires,
                    });
                }
            }
            _ => is_table = false,
        }
    }
    rows
}

/// Returns true if `text` matches `pattern`, in which `<…>` stands for one or more characters
/// except braces.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('<') else {
        return pattern == text;
    };
    let (_, after) = rest.split_once('>').expect("a placeholder ends");
    let Some(text) = text.strip_prefix(before) else {
        return false;
    };
    let ends = text.char_indices().skip(1).map(|(at, _)| at);
    ends.chain([text.len()]).any(|end| {
        !text.is_empty() && !text[..end].contains(['{', '}']) && matches(after, &text[end..])
    })
}

/// A key's type and expiry, and whether a row matches.
struct KeyFinding {
    key: String,
    kind: String,
    expires: bool,
}

/// Counting and banning addresses.
const COUNTED: &str = "
guards: [{ name: blacklist, deny: ip, redis: { set: BlacklistIPsSet } }]
addresses: { ban: { guard: blacklist, for: 1h } }
";

/// Runs an instance that bans an address and dies while it closes a period.
async fn close_half_way(server: &Server) {
    let address = Address::new("127.0.0.1", server.port());
    let settings =
        ConnectionSettings::new(RedisTopology::Standalone, vec![address]).timeout(PATIENCE);
    let connection = Connection::open(settings, Vec::new()).await.unwrap();
    let names = CensusNames {
        period: "tidegate:addresses:period".to_owned(),
        total: "tidegate:addresses:total".to_owned(),
    };
    let limits = CensusLimits {
        period_max: 10,
        total_max: 10,
        total_lasts: None,
    };
    let mut census = Census::new(connection.clone(), &names, limits);
    let mut batch = CountBatch::new(vec![(b"192.0.2.1".to_vec(), 1)]);
    census.add(&mut batch).await.unwrap();
    let moment = Duration::from_millis(1);
    let mut closing = census.close(moment, PATIENCE).await.unwrap();
    while !matches!(closing, PeriodClose::Mine { .. }) {
        closing = census.close(moment, PATIENCE).await.unwrap();
    }
    let bans = Bans::new(connection, "BlacklistIPsSet");
    bans.ban(&["192.0.2.1"], Some(PATIENCE)).await.unwrap();
}

/// Longer than any test takes.
const PATIENCE: Duration = Duration::from_mins(10);

async fn worked(store: &str) -> Vec<KeyFinding> {
    let server = Server::start();
    let url = server.url();
    let store = format!("url: '{url}', local_share: auto, redis: {{ prefix: 'pre:', {store} }}");
    let operated = RunningConfig::by(every_algorithm(&store) + COUNTED);
    let limiter = operated.limiter().await;
    let long = "é".repeat(32);
    let headers = [
        ("a", long.as_str()),
        ("b", long.as_str()),
        ("c", long.as_str()),
    ];
    let request = Request::new()
        .ip("192.0.2.1".parse().unwrap())
        .user("ann")
        .route("orders")
        .api_key("hunter2")
        .headers(&headers);
    take(&limiter, request).await;
    take(&limiter, Request::new().ip("2001:db8::1".parse().unwrap())).await;
    let quota = Throttle::quota(2, 1, 60).unwrap();
    let throttle = Throttle {
        key: b"ann",
        quota: &quota,
        quantity: 1,
    };
    let rules = limiter.rules().unwrap();
    limiter.throttle(&rules, &throttle).await.unwrap();
    let state = limiter.store().shared_state().unwrap();
    let secret = state.secret([7; 32]).unwrap().await.unwrap();
    assert_eq!(secret, [7; 32], "no request before");
    until("the instance is counted", || {
        server.command(&["EXISTS", "pre:instances"]).int() == 1
    });
    close_half_way(&server).await;
    limiter.send_counts().await;
    let doctor = operated.run(&["doctor"]).await;
    assert_eq!(doctor.status.code(), Some(0), "{}", doctor.stdout);
    let mut client = server.client();
    let keys = client.command(&["KEYS", "*"]).texts();
    keys.into_iter()
        .map(|key| KeyFinding {
            kind: client.command(&["TYPE", &key]).text(),
            expires: client.command(&["PTTL", &key]).int() > 0,
            key,
        })
        // Keys that expired since the scan.
        .filter(|found| found.kind != "none" && server.command(&["EXISTS", &found.key]).int() == 1)
        .collect()
}

fn is_listed(row: &Row, found: &KeyFinding) -> bool {
    let pattern = row.key.replace("<prefix>", "pre:");
    row.kind == found.kind
        && found.expires != row.expires.contains("never")
        && matches(&pattern, &found.key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_redis_key_and_no_other_is_documented() {
    let rows = rows();
    let mut seen = vec![false; rows.len()];
    for store in [
        "layout: packed",
        "layout: packed, tag: policy",
        "layout: open",
    ] {
        for found in worked(store).await {
            let mut listed = false;
            for (row, seen) in rows.iter().zip(&mut seen) {
                if is_listed(row, &found) {
                    (listed, *seen) = (true, true);
                }
            }
            let KeyFinding { key, kind, expires } = found;
            assert!(
                listed,
                "{store}: `{key}`, a {kind}, expires: {expires}, is not listed"
            );
        }
    }
    for (row, seen) in rows.iter().zip(seen) {
        // The open layout has one name per template.
        assert!(
            seen || row.section == "Layout open",
            "{row:?} is listed, but no such key exists"
        );
    }
}

#[test]
fn patterns_match_names_and_not_more() {
    assert!(matches("a<x>b", "aXYb"));
    assert!(!matches("a<x>b", "ab"));
    assert!(!matches("{<x>}b", "{a}c}b"));
    assert!(matches("<a>:<b>", "x:y:z"));
    assert!(!matches("x", "xy"));
}

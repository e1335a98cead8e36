//! Every key that is ever in Redis is on the page that lists them, `docs/redis-keys.md`.

use crate::kit::redis::{Operated, every_algorithm, take};
use std::time::Duration;
use tidegate::redis::{Address, ConnectionSettings, RedisTopology};
use tidegate::{Request, Store, Throttle};
use tidegate_redis::{Bans, Census, CensusLimits, CensusNames, Closing, Connection, CountBatch};
use tidegate_testkit::redis::{Server, until};

const PAGE: &str = include_str!("../../../../docs/redis-keys.md");

/// A row of the page's tables of keys.
#[derive(Debug)]
struct Row {
    /// The heading that it stands under.
    section: &'static str,
    key: &'static str,
    kind: &'static str,
    expires: &'static str,
}

/// The rows of tables whose first column is `key`.
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

/// Whether `text` is as `pattern` says: `<…>` stands for one character or more, but for braces.
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

/// What a key is, and whether it is as a row says.
struct Found {
    key: String,
    kind: String,
    expires: bool,
}

/// Addresses are counted, and banned.
const COUNTED: &str = "
guards: [{ name: blacklist, refuse: ip, redis: { set: BlacklistIPsSet } }]
addresses: { ban: { guard: blacklist, for: 1h } }
";

/// An instance that has banned somebody and dies while it closes a period.
async fn close_half_way(server: &Server) {
    let address = Address::new("127.0.0.1", server.port());
    let settings =
        ConnectionSettings::new(RedisTopology::Standalone, vec![address]).timeout(PATIENCE);
    let connection = Connection::open(settings, Vec::new()).await.unwrap();
    let names = CensusNames {
        period: "CurrentPeriodMap".to_owned(),
        total: "AllIPsMap".to_owned(),
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
    while !matches!(closing, Closing::Mine { .. }) {
        closing = census.close(moment, PATIENCE).await.unwrap();
    }
    let bans = Bans::new(connection, "BlacklistIPsSet");
    bans.ban(&["192.0.2.1"], Some(PATIENCE)).await.unwrap();
}

/// Longer than anything takes here.
const PATIENCE: Duration = Duration::from_mins(10);

async fn worked(store: &str) -> Vec<Found> {
    let server = Server::start();
    let url = server.url();
    let store = format!("url: '{url}', local_share: auto, prefix: 'pre:', {store}");
    let operated = Operated::by(every_algorithm(&store) + COUNTED);
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
    assert_eq!(secret, [7; 32], "nobody has asked before");
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
        .map(|key| Found {
            kind: client.command(&["TYPE", &key]).text(),
            expires: client.command(&["PTTL", &key]).int() > 0,
            key,
        })
        // One that ended since it was named, and whose time was up anyway.
        .filter(|found| found.kind != "none" && server.command(&["EXISTS", &found.key]).int() == 1)
        .collect()
}

fn is_listed(row: &Row, found: &Found) -> bool {
    let pattern = row.key.replace("<prefix>", "pre:");
    row.kind == found.kind
        && found.expires != row.expires.contains("never")
        && matches(&pattern, &found.key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_is_on_the_page_and_the_page_has_no_other() {
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
            let Found { key, kind, expires } = found;
            assert!(
                listed,
                "{store}: `{key}`, a {kind}, expires: {expires}, is not listed"
            );
        }
    }
    for (row, seen) in rows.iter().zip(seen) {
        // The names of the open layout are as many as there are templates.
        assert!(
            seen || row.section == "Layout open",
            "{row:?} is listed, and nobody has it"
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

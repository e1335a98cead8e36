//! `tidegate reset`: full buckets again.

use crate::kit::redis::{RunningConfig, client, config, every_algorithm, take};
use serde_json::Value;
use tidegate::Request;
use tidegate_testkit::redis::{Cluster, Server};

fn on(server: &Server) -> RunningConfig {
    RunningConfig::by(config(&format!("url: '{}'", server.url())))
}

fn ann<'a>() -> Request<'a> {
    Request::new().ip("192.0.2.1".parse().unwrap()).user("ann")
}

async fn remaining(operated: &RunningConfig, bucket: &str) -> Vec<u64> {
    let seen = operated.json(&["inspect", bucket]).await;
    let bands = seen["bands"].as_array().unwrap().iter();
    bands
        .map(|band| band["remaining"].as_u64().unwrap())
        .collect()
}

fn audit(stderr: &str) -> Value {
    let mut lines = stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let line: Value = lines.next().expect("a line of the log");
    assert_eq!(lines.next(), None);
    line
}

#[tokio::test]
async fn a_bucket_reset_is_logged() {
    let server = Server::start();
    let operated = on(&server);
    take(&operated.limiter().await, ann().cost(4)).await;
    let bucket = "api/per-user/user:ann";
    let words = ["reset", "--limit", "per-user", "--key", "ann"];

    let dry = operated.run(&[&words[..], &["--dry-run"]].concat()).await;
    assert_eq!(dry.stdout, format!("{bucket} would be reset\n"));
    assert_eq!(dry.stderr, "");
    assert_eq!(remaining(&operated, bucket).await, [6, 96]);

    let ended = operated.run(&words).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, format!("{bucket} is reset\n"));
    let line = audit(&ended.stderr);
    assert_eq!(
        (&line["message"], &line["level"]),
        (&"buckets reset by a command".into(), &"INFO".into())
    );
    assert_eq!(
        (&line["who"], &line["key"]),
        (&"ann@gate-1".into(), &bucket.into())
    );
    assert_eq!(
        (&line["forgotten"], &line["complete"]),
        (&1.into(), &true.into())
    );
    assert_eq!(remaining(&operated, bucket).await, [10, 100]);
    assert_eq!(
        remaining(&operated, "api/per-client/ip:192.0.2.1").await,
        [46],
        "another limit"
    );

    let again = operated.run(&words).await;
    assert_eq!((again.status.code(), &*again.stdout), (Some(3), ""));
    let expected = format!("nothing is stored for {bucket}: ");
    assert!(again.stderr.contains(&expected), "{}", again.stderr);
}

#[tokio::test]
async fn a_single_band_can_be_reset() {
    let server = Server::start();
    let operated = on(&server);
    take(&operated.limiter().await, ann().cost(4)).await;
    let bucket = "api/per-user/user:ann";
    let ended = operated.run(&["reset", bucket, "--band", "m"]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(remaining(&operated, bucket).await, [10, 96]);
}

#[tokio::test]
async fn a_broken_value_can_be_removed() {
    let server = Server::start();
    server
        .command(&["RPUSH", "tg:{user:ann}api/per-user", "x"])
        .done();
    let operated = on(&server);
    let ended = operated.run(&["reset", "tg:{user:ann}api/per-user"]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(
        remaining(&operated, "api/per-user/user:ann").await,
        [10, 100]
    );
}

#[tokio::test]
async fn a_whole_limit_is_reset_only_after_confirmation() {
    let server = Server::start();
    let operated = on(&server);
    let limiter = operated.limiter().await;
    for nth in 0..1_200 {
        take(&limiter, Request::new().ip(client(nth))).await;
    }
    take(&limiter, ann()).await;
    server.command(&["SET", "other", "1"]).done();
    let words = ["reset", "--limit", "per-client", "--all"];

    let asked = operated.run(&words).await;
    assert_eq!((asked.status.code(), &*asked.stdout), (Some(2), ""));
    assert!(asked.stderr.contains("no terminal to confirm it") && asked.stderr.contains("--yes"));
    let dry = operated.run(&[&words[..], &["--dry-run"]].concat()).await;
    assert!(
        dry.stdout.ends_with("keys would be deleted\n"),
        "{}",
        dry.stdout
    );
    assert_eq!(server.command(&["DBSIZE"]).int(), 1_203);

    let ended = operated.run(&[&words[..], &["--yes"]].concat()).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, "1,201 keys were deleted\n");
    let line = audit(&ended.stderr);
    assert_eq!(
        (&line["limit"], &line["key"]),
        (&"per-client".into(), &"*".into())
    );
    assert_eq!(line["forgotten"], 1_201);
    let mut left = server.command(&["KEYS", "*"]).texts();
    left.sort();
    assert_eq!(left, ["other", "tg:{user:ann}api/per-user"]);
}

#[tokio::test]
async fn keys_named_by_policy_and_prefix_are_found() {
    let server = Server::start();
    let store = format!(
        "url: '{}', redis: {{ tag: policy, prefix: 'a*[b]:' }}",
        server.url()
    );
    let operated = RunningConfig::by(config(&store));
    let limiter = operated.limiter().await;
    take(&limiter, ann()).await;
    server.command(&["SET", "ab:{api}per-client/x", "1"]).done();
    let ended = operated
        .run(&["reset", "--limit", "per-client", "--all", "--yes"])
        .await;
    assert_eq!(ended.stdout, "1 key was deleted\n", "{}", ended.stderr);
    let mut left = server.command(&["KEYS", "*"]).texts();
    left.sort();
    assert_eq!(
        left,
        ["a*[b]:{api}per-user/user:ann", "ab:{api}per-client/x"]
    );
}

#[tokio::test]
async fn hashed_long_names_are_found() {
    let server = Server::start();
    let operated = RunningConfig::by(every_algorithm(&format!("url: '{}'", server.url())));
    let limiter = operated.limiter().await;
    let long = "é".repeat(32);
    let headers = [
        ("a", long.as_str()),
        ("b", long.as_str()),
        ("c", long.as_str()),
    ];
    take(&limiter, Request::new().user("ann").headers(&headers)).await;
    let one = ["reset", "--limit", "long", "--key", &long, &long, &long];
    let ended = operated.run(&one).await;
    assert!(ended.stdout.ends_with(" is reset\n"), "{}", ended.stderr);
    take(&limiter, Request::new().user("ann").headers(&headers)).await;
    let all = ["reset", "--limit", "long", "--all", "--yes"];
    let ended = operated.run(&all).await;
    assert_eq!(ended.stdout, "1 key was deleted\n", "{}", ended.stderr);
}

#[tokio::test]
async fn open_layout_buckets_are_inspected_and_reset() {
    let server = Server::start();
    let store = format!("url: '{}', redis: {{ layout: open }}", server.url());
    let operated = RunningConfig::by(every_algorithm(&store));
    let limiter = operated.limiter().await;
    for user in ["ann", "bob"] {
        let request = Request::new().ip("192.0.2.1".parse().unwrap());
        take(&limiter, request.user(user).route("orders").cost(2)).await;
    }
    let fixed = operated
        .json(&["inspect", "--limit", "fixed", "--key", "ann"])
        .await;
    let band = &fixed["bands"][0];
    assert_eq!(
        (&band["key"], &band["field"]),
        (&"rate_limits".into(), &"ann".into())
    );
    assert_eq!(band["remaining"], 8);
    let log = operated.json(&["inspect", "ip:192.0.2.1"]).await;
    assert_eq!(
        (&log["bucket"], &log["bands"][0]["remaining"]),
        (&"api/log/ip:192.0.2.1".into(), &6.into())
    );
    let bands = "ratelimit:api:bands:orders:ann:h";
    assert_eq!(remaining(&operated, bands).await, [8, 98]);

    for bucket in ["api/fixed/user:ann", bands, "ratelimit:tokens:192.0.2.1"] {
        let ended = operated.run(&["reset", bucket]).await;
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    }
    assert_eq!(remaining(&operated, "api/fixed/user:ann").await, [10]);
    assert_eq!(
        remaining(&operated, "api/fixed/user:bob").await,
        [8],
        "in the same hash"
    );
    assert_eq!(remaining(&operated, bands).await, [10, 100]);
    assert_eq!(
        remaining(&operated, "ratelimit:tokens:192.0.2.1").await,
        [50]
    );

    for (limit, said) in [
        ("bands", "2 keys were deleted\n"),
        ("fixed", "1 key was deleted\n"),
        ("log", "1 key was deleted\n"),
    ] {
        let ended = operated
            .run(&["reset", "--limit", limit, "--all", "--yes"])
            .await;
        assert_eq!(ended.stdout, said, "{limit}: {}", ended.stderr);
    }
    assert_eq!(server.command(&["EXISTS", "rate_limits"]).int(), 0);
}

#[tokio::test]
async fn in_a_cluster_every_master_is_scanned() {
    let cluster = Cluster::start(3, 0);
    let operated = RunningConfig::by(config(&format!("url: '{}'", cluster.url())));
    let limiter = operated.limiter().await;
    for nth in 0..60 {
        take(&limiter, Request::new().ip(client(nth))).await;
    }
    let seen = operated
        .json(&["inspect", "--limit", "per-client", "--key", "10.0.0.7"])
        .await;
    let key = &seen["keys"][0];
    let slot = cluster.slot_of(key["key"].as_str().unwrap());
    assert_eq!(key["slot"], slot);
    assert_eq!(key["node"], cluster.owner_of(slot).address());
    let ended = operated
        .run(&["reset", "--limit", "per-client", "--all", "--yes"])
        .await;
    assert_eq!(ended.stdout, "60 keys were deleted\n", "{}", ended.stderr);
    for master in cluster.masters() {
        assert_eq!(master.command(&["DBSIZE"]).int(), 0);
    }
}

#[tokio::test]
async fn joined_policies_are_inspected_and_reset_by_their_origins() {
    let server = Server::start();
    for layout in ["packed", "open"] {
        let operated = RunningConfig::by(format!(
            "
store: {{ url: '{}', timeout: 10s, redis: {{ layout: {layout} }} }}
routes: [{{ name: all, upstreams: 'http://127.0.0.1:9', policy: [api, web] }}]
policies:
  - {{ name: api, limits: [{{ name: per-client, key: ip, rate: 50/min }}] }}
  - {{ name: web, limits: [{{ name: per-user, key: user, rate: 10/min, algorithm: sliding-log }}] }}
",
            server.url()
        ));
        let limiter = operated.limiter().await;
        take(&limiter, ann().cost(2).policy("api+web")).await;
        take(&limiter, ann().cost(3).policy("web")).await;
        for bucket in ["web/per-user/user:ann", "api+web/per-user/user:ann"] {
            assert_eq!(remaining(&operated, bucket).await, [5], "{layout} {bucket}");
        }
        assert_eq!(server.command(&["DBSIZE"]).int(), 2, "{layout}");

        let words = ["reset", "--policy", "api+web", "--limit", "per-user"];
        let ended = operated
            .run(&[&words[..], &["--all", "--yes"]].concat())
            .await;
        assert_eq!(
            ended.stdout, "1 key was deleted\n",
            "{layout}: {}",
            ended.stderr
        );
        assert_eq!(audit(&ended.stderr)["policy"], "web");
        let ended = operated
            .run(&["reset", "api/per-client/ip:192.0.2.1"])
            .await;
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        assert_eq!(server.command(&["DBSIZE"]).int(), 0, "{layout}");
    }
}

/// Returns a limit that blocks, exceeded by Ann.
async fn blocked(server: &Server, store: &str) -> RunningConfig {
    let operated = RunningConfig::by(format!(
        "
store: {{ url: '{}', {store} timeout: 10s }}
policies:
  - name: api
    limits: [{{ name: per-user, key: user, rate: 2/h, block: 1h }}]
",
        server.url()
    ));
    let limiter = operated.limiter().await;
    take(&limiter, ann().cost(2)).await;
    let refused = limiter.check(&ann()).await.unwrap();
    assert!(refused.is_blocked());
    operated
}

#[tokio::test]
async fn a_block_is_shown_and_a_reset_ends_it() {
    let bucket = "api/per-user/user:ann";
    let one = ["reset", bucket];
    let alone = ["reset", bucket, "--band", "block"];
    let all = ["reset", "--limit", "per-user", "--all", "--yes"];
    for (store, words, left) in [
        ("", &one[..], 2),
        ("", &alone, 0),
        ("", &all, 2),
        ("redis: { layout: open },", &one, 2),
        ("redis: { layout: open },", &alone, 0),
        ("redis: { layout: open },", &all, 2),
    ] {
        let server = Server::start();
        let operated = blocked(&server, store).await;
        let seen = operated.json(&["inspect", bucket]).await;
        let left_ms = seen["blocked_for_ms"].as_u64().unwrap();
        assert!((1..=3_600_000).contains(&left_ms), "{seen}");
        assert_eq!(seen["bands"].as_array().unwrap().len(), 1, "{seen}");
        let shown = operated.run(&["inspect", bucket]).await.stdout;
        assert!(shown.contains("\nblocked for 3"), "{shown}");

        let ended = operated.run(words).await;
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        let seen = operated.json(&["inspect", bucket]).await;
        assert!(
            seen["blocked_for_ms"].is_null(),
            "{store} {words:?}: {seen}"
        );
        assert_eq!(seen["bands"][0]["remaining"], left, "{store} {words:?}");
    }
}

//! `tidegate inspect`: the contents of a bucket in Redis.

use crate::kit::redis::{RunningConfig, config, take};
use tidegate::Request;
use tidegate_testkit::redis::Server;

fn on(server: &Server) -> RunningConfig {
    RunningConfig::by(config(&format!("url: '{}'", server.url())))
}

fn ann<'a>() -> Request<'a> {
    Request::new().ip("192.0.2.1".parse().unwrap()).user("ann")
}

#[tokio::test]
async fn a_bucket_is_inspected_by_name_key_and_owner() {
    let server = Server::start();
    let operated = on(&server);
    let limiter = operated.limiter().await;
    take(&limiter, ann().cost(3)).await;
    let key = "tg:{ip:192.0.2.1}api/per-client";
    for words in [
        vec!["inspect", "api/per-client/ip:192.0.2.1"],
        vec!["inspect", key],
        vec!["inspect", "--limit", "per-client", "--key", "192.0.2.1"],
        vec![
            "inspect",
            "--policy",
            "api",
            "--limit",
            "per-client",
            "--key",
            "ip=192.0.2.1",
        ],
    ] {
        let seen = operated.json(&words).await;
        assert_eq!(seen["bucket"], "api/per-client/ip:192.0.2.1", "{words:?}");
        let band = &seen["bands"][0];
        assert_eq!(band["band"], "1/min burst 50");
        assert_eq!(
            (&band["capacity"], &band["remaining"]),
            (&50.into(), &47.into())
        );
        assert_eq!(
            (&band["retry_after_ms"], &band["key"]),
            (&0.into(), &key.into())
        );
        assert!(band["reset_ms"].as_u64().unwrap() > 120_000, "{band}");
        assert!(band["state"]["at"].as_u64().unwrap() > band["at_us"].as_u64().unwrap());
        let kept = &seen["keys"][0];
        assert!(kept["expires_in_ms"].as_u64().unwrap() > 120_000, "{kept}");
        assert!(kept["value"].as_str().unwrap().starts_with("01"), "{kept}");
        assert_eq!(kept["node"], server.address());
    }
}

#[tokio::test]
async fn people_see_a_table_and_nothing_else() {
    let server = Server::start();
    let operated = on(&server);
    let limiter = operated.limiter().await;
    take(&limiter, ann().cost(10)).await;
    let ended = operated
        .run(&["inspect", "--limit", "per-user", "--key", "ann"])
        .await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "bucket api/per-user/user:ann");
    for (line, words) in [
        (
            lines[2],
            vec!["band", "remaining", "retry after", "full in"],
        ),
        (
            lines[3],
            vec!["m (10/min)", "token-bucket", " 0 ", " 5.", " s"],
        ),
        (lines[4], vec!["h (100/h)", " 90 ", "now", " s"]),
        (lines[6], vec!["redis key tg:{user:ann}api/per-user"]),
        (lines[7], vec!["expires in ", &server.address()]),
    ] {
        for word in words {
            assert!(line.contains(word), "{word:?} in {}", ended.stdout);
        }
    }
}

#[tokio::test]
async fn a_secret_bucket_is_found_and_its_secret_never_shown() {
    let server = Server::start();
    let operated = RunningConfig::by(config(&format!(
        "url: '{}', key_secret: pepper",
        server.url()
    )));
    let limiter = operated.limiter().await;
    take(&limiter, Request::new().api_key("hunter2").cost(2)).await;
    let ended = operated
        .run(&[
            "inspect",
            "--limit",
            "per-key",
            "--key",
            "api-key=hunter2",
            "--json",
        ])
        .await;
    let seen = crate::kit::redis::parsed(&ended);
    assert_eq!(seen["bands"][0]["remaining"], 3);
    assert!(!(ended.stdout + &ended.stderr).contains("hunter2"));
}

/// Returns the configuration of [`on`] plus a limit by token.
fn by_token(server: &Server) -> RunningConfig {
    let config = config(&format!("url: '{}'", server.url()));
    RunningConfig::by(format!(
        "{config}      - {{ name: per-token, key: token, missing: skip, rate: 5/min, block: 1h }}\n"
    ))
}

#[tokio::test]
async fn a_blocked_token_was_reported_as_full() {
    let server = Server::start();
    let operated = by_token(&server);
    let attributes = [("token", "hunter2")];
    let request = || Request::new().attributes(&attributes);
    let block = async || {
        // A new limiter each time, because of the deny cache.
        let limiter = operated.limiter().await;
        take(&limiter, request().cost(5)).await;
        assert!(!limiter.check(&request()).await.unwrap().is_allowed());
    };
    block().await;
    let seen = operated
        .json(&["inspect", "--limit", "per-token", "--key", "hunter2"])
        .await;
    let bucket = seen["bucket"].as_str().unwrap().to_owned();
    let hash = bucket.rsplit('#').next().unwrap();
    for (nth, words) in [
        vec!["--limit", "per-token", "--key", "token=hunter2"],
        vec!["api/per-token/attr.token:hunter2"],
        vec!["tg:{attr.token:hunter2}api/per-token"],
        vec!["--limit", "per-token", "--key", hash],
        vec!["--limit", "per-token", "--key", &format!("token=#{hash}")],
        vec![&*bucket],
    ]
    .into_iter()
    .enumerate()
    {
        if nth > 0 {
            block().await;
        }
        let seen = operated.json(&[&["inspect"], &words[..]].concat()).await;
        assert_eq!(
            (&seen["bucket"], &seen["found"]),
            (&bucket.as_str().into(), &true.into())
        );
        assert!(
            seen["blocked_for_ms"].as_u64() > Some(0),
            "{words:?}: {seen}"
        );
        let reset = [&["reset"], &words[..]].concat();
        let ended = operated.run(&reset).await;
        assert_eq!(ended.status.code(), Some(0), "{words:?}: {}", ended.stderr);
        let again = operated.run(&reset).await;
        assert_eq!(again.status.code(), Some(3), "{words:?}: {}", again.stderr);
        assert!(
            again.stderr.contains("nothing is stored for"),
            "{}",
            again.stderr
        );
        for said in [ended.stdout, ended.stderr, again.stdout, again.stderr] {
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_missing_bucket_has_its_own_exit_code() {
    let server = Server::start();
    let ended = on(&server)
        .run(&["inspect", "--limit", "per-user", "--key", "bob"])
        .await;
    assert_eq!(ended.status.code(), Some(3), "{}", ended.stderr);
    let expected = "tidegate: nothing is stored for api/per-user/user:bob: the bucket is full";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
    assert!(
        ended.stdout.starts_with("bucket api/per-user/user:bob\n"),
        "{}",
        ended.stdout
    );
    let dry = on(&server)
        .run(&["reset", "api/per-user/user:bob", "--dry-run"])
        .await;
    assert_eq!(
        (dry.status.code(), &*dry.stdout),
        (Some(3), ""),
        "{}",
        dry.stderr
    );
}

#[tokio::test]
async fn a_missing_bucket_is_full() {
    let server = Server::start();
    let seen = on(&server)
        .json(&[
            "inspect", "--limit", "per-user", "--key", "bob", "--band", "h",
        ])
        .await;
    assert_eq!(seen["bands"].as_array().unwrap().len(), 1);
    let band = &seen["bands"][0];
    assert_eq!(
        (&band["remaining"], &band["as_good_as_new"]),
        (&100.into(), &true.into())
    );
    assert_eq!(
        (&band["state"], &seen["keys"][0]["exists"]),
        (&().into(), &false.into())
    );
}

#[tokio::test]
async fn foreign_keys_are_reported() {
    let server = Server::start();
    server
        .command(&["SET", "tg:{user:ann}api/per-user", "hello"])
        .done();
    let ended = on(&server).run(&["inspect", "api/per-user/user:ann"]).await;
    assert_eq!((ended.status.code(), &*ended.stdout), (Some(1), ""));
    assert!(
        ended.stderr.contains("`tg:{user:ann}api/per-user`"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("`tidegate reset` removes it"),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn without_redis_there_is_nothing_to_inspect() {
    let memory = RunningConfig::by(config("url: memory"));
    for command in ["inspect", "reset"] {
        let ended = memory.run(&[command, "api/per-client/ip:192.0.2.1"]).await;
        assert_eq!(ended.status.code(), Some(2));
        assert!(
            ended.stderr.contains("the store is `memory`"),
            "{}",
            ended.stderr
        );
    }
    let server = Server::start();
    server.kill9();
    let ended = on(&server)
        .run(&["inspect", "api/per-client/ip:192.0.2.1"])
        .await;
    assert_eq!(ended.status.code(), Some(1));
    let expected = format!("tidegate: cannot reach Redis at {}: ", server.address());
    assert!(ended.stderr.starts_with(&expected), "{}", ended.stderr);
}

#[tokio::test]
async fn invalid_arguments_exit_with_2() {
    let server = Server::start();
    let operated = on(&server);
    for words in [
        vec!["inspect"],
        vec!["inspect", "nonsense"],
        vec!["inspect", "--limit", "nope"],
        vec!["inspect", "--limit", "per-user"],
        vec!["inspect", "a/b/c", "--limit", "per-user"],
    ] {
        let ended = operated.run(&words).await;
        assert_eq!(ended.status.code(), Some(2), "{words:?} {}", ended.stderr);
    }
}

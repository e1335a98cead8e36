//! `tidegate inspect`: what is in a bucket that is kept in Redis.

use crate::kit::redis::{Operated, config, take};
use tidegate::Request;
use tidegate_testkit::redis::Server;

fn on(server: &Server) -> Operated {
    Operated::by(config(&format!("url: '{}'", server.url())))
}

fn ann<'a>() -> Request<'a> {
    Request::new().ip("192.0.2.1".parse().unwrap()).user("ann")
}

#[tokio::test]
async fn a_bucket_is_seen_by_its_name_its_key_and_its_owner() {
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
            vec!["band", "remaining", "retry after", "as new in"],
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
async fn a_secret_is_found_as_decisions_find_it_and_never_shown() {
    let server = Server::start();
    let operated = Operated::by(config(&format!(
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

#[tokio::test]
async fn what_is_not_there_is_as_good_as_new() {
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
async fn what_is_not_ours_is_said_to_be() {
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
async fn without_a_redis_there_is_nothing_to_see() {
    let memory = Operated::by(config("url: memory"));
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
async fn what_cannot_be_meant_exits_with_2() {
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

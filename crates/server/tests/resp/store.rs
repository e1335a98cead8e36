//! Buckets in Redis: in order, and few calls.

use crate::kit::{CONFIG, Client, Server, line};
use tidegate_testkit::redis;

fn over(redis: &redis::Server) -> String {
    format!(
        "store: {{ url: '{}', timeout: 10s }}\n{CONFIG}",
        redis.url()
    )
}

/// Returns the number of script calls of a Redis.
fn calls(redis: &redis::Server) -> u64 {
    let stats = redis.command(&["INFO", "commandstats"]).text();
    let of = |name: &str| {
        let calls = stats.split(name).nth(1)?.strip_prefix(":calls=")?;
        calls.split(',').next()?.parse::<u64>().ok()
    };
    ["cmdstat_evalsha", "cmdstat_eval", "cmdstat_fcall"]
        .into_iter()
        .filter_map(of)
        .sum()
}

#[tokio::test]
async fn a_pipeline_is_answered_in_order_with_few_store_calls() {
    let redis = redis::Server::start();
    let server = Server::start(&over(&redis)).await;
    let mut client = Client::connect(server.resp).await;
    // The script is loaded after the first.
    client.ask("cl.throttle warm 1 1 1").await;
    let before = calls(&redis);
    let mut batch = Vec::new();
    for n in 0..64 {
        batch.extend(line("cl.throttle one 63 1 3600"));
        batch.extend(line(&format!("echo {n}")));
    }
    client.send(&batch).await;
    for n in 0..64 {
        let left = 63 - n;
        let said = client.reply().await;
        assert!(
            said.starts_with(&format!("*5\r\n:0\r\n:64\r\n:{left}\r\n:-1\r\n")),
            "{n}: {said}"
        );
        let echoed = client.reply().await;
        assert_eq!(echoed.lines().nth(1), Some(&*n.to_string()));
    }
    let said = client.ask("cl.throttle one 63 1 3600").await;
    assert!(
        said.starts_with("*5\r\n:1\r\n:64\r\n:0\r\n:3600\r\n"),
        "{said}"
    );
    let taken = calls(&redis) - before;
    assert!(taken <= 8, "66 decisions took {taken} calls");
}

/// Regression: a read goes to Redis in another call than a take.
#[tokio::test]
async fn a_read_in_a_pipeline_saw_later_takes() {
    let redis = redis::Server::start();
    let server = Server::start(&over(&redis)).await;
    let mut client = Client::connect(server.resp).await;
    for key in 0..50 {
        let mut batch = Vec::new();
        for quantity in [0, 1, 0, 1, 1, 0] {
            batch.extend(line(&format!("cl.throttle {key} 9 1 3600 {quantity}")));
        }
        client.send(&batch).await;
        for left in [10, 9, 9, 8, 7, 7] {
            let said = client.reply().await;
            let expected = format!("*5\r\n:0\r\n:10\r\n:{left}\r\n");
            assert!(said.starts_with(&expected), "{key}, {left}: {said}");
        }
    }
}

#[tokio::test]
async fn a_transaction_takes_in_order_at_exec_with_few_store_calls() {
    let redis = redis::Server::start();
    let server = Server::start(&over(&redis)).await;
    let mut client = Client::connect(server.resp).await;
    client.ask("cl.throttle warm 1 1 1").await;
    let before = calls(&redis);
    client.send(&line("multi")).await;
    client
        .send(&line("cl.throttle one 1999 1 3600").repeat(2_000))
        .await;
    assert_eq!(client.reply().await, "+OK\r\n");
    for _ in 0..2_000 {
        assert_eq!(client.reply().await, "+QUEUED\r\n");
    }
    let kept = redis.command(&["EXISTS", "tg:{one}~cl/throttle"]).int();
    assert_eq!(kept, 0, "nothing is taken before EXEC");
    client.send(&[line("exec"), line("ping")].concat()).await;
    let said = client.reply().await;
    let left: Vec<_> = said.split("*5\r\n:0\r\n:2000\r\n:").skip(1).collect();
    for (nth, left) in left.iter().enumerate() {
        assert!(
            left.starts_with(&format!("{}\r\n", 1_999 - nth)),
            "{nth}: {left}"
        );
    }
    assert_eq!(left.len(), 2_000);
    assert_eq!(client.reply().await, "+PONG\r\n");
    let taken = calls(&redis) - before;
    assert!(taken <= 80, "2,000 decisions took {taken} calls");
}

/// Resets go to Redis in another way than decisions.
#[tokio::test]
async fn keys_are_deleted_in_their_turn_in_a_pipeline_in_every_layout() {
    let redis = redis::Server::start();
    for layout in ["packed", "open"] {
        let config = over(&redis).replace(
            "timeout: 10s",
            &format!("timeout: 10s, redis: {{ layout: {layout} }}"),
        );
        let server = Server::start(&config).await;
        let mut client = Client::connect(server.resp).await;
        for key in 0..20 {
            let take = format!("cl.throttle {key} 1 1 3600");
            let commands = [
                &*take,
                &take,
                &take,
                &format!("ttl {key}"),
                &format!("exists {key} {key} nosuch"),
                &format!("del {key} {key} nosuch"),
                &take,
                &format!("type {key}"),
                &format!("del {key}"),
                &format!("ttl {key}"),
            ];
            let batch: Vec<u8> = commands.iter().flat_map(|words| line(words)).collect();
            client.send(&batch).await;
            let (passed, refused) = ("*5\r\n:0\r\n:2\r\n", "*5\r\n:1\r\n:2\r\n");
            let expected = [
                passed,
                passed,
                refused,
                ":7200\r\n",
                ":2\r\n",
                ":1\r\n",
                passed,
                "+string\r\n",
                ":1\r\n",
                ":-2\r\n",
            ];
            for (nth, expected) in expected.iter().enumerate() {
                let said = client.reply().await;
                assert!(said.starts_with(expected), "{layout} {key} {nth}: {said}");
            }
        }
    }
}

#[tokio::test]
async fn replies_use_the_protocol_version_of_their_command() {
    let redis = redis::Server::start();
    let server = Server::start(&over(&redis)).await;
    let mut client = Client::connect(server.resp).await;
    let check = line("tg.check other");
    let batch = [
        check.clone(),
        line("hello 3"),
        check.clone(),
        line("reset"),
        check,
    ]
    .concat();
    client.send(&batch).await;
    for first in ["*7", "%7", "%7", "+RESET", "*7"] {
        assert_eq!(client.reply().await.lines().next(), Some(first));
    }
}

#[tokio::test]
async fn instances_share_buckets_and_keys_are_named_as_documented() {
    let redis = redis::Server::start();
    let (one, two) = (
        Server::start(&over(&redis)).await,
        Server::start(&over(&redis)).await,
    );
    let mut here = Client::connect(one.resp).await;
    let mut there = Client::connect(two.resp).await;
    assert!(
        here.ask("cl.throttle user:1 1 1 3600")
            .await
            .starts_with("*5\r\n:0\r\n:2\r\n:1\r\n")
    );
    assert!(
        there
            .ask("cl.throttle user:1 1 1 3600")
            .await
            .starts_with("*5\r\n:0\r\n:2\r\n:0\r\n")
    );
    assert!(
        here.ask("cl.throttle user:1 1 1 3600")
            .await
            .starts_with("*5\r\n:1\r\n:2\r\n:0\r\n")
    );
    let keys = redis.command(&["KEYS", "*~cl*"]).texts();
    assert_eq!(keys, ["tg:{user%3A1}~cl/throttle"]);
}

#[tokio::test]
async fn a_client_that_leaves_the_queue_leaves_no_trace() {
    let redis = redis::Server::start();
    let server = Server::start(&over(&redis)).await;
    for _ in 0..20 {
        let mut client = Client::connect(server.resp).await;
        client
            .send(&line("cl.throttle gone 1000 1 3600").repeat(50))
            .await;
        drop(client);
    }
    let mut client = Client::connect(server.resp).await;
    assert!(
        client
            .ask("cl.throttle gone 1000 1 3600 0")
            .await
            .starts_with("*5\r\n:0\r\n:1001\r\n")
    );
}

/// `TTL` and similar commands have no quota for the key that they read.
#[tokio::test]
async fn ttl_pttl_exists_and_type_refilled_the_bucket() {
    let redis = redis::Server::start();
    for layout in ["packed", "open"] {
        let config = over(&redis).replace(
            "timeout: 10s",
            &format!("timeout: 10s, redis: {{ deny_cache: 0, layout: {layout} }}"),
        );
        let server = Server::start(&config).await;
        let mut client = Client::connect(server.resp).await;
        for (command, said) in [
            ("ttl", ":14400\r\n"),
            ("pttl", ":14"),
            ("exists", ":1\r\n"),
            ("type", "+string\r\n"),
        ] {
            let take = format!("cl.throttle {command} 3 1 3600");
            for _ in 0..4 {
                assert!(client.ask(&take).await.starts_with("*5\r\n:0\r\n"));
            }
            let pattern = format!("*{command}*");
            let keys = redis.command(&["KEYS", &pattern]).texts();
            let [key] = keys.as_slice() else {
                panic!("one key of {command}: {keys:?}")
            };
            let stored = || {
                let value = redis.command(&["DUMP", key]).good();
                let expires = redis.command(&["PEXPIRETIME", key]).good();
                (value.bytes().to_vec(), expires.int())
            };
            let before = stored();
            for _ in 0..2 {
                let answer = client.ask(&format!("{command} {command}")).await;
                assert!(answer.starts_with(said), "{layout}: {answer}");
                assert_eq!(stored(), before, "{layout} {command}");
            }
            let answer = client.ask(&take).await;
            assert!(answer.starts_with("*5\r\n:1\r\n"), "{layout}: {answer}");
            assert_eq!(client.ask(&format!("del {command}")).await, ":1\r\n");
        }
    }
}

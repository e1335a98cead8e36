use super::*;
use tidegate_testkit::redis::{FaultProxy, ProxyFaults};

const SOON: Duration = Duration::from_millis(50);

struct ProxiedConnection {
    server: Server,
    proxy: FaultProxy,
    connection: Connection,
}

impl ProxiedConnection {
    fn is_trusted(&self) -> bool {
        let topology = self.connection.shared().topology.load();
        topology.nodes[0].is_trusted()
    }
}

async fn proxied() -> ProxiedConnection {
    let server = Server::start();
    let proxy = FaultProxy::start(server.port());
    let settings = ConnectionSettings::new(
        RedisTopology::Standalone,
        vec![Address::new("127.0.0.1", proxy.port())],
    );
    let connection = Connection::open(settings, vec![counter()]).await.unwrap();
    ProxiedConnection {
        server,
        proxy,
        connection,
    }
}

#[tokio::test]
async fn a_missing_reply_is_reported_as_ambiguous_at_the_timeout() {
    let it = proxied().await;
    it.proxy.set(ProxyFaults::drop_replies());
    let from = Instant::now();
    let error = run_within(&it.connection, "a", RepeatEffect::Consume, SOON)
        .await
        .unwrap_err();
    assert_eq!(
        (error.class(), error.kind()),
        (CallEffect::Ambiguous, &CallErrorKind::Timeout)
    );
    assert!(from.elapsed() >= SOON);
    assert!(from.elapsed() < SOON * 100, "{:?}", from.elapsed());
}

#[tokio::test]
async fn a_deadline_that_has_passed_sends_nothing() {
    let it = proxied().await;
    let error = run_within(&it.connection, "a", RepeatEffect::Consume, Duration::ZERO)
        .await
        .unwrap_err();
    assert_eq!(
        (error.class(), error.kind()),
        (CallEffect::NotExecuted, &CallErrorKind::Timeout)
    );
    assert!(it.server.command(&["GET", "a"]).is_nil());
}

#[tokio::test]
async fn timeouts_open_the_breaker_and_calls_then_fail_at_once() {
    let it = proxied().await;
    it.proxy.set(ProxyFaults::blackhole());
    for _ in 0..5 {
        let error = run_within(&it.connection, "a", RepeatEffect::Consume, SOON)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), &CallErrorKind::Timeout);
    }
    assert!(!it.is_trusted());
    let left_alone = async {
        loop {
            let call = run_within(&it.connection, "a", RepeatEffect::Consume, SOON);
            let error = call.await.unwrap_err();
            if error.kind() == &CallErrorKind::BreakerOpen {
                return error;
            }
        }
    };
    let error = timeout(AGES, left_alone).await.unwrap();
    assert_eq!(error.class(), CallEffect::NotExecuted);
    it.proxy.set(ProxyFaults::none());
    run_until_it_works(&it.connection, "a").await;
}

#[tokio::test]
async fn abandoned_calls_that_time_out_count_against_the_node() {
    let it = proxied().await;
    it.proxy.set(ProxyFaults::blackhole());
    for _ in 0..5 {
        let call = run_within(&it.connection, "a", RepeatEffect::Consume, SOON);
        // On a busy machine the call's own deadline may come first, which is just as good.
        drop(timeout(SOON * 3 / 4, call).await);
    }
    assert!(!it.is_trusted());
}

#[tokio::test]
async fn cancelled_calls_do_not_count_against_the_node() {
    let it = proxied().await;
    it.proxy.set(ProxyFaults::slow(SOON));
    for _ in 0..50 {
        let call = run(&it.connection, "a", RepeatEffect::Consume);
        assert!(timeout(Duration::ZERO, call).await.is_err());
    }
    run(&it.connection, "a", RepeatEffect::Consume)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_refund_with_a_lost_reply_is_not_retried() {
    let it = proxied().await;
    // The connection is cut as soon as the server answers.
    it.proxy.set(ProxyFaults {
        cut_replies_after: Some(0),
        ..ProxyFaults::none()
    });
    let call = run(&it.connection, "refund", RepeatEffect::Refund);
    let error = call.await.unwrap_err();
    assert_eq!(
        (error.class(), error.kind()),
        (CallEffect::Ambiguous, &CallErrorKind::Disconnected)
    );
    it.proxy.set(ProxyFaults::none());
    run_until_it_works(&it.connection, "other").await;
    assert_eq!(it.server.command(&["GET", "refund"]).text(), "1");
}

#[tokio::test]
async fn a_consume_with_a_lost_reply_is_charged_at_most_twice() {
    let it = proxied().await;
    // A connection that breaks immediately is not reopened immediately.
    let from = Instant::now();
    eventually("it stands", || from.elapsed() > keeper::STABLE).await;
    it.proxy.set(ProxyFaults {
        delay_replies: SOON,
        ..ProxyFaults::none()
    });
    let connection = it.connection.clone();
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { run(&connection, "a", RepeatEffect::Consume).await });
    eventually("it is executed", || {
        !it.server.command(&["GET", "a"]).is_nil()
    })
    .await;
    // In this order: otherwise the reply may just get through.
    it.proxy.reset();
    it.proxy.set(ProxyFaults::none());
    let answer = calls.join_next().await.unwrap().unwrap();
    assert_eq!(answer.unwrap(), Value::Int(2));
}

#[tokio::test]
async fn a_silently_dead_connection_is_replaced() {
    let it = proxied().await;
    let open = it.proxy.accepted();
    it.proxy.set(ProxyFaults::blackhole());
    for _ in 0..5 {
        run_within(&it.connection, "a", RepeatEffect::Consume, SOON)
            .await
            .unwrap_err();
    }
    // The old connection stays silent until it is closed.
    eventually("it is given up", || !it.connection.is_connected()).await;
    it.proxy.set(ProxyFaults::none());
    run_until_it_works(&it.connection, "a").await;
    assert!(it.proxy.accepted() > open);
}

#[tokio::test]
async fn no_more_connections_are_tried_than_the_backoff_allows() {
    let it = proxied().await;
    it.proxy.set(ProxyFaults {
        reset_new: true,
        ..ProxyFaults::none()
    });
    it.proxy.reset();
    eventually("it is lost", || !it.connection.is_connected()).await;
    let before = it.proxy.accepted();
    let second = timeout(Duration::from_secs(1), async {
        loop {
            run_within(&it.connection, "a", RepeatEffect::Consume, SOON)
                .await
                .unwrap_err();
            tokio::task::yield_now().await;
        }
    });
    second.await.unwrap_err();
    let tried = it.proxy.accepted() - before;
    // 20 ms, 40 ms, 80 ms, 160 ms, then at least 150 ms apart; for each of two connections.
    assert!(tried <= 2 * 12, "{tried} attempts in a second");
}

use crate::stores::{in_redis, standalone};
use crate::{MINUTE, config, remaining, reserve};
use std::time::Duration;
use tidegate::SettleState::{Already, Settled};
use tidegate::redis::{
    Address, ConnectionSettings, KeyTag, RedisOptions, RedisStore, RedisTopology,
};
use tidegate::{Limiter, Request, SettleError};
use tidegate_testkit::redis::{Cluster, FaultProxy, ProxyFaults, Server};

const HOURLY: &str = "{ name: tokens, key: user, rate: 100/h, algorithm: fixed-window }";

/// Returns a separate instance, by the server's clock.
async fn instance(port: u16, timeout: Duration, limits: &str) -> Limiter<RedisStore> {
    let address = Address::new("127.0.0.1", port);
    let settings =
        ConnectionSettings::new(RedisTopology::Standalone, vec![address]).timeout(timeout);
    let store = RedisStore::connect(settings, RedisOptions::default()).await;
    let builder = Limiter::builder().config(config(limits)).max_keys(1_000);
    let built = builder.build_with(store.expect("the server is up"));
    built.unwrap_or_else(|error| panic!("{error}"))
}

const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn other_and_newer_instances_settle_a_reservation() {
    let server = Server::start();
    let ann = Request::new().user("ann");
    let one = instance(server.port(), PATIENCE, HOURLY).await;
    let other = instance(server.port(), PATIENCE, HOURLY).await;
    let (first, second) = (
        reserve(&one, &ann.cost(40)).await,
        reserve(&one, &ann.cost(40)).await,
    );
    assert_eq!(other.commit(&first, 10).await.unwrap().state(), Settled);
    assert_eq!(one.commit(&first, 10).await.unwrap().state(), Already);
    assert_eq!(remaining(&one, &ann).await, 50);
    drop((one, other));
    let started = instance(server.port(), PATIENCE, HOURLY).await;
    assert_eq!(started.refund(&second).await.unwrap().state(), Settled);
    assert_eq!(remaining(&started, &ann).await, 90);
    // The agreed seal is kept as long as any instance reserves.
    let left = server.command(&["PTTL", "tg:seal"]).int();
    assert!((80_000_000..=86_400_000).contains(&left), "{left}");
    assert_eq!(server.command(&["STRLEN", "tg:seal"]).int(), 32);
}

#[tokio::test]
async fn instances_with_a_shared_secret_need_no_seal_in_the_store() {
    let server = Server::start();
    let url = format!("store: {{ url: 'redis://127.0.0.1:{}'", server.port());
    let text = format!("{url}, key_secret: s3cret }}\n{}", crate::policy(HOURLY));
    let start = async || {
        let builder = Limiter::builder().yaml(&text).unwrap();
        builder
            .connect()
            .await
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let (one, other) = (start().await, start().await);
    let id = reserve(&one, &Request::new().user("ann").cost(40)).await;
    assert_eq!(other.refund(&id).await.unwrap().state(), Settled);
    assert_eq!(server.command(&["EXISTS", "tg:seal"]).int(), 0);
}

#[tokio::test]
async fn a_mark_shares_the_slot_of_its_bucket_and_expires() {
    let server = Server::start();
    let one = instance(server.port(), PATIENCE, HOURLY).await;
    let id = reserve(&one, &Request::new().user("ann").cost(40)).await;
    one.refund(&id).await.unwrap();
    let mut client = server.client();
    let reply = client.command(&["KEYS", "tg:{user:ann}llm/tokens~*"]);
    let marks = reply.texts();
    assert_eq!(marks.len(), 1, "{marks:?}");
    let left = server.command(&["PTTL", &marks[0]]).int();
    assert!((1..=60_000).contains(&left), "{left}");
}

/// Network failures, row by row: the request is lost, the reply is lost, the connection breaks.
#[tokio::test]
async fn a_commit_counts_once_under_any_network_failure() {
    let server = Server::start();
    let wire = FaultProxy::start(server.port());
    let far = instance(wire.port(), Duration::from_millis(100), HOURLY).await;
    let near = instance(server.port(), PATIENCE, HOURLY).await;
    let faults = [
        ProxyFaults::drop_replies(),
        ProxyFaults::blackhole(),
        ProxyFaults {
            cut_replies_after: Some(3),
            ..ProxyFaults::none()
        },
        ProxyFaults {
            cut_requests_after: Some(40),
            ..ProxyFaults::none()
        },
    ];
    for (nth, faults) in faults.into_iter().enumerate() {
        until_it_settles(&far, &near).await;
        let user = format!("user{nth}");
        let request = Request::new().user(&user);
        let less = reserve(&near, &request.cost(40)).await;
        let more = reserve(&near, &request.cost(10)).await;
        wire.set(faults);
        for _ in 0..2 {
            for (id, actual) in [(&less, 15), (&more, 20)] {
                match far.commit(id, actual).await {
                    Ok(settled) => assert!([Settled, Already].contains(&settled.state())),
                    Err(SettleError::Store { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
        wire.set(ProxyFaults::none());
        wire.reset();
        for (id, actual) in [(&less, 15), (&more, 20)] {
            near.commit(id, actual).await.unwrap();
            assert_eq!(near.commit(id, 0).await.unwrap().state(), Already);
        }
        let left = remaining(&near, &request).await;
        assert_eq!(left, 100 - 15 - 20, "{faults:?}");
    }
}

/// Waits until `far` knows the seal, and can reach the store.
async fn until_it_settles(far: &Limiter<RedisStore>, near: &Limiter<RedisStore>) {
    let id = reserve(near, &Request::new().user("nobody")).await;
    while far.refund(&id).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn buckets_in_several_slots_are_each_settled_once() {
    let cluster = Cluster::start(3, 0);
    let settings = crate::stores::cluster(&cluster);
    let limits = "{ name: user, key: user, rate: 100/h }, { name: all, rate: 500/h }, \
                  { name: tenant, key: 'attr:tenant', rate: 200/h }";
    for tag in [KeyTag::Subject, KeyTag::Policy] {
        let pair = in_redis(&settings, tag, limits).await;
        let [one, other] = &pair.limiters;
        for nth in 0..10_u64 {
            let user = format!("user{nth}");
            let tenant = [("tenant", "acme")];
            let request = Request::new().user(&user).attributes(&tenant);
            let reserved = one.reserve(&request.cost(15), MINUTE).await.unwrap();
            let id = reserved.id().unwrap();
            assert_eq!(other.commit(id, 5).await.unwrap().state(), Settled);
            assert_eq!(one.commit(id, 5).await.unwrap().state(), Already);
            let looked = one.check(&request.cost(0)).await.unwrap();
            let left: Vec<u64> = looked.applied().map(|it| it.remaining()).collect();
            assert_eq!(
                left,
                [95, 500 - 5 * (nth + 1), 200 - 5 * (nth + 1)],
                "{tag:?}"
            );
        }
    }
}

#[tokio::test]
async fn concurrent_commits_of_one_reservation_take_effect_once() {
    let server = Server::start();
    let settings = standalone(&server);
    let pair = in_redis(&settings, KeyTag::Subject, HOURLY).await;
    let ann = Request::new().user("ann");
    let id = reserve(pair.of(0), &ann.cost(50)).await;
    let tasks = (0..20_usize).map(|nth| {
        let (limiter, id) = (pair.of(nth).clone(), id.clone());
        tokio::spawn(async move { limiter.commit(&id, 10).await.unwrap().state() })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut settled = 0;
    for task in tasks {
        settled += u32::from(task.await.unwrap() == Settled);
    }
    assert_eq!(settled, 1);
    assert_eq!(remaining(pair.of(1), &ann).await, 90);
}

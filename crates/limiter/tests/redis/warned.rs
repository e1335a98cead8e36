//! Warnings in a shared store: once for each window and share, whichever instance raises them.

use crate::runtime;
use tidegate::redis::{Address, ConnectionSettings, RedisOptions, RedisTopology};
use tidegate::{Limiter, ManualClock, Request, Timestamp};
use tidegate_redis::RedisBuckets;
use tidegate_testkit::redis::Server;

const DAY: &str = "policies: [{ name: api, limits: [{ name: day, key: user, rate: 10/d, \
                   algorithm: fixed-window, warn: [80%, 100%] }] }]";

async fn start(server: &Server, clock: &ManualClock) -> Limiter<RedisBuckets> {
    let address = Address::new("127.0.0.1", server.port());
    let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![address]);
    // The deny cache uses real time.
    let options = RedisOptions::default().deny_cache(0).clock(clock.clone());
    let store = RedisBuckets::connect(settings, options)
        .await
        .expect("a store");
    let built = Limiter::builder()
        .clock(clock.clone())
        .yaml(DAY)
        .expect("valid");
    built.build_with(store).expect("a limiter")
}

async fn reached(limiter: &Limiter<RedisBuckets>, cost: u64) -> Vec<u8> {
    let decision = limiter.check(&Request::new().user("ann").cost(cost)).await;
    let decision = decision.expect("a decision");
    let shares = decision.warnings().map(|band| band.reached_share());
    shares.flatten().collect()
}

#[test]
fn a_restart_or_another_instance_repeats_no_warning() {
    let server = Server::start();
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    runtime().block_on(async {
        let first = start(&server, &clock).await;
        let second = start(&server, &clock).await;
        assert_eq!(reached(&first, 8).await, [80]);
        assert_eq!(reached(&second, 1).await, Vec::<u8>::new());
        drop((first, second));
        let restarted = start(&server, &clock).await;
        assert_eq!(reached(&restarted, 1).await, [100]);
        clock.advance_micros(86_400_000_000);
        assert_eq!(reached(&restarted, 7).await, Vec::<u8>::new());
        assert_eq!(reached(&restarted, 1).await, [80], "the next window");
    });
}

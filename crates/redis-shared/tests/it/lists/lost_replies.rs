//! Counts and bans whose commands are executed although the reply is lost.

use super::kit::{AGES, HOUR, ROOMY, TestRedis, add, batch, run};
use crate::world;
use std::time::Duration;
use tidegate_redis_client::{
    Address, CallEffect, CallError, CallErrorKind, ConnectionSettings, RedisTopology,
};
use tidegate_redis_shared::{Bans, Census, CountBatch, LoadError, MapPlacement, PeriodClose};
use tidegate_testkit::redis::{FaultProxy, ProxyFaults, until_some};

/// A census whose replies can be lost.
struct UnreadConnection {
    /// The servers, over a reliable connection.
    ground: TestRedis,
    proxy: FaultProxy,
    census: Census,
    bans: Bans,
}

fn deaf() -> UnreadConnection {
    let server = world::shared_server();
    let proxy = FaultProxy::start(server.port());
    let ground = TestRedis::new(world::standalone(server));
    let address = Address::new("127.0.0.1", proxy.port());
    let settings =
        ConnectionSettings::new(RedisTopology::Standalone, vec![address]).connect_timeout(AGES);
    let through = TestRedis::new(settings);
    let census = Census::new(through.connection.clone(), &ground.names(), ROOMY);
    let bans = Bans::new(through.connection, ground.name("Blacklist"));
    UnreadConnection {
        ground,
        proxy,
        census,
        bans,
    }
}

impl UnreadConnection {
    /// Returns the result of `act` if the server executes it and its reply is lost.
    fn unheard<T>(&mut self, act: impl FnOnce(&mut Census, &Bans) -> Result<T, CallError>) {
        self.proxy.set(ProxyFaults::drop_replies());
        let Err(error) = act(&mut self.census, &self.bans) else {
            panic!("the reply is lost");
        };
        assert_eq!(error.class(), CallEffect::Ambiguous, "{error}");
        self.proxy.set(ProxyFaults::none());
        self.proxy.reset();
    }

    fn retry_until_reply<T>(
        &mut self,
        mut act: impl FnMut(&mut Census) -> Result<T, CallError>,
    ) -> T {
        until_some("the connection is back", || act(&mut self.census).ok())
    }
}

#[test]
fn a_batch_with_a_lost_reply_counts_once_when_resent() {
    let mut deaf = deaf();
    let names = deaf.ground.names();
    add(&mut deaf.census, &[("a", 1)]);
    let mut counts = batch(&[("a", 2), ("b", 4)]);
    deaf.unheard(|census, _| run(census.add(&mut counts)));
    assert_eq!(deaf.ground.sum(&names.period), 7, "the server has acted");
    let added = deaf.retry_until_reply(|census| run(census.add(&mut counts)));
    assert_eq!((added.period.own, added.total.own), (6, 6));
    assert_eq!(deaf.ground.sum(&names.period), 7);
    assert_eq!(deaf.ground.sum(&names.total), 7);
    add(&mut deaf.census, &[("a", 8)]);
    assert_eq!(deaf.ground.sum(&names.period), 15);
}

#[test]
fn overflow_counts_are_reported_again_after_a_lost_reply() {
    let mut deaf = deaf();
    let period = deaf.ground.names().period;
    deaf.ground.by_hand(&["HSET", &period, "odd", "many"]);
    add(&mut deaf.census, &[("a", 1)]);
    let mut counts = batch(&[("odd", 2), ("a", 4)]);
    deaf.unheard(|census, _| run(census.add(&mut counts)));
    let added = deaf.retry_until_reply(|census| run(census.add(&mut counts)));
    assert_eq!((added.period.own, added.period.other), (4, 2));
    assert_eq!(deaf.ground.text(&["HGET", &period, "other"]), "2");
}

#[test]
fn an_overtaken_batch_of_unknown_result_is_reported_as_such() {
    let mut deaf = deaf();
    let names = deaf.ground.names();
    add(&mut deaf.census, &[("a", 1)]);
    let mut overtaken: CountBatch = batch(&[("a", 2)]);
    deaf.unheard(|census, _| run(census.add(&mut overtaken)));
    deaf.retry_until_reply(|census| run(census.add(&mut batch(&[("a", 4)]))));
    let added = deaf.retry_until_reply(|census| run(census.add(&mut overtaken)));
    let doubtful = MapPlacement {
        doubtful: 2,
        ..MapPlacement::default()
    };
    assert_eq!((added.period, added.total), (doubtful, doubtful));
    assert_eq!(deaf.ground.sum(&names.period), 7, "never twice");
}

#[test]
fn a_closing_with_a_lost_reply_is_fetched_again() {
    let mut deaf = deaf();
    let now = Duration::ZERO;
    add(&mut deaf.census, &[("a", 3)]);
    deaf.unheard(|census, _| run(census.close(now, AGES)));
    let closing = deaf.retry_until_reply(|census| run(census.close(now, AGES)));
    let PeriodClose::Mine { token } = closing else {
        panic!("the closing was ours: {closing:?}");
    };
    deaf.unheard(|census, _| run(census.finish(&token, 3)));
    assert!(deaf.retry_until_reply(|census| run(census.finish(&token, 3))));
    let figures = run(deaf.census.figures()).unwrap();
    assert_eq!((figures.closed, figures.counted), (1, 3));
}

#[test]
fn a_ban_with_a_lost_reply_holds_and_can_be_repeated() {
    let mut deaf = deaf();
    // Loads the script; otherwise the server would not execute the next call either.
    run(deaf.bans.ban(&["c"], Some(HOUR))).unwrap();
    deaf.unheard(|_, bans| run(bans.ban(&["a"], Some(HOUR))));
    let bans = deaf.bans.clone();
    let new = deaf.retry_until_reply(|_| run(bans.ban(&["a", "b"], Some(HOUR))));
    assert_eq!(new, [b"b"]);
    assert_eq!(run(bans.ends(10, AGES)).unwrap().len(), 3);
}

#[test]
fn a_load_without_a_reply_times_out() {
    let deaf = deaf();
    deaf.proxy.set(ProxyFaults::drop_replies());
    // Less than a single command may take.
    let error = run(deaf.bans.ends(10, Duration::from_millis(50))).unwrap_err();
    let LoadError::Call(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind(), &CallErrorKind::Timeout);
    assert!(error.is_transient());
    assert!(error.to_string().contains("within 50ms"), "{error}");
}

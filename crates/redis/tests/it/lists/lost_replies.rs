//! What becomes of counts and bans when the server does as it is told and nobody hears of it.

use super::kit::{AGES, Ground, HOUR, ROOMY, add, batch, run};
use crate::world;
use std::time::Duration;
use tidegate_redis::{
    Address, Bans, CallEffect, CallError, CallErrorKind, Census, Closing, ConnectionSettings,
    CountBatch, LoadError, MapPlacement, RedisTopology,
};
use tidegate_testkit::redis::{FaultProxy, ProxyFaults, until_some};

/// A census whose replies can be lost.
struct Deaf {
    /// Somebody with a better connection.
    ground: Ground,
    proxy: FaultProxy,
    census: Census,
    bans: Bans,
}

fn deaf() -> Deaf {
    let server = world::shared_server();
    let proxy = FaultProxy::start(server.port());
    let ground = Ground::new(world::standalone(server));
    let address = Address::new("127.0.0.1", proxy.port());
    let settings =
        ConnectionSettings::new(RedisTopology::Standalone, vec![address]).connect_timeout(AGES);
    let through = Ground::new(settings);
    let census = Census::new(through.connection.clone(), &ground.names(), ROOMY);
    let bans = Bans::new(through.connection, ground.name("Blacklist"));
    Deaf {
        ground,
        proxy,
        census,
        bans,
    }
}

impl Deaf {
    /// What `act` comes to when the server acts and its reply is lost.
    fn unheard<T>(&mut self, act: impl FnOnce(&mut Census, &Bans) -> Result<T, CallError>) {
        self.proxy.set(ProxyFaults::drop_replies());
        let Err(error) = act(&mut self.census, &self.bans) else {
            panic!("nobody can have heard");
        };
        assert_eq!(error.class(), CallEffect::Ambiguous, "{error}");
        self.proxy.set(ProxyFaults::none());
        self.proxy.reset();
    }

    fn in_the_end<T>(&mut self, mut act: impl FnMut(&mut Census) -> Result<T, CallError>) -> T {
        until_some("the connection is back", || act(&mut self.census).ok())
    }
}

#[test]
fn a_batch_whose_reply_was_lost_counts_once_when_it_is_sent_again() {
    let mut deaf = deaf();
    let names = deaf.ground.names();
    add(&mut deaf.census, &[("a", 1)]);
    let mut counts = batch(&[("a", 2), ("b", 4)]);
    deaf.unheard(|census, _| run(census.add(&mut counts)));
    assert_eq!(deaf.ground.sum(&names.period), 7, "the server has acted");
    let added = deaf.in_the_end(|census| run(census.add(&mut counts)));
    assert_eq!((added.period.own, added.total.own), (6, 6));
    assert_eq!(deaf.ground.sum(&names.period), 7);
    assert_eq!(deaf.ground.sum(&names.total), 7);
    add(&mut deaf.census, &[("a", 8)]);
    assert_eq!(deaf.ground.sum(&names.period), 15);
}

#[test]
fn what_went_to_other_is_told_again_when_the_reply_was_lost() {
    let mut deaf = deaf();
    let period = deaf.ground.names().period;
    deaf.ground.by_hand(&["HSET", &period, "odd", "many"]);
    add(&mut deaf.census, &[("a", 1)]);
    let mut counts = batch(&[("odd", 2), ("a", 4)]);
    deaf.unheard(|census, _| run(census.add(&mut counts)));
    let added = deaf.in_the_end(|census| run(census.add(&mut counts)));
    assert_eq!((added.period.own, added.period.other), (4, 2));
    assert_eq!(deaf.ground.text(&["HGET", &period, "other"]), "2");
}

#[test]
fn a_batch_in_doubt_that_a_later_one_overtook_is_told_to_be_so() {
    let mut deaf = deaf();
    let names = deaf.ground.names();
    add(&mut deaf.census, &[("a", 1)]);
    let mut overtaken: CountBatch = batch(&[("a", 2)]);
    deaf.unheard(|census, _| run(census.add(&mut overtaken)));
    deaf.in_the_end(|census| run(census.add(&mut batch(&[("a", 4)]))));
    let added = deaf.in_the_end(|census| run(census.add(&mut overtaken)));
    let doubtful = MapPlacement {
        doubtful: 2,
        ..MapPlacement::default()
    };
    assert_eq!((added.period, added.total), (doubtful, doubtful));
    assert_eq!(deaf.ground.sum(&names.period), 7, "never twice");
}

#[test]
fn a_closing_whose_reply_was_lost_is_got_by_asking_again() {
    let mut deaf = deaf();
    let now = Duration::ZERO;
    add(&mut deaf.census, &[("a", 3)]);
    deaf.unheard(|census, _| run(census.close(now, AGES)));
    let closing = deaf.in_the_end(|census| run(census.close(now, AGES)));
    let Closing::Mine { token } = closing else {
        panic!("it was ours: {closing:?}");
    };
    deaf.unheard(|census, _| run(census.finish(&token, 3)));
    assert!(deaf.in_the_end(|census| run(census.finish(&token, 3))));
    let figures = run(deaf.census.figures()).unwrap();
    assert_eq!((figures.closed, figures.counted), (1, 3));
}

#[test]
fn a_ban_whose_reply_was_lost_stands_and_may_be_said_again() {
    let mut deaf = deaf();
    // Loads the script, without which the server would not act on the next call either.
    run(deaf.bans.ban(&["c"], Some(HOUR))).unwrap();
    deaf.unheard(|_, bans| run(bans.ban(&["a"], Some(HOUR))));
    let bans = deaf.bans.clone();
    let new = deaf.in_the_end(|_| run(bans.ban(&["a", "b"], Some(HOUR))));
    assert_eq!(new, [b"b"]);
    assert_eq!(run(bans.ends(10, AGES)).unwrap().len(), 3);
}

#[test]
fn a_load_that_is_not_answered_ends_with_its_time() {
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

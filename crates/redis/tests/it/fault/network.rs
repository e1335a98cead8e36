//! A network that is slow, silent or down.

use super::load::{DEADLINE, Load, alone, bucket, connect, forgetful, tokens};
use crate::world;
use std::pin::pin;
use std::time::Duration;
use tidegate_core::{Ask, Op, Quota, Receipt, Reply, Store, StoreError, StoreErrorKind, Timestamp};
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_redis_client::{Address, ConnectionSettings, RedisTopology};
use tidegate_testkit::history::History;
use tidegate_testkit::redis::{FaultProxy, ProxyFaults, Server, audit, until, until_some};
use tokio::runtime::Runtime;
use tokio::time::Instant;

fn through(proxy: &FaultProxy) -> ConnectionSettings {
    let address = Address::new("127.0.0.1", proxy.port());
    ConnectionSettings::new(RedisTopology::Standalone, vec![address]).timeout(DEADLINE)
}

/// A quota that refills nothing during a test.
fn monthly(amount: u64) -> Quota {
    let month_us = 30 * 86_400_000_000;
    Quota::new(amount, month_us)
        .refundable(true)
        .build()
        .expect("a valid quota")
}

fn evalsha_calls(server: &Server) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]).text();
    let line = stats
        .lines()
        .find_map(|it| it.strip_prefix("cmdstat_evalsha:calls="));
    let calls = line.and_then(|it| it.split(',').next());
    calls.map_or(0, |it| it.parse().expect("a number"))
}

/// Returns what is left, as soon as the store replies.
fn remaining(store: &RedisBuckets, name: &str, quota: &Quota) -> u64 {
    until_some("the store answers", || {
        let asks = [Ask::look(name.as_bytes(), quota)];
        let reply = world::runtime().block_on(store.decide(&asks)).ok()?;
        reply.outcomes.first().map(|outcome| outcome.remaining)
    })
}

/// Rows 1 and 2: a store with a round trip of 50 ms, called with a deadline of 20 ms. No call takes
/// longer than a bare timer of that length; charges stay charged.
#[test]
fn row_1_a_slow_store_is_abandoned_at_the_deadline() {
    let _alone = alone();
    let server = Server::start();
    let proxy = FaultProxy::start(server.port());
    let load = Load {
        quotas: vec![tokens(20, 40)],
        subjects: 2,
        tasks: 4,
    };
    let stores = forgetful(&through(&proxy), 2);
    let (recorded, ()) = load.run(&stores, |progress| {
        progress.await_answers(200);
        proxy.set(ProxyFaults::slow(Duration::from_millis(50)));
        progress.await_failures(400);
        proxy.set(ProxyFaults::none());
        progress.await_answers(200);
    });
    recorded.report("50 ms away", &load);
    assert_eq!(recorded.over(&load), 0);
    let timeouts = recorded.histories.iter().flat_map(History::unknown);
    let mut timeouts = timeouts.filter(|kind| **kind == StoreErrorKind::Timeout);
    assert!(timeouts.next().is_some(), "some waited for the deadline");
    let slack = (recorded.timer_late * 4).max(Duration::from_millis(10));
    let slowest = recorded.slowest();
    assert!(
        slowest <= DEADLINE + slack,
        "slowest {slowest:?}, slack {slack:?}"
    );
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// A bucket of a thousand, with charges and refunds over a faulty wire. The store is idle while a
/// test changes the wire.
struct Ledger {
    server: Server,
    proxy: FaultProxy,
    runtime: Runtime,
    store: RedisBuckets,
    quota: Quota,
    name: String,
}

impl Ledger {
    fn new(deadline: Duration) -> Self {
        let server = Server::start();
        let proxy = FaultProxy::start(server.port());
        let options = RedisOptions::default().prefix(world::own_prefix());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let settings = through(&proxy).timeout(deadline);
        let store = runtime.block_on(RedisBuckets::connect(settings, options));
        Self {
            server,
            proxy,
            runtime,
            store: store.expect("the server is up"),
            quota: monthly(1_000),
            name: bucket(0),
        }
    }

    fn decide(&self, op: Op) -> Result<Reply, StoreError> {
        let ask = self.ask(op);
        self.runtime.block_on(self.store.decide(&[ask]))
    }

    fn ask(&self, op: Op) -> Ask<'_> {
        Ask {
            op,
            ..Ask::take(self.name.as_bytes(), &self.quota, 0)
        }
    }

    /// Decides; the server executes the request, and the connection breaks before the reply.
    fn decide_and_lose(&self, op: Op) -> Result<Reply, StoreError> {
        self.await_lasting();
        let calls = evalsha_calls(&self.server);
        self.proxy.set(ProxyFaults {
            delay_replies: Duration::from_secs(60),
            ..ProxyFaults::none()
        });
        self.runtime.block_on(async {
            let asks = [self.ask(op)];
            let mut decided = pin!(self.store.decide(&asks));
            while evalsha_calls(&self.server) == calls {
                let a_moment = Duration::from_millis(2);
                let early = tokio::time::timeout(a_moment, &mut decided).await;
                assert!(early.is_err(), "a reply before the deadline: {early:?}");
            }
            // In this order: otherwise the reply may just get through.
            self.proxy.reset();
            self.proxy.set(ProxyFaults::none());
            decided.await
        })
    }

    /// Waits until the connection counts as lasting: connections that break early cause a backoff.
    fn await_lasting(&self) {
        let is_old = |line: &str| {
            let age = line.split(' ').find_map(|word| word.strip_prefix("age="));
            let age = age.and_then(|it| it.parse::<u64>().ok());
            line.contains("name=tidegate") && age >= Some(2)
        };
        until("the connection has lasted for a while", || {
            let clients = self.server.command(&["CLIENT", "LIST"]).text();
            clients.lines().any(is_old)
        });
    }

    fn remaining(&self) -> u64 {
        let look = || self.decide(Op::Look).ok();
        until_some("the store answers", look).outcomes[0].remaining
    }

    fn receipt(&self) -> Receipt {
        let reply = self.decide(Op::Take(500)).expect("the store answers");
        Receipt::by_the_clock(reply.at, 100)
    }
}

/// Rows 2 and 11: executed charges without a reply stay charged.
#[test]
fn row_2_a_charge_without_a_reply_stays_charged() {
    for (is_charge, left) in [(true, 490), (false, 600)] {
        let ledger = Ledger::new(DEADLINE * 10);
        let receipt = ledger.receipt();
        let op = if is_charge {
            Op::Take(10)
        } else {
            Op::GiveBack(receipt)
        };
        let calls = evalsha_calls(&ledger.server);
        ledger.proxy.set(ProxyFaults::drop_replies());
        let error = ledger.decide(op).expect_err("the outcome is unknown");
        assert_eq!(error.kind(), StoreErrorKind::Timeout, "{error}");
        assert_eq!(evalsha_calls(&ledger.server), calls + 1, "sent once");
        ledger.proxy.set(ProxyFaults::none());
        // A connection that has lost bytes in the middle is unusable.
        ledger.proxy.reset();
        let found = ledger.remaining();
        assert!(found == left || found + 1 == left, "{op:?}: {found}");
        let found = audit(&mut ledger.server.client(), &[]);
        assert_eq!(found, Vec::<String>::new());
    }
}

/// Rows 2 and 11: a charge whose reply was lost is sent once more, so that it counts twice at most.
/// A refund is never sent again.
#[test]
fn row_11_after_lost_replies_a_charge_counts_at_most_twice_and_a_refund_once() {
    let ledger = Ledger::new(Duration::from_secs(10));
    let receipt = ledger.receipt();
    let calls = evalsha_calls(&ledger.server);
    let reply = ledger.decide_and_lose(Op::Take(10)).expect("sent again");
    assert_eq!(evalsha_calls(&ledger.server), calls + 2, "once more");
    let mut left = reply.outcomes[0].remaining;
    assert_eq!(left, 480, "charged twice, and no more");
    for _ in 0..2 {
        let calls = evalsha_calls(&ledger.server);
        let lost = ledger.decide_and_lose(Op::GiveBack(receipt));
        let calls = evalsha_calls(&ledger.server) - calls;
        assert!(calls == 1 && lost.is_err(), "{calls} calls, {lost:?}");
        let now = ledger.remaining();
        // A late refund is smaller by the refill since the charge.
        let given_back = now - left;
        assert!(given_back == 100 || given_back == 99, "once: {given_back}");
        left = now;
    }
    let found = audit(&mut ledger.server.client(), &[]);
    assert_eq!(found, Vec::<String>::new());
}

/// Rows 3 and 5: while a store is down, few connections are tried for any number of decisions, and
/// decisions fail at once.
#[test]
fn row_5_an_unreachable_store_gets_few_connection_attempts() {
    const INSTANCES: usize = 6;
    let _alone = alone();
    let server = Server::start();
    let proxy = FaultProxy::start(server.port());
    let load = Load {
        quotas: vec![tokens(1_000, 1_000)],
        subjects: 2,
        tasks: 3,
    };
    let stores = forgetful(&through(&proxy), INSTANCES);
    let (recorded, (away, connects, back)) = load.run(&stores, |progress| {
        progress.await_answers(300);
        let (began, before) = (Instant::now(), proxy.accepted());
        proxy.set(ProxyFaults {
            reset_new: true,
            ..ProxyFaults::none()
        });
        proxy.reset();
        progress.await_failures(10_000);
        let away = began.elapsed();
        let connects = proxy.accepted() - before;
        proxy.set(ProxyFaults::none());
        let back = progress.await_answers(10_000);
        until("all is well again", || {
            let before = progress.failures();
            progress.await_answers(500);
            progress.failures() == before
        });
        (away, connects, back)
    });
    recorded.report("gone and back", &load);
    let each = connects / u64::try_from(INSTANCES).unwrap_or(1);
    println!(
        "{connects} connects of {INSTANCES} in {away:?}; 10,000 answers {back:?} after the end"
    );
    // 20 ms, 40 ms, 80 ms, 160 ms, then at least 150 ms apart; for each of two connections.
    assert!(
        each <= 2 * (8 + 7 * away.as_secs()),
        "{each} connects each in {away:?}"
    );
    let fast = recorded
        .took
        .iter()
        .filter(|(took, ok)| !ok && *took < DEADLINE / 4);
    let fast = fast.count();
    assert!(
        fast * 10 >= recorded.unknown() * 9,
        "most fail at once: {fast}"
    );
    assert_eq!(recorded.over(&load), 0);
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// Row 3: no listener on the port.
#[test]
fn row_3_a_refused_connection_is_an_error_at_once() {
    let server = Server::start();
    let proxy = FaultProxy::start(server.port());
    let store = connect(
        through(&proxy),
        RedisOptions::default().prefix(world::own_prefix()),
    );
    let quota = monthly(10);
    proxy.set(ProxyFaults::refuse());
    proxy.reset();
    let kind = until_some("it is known to be gone", || {
        let asks = [Ask::take(b"p/limit/a", &quota, 1)];
        let began = Instant::now();
        let error = world::runtime().block_on(store.decide(&asks)).err()?;
        (began.elapsed() < Duration::from_millis(5)).then_some(error.kind())
    });
    let gone = [StoreErrorKind::Unreachable, StoreErrorKind::Overloaded];
    assert!(gone.contains(&kind), "{kind:?}");
    assert_eq!(
        remaining_after(&proxy, &store, &quota),
        10,
        "nothing was charged"
    );
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

fn remaining_after(proxy: &FaultProxy, store: &RedisBuckets, quota: &Quota) -> u64 {
    proxy.set(ProxyFaults::none());
    remaining(store, "p/limit/a", quota)
}

/// A receipt from before the bucket's state is useless: only charged units are refunded.
#[test]
fn row_11_a_receipt_older_than_the_bucket_refunds_nothing() {
    let server = world::shared_server();
    let options = RedisOptions::default().prefix(world::own_prefix());
    let store = connect(world::standalone(server), options);
    let quota = monthly(10);
    let decide = |op| {
        let ask = Ask {
            op,
            ..Ask::take(b"p/limit/a", &quota, 0)
        };
        let reply = world::runtime().block_on(store.decide(&[ask]));
        reply.expect("a healthy store answers").outcomes[0].remaining
    };
    assert_eq!(decide(Op::Take(4)), 6);
    let receipt = Receipt::by_the_clock(Timestamp::from_micros(1), 4);
    assert_eq!(decide(Op::GiveBack(receipt)), 6);
}

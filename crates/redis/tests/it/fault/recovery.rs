//! Outages of every kind, and the time until all instances use the store again.

use super::load::{alone, connect, tokens};
use crate::world;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tidegate_core::{Ask, Quota, Store};
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_redis_client::{Address, ConnectionSettings, RedisTopology};
use tidegate_testkit::redis::{FaultProxy, ProxyFaults, Server, until};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const INSTANCES: usize = 3;

/// Decisions of each instance that are checked after its first reply.
const AFTERWARDS: usize = 500;

/// The number of those that may fail: they were in flight, or the machine was busy.
const LATE: usize = 20;

/// Longer than the default, so that a busy machine does not look like an outage.
const DEADLINE: Duration = Duration::from_millis(100);

/// Waits for the next result of an instance.
fn next(results: &mpsc::Receiver<(Instant, bool)>) -> (Instant, bool) {
    let result = results.recv_timeout(Duration::from_secs(60));
    result.expect("the task decides on and on")
}

/// Instances that decide all the time, and report every result in order.
struct Fleet {
    stores: Vec<RedisBuckets>,
    results: Vec<mpsc::Receiver<(Instant, bool)>>,
    stop: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Fleet {
    fn new(settings: &ConnectionSettings) -> Self {
        let mut fleet = Self {
            stores: Vec::new(),
            results: Vec::new(),
            stop: Arc::default(),
            tasks: JoinSet::new(),
        };
        let options = RedisOptions::default()
            .prefix(world::own_prefix())
            .deny_cache(0);
        let quota = tokens(1_000_000, 1_000_000);
        for _ in 0..INSTANCES {
            let store = connect(settings.clone().timeout(DEADLINE), options.clone());
            let (sender, results) = mpsc::channel();
            let task = decide(store.clone(), quota, (sender, Arc::clone(&fleet.stop)));
            fleet.tasks.spawn_on(task, world::runtime().handle());
            fleet.stores.push(store);
            fleet.results.push(results);
        }
        fleet.await_results(20, true);
        fleet
    }

    /// Waits until each instance has had `count` results of this kind, and returns the time of the last.
    fn await_results(&mut self, count: usize, is_answer: bool) -> Instant {
        let mut last = Instant::now();
        for results in &self.results {
            let mut left = count;
            while left > 0 {
                let (at, ok) = next(results);
                if ok == is_answer {
                    left -= 1;
                    last = last.max(at);
                }
            }
        }
        last
    }

    /// Drops the results so far.
    fn forget(&mut self) {
        for results in &self.results {
            while results.try_recv().is_ok() {}
        }
    }

    fn is_trusted(&self) -> impl Iterator<Item = bool> {
        let stats = self
            .stores
            .iter()
            .flat_map(|it| it.connection().node_stats());
        stats.map(|node| node.is_trusted)
    }

    fn await_open_breakers(&self) {
        until("all breakers are open", || !self.is_trusted().any(|it| it));
    }

    /// Ends an outage that began before. From its first answer on, every instance decides by the store.
    fn recover(&mut self, name: &str, heal: impl FnOnce()) {
        self.await_open_breakers();
        self.await_results(100, false);
        self.forget();
        heal();
        let healed = Instant::now();
        let took = self
            .await_results(1, true)
            .saturating_duration_since(healed);
        let mut failed = Vec::new();
        for results in &self.results {
            let next = (0..AFTERWARDS).map(|_| next(results));
            failed.push(next.filter(|(_, ok)| !ok).count());
        }
        println!(
            "{name}: all instances answered after {took:?}; of {AFTERWARDS}, failed {failed:?}"
        );
        assert!(
            failed.iter().all(|count| *count <= LATE),
            "{name}: {failed:?}"
        );
        assert!(self.is_trusted().all(|it| it), "{name}");
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        let tasks = std::mem::take(&mut self.tasks);
        world::runtime().block_on(tasks.join_all());
    }
}

async fn decide(
    store: RedisBuckets,
    quota: Quota,
    (results, stop): (mpsc::Sender<(Instant, bool)>, Arc<AtomicBool>),
) {
    while !stop.load(SeqCst) {
        let asks = [Ask::take(b"p/limit/a", &quota, 1)];
        let is_answer = store.decide(&asks).await.is_ok();
        results.send((Instant::now(), is_answer)).ok();
        sleep(Duration::from_millis(1)).await;
    }
}

fn through(proxy: &FaultProxy) -> ConnectionSettings {
    let address = Address::new("127.0.0.1", proxy.port());
    ConnectionSettings::new(RedisTopology::Standalone, vec![address])
}

/// Calls of a command that were executed, or rejected before.
fn calls(server: &Server, command: &str, which: &str) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]).text();
    let start = format!("cmdstat_{command}:");
    let line = stats.lines().find_map(|line| line.strip_prefix(&start));
    let fields = line.into_iter().flat_map(|line| line.split(','));
    let found = fields.filter_map(|field| field.split_once('='));
    let mut found = found.filter(|(name, _)| *name == which);
    found
        .next()
        .map_or(0, |(_, n)| n.parse().expect("a number"))
}

/// The breaker let 1 % of decisions pass at first, and took seconds to let all of them pass.
#[test]
fn row_5_after_the_first_reply_every_decision_uses_the_store() {
    let _alone = alone();
    let server = Server::start();
    let proxy = FaultProxy::start(server.port());
    let mut fleet = Fleet::new(&through(&proxy));

    server.kill9();
    fleet.recover("killed and restarted", || server.restart());
    server.stop();
    fleet.recover("stopped and continued", || server.cont());
    for (name, faults) in [
        ("deaf network", ProxyFaults::blackhole()),
        ("lost replies", ProxyFaults::drop_replies()),
        ("slow network", ProxyFaults::slow(DEADLINE * 3)),
    ] {
        proxy.set(faults);
        fleet.recover(name, || proxy.set(ProxyFaults::none()));
    }
    for (name, reset_new) in [("refused", false), ("reset", true)] {
        proxy.set(ProxyFaults {
            reset_new,
            refuse_new: !reset_new,
            ..ProxyFaults::none()
        });
        proxy.reset();
        fleet.recover(name, || proxy.set(ProxyFaults::none()));
    }
    server.command(&["REPLICAOF", "127.0.0.1", "1"]).done();
    fleet.recover("READONLY", || {
        server.command(&["REPLICAOF", "NO", "ONE"]).done();
    });
}

/// A decision served as the probe, and timed out for it. And a `PING` would pass here.
#[test]
fn row_5_no_decision_is_a_probe_and_a_probe_is_a_write() {
    let _alone = alone();
    let server = Server::start();
    let mut fleet = Fleet::new(&world::standalone(&server));
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).done();
    fleet.await_open_breakers();
    fleet.forget();
    let executed = calls(&server, "evalsha", "calls");
    let rejected = || calls(&server, "set", "rejected_calls");
    let (before, enough) = (
        rejected(),
        3 * u64::try_from(INSTANCES).expect("a small count"),
    );
    until("every instance has probed", || {
        rejected() >= before + enough
    });
    fleet.await_results(100, false);
    assert_eq!(
        calls(&server, "evalsha", "calls"),
        executed,
        "no decision was sent"
    );
    fleet.recover("OOM", || {
        server.command(&["CONFIG", "SET", "maxmemory", "0"]).done();
    });
    assert_eq!(server.command(&["KEYS", "*probe*"]).list().len(), 0);
}

/// A store that comes and goes was hardly used at all.
#[test]
fn row_5_a_flapping_store_is_used_while_it_is_up() {
    const PHASE: usize = 1_500;
    let _alone = alone();
    let server = Server::start();
    let proxy = FaultProxy::start(server.port());
    let mut fleet = Fleet::new(&through(&proxy));
    let (mut all, mut answered) = (0, 0);
    for _ in 0..4 {
        proxy.set(ProxyFaults::refuse());
        proxy.reset();
        fleet.await_results(PHASE, false);
        fleet.forget();
        proxy.set(ProxyFaults::none());
        for results in &fleet.results {
            for _ in 0..PHASE {
                let (_, is_answer) = next(results);
                all += 1;
                answered += usize::from(is_answer);
            }
        }
    }
    println!("flapping: {answered} of {all} decisions while it was up");
    assert!(answered * 4 >= all * 3, "{answered} of {all}");
}

//! Tidegate's Redis store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anyhow::ensure;
use tidegate_core::{Ask, Quota, Store};
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_redis_client::{Address, ConnectionSettings, RedisTopology};
use tokio::task::JoinSet;

use crate::compare::{Bench, Candidate};
use crate::drive::{Asker, Tally, Verdict, drive};
use crate::load::{Expect, Load};
use crate::sample::{Meter, Sample};

/// The database of the store's keys, separate from the others.
const DATABASE: u32 = 1;

/// Tasks that fill the key space.
const FILLERS: usize = 512;

/// The store under one load.
pub(crate) struct Tidegate {
    name: String,
    load: Arc<Load>,
    tasks: usize,
    deny_cache: bool,
}

impl Tidegate {
    pub(crate) fn new(name: &str, load: Load, tasks: usize) -> Self {
        Self {
            name: name.to_owned(),
            load: Arc::new(load),
            tasks,
            deny_cache: true,
        }
    }

    pub(crate) fn without_deny_cache(self) -> Self {
        Self {
            deny_cache: false,
            ..self
        }
    }

    async fn connect(&self, bench: &Bench) -> anyhow::Result<RedisBuckets> {
        let options = if self.deny_cache {
            RedisOptions::default()
        } else {
            RedisOptions::default().deny_cache(0)
        };
        let settings = settings(bench.server.port())
            .database(DATABASE)
            .connections(bench.connections)
            // A thousand tasks wait for their turn; deadlines are not measured here.
            .timeout(Duration::from_secs(2));
        Ok(RedisBuckets::connect(settings, options).await?)
    }

    async fn measure(&self, bench: &Bench, span: Duration) -> anyhow::Result<Sample> {
        let store = self.connect(bench).await?;
        let caller = Caller::new(&store, &self.load);
        let mut all = Tally::default();
        if self.load.expect == Expect::None {
            // The only unit.
            ensure!(caller.ask(0).await?.passed, "{}: no first", self.name);
        }
        all.add(drive(&caller, self.tasks, span / 5).await?);
        let meter = Meter::start(&bench.server)?;
        let mut tally = drive(&caller, self.tasks, span).await?;
        let sample = meter.stop(&tally.work())?;
        all.add(tally);
        self.check(&caller, &all).await?;
        store.connection().close().await;
        Ok(sample)
    }

    /// Fails if the admitted units are not as expected.
    async fn check(&self, caller: &Caller, all: &Tally) -> anyhow::Result<()> {
        let (name, passed, asked) = (&self.name, all.passed, all.decisions);
        match self.load.expect {
            Expect::All => ensure!(passed == asked, "{name}: {passed} of {asked} passed"),
            Expect::None => ensure!(passed == 0, "{name}: {passed} of {asked} passed"),
            Expect::Some => ensure!(
                0 < passed && passed < asked,
                "{name}: {passed} of {asked} passed"
            ),
        }
        if self.load.only_hot() && self.load.expect != Expect::None {
            self.check_rest(caller, all).await?;
        }
        Ok(())
    }

    /// Fails unless the hot key has the quota's units less the admitted ones. It was full at first,
    /// and never after that.
    async fn check_rest(&self, caller: &Caller, all: &Tally) -> anyhow::Result<()> {
        let quota = self.load.quota();
        let reply = caller
            .store
            .decide(&[Ask::look(&caller.hot, quota)])
            .await?;
        let left = reply.outcomes.first().map(|outcome| outcome.remaining);
        let passed_us = (reply.at.as_micros() - all.first_us) as f64;
        let refill = quota.amount() as f64 * passed_us / quota.period_us() as f64;
        let expected = quota.capacity() as f64 + refill - all.units as f64;
        let left = left.unwrap_or_default() as f64;
        ensure!(
            (left - expected).abs() <= 2.0,
            "{}: {left} units are left, it should be {expected}",
            self.name
        );
        Ok(())
    }
}

impl Candidate for Tidegate {
    fn name(&self) -> &str {
        &self.name
    }

    fn fill(&mut self, bench: &Bench) -> anyhow::Result<()> {
        if self.load.only_hot() {
            return Ok(());
        }
        bench.runtime.block_on(async {
            let store = self.connect(bench).await?;
            let caller = Caller::new(&store, &self.load);
            let next = Arc::new(AtomicUsize::new(0));
            let mut fillers = JoinSet::new();
            for _ in 0..FILLERS {
                fillers.spawn(fill(Arc::clone(&caller), Arc::clone(&next)));
            }
            while let Some(filled) = fillers.join_next().await {
                filled??;
            }
            store.connection().close().await;
            Ok(())
        })
    }

    fn sample(&mut self, bench: &Bench, span: Duration) -> anyhow::Result<Sample> {
        bench.runtime.block_on(self.measure(bench, span))
    }
}

/// Visits every key once.
async fn fill(caller: Arc<Caller>, next: Arc<AtomicUsize>) -> anyhow::Result<()> {
    loop {
        let key = next.fetch_add(1, Relaxed);
        if key >= caller.load.keys() {
            return Ok(());
        }
        let verdict = caller.take(Some(key), 1).await?;
        ensure!(verdict.passed, "key {key} was refused at once");
    }
}

/// Returns the settings for the server at `port`.
pub(crate) fn settings(port: u16) -> ConnectionSettings {
    ConnectionSettings::new(
        RedisTopology::Standalone,
        vec![Address::new("127.0.0.1", port)],
    )
}

struct Caller {
    store: RedisBuckets,
    load: Arc<Load>,
    hot: Vec<u8>,
}

impl Caller {
    /// Creates a caller with a new hot key, so that every repetition begins with a full bucket.
    fn new(store: &RedisBuckets, load: &Arc<Load>) -> Arc<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        Arc::new(Self {
            store: store.clone(),
            load: Arc::clone(load),
            hot: format!("api/calls/everybody-{number:04}").into_bytes(),
        })
    }

    async fn take(&self, key: Option<usize>, cost: u64) -> anyhow::Result<Verdict> {
        let (asks, len) = self.load.asks(key, &self.hot, cost);
        let reply = self
            .store
            .decide(asks.get(..len).unwrap_or_default())
            .await?;
        Ok(Verdict {
            passed: reply.passed,
            cost,
            at_us: reply.at.as_micros(),
        })
    }
}

impl Asker for Caller {
    async fn ask(&self, draw: u64) -> anyhow::Result<Verdict> {
        let (key, cost) = self.load.draw(draw);
        self.take(key, cost).await
    }
}

/// Returns a quota with which keys stay in use between calls and everything passes: 7 per ten
/// minutes, with a burst that is never used up.
pub(crate) fn ample() -> anyhow::Result<Quota> {
    Ok(Quota::new(7, 600_000_000).burst(7_000_000).build()?)
}

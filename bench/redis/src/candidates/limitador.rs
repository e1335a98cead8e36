//! limitador with its Redis storages. It counts in fixed windows, so the burst is the amount of an
//! hour; and neither storage is exact across concurrent requests: `redis` reads and then counts,
//! `redis_cached` counts here and tells Redis every second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use limitador::limit::{Context, Limit, Namespace, Predicate};
use limitador::storage::redis::{AsyncRedisStorage, CachedRedisStorageBuilder};
use limitador::storage::{AsyncCounterStorage, AsyncStorage};
use limitador::{AsyncRateLimiter, AsyncRateLimiterBuilder};
use tokio::runtime::{self, Runtime};

use crate::compare::{Bench, Candidate};
use crate::drive::{Asker, Tally, Verdict, below, drive};
use crate::sample::{Meter, Sample};

/// The database of its keys, separate from the others.
const DATABASE: u32 = 2;

/// So large that everything passes.
const AMPLE: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Redis,
    Cached,
}

/// limitador under one load.
pub(crate) struct Limitador {
    name: String,
    storage: Storage,
    /// The number of limits per request.
    limits: u64,
    keys: usize,
    amount: u64,
    tasks: usize,
}

impl Limitador {
    /// Creates requests that match `limits` limits and pass; on `keys` keys.
    pub(crate) fn new(storage: Storage, limits: u64, keys: usize, tasks: usize) -> Self {
        let name = match storage {
            Storage::Redis => "limitador redis",
            Storage::Cached => "limitador redis_cached",
        };
        Self {
            name: format!("{name}, {tasks} tasks"),
            storage,
            limits,
            keys,
            amount: AMPLE,
            tasks,
        }
    }

    /// Creates requests for one key with nothing left.
    pub(crate) fn refused(storage: Storage, tasks: usize) -> Self {
        Self {
            amount: 1,
            ..Self::new(storage, 1, 1, tasks)
        }
    }

    async fn connect(&self, bench: &Bench) -> anyhow::Result<Arc<Caller>> {
        let url = format!("redis://127.0.0.1:{}/{DATABASE}", bench.server.port());
        let counters: Box<dyn AsyncCounterStorage> = match self.storage {
            Storage::Redis => Box::new(AsyncRedisStorage::new(&url).await?),
            Storage::Cached => {
                let builder = CachedRedisStorageBuilder::new(&url)
                    // Otherwise most keys would not be in its cache, which is its purpose.
                    .max_cached_counters(bench.keys * 4);
                Box::new(builder.build().await?)
            }
        };
        let storage = AsyncStorage::with_counter_storage(counters);
        let limiter = AsyncRateLimiterBuilder::new(storage).build();
        for limit in 0..self.limits {
            let user = "user"
                .try_into()
                .ok()
                .context("limitador knows no variable `user`")?;
            // Limits are distinguished by their windows.
            let seconds = 3_600 + limit;
            let no_conditions = Vec::<Predicate>::new();
            let limit = Limit::new("api", self.amount, seconds, no_conditions, vec![user]);
            limiter.add_limit(limit);
        }
        Ok(Arc::new(Caller {
            limiter,
            namespace: "api".into(),
            keys: (0..self.keys).map(|key| format!("{key:012}")).collect(),
        }))
    }

    async fn measure(&self, bench: &Bench, span: Duration) -> anyhow::Result<Sample> {
        let caller = self.connect(bench).await?;
        drive(&caller, self.tasks, span / 5).await?;
        let meter = Meter::start(&bench.server)?;
        let mut tally = drive(&caller, self.tasks, span).await?;
        let sample = meter.stop(&tally.work())?;
        self.check(&tally)?;
        Ok(sample)
    }

    fn check(&self, tally: &Tally) -> anyhow::Result<()> {
        let (passed, asked) = (tally.passed, tally.decisions);
        let expected = if self.amount == AMPLE { asked } else { 0 };
        let name = &self.name;
        ensure!(passed == expected, "{name}: {passed} of {asked} passed");
        Ok(())
    }
}

impl Candidate for Limitador {
    fn name(&self) -> &str {
        &self.name
    }

    fn fill(&mut self, bench: &Bench) -> anyhow::Result<()> {
        if self.storage == Storage::Cached || self.keys == 1 {
            return Ok(());
        }
        runtime()?.block_on(async {
            let caller = self.connect(bench).await?;
            let mut first = 0;
            while first < self.keys {
                let last = (first + 512).min(self.keys);
                let mut fillers = tokio::task::JoinSet::new();
                for key in first..last {
                    let caller = Arc::clone(&caller);
                    fillers.spawn(async move { caller.take(key).await });
                }
                while let Some(filled) = fillers.join_next().await {
                    filled??;
                }
                first = last;
            }
            Ok(())
        })
    }

    fn sample(&mut self, bench: &Bench, span: Duration) -> anyhow::Result<Sample> {
        runtime()?.block_on(self.measure(bench, span))
    }
}

/// Returns a separate runtime, which ends with the repetition: `redis_cached` keeps sending its
/// counts while its runtime exists, at the cost of the next candidate.
fn runtime() -> anyhow::Result<Runtime> {
    Ok(runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

struct Caller {
    limiter: AsyncRateLimiter,
    namespace: Namespace,
    keys: Vec<String>,
}

impl Caller {
    async fn take(&self, key: usize) -> anyhow::Result<Verdict> {
        // Part of the cost: every caller must build this map for each request.
        let user = self.keys.get(key).cloned().unwrap_or_default();
        let context = Context::from(HashMap::from([("user".to_owned(), user)]));
        let answer = self
            .limiter
            .check_rate_limited_and_update(&self.namespace, &context, 1)
            .await
            .map_err(|error| anyhow::anyhow!("limitador: {error}"))?;
        Ok(Verdict {
            passed: !answer.limited,
            cost: 1,
            at_us: 0,
        })
    }
}

impl Asker for Caller {
    async fn ask(&self, draw: u64) -> anyhow::Result<Verdict> {
        self.take(below(draw, self.keys.len())).await
    }
}

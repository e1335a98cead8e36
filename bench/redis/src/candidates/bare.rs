//! The minimum of a client: one `EVALSHA` of the plain script with the client library only.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use redis::aio::MultiplexedConnection;

use super::plain::{BURST, PREFIX, Plain, RATE, SCRIPT, now_ms};
use crate::compare::{Bench, Candidate};
use crate::drive::{Asker, Verdict, below, drive};
use crate::sample::{Meter, Sample};

/// The plain script through `redis::aio::MultiplexedConnection`.
pub(crate) struct BareClient {
    tasks: usize,
}

impl BareClient {
    pub(crate) fn new(tasks: usize) -> Self {
        Self { tasks }
    }
}

struct Caller {
    connection: MultiplexedConnection,
    sha: String,
    keys: Vec<String>,
    now: u64,
}

impl Asker for Caller {
    async fn ask(&self, draw: u64) -> anyhow::Result<Verdict> {
        let key = self.keys.get(below(draw, self.keys.len()));
        let mut connection = self.connection.clone();
        let (allowed, _, _): (u64, i64, i64) = redis::cmd("EVALSHA")
            .arg(&self.sha)
            .arg(1)
            .arg(key)
            .arg(RATE)
            .arg(BURST)
            .arg(self.now)
            .arg(600)
            .query_async(&mut connection)
            .await?;
        Ok(Verdict {
            passed: allowed == 1,
            cost: 1,
            at_us: 0,
        })
    }
}

impl Candidate for BareClient {
    fn name(&self) -> &'static str {
        "bare EVALSHA"
    }

    fn fill(&mut self, bench: &Bench) -> anyhow::Result<()> {
        Plain::script(bench)?.fill(bench)
    }

    fn sample(&mut self, bench: &Bench, span: Duration) -> anyhow::Result<Sample> {
        let sha = bench.server.load(SCRIPT)?;
        let url = format!("redis://127.0.0.1:{}/", bench.server.port());
        let keys = (0..bench.keys).map(|key| format!("{PREFIX}{key:012}"));
        bench.runtime.block_on(async {
            let client = redis::Client::open(url)?;
            let caller = Arc::new(Caller {
                connection: client.get_multiplexed_async_connection().await?,
                sha,
                keys: keys.collect(),
                now: now_ms()?,
            });
            drive(&caller, self.tasks, span / 5).await?;
            let meter = Meter::start(&bench.server)?;
            let mut tally = drive(&caller, self.tasks, span).await?;
            let sample = meter.stop(&tally.work())?;
            ensure!(
                tally.passed == tally.decisions,
                "bare EVALSHA: {} of {} passed",
                tally.passed,
                tally.decisions
            );
            Ok(sample)
        })
    }
}

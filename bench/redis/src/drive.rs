//! Decisions from many concurrent tasks, on one thread.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, yield_now};

use crate::sample::{Work, percentile};

/// A source of decisions.
pub(crate) trait Asker: Send + Sync + 'static {
    /// Makes one decision; `draw` is a random number that selects the key.
    fn ask(&self, draw: u64) -> impl Future<Output = anyhow::Result<Verdict>> + Send;
}

/// The result of one decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) passed: bool,
    /// The cost of the request.
    pub(crate) cost: u64,
    /// The instant of the decision by the store's clock; 0 if unknown.
    pub(crate) at_us: u64,
}

/// The count of all tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) decisions: u64,
    pub(crate) passed: u64,
    /// The total cost of those that passed.
    pub(crate) units: u64,
    /// The store's first and last instant.
    pub(crate) first_us: u64,
    pub(crate) last_us: u64,
    elapsed: Duration,
    latencies_us: Vec<f64>,
}

impl Tally {
    fn count(&mut self, verdict: Verdict) {
        if self.decisions == 0 {
            self.first_us = verdict.at_us;
        }
        self.decisions += 1;
        self.last_us = self.last_us.max(verdict.at_us);
        if verdict.passed {
            self.passed += 1;
            self.units += verdict.cost;
        }
    }

    /// Adds another count, of the same time or later.
    pub(crate) fn add(&mut self, other: Self) {
        if other.decisions > 0 {
            let first = if self.decisions == 0 {
                u64::MAX
            } else {
                self.first_us
            };
            self.first_us = first.min(other.first_us);
        }
        self.decisions += other.decisions;
        self.passed += other.passed;
        self.units += other.units;
        self.last_us = self.last_us.max(other.last_us);
        self.latencies_us.extend(other.latencies_us);
    }

    pub(crate) fn work(&mut self) -> Work {
        Work {
            decisions: self.decisions as f64,
            elapsed: self.elapsed,
            p50_us: percentile(&mut self.latencies_us, 0.5),
            p99_us: percentile(&mut self.latencies_us, 0.99),
            here: true,
        }
    }
}

/// Results that come without waiting would keep the thread from all other tasks.
const YIELD_EVERY: u64 = 32;

/// Makes decisions for about `span` from `tasks` tasks, each one after the other.
pub(crate) async fn drive<A: Asker>(
    asker: &Arc<A>,
    tasks: usize,
    span: Duration,
) -> anyhow::Result<Tally> {
    static SEED: AtomicU64 = AtomicU64::new(1);
    let stop = Arc::new(AtomicBool::new(false));
    // Two reads of the clock for each of a million decisions a second would distort the figure.
    let timed_every = if tasks == 1 { 1 } else { 8 };
    let mut workers = JoinSet::new();
    let begin = Instant::now();
    for _ in 0..tasks {
        let draws = Draws(SEED.fetch_add(0x9E37_79B9_7F4A_7C15, Relaxed) | 1);
        workers.spawn(work(
            Arc::clone(asker),
            draws,
            Arc::clone(&stop),
            timed_every,
        ));
    }
    tokio::time::sleep(span).await;
    stop.store(true, Relaxed);
    let mut tally = Tally::default();
    while let Some(counted) = workers.join_next().await {
        tally.add(counted??);
    }
    tally.elapsed = begin.elapsed();
    Ok(tally)
}

async fn work<A: Asker>(
    asker: Arc<A>,
    mut draws: Draws,
    stop: Arc<AtomicBool>,
    timed_every: u64,
) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    while !stop.load(Relaxed) {
        let begin = tally
            .decisions
            .is_multiple_of(timed_every)
            .then(Instant::now);
        let verdict = asker.ask(draws.next()).await?;
        tally.count(verdict);
        if let Some(begin) = begin {
            tally.latencies_us.push(begin.elapsed().as_secs_f64() * 1e6);
        }
        if tally.decisions.is_multiple_of(YIELD_EVERY) {
            yield_now().await;
        }
    }
    Ok(tally)
}

/// Random numbers, good enough to choose keys (xorshift64*).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// Returns a number below `end` from a draw.
pub(crate) fn below(draw: u64, end: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "less than `end`")]
    let number = ((u128::from(draw) * end as u128) >> 64) as usize;
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_reach_every_key() {
        let mut draws = Draws(1);
        let mut seen = [false; 10];
        for _ in 0..1_000 {
            seen[below(draws.next(), 10)] = true;
        }
        assert_eq!(seen, [true; 10]);
    }

    #[test]
    fn tallies_add_up() {
        let verdict = |passed, at_us| Verdict {
            passed,
            cost: 2,
            at_us,
        };
        let mut one = Tally::default();
        one.count(verdict(true, 50));
        let mut two = Tally::default();
        two.count(verdict(false, 40));
        two.count(verdict(true, 60));
        one.add(two);
        one.add(Tally::default());
        assert_eq!((one.decisions, one.passed, one.units), (3, 2, 4));
        assert_eq!((one.first_us, one.last_us), (40, 60));
    }
}

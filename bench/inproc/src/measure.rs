//! One timed run on pinned threads.

use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::subject::Subject;
use crate::workload::Keys;

/// Decisions between two reads of the clock: enough to hide the cost of a read, and few enough that
/// the slowest candidate still ends in time.
const CHUNK: usize = 256;

/// The result of one repetition.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(crate) struct Sample {
    /// All threads together.
    pub(crate) calls_per_s: f64,
    /// Share of the calls that passed.
    pub(crate) passed: f64,
    /// The share of the time for which a thread was ready but had no core because of other
    /// programs: for the worst thread.
    pub(crate) stolen: f64,
}

/// The duration of a run, and its start in the order.
#[derive(Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) warm_up: Duration,
    pub(crate) span: Duration,
    /// Shifts the start, so that repetitions do not use the same keys.
    pub(crate) repetition: usize,
}

/// The cores that this process may use.
pub(crate) fn cores() -> rustix::io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| allowed.is_set(core))
        .collect())
}

/// Calls `subject` from one thread per order, each on its own core, concurrently.
pub(crate) fn run(
    subject: &dyn Subject,
    keys: &Keys,
    orders: &[Vec<u32>],
    cores: &[usize],
    timing: Timing,
) -> Sample {
    let together = Barrier::new(orders.len());
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let threads: Vec<_> = orders
            .iter()
            .zip(cores)
            .map(|(order, &core)| {
                let together = &together;
                scope.spawn(move || {
                    pin(core);
                    work(subject, keys, order, together, timing)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a measuring thread does not panic"))
            .collect()
    });
    Tally::combine(&tallies)
}

/// The count of one thread.
struct Tally {
    calls: f64,
    passed: f64,
    elapsed: Duration,
    /// The part of it for which the thread was ready but had no core.
    waited: Duration,
}

impl Tally {
    fn combine(tallies: &[Self]) -> Sample {
        let sum = |part: fn(&Self) -> f64| tallies.iter().map(part).sum::<f64>();
        Sample {
            calls_per_s: match tallies {
                // Alone, a thread without a core is just paused.
                [only] => only.calls / only.elapsed.saturating_sub(only.waited).as_secs_f64(),
                // With others its wait counts: they continued with less contention.
                _ => sum(|tally| tally.calls / tally.elapsed.as_secs_f64()),
            },
            passed: sum(|tally| tally.passed) / sum(|tally| tally.calls),
            stolen: tallies.iter().map(Self::stolen).fold(0.0, f64::max),
        }
    }

    fn stolen(&self) -> f64 {
        self.waited.as_secs_f64() / self.elapsed.as_secs_f64()
    }
}

/// Runs one thread.
fn work(
    subject: &dyn Subject,
    keys: &Keys,
    order: &[u32],
    together: &Barrier,
    timing: Timing,
) -> Tally {
    let chunks = order.len() / CHUNK;
    let start = timing.repetition * chunks / 8 % chunks;
    let mut visits = order.chunks_exact(CHUNK).cycle().skip(start);
    let mut visit_for = |span: Duration| {
        let waited_before = waited_for_core();
        let begin = Instant::now();
        let (mut calls, mut passed) = (0, 0);
        while begin.elapsed() < span {
            let chunk = visits.next().unwrap_or_default();
            passed += subject.visit(keys, chunk);
            calls += chunk.len();
        }
        Tally {
            calls: calls as f64,
            passed: passed as f64,
            elapsed: begin.elapsed(),
            waited: waited_for_core().saturating_sub(waited_before),
        }
    };
    visit_for(timing.warm_up);
    together.wait();
    visit_for(timing.span)
}

/// Pins this thread to `core`. If that fails it runs unpinned, with less stable results.
fn pin(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).ok();
}

/// Returns how long this thread was ready to run but had no core, in total; zero if the kernel does
/// not report it.
fn waited_for_core() -> Duration {
    fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
        .map_or(Duration::ZERO, Duration::from_nanos)
}

//! One timed repetition, and what becomes of several.

use anyhow::{Context as _, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::process::Command;
use std::time::{Duration, Instant};
use tidegate_bench_tower::{Subject, request};

/// Requests that are made beforehand and answered in one go: so few that they stay in the nearest
/// cache, where a server that has just read a request has it too. What looking at the clock takes
/// befalls every subject alike.
const BATCH: u32 = 8;

/// What is known of one subject at the end.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Figures {
    pub(crate) name: &'static str,
    /// Median over the repetitions.
    pub(crate) ns: f64,
    /// (max − min) / median.
    pub(crate) spread: f64,
    /// Of one request that was made beforehand, up to its answer.
    pub(crate) allocations: u64,
    /// How many headers the answer has.
    pub(crate) headers: usize,
    samples: Vec<f64>,
}

impl Figures {
    pub(crate) fn of(subject: &mut Subject, samples: &[f64], allocations: u64) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |nth: usize| sorted.get(nth).copied().unwrap_or(f64::NAN);
        let ns = at(sorted.len() / 2);
        Self {
            name: subject.name,
            ns,
            spread: (at(sorted.len().saturating_sub(1)) - at(0)) / ns,
            allocations,
            headers: subject.ask(request()).headers,
            samples: samples.to_vec(),
        }
    }
}

/// What each subject allocates for one request, by name: found out by another program, whose
/// allocator counts and would not be fair to time with.
pub(crate) fn allocations() -> anyhow::Result<Vec<(String, u64)>> {
    let program = std::env::current_exe()?.with_file_name("tidegate-bench-tower-allocations");
    let ran = Command::new(&program).output();
    let ran = ran.with_context(|| format!("running {}", program.display()))?;
    ensure!(ran.status.success(), "{} failed", program.display());
    Ok(serde_json::from_slice(&ran.stdout)?)
}

/// Keeps this thread on one core: the last that it may use, for the first has more to do.
pub(crate) fn pin() -> rustix::io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let Some(core) = (0..CpuSet::MAX_CPU)
        .rev()
        .find(|&core| allowed.is_set(core))
    else {
        return Ok(());
    };
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one)
}

/// Nanoseconds for a request, over about `span`; the first tenth is not counted.
pub(crate) fn once(subject: &mut Subject, span: Duration) -> anyhow::Result<f64> {
    let (mut spent, mut count) = (Duration::ZERO, 0_u32);
    let begun = Instant::now();
    while begun.elapsed() < span {
        let requests: Vec<_> = (0..BATCH).map(|_| request()).collect();
        let warm = begun.elapsed() < span / 10;
        let timed = Instant::now();
        let mut as_expected = true;
        for request in requests {
            as_expected &= subject.ask(request).status == subject.expected;
        }
        let took = timed.elapsed();
        ensure!(
            as_expected,
            "{}: not every answer was as expected",
            subject.name
        );
        if !warm {
            spent += took;
            count += BATCH;
        }
    }
    Ok(spent.as_secs_f64() * 1e9 / f64::from(count))
}

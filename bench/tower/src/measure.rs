//! One timed repetition, and the summary of several.

use anyhow::{Context as _, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::process::Command;
use std::time::{Duration, Instant};
use tidegate_bench_tower::{Subject, request};

/// Requests that are prepared and then sent in a row: so few that they stay in the L1 cache, like a
/// request that a server has just read. Reading the clock costs the same for every subject.
const BATCH: u32 = 8;

/// The results of one subject.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Figures {
    pub(crate) name: &'static str,
    /// Median over the repetitions.
    pub(crate) ns: f64,
    /// (max − min) / median.
    pub(crate) spread: f64,
    /// Of one prepared request, until its response.
    pub(crate) allocations: u64,
    /// The number of headers of the response.
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

/// Returns the allocations of each subject for one request, by name: measured by another program,
/// whose counting allocator would distort the times.
pub(crate) fn allocations() -> anyhow::Result<Vec<(String, u64)>> {
    let program = std::env::current_exe()?.with_file_name("tidegate-bench-tower-allocations");
    let ran = Command::new(&program).output();
    let ran = ran.with_context(|| format!("running {}", program.display()))?;
    ensure!(ran.status.success(), "{} failed", program.display());
    Ok(serde_json::from_slice(&ran.stdout)?)
}

/// Pins this thread to one core: the last of this process, because the first is busier.
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

/// Returns the nanoseconds per request, over about `span`; the first tenth is not counted.
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

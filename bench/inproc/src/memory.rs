//! Bytes per key: how much the resident memory of a process grows by filling one candidate.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::compare::{FILL_MAX, Plan};
use crate::stats;
use crate::subject;
use crate::watchdog::Watchdog;
use crate::workload::{Keys, LASTING_QUOTA, MANY_KEYS};

/// Maximum number of repetitions: the result varies by about a hundredth.
const REPS_MAX: usize = 3;

/// The result of one candidate.
pub(crate) struct Footprint {
    pub(crate) candidate: &'static str,
    pub(crate) samples: Vec<f64>,
}

impl Footprint {
    /// Returns the bytes per key, including its share of the table's spare room.
    pub(crate) fn bytes_per_key(&self) -> f64 {
        stats::median(self.samples.iter().copied())
    }
}

/// Measures every candidate in separate child processes, so that none inherits freed memory.
pub(crate) fn bytes_per_key(plan: &Plan) -> anyhow::Result<Vec<Footprint>> {
    let program = std::env::current_exe().context("finding this program")?;
    let mut footprints: Vec<Footprint> = subject::deciders()
        .iter()
        .filter(|candidate| plan.wants(&format!("bytes/{}", candidate.name)))
        .map(|candidate| Footprint {
            candidate: candidate.name,
            samples: Vec::new(),
        })
        .collect();
    for _ in 0..plan.reps.min(REPS_MAX) {
        for footprint in &mut footprints {
            let child = Command::new(&program)
                .args(["--bytes-per-key-of", footprint.candidate])
                .output()
                .context("starting a child to measure memory")?;
            ensure!(
                child.status.success(),
                "{}: {}",
                footprint.candidate,
                String::from_utf8_lossy(&child.stderr).trim()
            );
            let bytes = String::from_utf8(child.stdout)?.trim().parse()?;
            footprint.samples.push(bytes);
        }
    }
    Ok(footprints)
}

/// Fills one candidate in this process; runs in a child.
pub(crate) fn bytes_per_key_here(name: &str) -> anyhow::Result<f64> {
    let candidate = subject::deciders()
        .into_iter()
        .find(|candidate| candidate.name == name)
        .with_context(|| format!("there is no store {name}"))?;
    let _watchdog = Watchdog::over(name, FILL_MAX);
    let keys = Keys::new(MANY_KEYS);
    let before = resident_bytes()?;
    let subject = (candidate.build)(MANY_KEYS, LASTING_QUOTA)?;
    for at in 0..MANY_KEYS {
        ensure!(subject.meet(&keys, at), "key {at} did not start anew");
    }
    let after = resident_bytes()?;
    Ok((after - before) / MANY_KEYS as f64)
}

/// From the page tables, because the kernel's running count is only approximate.
fn resident_bytes() -> anyhow::Result<f64> {
    let text = fs::read_to_string("/proc/self/smaps_rollup")?;
    let kib: f64 = text
        .lines()
        .find_map(|line| line.strip_prefix("Rss:"))
        .and_then(|rest| rest.split_whitespace().next())
        .context("no Rss in /proc/self/smaps_rollup")?
        .parse()?;
    Ok(kib * 1024.0)
}

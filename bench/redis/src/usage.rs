//! What this process uses, and where it runs.

use std::fs;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Processor seconds of this process so far.
pub(crate) fn cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Seconds for which a process was ready to run but other programs had its core, so far; zero
/// where the kernel does not tell.
pub(crate) fn waited_s(process: &str) -> f64 {
    fs::read_to_string(format!("/proc/{process}/schedstat"))
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
        .map_or(0.0, |nanos| Duration::from_nanos(nanos).as_secs_f64())
}

/// Keeps this thread, and all threads and processes that it starts from now on, on `core`. Where
/// that is refused they run unpinned, which costs steadiness and nothing else.
pub(crate) fn pin(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).ok();
}

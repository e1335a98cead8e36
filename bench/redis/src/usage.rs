//! The processor time of this process, and its cores.

use std::fs;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Processor seconds of this process so far.
pub(crate) fn cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Returns the seconds for which a process was ready to run but had no core, so far; zero if the
/// kernel does not report it.
pub(crate) fn waited_s(process: &str) -> f64 {
    fs::read_to_string(format!("/proc/{process}/schedstat"))
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
        .map_or(0.0, |nanos| Duration::from_nanos(nanos).as_secs_f64())
}

/// Pins this thread, and all threads and processes that it starts from now on, to `core`. If that
/// fails they run unpinned, with less stable results.
pub(crate) fn pin(core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).ok();
}

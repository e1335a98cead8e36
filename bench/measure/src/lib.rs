//! Cores, stolen time, medians and percentiles, for the in-process benchmarks.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A repetition that lost more than this share of its time to other programs is repeated.
const STOLEN_MAX: f64 = 0.05;

/// The maximum number of attempts; then the least disturbed one counts.
const TRIES_MAX: usize = 3;

/// The cores of this process before any thread was pinned: the last first, because the first is
/// busier.
static CORES: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let allowed = sched_getaffinity(None);
    let is_allowed = |core: &usize| allowed.as_ref().is_ok_and(|it| it.is_set(*core));
    (0..CpuSet::MAX_CPU).rev().filter(is_allowed).collect()
});

/// Pins this thread, and all threads that it starts from now on, to the core of this number.
pub fn pin(nth: usize) {
    if let Some(core) = CORES.get(nth) {
        let mut only = CpuSet::new();
        only.set(*core);
        // If that fails it runs unpinned, with less stable results.
        sched_setaffinity(None, &only).ok();
    }
}

/// Returns how long this thread was ready to run but had no core, in total; zero if the kernel does
/// not report it.
pub fn waited_for_core() -> Duration {
    fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
        .map_or(Duration::ZERO, Duration::from_nanos)
}

/// Returns the nanoseconds per item of `work`, which returns its number of items, over about
/// `span`, without time stolen by other programs; the first fifth is not counted.
pub fn ns_each(span: Duration, mut work: impl FnMut() -> usize) -> f64 {
    let mut once = || {
        let warm_up = Instant::now();
        while warm_up.elapsed() < span / 5 {
            work();
        }
        let waited_before = waited_for_core();
        let begun = Instant::now();
        let mut count = 0;
        while begun.elapsed() < span {
            count += work();
        }
        let elapsed = begun.elapsed();
        let waited = waited_for_core().saturating_sub(waited_before);
        let ns = elapsed.saturating_sub(waited).as_secs_f64() * 1e9 / count as f64;
        (ns, waited.as_secs_f64() / elapsed.as_secs_f64())
    };
    let mut best = once();
    for _ in 1..TRIES_MAX {
        if best.1 <= STOLEN_MAX {
            break;
        }
        let again = once();
        if again.1 < best.1 {
            best = again;
        }
    }
    best.0
}

/// The least, the middle and the greatest value.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Summary {
    /// The least.
    pub least: f64,
    /// The middle one.
    pub median: f64,
    /// The greatest.
    pub most: f64,
}

impl Summary {
    /// Summarizes these values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |nth: usize| sorted.get(nth).copied().unwrap_or(f64::NAN);
        Self {
            least: at(0),
            median: at(sorted.len() / 2),
            most: at(sorted.len().saturating_sub(1)),
        }
    }

    /// Returns the distance from the least to the greatest, in percent of the median.
    pub fn spread(&self) -> f64 {
        (self.most - self.least) / self.median * 100.0
    }
}

/// A histogram of durations with a resolution of a sixty-fourth: small enough to stay in the cache
/// next to the measured data.
#[derive(Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    most_ns: u64,
}

/// Buckets per power of two.
const PARTS: u64 = 64;

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Creates an empty histogram.
    pub fn new() -> Self {
        Self {
            counts: vec![0; 64 * 64],
            most_ns: 0,
        }
    }

    /// Adds a duration.
    #[inline]
    pub fn add(&mut self, ns: u64) {
        if let Some(count) = self.counts.get_mut(place(ns)) {
            *count += 1;
        }
        self.most_ns = self.most_ns.max(ns);
    }

    /// Returns the duration that this many of a million values do not exceed.
    pub fn within(&self, millionths: u64) -> f64 {
        let all: u64 = self.counts.iter().sum();
        let wanted = all * millionths / 1_000_000;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen > wanted
        });
        found.map_or(self.most_ns as f64, |place| lower_end(place) as f64)
    }

    /// Returns the longest.
    pub fn most(&self) -> f64 {
        self.most_ns as f64
    }
}

fn place(ns: u64) -> usize {
    let power = u64::from((ns | 1).ilog2()).saturating_sub(6);
    usize::try_from(power * PARTS + (ns >> power)).unwrap_or(usize::MAX)
}

fn lower_end(place: usize) -> u64 {
    let place = place as u64;
    let power = (place / PARTS).saturating_sub(1);
    (place - power * PARTS) << power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_accurate_to_a_sixty_fourth() {
        for ns in [0, 1, 63, 64, 127, 128, 1_000, 123_456, 9_999_999_999] {
            let end = lower_end(place(ns));
            assert!(end <= ns && ns - end <= ns / 64, "{ns} became {end}");
        }
        let mut histogram = Histogram::new();
        (1..=1_000).for_each(|ns| histogram.add(ns));
        assert!((histogram.within(500_000) - 500.0).abs() < 10.0);
        assert!((histogram.most() - 1_000.0).abs() < 1e-9);
    }

    #[test]
    fn the_median_ignores_an_outlier_and_the_spread_shows_it() {
        let summary = Summary::of([1.0, 100.0, 2.0]);
        assert!((summary.median - 2.0).abs() < 1e-9);
        assert!((summary.spread() - 4_950.0).abs() < 1e-9);
    }
}

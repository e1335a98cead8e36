//! The latency of replies.

use super::finding::Finding;
use super::node::NodeExam;
use std::time::Duration;

/// The number of calls to measure.
pub(super) const CALLS: usize = 200;

/// The latencies of a series of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Latencies {
    p50: Duration,
    p95: Duration,
    p99: Duration,
    max: Duration,
}

impl Latencies {
    /// Computes the latencies of a series; `None` if it is empty.
    pub(super) fn of(mut series: Vec<Duration>) -> Option<Self> {
        series.sort_unstable();
        let max = *series.last()?;
        // The nearest rank: the smallest value that this percentage of calls did not exceed.
        let percentile = |percent: usize| {
            let rank = (series.len() * percent).div_ceil(100).max(1);
            series.get(rank - 1).copied().unwrap_or(max)
        };
        Some(Self {
            p50: percentile(50),
            p95: percentile(95),
            p99: percentile(99),
            max,
        })
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let millis = |it: Duration| {
            let us = it.as_micros();
            format!("{}.{:03}", us / 1_000, us % 1_000)
        };
        write!(
            f,
            "p50 {}, p95 {}, p99 {}, max {} ms",
            millis(self.p50),
            millis(self.p95),
            millis(self.p99),
            millis(self.max)
        )
    }
}

/// Judges the latency, given the timeout of decisions.
pub(super) fn judge(nodes: &[NodeExam], timeout: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    for node in nodes {
        let series = [("PING", node.ping), ("EVALSHA", node.script)];
        for (what, latencies) in series {
            let Some(latencies) = latencies else {
                let text = format!("latency of {what} not measured");
                findings.push(Finding::unseen("latency", text).at(&node.address));
                continue;
            };
            findings.push(of(what, latencies, timeout).at(&node.address));
        }
    }
    findings
}

fn of(what: &str, latencies: Latencies, timeout: Duration) -> Finding {
    let text = format!("{what} {latencies}; the timeout is {timeout:?}");
    let help = "raise `store.timeout`, or move Tidegate closer to Redis: `on_failure` applies to \
        slower calls";
    if latencies.p95 >= timeout {
        Finding::fail("latency", text).help(help)
    } else if latencies.p99 >= timeout / 2 {
        Finding::warn("latency", text).help(help)
    } else {
        Finding::ok("latency", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::FindingLevel;

    fn hundred() -> Latencies {
        Latencies::of((1..=100).rev().map(Duration::from_millis).collect()).unwrap()
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let text = "p50 50.000, p95 95.000, p99 99.000, max 100.000 ms";
        assert_eq!(hundred().to_string(), text);
        assert_eq!(Latencies::of(Vec::new()), None);
        let one = Latencies::of(vec![Duration::from_micros(7)]).unwrap();
        assert_eq!(
            one.to_string(),
            "p50 0.007, p95 0.007, p99 0.007, max 0.007 ms"
        );
    }

    #[test]
    fn the_deadline_decides() {
        let judged = |ms| of("PING", hundred(), Duration::from_millis(ms)).mark;
        assert_eq!(judged(95), FindingLevel::Fail);
        assert_eq!(judged(96), FindingLevel::Warn);
        assert_eq!(judged(198), FindingLevel::Warn);
        assert_eq!(judged(199), FindingLevel::Ok);
    }
}

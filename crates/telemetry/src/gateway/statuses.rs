//! Responses, counted by their full status.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The range of statuses in HTTP.
const FIRST: u16 = 100;
const LAST: u16 = 599;

/// A counter for each status. Counting is one addition: four kilobytes for each pattern of a route cost less
/// than a search for each request.
#[derive(Debug)]
pub(super) struct Statuses {
    /// Counters from [`FIRST`] to [`LAST`], then one for all statuses outside that range.
    counts: Box<[AtomicU64]>,
}

impl Default for Statuses {
    fn default() -> Self {
        let counts = (FIRST..=LAST + 1).map(|_| AtomicU64::new(0));
        Self {
            counts: counts.collect(),
        }
    }
}

impl Statuses {
    #[inline]
    pub(super) fn count(&self, status: u16) {
        let nth = match status {
            FIRST..=LAST => usize::from(status - FIRST),
            _ => usize::from(LAST + 1 - FIRST),
        };
        if let Some(count) = self.counts.get(nth) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Encodes the statuses that occurred; a series for every status would be noise.
    pub(super) fn encode(
        &self,
        encoder: &mut MetricEncoder<'_>,
        (route, pattern): (&str, &str),
    ) -> fmt::Result {
        let mut buffer = itoa::Buffer::new();
        for (status, count) in (FIRST..).zip(&self.counts) {
            let count = count.load(Relaxed);
            if count == 0 {
                continue;
            }
            let status = match status {
                FIRST..=LAST => buffer.format(status),
                _ => "other",
            };
            let labels = [
                ("route", route),
                ("route_path", pattern),
                ("status", status),
            ];
            ConstCounter::new(count).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

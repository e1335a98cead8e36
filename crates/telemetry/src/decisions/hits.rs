//! Hits of one limit, by mode and result.

use super::pending::STATISTICS;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::{HitResult, LimitHits};

/// Hits of a limit in each mode: a request in flight during a reload may have seen the other mode.
#[derive(Debug, Default)]
pub(super) struct HitCounters {
    enforced: Counts,
    shadow: Counts,
    /// The statistics as last sent, in the order of [`STATISTICS`].
    sent: [AtomicU64; STATISTICS.len()],
}

/// Hits of a limit in one mode.
#[derive(Debug, Default)]
struct Counts {
    /// Counts in the order of [`RESULTS`].
    results: [AtomicU64; 3],
    /// Hits that used more than 80 % of the limit.
    near: AtomicU64,
}

const RESULTS: [HitResult; 3] = [
    HitResult::Allowed,
    HitResult::Refused,
    HitResult::NotCharged,
];

impl HitCounters {
    #[inline]
    pub(super) fn add(&self, hits: &LimitHits<'_>) {
        let counts = if hits.is_shadow {
            &self.shadow
        } else {
            &self.enforced
        };
        let mut results = RESULTS.iter().zip(&counts.results);
        if let Some((_, counter)) = results.find(|(result, _)| **result == hits.result) {
            counter.fetch_add(hits.hits, Relaxed);
        }
        if hits.near > 0 {
            counts.near.fetch_add(hits.near, Relaxed);
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.enforced.is_zero() && self.shadow.is_zero()
    }

    /// Returns each of [`STATISTICS`] as last sent, and its present value.
    pub(super) fn unsent(&self) -> [(u64, u64); STATISTICS.len()] {
        let [enforced, shadow] = [&self.enforced, &self.shadow].map(Counts::read);
        let [allowed, refused, not_charged] = [0, 1, 2].map(|result| {
            let read = |counts: [u64; 3]| counts.into_iter().nth(result).unwrap_or(0);
            read(enforced).saturating_add(read(shadow))
        });
        let [_, shadow_refused, _] = shadow;
        let near = |counts: &Counts| counts.near.load(Relaxed);
        let within = allowed.saturating_add(not_charged);
        let now = [
            within.saturating_add(refused),
            refused,
            near(&self.enforced).saturating_add(near(&self.shadow)),
            within,
            shadow_refused,
        ];
        let mut now = now.into_iter();
        self.sent
            .each_ref()
            .map(|sent| (sent.load(Relaxed), now.next().unwrap_or(0)))
    }

    /// Records that the statistic of this number was sent as `now`.
    pub(super) fn record_sent(&self, number: usize, now: u64) {
        if let Some(sent) = self.sent.get(number) {
            sent.store(now, Relaxed);
        }
    }

    /// Encodes the hits of the present mode even at zero, so that a rate over the first increase is right,
    /// and other hits once there are any.
    pub(super) fn encode(
        &self,
        encoder: &mut MetricEncoder<'_>,
        of: &EncodedLimit<'_>,
    ) -> fmt::Result {
        for (counts, mode, is_present) in self.by_mode(of) {
            for (result, counter) in RESULTS.iter().zip(&counts.results) {
                let count = counter.load(Relaxed);
                if count > 0 || (is_present && *result != HitResult::NotCharged) {
                    let labels = [
                        ("policy", of.policy),
                        ("limit", of.limit),
                        ("mode", mode),
                        ("outcome", result.as_str()),
                    ];
                    ConstCounter::new(count).encode(encoder.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }

    /// Encodes the hits above 80 % in the same way.
    pub(super) fn encode_near(
        &self,
        encoder: &mut MetricEncoder<'_>,
        of: &EncodedLimit<'_>,
    ) -> fmt::Result {
        for (counts, mode, is_present) in self.by_mode(of) {
            let near = counts.near.load(Relaxed);
            if near > 0 || is_present {
                let labels = [("policy", of.policy), ("limit", of.limit), ("mode", mode)];
                ConstCounter::new(near).encode(encoder.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    /// Returns the counts of each mode, its name, and true if the limit is in it.
    fn by_mode(&self, of: &EncodedLimit<'_>) -> [(&Counts, &'static str, bool); 2] {
        [
            (&self.enforced, "enforce", !of.is_shadow),
            (&self.shadow, "shadow", of.is_shadow),
        ]
    }
}

impl Counts {
    fn read(&self) -> [u64; 3] {
        self.results.each_ref().map(|count| count.load(Relaxed))
    }

    fn is_zero(&self) -> bool {
        self.read() == [0; 3]
    }
}

/// The limit whose hits are encoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct EncodedLimit<'a> {
    pub(super) policy: &'a str,
    pub(super) limit: &'a str,
    pub(super) is_shadow: bool,
}

//! Marks, which make a reservation settle only once.
//!
//! A mark is a separate bucket next to each charged bucket: one unit, for as long as the reservation lives.
//! Settling atomically tests if the mark is free, takes it, and refunds or charges the difference. Once the
//! mark is taken, nothing of that happens.
//!
//! For a refund, a take does all of that. But if more was used than reserved, the bucket may have nothing
//! left: a forced charge then refuses, though it is made, and a take next to it would not be made. There one
//! ask *tests* the mark and another *takes* it, which is forced as well: either the mark was free, or the
//! first ask has refused.

use super::seal::OnceToken;
use smallvec::SmallVec;
use tidegate_core::{Algorithm, Align, Ask, LimitMode, Op, Quota};

/// The band label of all marks.
const LABEL: &str = "reservation";

/// The mark of one reservation next to one bucket.
pub(super) struct BucketMark {
    name: Vec<u8>,
    scope: usize,
    quota: Quota,
}

impl BucketMark {
    /// Creates the mark next to `bucket`, which lasts longer than `ttl_us` once it is taken; `None` if no
    /// reservation can live that long.
    pub(super) fn new(mark: OnceToken, bucket: &[u8], ttl_us: u64) -> Option<Self> {
        // One microsecond longer: a reservation settled at the instant it was made must still be marked at
        // the last instant at which refunds are possible.
        let quota = Quota::new(1, ttl_us.saturating_add(1))
            .algorithm(Algorithm::FixedWindow(Align::FirstRequest))
            .label(LABEL)
            .build()
            .ok()?;
        let (limit, subject) = bucket.split_at(limit_end(bucket));
        let mut name = limit.to_vec();
        name.push(b'~');
        let scope = name.len();
        name.extend_from_slice(mark.to_hex().as_bytes());
        name.extend_from_slice(subject);
        Some(Self { name, scope, quota })
    }

    /// Returns the asks that take the mark. If it is already taken, the first of them refuses, and with it
    /// everything that must not happen twice. `is_forced` is true if any charge next to it is forced.
    pub(super) fn take(&self, is_forced: bool) -> SmallVec<[Ask<'_>; 2]> {
        if is_forced {
            SmallVec::from_iter([self.ask(Op::Test(1)), self.ask(Op::Force(1))])
        } else {
            SmallVec::from_iter([self.ask(Op::Take(1))])
        }
    }

    fn ask(&self, op: Op) -> Ask<'_> {
        Ask {
            bucket: &self.name,
            scope: self.scope,
            quota: &self.quota,
            op,
            limit: 0,
            mode: LimitMode::Enforce,
        }
    }
}

/// Returns the end of the policy and limit names in a bucket's name: before its second slash. The subject
/// after it determines the Cluster node of the bucket, and a mark must be on the same node.
fn limit_end(bucket: &[u8]) -> usize {
    let slashes = bucket.iter().enumerate().filter(|(_, it)| **it == b'/');
    slashes.map(|(at, _)| at).nth(1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::seal::Seal;
    use super::*;

    #[test]
    fn a_mark_is_named_after_its_bucket_and_shares_its_slot() {
        let seal = Seal::random();
        let mark = seal.open(&seal.close(b"").unwrap()).unwrap().mark;
        let named = BucketMark::new(mark, b"api/per-client/ip:::1/64", 1_000).unwrap();
        let ask = named.take(false)[0];
        let hex = mark.to_hex();
        let expected = format!("api/per-client~{hex}/ip:::1/64");
        assert_eq!(std::str::from_utf8(ask.bucket), Ok(expected.as_str()));
        assert_eq!(&ask.bucket[..ask.scope], b"api/per-client~");
        assert!(ask.quota.is_narrow(), "no excess capacity");
        assert!(BucketMark::new(mark, b"x", u64::MAX).is_none());
    }
}

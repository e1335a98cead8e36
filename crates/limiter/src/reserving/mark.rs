//! What makes settling happen once.
//!
//! A mark is a bucket of its own beside each bucket that was charged: one unit, for as long as the
//! reservation lives. Whoever settles asks in one step whether it is there, takes it, and gives back
//! or charges the difference. Once it is taken, nothing of that happens.
//!
//! Where something is given back, a take does all of that. But where more was used than reserved, the
//! bucket may have nothing left: a forced charge then refuses, though it is made, and a take beside it
//! would not be. There the mark is *asked for* by one ask and *taken* by another, which is forced as
//! well; it was there, or the first had refused.

use super::seal::OnceToken;
use smallvec::SmallVec;
use tidegate_core::{Algorithm, Align, Ask, LimitMode, Op, Quota};

/// The band of all marks.
const LABEL: &str = "reservation";

/// The mark of one reservation beside one bucket.
pub(super) struct BucketMark {
    name: Vec<u8>,
    scope: usize,
    quota: Quota,
}

impl BucketMark {
    /// Beside `bucket`, for longer than `ttl_us` from when it is taken; `None` where no reservation can
    /// have lived for so long.
    pub(super) fn new(mark: OnceToken, bucket: &[u8], ttl_us: u64) -> Option<Self> {
        // Who settles in the very instant of reserving is still remembered in the last one at which
        // anything comes back.
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

    /// Takes it; the first of these refuses, and with it all that is not to happen twice, if it is
    /// taken. `is_forced` says whether anything beside it is charged by force.
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

/// Where the names of policy and limit end in a bucket's name: before its second slash. What follows,
/// whose bucket it is, decides on which node of a Cluster it lies, and a mark must lie there too.
fn limit_end(bucket: &[u8]) -> usize {
    let slashes = bucket.iter().enumerate().filter(|(_, it)| **it == b'/');
    slashes.map(|(at, _)| at).nth(1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::seal::Seal;
    use super::*;

    #[test]
    fn a_mark_is_named_after_its_bucket_and_lies_beside_it() {
        let seal = Seal::random();
        let mark = seal.open(&seal.close(b"").unwrap()).unwrap().mark;
        let named = BucketMark::new(mark, b"api/per-client/ip:::1/64", 1_000).unwrap();
        let ask = named.take(false)[0];
        let hex = mark.to_hex();
        let expected = format!("api/per-client~{hex}/ip:::1/64");
        assert_eq!(std::str::from_utf8(ask.bucket), Ok(expected.as_str()));
        assert_eq!(&ask.bucket[..ask.scope], b"api/per-client~");
        assert!(ask.quota.is_narrow(), "it takes no more room than it must");
        assert!(BucketMark::new(mark, b"x", u64::MAX).is_none());
    }
}

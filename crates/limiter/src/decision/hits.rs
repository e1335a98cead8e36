//! Hits of each limit that a request matched, for statistics.

use super::bands::BandAnswer;
use super::{DecidedBy, Decision};
use tidegate_core::{LimitMode, Op};
use tidegate_policy::plan::PlanAnswer;
use tidegate_policy::{Limit, Policy, Request};

/// The hits of one limit in one decision: the cost of the request to that limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitHits<'a> {
    /// The limit's name.
    pub limit: &'a str,
    /// The number of the limit, counted from 0 in the order of its policy.
    pub limit_index: usize,
    /// The number of the descriptor that matched, counted from 0; `None` where the limit matched the
    /// request as a whole.
    pub descriptor: Option<usize>,
    /// True if the limit is in shadow mode: [`result`](Self::result) is then hypothetical.
    pub is_shadow: bool,
    /// The result for all of the hits.
    pub result: HitResult,
    /// The cost of the request to this limit; never 0.
    pub hits: u64,
    /// The part of the hits that used more than 80 % of the limit's capacity; the largest of several bands. 0
    /// if local buckets decided.
    pub near: u64,
}

/// The result of the hits of one limit. Metrics count requests by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HitResult {
    /// The limit had room, and was charged.
    Allowed,
    /// The limit had no room.
    Refused,
    /// The limit had room, and was not charged because another limit refused the request.
    NotCharged,
}

impl HitResult {
    /// Returns the name used in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::NotCharged => "not_charged",
        }
    }
}

impl Decision {
    /// Returns the hits of each limit that the request matched, in the order written; once for each
    /// descriptor that matched. `request` is the request that was decided.
    ///
    /// Limits are left out if the request costs them nothing (a cost of 0, a test, a refund), and if they
    /// were not evaluated: because a guard decided, an identity was missing, or the store did not answer
    /// and the limit has `on_failure: allow`.
    ///
    /// ```
    /// use tidegate::{HitResult, Limiter, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// policies:
    ///   - name: api
    ///     limits: [{ name: each, key: user, rate: 5/h }, { name: all, rate: 10/h }]
    /// ")?;
    /// let request = Request::new().user("ann").cost(4);
    /// let hits = |wanted: HitResult| -> Result<Vec<(String, u64)>, tidegate::CheckError> {
    ///     let decision = limiter.check_now(&request)?;
    ///     let hits = decision.limit_hits(&request).filter(|it| it.result == wanted);
    ///     Ok(hits.map(|it| (it.limit.to_owned(), it.hits)).collect())
    /// };
    /// assert_eq!(hits(HitResult::Allowed)?, [("each".to_owned(), 4), ("all".to_owned(), 4)]);
    /// assert_eq!(hits(HitResult::Refused)?, [("each".to_owned(), 4)]);
    /// assert_eq!(hits(HitResult::NotCharged)?, [("all".to_owned(), 4)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn limit_hits<'a>(
        &'a self,
        request: &'a Request<'_>,
    ) -> impl Iterator<Item = LimitHits<'a>> {
        let is_same = |one: &BandAnswer, next: &BandAnswer| {
            (one.limit, one.descriptor) == (next.limit, next.descriptor)
        };
        let policy = self.policy_rules();
        let limits = self.bands.chunk_by(is_same);
        limits.filter_map(move |bands| self.hits_of(policy?, bands, request))
    }

    /// Returns the hits of the limit that all of `bands` belong to.
    #[inline]
    fn hits_of<'a>(
        &self,
        policy: &'a Policy,
        bands: &[BandAnswer],
        request: &Request<'_>,
    ) -> Option<LimitHits<'a>> {
        let first = bands.iter().find(|band| !band.is_skipped())?;
        let limit_index = usize::try_from(first.limit).ok()?;
        let limit = policy.limit(limit_index)?;
        let op = self
            .purpose
            .op(request, (policy, limit), first.described_by());
        let (Op::Take(hits @ 1..) | Op::Force(hits @ 1..) | Op::Debit(hits @ 1..)) = op else {
            return None;
        };
        let result = if bands.iter().any(|band| !band.outcome.is_allowed()) {
            HitResult::Refused
        } else if self.allowed || first.is_charged() {
            HitResult::Allowed
        } else {
            HitResult::NotCharged
        };
        let mut near = 0;
        // A local bucket holds only a share of the capacity.
        if result == HitResult::Allowed && self.decided_by != DecidedBy::Local {
            for entry in bands {
                let capacity = self.capacity(limit, entry);
                near = near.max(above_threshold(capacity, entry.outcome.remaining, hits));
            }
        }
        Some(LimitHits {
            limit: &limit.name,
            limit_index,
            descriptor: first.described_by().map(usize::from),
            is_shadow: limit.mode == LimitMode::Shadow,
            result,
            hits,
            near,
        })
    }

    /// Returns the capacity of a band of `limit`; 0 where no band was evaluated.
    #[inline]
    fn capacity(&self, limit: &Limit, entry: &BandAnswer) -> u64 {
        if self.brought.is_some() || entry.planned != PlanAnswer::NotAsked {
            return self.capacity_of_any_band(entry);
        }
        let band = limit.bands.get(entry.evaluated_index());
        band.map_or(0, |band| band.quota.capacity())
    }

    /// Like [`capacity`](Self::capacity), for a band that may come from the request or from a plan.
    #[cold]
    fn capacity_of_any_band(&self, entry: &BandAnswer) -> u64 {
        self.describe(entry, "").map_or(0, |band| band.capacity())
    }
}

/// Returns the part of `hits` that used more than 80 % of `capacity`, where `remaining` is left after them.
#[inline]
fn above_threshold(capacity: u64, remaining: u64, hits: u64) -> u64 {
    // Capacities are below 2^53.
    let threshold = capacity.saturating_mul(4) / 5;
    let used = capacity.saturating_sub(remaining);
    used.saturating_sub(threshold).min(hits)
}

#[cfg(test)]
mod tests {
    use super::above_threshold;

    #[test]
    fn hits_are_near_as_envoyproxy_ratelimit_counts_them() {
        // Capacity, used before, hits; the part of the hits above 80 %.
        for (capacity, before, hits, expected) in [
            (10, 0, 1, 0),
            (10, 7, 1, 0),
            (10, 8, 1, 1),
            (10, 9, 1, 1),
            (10, 5, 5, 2),
            (10, 8, 2, 2),
            (20, 14, 2, 0),
            (20, 15, 3, 2),
            // 80 % of 3 is 2 in whole units, of 1 it is 0.
            (3, 1, 2, 1),
            (1, 0, 1, 1),
        ] {
            let remaining = capacity - before - hits;
            assert_eq!(
                above_threshold(capacity, remaining, hits),
                expected,
                "{before} + {hits}"
            );
        }
    }
}

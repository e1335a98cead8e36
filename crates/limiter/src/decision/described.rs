//! The reported band of each descriptor of a request.

use super::bands::{BandAnswer, BandChoice};
use super::{AppliedBand, Decision};
use tidegate_core::{LimitMode, Wait};

impl Decision {
    /// Returns the number of descriptors of the request.
    pub fn descriptors(&self) -> usize {
        usize::from(self.descriptors)
    }

    /// Returns the reported band of the descriptor `nth`, counted from 0. If none of its enforced limits
    /// refuses, this is the band with the fewest remaining units; otherwise the refusing band with the
    /// longest wait. Returns `None` if no enforced limit applied to it.
    ///
    /// This is the choice of the whole decision, for one descriptor alone. Limits that apply to the request
    /// as a whole are not part of it, and the key of the band is empty.
    ///
    /// ```
    /// use tidegate::{Descriptor, DescriptorHits, Limiter, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// policies:
    ///   - name: edge
    ///     limits:
    ///       - { name: each-user, match: { descriptor: [user] }, key: descriptor:user, rate: 2/h }
    ///       - { name: staff, match: { descriptor: [user: root] }, rate: unlimited }
    /// ")?;
    /// let user = |entries| Descriptor { entries, hits: DescriptorHits::AsRequest, limit: None };
    /// let described = [user(&[("user", "ann")]), user(&[("user", "root")]), user(&[("day", "1")])];
    /// let decision = limiter.check_now(&Request::new().descriptors(&described))?;
    ///
    /// assert_eq!(decision.descriptor(0).map(|band| band.remaining()), Some(1));
    /// assert!(decision.descriptor_unlimited(1) && !decision.descriptor_unlimited(2));
    /// assert!((1..3).all(|nth| decision.descriptor(nth).is_none()));
    /// assert!((0..3).all(|nth| decision.descriptor_allowed(nth)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn descriptor(&self, nth: usize) -> Option<AppliedBand<'_>> {
        let passed = self.descriptor_allowed(nth);
        let mut choice = BandChoice::new(self.policy_rules()?);
        for (number, entry) in self.described(nth) {
            if !self.is_enforced(entry) || entry.is_unlimited() {
                continue;
            }
            if choice.is_better(passed, &entry.outcome) {
                let mut outcome = entry.outcome;
                if entry.is_denied() {
                    // An unknown state has no known wait.
                    outcome.wait = Wait::NEVER;
                }
                choice.choose(number, &outcome);
            }
        }
        self.describe(self.bands.get(choice.number()?)?, "")
    }

    /// Returns true if no enforced limit of the descriptor `nth` refuses, and no guard refuses the request. A
    /// request may be refused although all its descriptors are allowed: by a limit that applies to it as a
    /// whole.
    pub fn descriptor_allowed(&self, nth: usize) -> bool {
        if self.is_denied_by_guard() {
            return false;
        }
        let mut entries = self.described(nth);
        !entries.any(|(_, entry)| !entry.outcome.is_allowed() && self.is_enforced(entry))
    }

    /// Returns true if the descriptor `nth` matched an `unlimited` limit, and no other.
    pub fn descriptor_unlimited(&self, nth: usize) -> bool {
        let mut entries = self.described(nth);
        entries.any(|(_, entry)| entry.is_unlimited()) && self.descriptor(nth).is_none()
    }

    /// Returns the answers for the descriptor `nth`.
    fn described(&self, nth: usize) -> impl Iterator<Item = (usize, &BandAnswer)> {
        let is_known = nth < self.descriptors();
        let entries = self.bands.iter().enumerate().filter(move |_| is_known);
        entries.filter(move |(_, it)| usize::from(it.descriptor) == nth && !it.is_skipped())
    }

    fn is_enforced(&self, entry: &BandAnswer) -> bool {
        let limit = self.limit_of(entry);
        limit.is_some_and(|limit| limit.mode == LimitMode::Enforce)
    }
}

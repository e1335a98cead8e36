//! Refusals that shadow mode turned into passes.

use super::{AppliedBand, Decision};

impl Decision {
    /// Returns the limits in shadow mode that would have refused the request: the first refusing band of
    /// each, once for every descriptor that matched it. [`AppliedBand::reason`] gives the reason.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, AnswerReason, Request};
    ///
    /// let limit = LimitSpec::new("all").band("1/h").shadow();
    /// let limiter = Limiter::builder().limit(limit).build()?;
    /// let decision = limiter.check_now(&Request::new().cost(2))?;
    /// assert!(decision.is_allowed());
    /// let reasons: Vec<AnswerReason> = decision.shadow_refusals().map(|it| it.reason()).collect();
    /// assert_eq!(reasons, [AnswerReason::Limited]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shadow_refusals(&self) -> impl Iterator<Item = AppliedBand<'_>> {
        let mut last = None;
        let refusing = self
            .applied()
            .filter(|applied| applied.is_shadow() && !applied.is_allowed());
        refusing.filter(move |applied| {
            let met = Some((applied.limit_index(), applied.descriptor()));
            let is_new = last != met;
            last = met;
            is_new
        })
    }
}

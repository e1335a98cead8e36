//! Limits of requests in flight, in code.

use super::LimitSpec;
use crate::error::BuildError;
use std::time::Duration;
use tidegate_core::{Algorithm, OnChange};
use tidegate_policy::Limit;

impl LimitSpec {
    /// Limits the requests in flight: at most `permits` at once, however long each takes, in place of
    /// [bands](Self::band).
    ///
    /// A request is in flight from its decision until the decision and its [`Permit`](crate::Permit) are dropped.
    /// The tower layer and the gateway do that at the end of the response.
    ///
    /// ```
    /// use tidegate::{KeyPart, LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("at-once").key(KeyPart::User).concurrent(2))
    ///     .limit(LimitSpec::new("per-minute").key(KeyPart::User).band("100/min"))
    ///     .build()?;
    /// let request = Request::new().user("ann");
    /// let (first, second) = (limiter.check_now(&request)?, limiter.check_now(&request)?);
    /// let refused = limiter.check_now(&request)?;
    /// assert_eq!((refused.is_allowed(), refused.limit()), (false, Some("at-once")));
    ///
    /// // The first request has ended.
    /// drop(first);
    /// assert!(limiter.check_now(&request)?.is_allowed());
    /// # drop(second);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn concurrent(mut self, permits: u64) -> Self {
        self.concurrent = Some(permits);
        self
    }

    /// Sets how long a request counts for a caller that does not see its end. From 1 ms to a day. Default: 30 s.
    pub fn hold(mut self, time: Duration) -> Self {
        self.hold = Some(time);
        self
    }

    /// Builds a limit of `permits` requests in flight.
    pub(super) fn compile_concurrent(self, permits: u64) -> Result<Limit, BuildError> {
        let refuse = |reason: String| BuildError::Limit {
            name: self.name.clone(),
            reason,
        };
        if let Some(setting) = self.setting_of_rates() {
            let why = format!("`{setting}` conflicts with `.concurrent(..)`; remove one of them");
            return Err(refuse(why));
        }
        let holds = Limit::HOLD_MIN..=Limit::HOLD_MAX;
        if let Some(hold) = self.hold.filter(|hold| !holds.contains(hold)) {
            return Err(refuse(format!("a hold of {hold:?} is not from 1ms to 1d")));
        }
        let limit = Limit {
            conditions: self.conditions().map_err(refuse)?,
            key: self.key_or_global(),
            missing: self.missing,
            mode: self.mode,
            waiting: self.waiting().map_err(refuse)?,
            hold: self.hold,
            on_failure: self.on_failure,
            refusal: self.refusal.clone(),
            ..Limit::new(self.name.clone())
        };
        limit.concurrent(permits).map_err(refuse)
    }

    /// Returns a setting that is only for limits with bands, if there is one.
    fn setting_of_rates(&self) -> Option<&'static str> {
        let settings = [
            (!self.bands.is_empty(), ".band(..)"),
            (self.unit.is_some(), ".unit(..)"),
            (self.algorithm != Algorithm::default(), ".algorithm(..)"),
            (!self.block.is_zero(), ".block(..)"),
            (self.refundable, ".refundable()"),
            (self.on_change != OnChange::Keep, ".on_change(..)"),
        ];
        let set = settings.into_iter().find(|(is_set, _)| *is_set);
        set.map(|(_, name)| name)
    }
}

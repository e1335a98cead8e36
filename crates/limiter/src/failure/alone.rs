//! One bucket that belongs to no limit, without the store: as the store's `on_failure` says.

use super::{COME_BACK_US, Failover, Share};
use crate::decision::DecidedBy;
use crate::error::CheckError;
use crate::rules::Rules;
use crate::throttle::Throttled;
use tidegate_core::{Ask, Clock, Outcome, StoreError, Wait};
use tidegate_policy::OnFailure;

impl Failover {
    /// Decides one ask that the store answered with `error`.
    pub(crate) fn decide_alone(
        &self,
        rules: &Rules,
        ask: &Ask<'_>,
        mut error: StoreError,
    ) -> Result<Throttled, CheckError> {
        self.failed(&error);
        // Perhaps it is known all the same; then it stands.
        if let Some(Some(answered)) = error.answers().first() {
            let outcome = answered.outcome;
            error.keep();
            self.local.known().note(ask, &outcome, self.clock.now());
            return Ok(Throttled::new(outcome, DecidedBy::Store, rules));
        }
        match rules.on_failure(None) {
            OnFailure::Local => {
                let share = Share::of(rules.local_share, &self.instances);
                let reply = self.local.decide(&[*ask], share);
                let outcome = reply.outcomes.first().copied();
                let outcome = outcome.unwrap_or_else(|| untouched(ask));
                Ok(Throttled::new(outcome, DecidedBy::Local, rules))
            }
            OnFailure::Allow => Ok(Throttled::new(untouched(ask), DecidedBy::Failure, rules)),
            OnFailure::Deny => Ok(Throttled::new(refused(), DecidedBy::Failure, rules)),
            OnFailure::Error if rules.is_shadow() => {
                Ok(Throttled::new(refused(), DecidedBy::Failure, rules))
            }
            OnFailure::Error => Err(CheckError::Store(error)),
        }
    }
}

/// The answer of a bucket that nobody has touched.
fn untouched(ask: &Ask<'_>) -> Outcome {
    Outcome::new(ask.quota.capacity(), Wait::NONE, 0)
}

/// The answer where nobody knows, and nothing is to pass: by then the store may be there again.
fn refused() -> Outcome {
    Outcome::new(0, Wait::from_micros(COME_BACK_US), COME_BACK_US)
}

//! Reservations, and their settlement.

use super::{Decider, Logged};
use crate::telemetry::decisions::Timing;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{
    CheckError, Request, Reservation, Rules, SettleError, SettleState, SettledReservation, Store,
};
use tracing::debug;

impl<S: Store> Decider<S> {
    /// Reserves the estimated cost of a request, for `ttl` or for the policy's default time, by the rules
    /// that the client was identified by.
    pub async fn reserve(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: Option<Duration>,
    ) -> Result<Reservation, CheckError> {
        let timing = Timing::start(self.limiter.waits());
        let reserved = self.limiter.reserve_by(rules, request, ttl).await;
        // A reservation counts as a decision.
        let decided = reserved.as_ref().map(Reservation::decision);
        self.count((rules, request), decided, timing, Logged::Here);
        if let Some(policy) = rules.policy(request.policy) {
            self.metrics.reservations.count(&policy.name, &reserved);
        }
        reserved
    }

    /// Returns an error if a request could not be reserved. Charges and counts nothing.
    pub fn accepts_reserving(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: Option<Duration>,
    ) -> Result<(), CheckError> {
        self.limiter.accepts_reserving(rules, request, ttl)
    }

    /// Settles a reservation by its actual cost.
    pub async fn commit(&self, id: &str, actual: u64) -> Result<SettledReservation, SettleError> {
        let settled = self.limiter.commit(id, actual).await;
        self.metrics.reservations.count_settled(&settled);
        match &settled {
            Ok(settled) if settled.state() == SettleState::Settled => {}
            Ok(settled) => {
                let state = settled.state().as_str();
                debug!(policy = settled.policy(), state, "a reservation");
            }
            Err(SettleError::Store { policy, source }) => {
                debug!(policy, error = %source, "a reservation could not be settled");
            }
            Err(error) => debug!(%error, "a reservation could not be settled"),
        }
        settled
    }

    /// Settles a reservation with no cost.
    pub async fn refund(&self, id: &str) -> Result<SettledReservation, SettleError> {
        self.commit(id, 0).await
    }
}

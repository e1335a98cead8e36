//! Reserving, and settling what was reserved.

use super::{Decider, Logged};
use crate::telemetry::decisions::Timing;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{
    CheckError, Request, Reservation, Rules, SettleError, SettleState, SettledReservation, Store,
};
use tracing::debug;

impl<S: Store> Decider<S> {
    /// Reserves what a request is expected to cost, for so long as `ttl` says or its policy does, by
    /// the rules by which it was found out who asks.
    pub async fn reserve(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: Option<Duration>,
    ) -> Result<Reservation, CheckError> {
        let timing = Timing::start(self.limiter.waits());
        let reserved = self.limiter.reserve_by(rules, request, ttl).await;
        // It is a decision like any other.
        let decided = reserved.as_ref().map(Reservation::decision);
        self.count((rules, request), decided, timing, Logged::Here);
        if let Some(policy) = rules.policy(request.policy) {
            self.metrics.reservations.count(&policy.name, &reserved);
        }
        reserved
    }

    /// Whether a request could be reserved: changes nothing, counts nothing.
    pub fn accepts_reserving(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: Option<Duration>,
    ) -> Result<(), CheckError> {
        self.limiter.accepts_reserving(rules, request, ttl)
    }

    /// Settles a reservation by what was used of it.
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

    /// Settles a reservation of which nothing was used.
    pub async fn refund(&self, id: &str) -> Result<SettledReservation, SettleError> {
        self.commit(id, 0).await
    }
}

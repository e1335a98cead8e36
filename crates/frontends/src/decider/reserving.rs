//! Reservations, and their settlement.

use super::warning::LimitWarning;
use super::{Decider, RefusalLogging};
use std::sync::Arc;
use std::time::Duration;
use tidegate::{
    CheckError, Cost, PendingReservation, Request, Reservation, Rules, SettleError, SettleState,
    SettledReservation, Store,
};
use tidegate_telemetry::decisions::Timing;
use tidegate_telemetry::traces::RequestTrace;
use tracing::debug;

impl<S: Store> Decider<S> {
    /// Prepares a reservation of the estimated cost of a request, for `ttl` or for the policy's default time,
    /// by the rules that the client was identified by. Charges and counts nothing.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::prepare_reservation`](tidegate::Limiter::prepare_reservation).
    pub(crate) fn prepare_reservation(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: Option<Duration>,
    ) -> Result<PendingReservation<S>, CheckError> {
        self.limiter.prepare_reservation(rules, request, ttl)
    }

    /// Makes a prepared reservation. It is counted, traced and logged like a decision; the error of one that
    /// could not be prepared is too.
    ///
    /// # Errors
    ///
    /// Those of [`PendingReservation::reservation`].
    pub(crate) async fn reserve(
        &self,
        prepared: Result<PendingReservation<S>, CheckError>,
        asked: (&Rules, &Request<'_>),
        trace: &RequestTrace,
        token_refused: Option<&'static str>,
    ) -> Result<Reservation, CheckError> {
        self.count_token(token_refused);
        let (timing, leg) = (Timing::start(self.limiter.waits()), trace.leg());
        let reserved = match prepared {
            Ok(pending) => pending.reservation().await,
            Err(error) => Err(error),
        };
        let decided = reserved.as_ref().map(Reservation::decision);
        trace.decided(leg, decided);
        self.count(asked, decided, timing, RefusalLogging::Here);
        let (rules, request) = asked;
        if let Some(policy) = rules.policy(request.policy) {
            self.metrics.reservations.count(&policy.name, &reserved);
        }
        reserved
    }

    /// Settles a reservation by its actual cost.
    ///
    /// Calling it again is safe: a reservation settles once. Each call is counted by its outcome.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::commit`](tidegate::Limiter::commit).
    pub async fn commit(
        &self,
        id: &str,
        actual: Cost<'_>,
    ) -> Result<SettledReservation, SettleError> {
        self.settled(self.limiter.commit(id, actual).await)
    }

    /// Counts and logs the outcome of a settlement.
    fn settled(
        &self,
        settled: Result<SettledReservation, SettleError>,
    ) -> Result<SettledReservation, SettleError> {
        self.metrics.reservations.count_settled(&settled);
        let warned = settled.iter().flat_map(|settled| {
            let warnings = settled.warnings().iter();
            warnings.map(move |warning| LimitWarning::of_commit(settled, warning))
        });
        warned.for_each(|warning| self.warn_of(&warning));
        match &settled {
            Ok(settled) if settled.state() == SettleState::Settled => {}
            Ok(settled) => {
                let state = settled.state().as_str();
                debug!(
                    event = "reservation_not_open",
                    policy = settled.policy(),
                    state,
                    "reservation was not open"
                );
            }
            Err(SettleError::Store { policy, source }) => {
                debug!(event = "reservation_failed", policy, error = %source, "reservation not settled");
            }
            Err(error) => debug!(event = "reservation_failed", %error, "reservation not settled"),
        }
        settled
    }

    /// Settles a reservation with no cost.
    ///
    /// # Errors
    ///
    /// Those of [`commit`](Self::commit).
    pub async fn refund(&self, id: &str) -> Result<SettledReservation, SettleError> {
        self.settled(self.limiter.refund(id).await)
    }
}

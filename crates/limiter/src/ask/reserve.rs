//! Reserving: an attempt that charges an estimate, and is decided later.

use super::attempt::{Attempt, AttemptTerms};
use super::check;
use crate::error::CheckError;
use crate::purpose::AskPurpose;
use crate::request::count_address;
use crate::reservations::{Reservation, ReserveTerms, charges_of};
use crate::rules::Rules;
use crate::state::LimiterState;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::Store;
use tidegate_memory::MemoryStore;
use tidegate_policy::Request;

/// A reservation that is prepared: its policy accepts it, guards let it pass, and its limits are matched. It
/// owns everything it needs; the [`Request`] may be dropped.
///
/// Nothing is charged before [`reservation`](Self::reservation) is polled. So a list can be prepared as a
/// whole before the first of it is charged.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use std::time::Duration;
/// use tidegate::{LimitSpec, Limiter, Request};
///
/// let limiter = Limiter::builder()
///     .limit(LimitSpec::new("tokens").band("1000/h"))
///     .reserve(Duration::from_secs(60))
///     .build()?;
/// let rules = limiter.rules()?;
/// let first = limiter.prepare_reservation(&rules, &Request::new().cost(800), None)?;
/// let second = limiter.prepare_reservation(&rules, &Request::new().cost(800), None)?;
/// assert!(first.reservation().await?.is_allowed());
/// assert!(!second.reservation().await?.is_allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PendingReservation<S = MemoryStore> {
    state: Arc<LimiterState<S>>,
    terms: ReserveTerms,
    /// The address that the request counts for.
    ip: Option<IpAddr>,
    /// The request for the store; or the decision, if no store is needed for it.
    attempt: Attempt<S>,
}

/// Prepares a reservation. Calls no store, and charges and counts nothing.
pub(crate) fn prepare_reservation<S: Store>(
    state: &Arc<LimiterState<S>>,
    rules: &Arc<Rules>,
    request: &Request<'_>,
    ttl: Option<Duration>,
) -> Result<PendingReservation<S>, CheckError> {
    let terms = ReserveTerms::of(rules, request, ttl)?;
    // Undecided even if the store decides immediately.
    let later = AttemptTerms {
        purpose: AskPurpose::Reserve,
        is_behind: true,
    };
    let attempt = check::attempt(state, rules, request, later, |decision| decision)?;
    if let Attempt::Pending(pending) = &attempt {
        terms.check_fit(&pending.prepared())?;
    }
    Ok(PendingReservation {
        state: Arc::clone(state),
        terms,
        ip: request.ip,
        attempt,
    })
}

impl<S: Store> PendingReservation<S> {
    /// Charges the estimate if all matched limits have room, and returns the id for settling it.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer and a limit has `on_failure: error`.
    pub async fn reservation(self) -> Result<Reservation, CheckError> {
        let Self {
            state,
            terms,
            ip,
            attempt,
        } = self;
        let LimiterState {
            backend,
            reservations,
            ..
        } = &*state;
        // Before anything is charged: without a seal the charge could not be settled.
        let by = reservations.sealer(terms.rules(), backend).await;
        match attempt {
            Attempt::Done(decision) => {
                count_address(terms.rules(), ip, Some(&decision));
                terms.conclude(decision, Vec::new(), by)
            }
            Attempt::Pending(pending) => {
                count_address(terms.rules(), ip, None);
                let question = pending.prepared();
                let answers = backend.ask(question.terms(), &question.asks).await?;
                // Its charges are refunded only through its id: with a second way, they could be refunded
                // twice.
                let charges = charges_of(&question, &answers);
                terms.conclude(question.decide(&answers), charges, by)
            }
        }
    }
}

impl<S> fmt::Debug for PendingReservation<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingReservation")
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

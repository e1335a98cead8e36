//! Refunds and reservations.

use super::Limiter;
use crate::ask::{self, PendingReservation};
use crate::charges::Charges;
use crate::decision::Decision;
use crate::error::CheckError;
use crate::queue::RefundHold;
use crate::reservations::{Reservation, SettleError, SettledReservation};
use crate::rules::Rules;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::Store;
use tidegate_policy::{Cost, Request};
use tokio::runtime::Handle;

impl<S: Store> Limiter<S> {
    /// Refunds the charges of `decision` as far as that is safe, if the allowed request did not happen after
    /// all. Returns true if there was anything to refund. Each decision, clones included, is refunded at most
    /// once, even if this fails.
    ///
    /// Only charges of `refundable` limits are refunded, and all charges of a policy in which requests wait.
    /// Requests that wait behind it in the same bucket move up. In a shared store, token buckets that
    /// requests wait for are not refunded: requests that wait in other instances could not move up, and would
    /// pass together with a newcomer that takes the freed units.
    ///
    /// Nothing is refunded for a decision that another limiter made, or that was made without the store.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer.
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("jobs").band("1/h").refundable())
    ///     .build()?;
    /// let decision = limiter.check(&Request::new()).await?;
    /// // The job could not be started.
    /// assert!(limiter.refund_decision(&decision).await?);
    /// assert!(!limiter.refund_decision(&decision).await?);
    /// assert!(limiter.check(&Request::new()).await?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn refund_decision(&self, decision: &Decision) -> Result<bool, CheckError> {
        match self.to_give_back(decision) {
            Some(charges) if charges.claim() => {
                let refunded = self.state.queue.refund(&self.state.backend, charges).await;
                refunded.map(|()| true).map_err(CheckError::Store)
            }
            _ => Ok(false),
        }
    }

    /// Like [`refund_decision`](Self::refund_decision), without waiting. `None` means that the store cannot decide
    /// immediately and nothing was done: call [`refund_decision`](Self::refund_decision).
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("jobs").band("1/h").refundable()).build()?;
    /// let decision = limiter.check_now(&Request::new())?;
    /// assert_eq!(limiter.refund_decision_at_once(&decision), Some(true));
    /// assert_eq!(limiter.refund_decision_at_once(&decision), Some(false), "refunded already");
    /// assert!(limiter.check_now(&Request::new())?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refund_decision_at_once(&self, decision: &Decision) -> Option<bool> {
        let backend = &self.state.backend;
        if backend.waits() {
            return None;
        }
        match self.to_give_back(decision) {
            Some(charges) if charges.claim() => {
                let refunded = self.state.queue.refund_at_once(backend, charges);
                refunded.map(|()| true)
            }
            _ => Some(false),
        }
    }

    fn to_give_back<'a>(&self, decision: &'a Decision) -> Option<&'a Arc<Charges>> {
        let charges = decision.charges()?;
        let is_ours = self.state.owner == decision.owner();
        debug_assert!(is_ours, "this decision is another limiter's");
        let is_shared = self.state.backend.waits();
        (is_ours && charges.is_refundable(is_shared)).then_some(charges)
    }

    /// Reserves the expected cost of `request`, for `ttl` or, without one, for the policy's default. Settle
    /// it with [`commit`](Self::commit) or [`refund`](Self::refund); a reservation that is never settled
    /// stays charged.
    ///
    /// The policy must accept reservations (`reserve` in the configuration, or
    /// [`LimiterBuilder::reserve`](crate::LimiterBuilder::reserve)); a `ttl` above its maximum is reduced to
    /// it. Every matched limit is charged the estimate if all of them have room, including those with
    /// `charge: always`. An estimate of 0 tests if anything is left. No request waits for a limit.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check), and [`CheckError::CannotReserve`] if the policy accepts no
    /// reservations, `ttl` is zero, or an id cannot hold all charges.
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    /// use tidegate::{Limiter, Request, SettleState};
    ///
    /// let limiter = Limiter::from_yaml("
    /// policies:
    ///   - name: llm
    ///     reserve: 60s
    ///     limits: [{ name: tokens, key: user, rate: 1000/h }]
    /// ")?;
    /// let ann = Request::new().user("ann");
    ///
    /// // The answer may have up to 800 tokens.
    /// let reservation = limiter.reserve(&ann.cost(800), Duration::from_secs(30)).await?;
    /// let id = reservation.id().expect("there is room");
    /// assert!(!limiter.check(&ann.cost(300)).await?.is_allowed());
    ///
    /// // It had 150.
    /// let settled = limiter.commit(id, 150).await?;
    /// assert_eq!(settled.state(), SettleState::Settled);
    /// assert!(limiter.check(&ann.cost(300)).await?.is_allowed());
    ///
    /// // A caller that did not get the response may repeat it.
    /// assert_eq!(limiter.commit(id, 150).await?.state(), SettleState::Already);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn reserve(
        &self,
        request: &Request<'_>,
        ttl: impl Into<Option<Duration>>,
    ) -> Result<Reservation, CheckError> {
        let pending = self.prepare_reservation(&self.rules()?, request, ttl)?;
        pending.reservation().await
    }

    /// Prepares a reservation by `rules`, under the conditions of [`attempt`](Self::attempt): evaluates the
    /// guards, and matches the limits. Calls no store, and charges nothing. A list of reservations is prepared
    /// before the first is charged.
    ///
    /// # Errors
    ///
    /// Those of [`reserve`](Self::reserve), except [`CheckError::Closed`] and [`CheckError::Store`].
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("tokens").band("1000/h")).build()?;
    /// let rules = limiter.rules()?;
    /// let error = limiter.prepare_reservation(&rules, &Request::new(), None).unwrap_err();
    /// assert!(error.is_bad_request(), "the builder has no `.reserve(..)`");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prepare_reservation(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: impl Into<Option<Duration>>,
    ) -> Result<PendingReservation<S>, CheckError> {
        self.owns(rules);
        ask::prepare_reservation(&self.state, rules, request, ttl.into())
    }

    /// Settles a [reservation](Self::reserve) by its actual usage. Refunds unused units, and charges usage
    /// beyond the estimate, down to the overdraft of each limit.
    ///
    /// `actual` is a number, or amounts by unit. A unit that it does not name settles at its estimate. A number
    /// is of the only unit other than requests that was reserved, or of requests if there is none.
    ///
    /// Settling happens once, at any instance: all further calls with the same id return
    /// [`SettleState::Already`](crate::SettleState::Already) and change nothing. So a call whose result is
    /// unknown can simply be repeated.
    /// After the reservation has expired nothing is refunded, but usage beyond the estimate is still charged.
    ///
    /// A refund never leaves a bucket with more units than if it had never been charged. Units that were
    /// refilled meanwhile, while no other request used the bucket, are not refunded again.
    ///
    /// # Errors
    ///
    /// [`SettleError::Unknown`] if the id is invalid, [`SettleError::BadCost`] if the policy counts no such unit
    /// or a number could be of several, [`SettleError::Store`] if the store did not answer,
    /// [`SettleError::Closed`] if the limiter is closed.
    ///
    /// # Example
    ///
    /// Usage beyond the estimate is charged as well, and an id settles once:
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    /// use tidegate::{LimitSpec, Limiter, Request, SettleState};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("tokens").band("1000/h"))
    ///     .reserve(Duration::from_secs(60))
    ///     .build()?;
    /// let reservation = limiter.reserve(&Request::new().cost(100), None).await?;
    /// let id = reservation.id().expect("there is room");
    /// limiter.commit(id, 400).await?;
    /// assert_eq!(limiter.commit(id, 400).await?.state(), SettleState::Already);
    /// let left = limiter.test(&Request::new()).await?;
    /// assert_eq!(left.binding().map(|band| band.remaining()), Some(600));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn commit(
        &self,
        id: &str,
        actual: impl Into<Cost<'_>>,
    ) -> Result<SettledReservation, SettleError> {
        self.settle(id, Some(actual.into())).await
    }

    /// Settles a reservation; nothing was used if `actual` is `None`.
    async fn settle(
        &self,
        id: &str,
        actual: Option<Cost<'_>>,
    ) -> Result<SettledReservation, SettleError> {
        let rules = self.rules().map_err(|_| SettleError::Closed)?;
        let reservations = &self.state.reservations;
        let commit = reservations.commit(&self.state.backend, &rules, id, actual);
        commit.await
    }

    /// Settles a [reservation](Self::reserve) of which nothing was used: a [`commit`](Self::commit) of 0 in
    /// every unit.
    ///
    /// # Errors
    ///
    /// Those of [`commit`](Self::commit).
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tidegate::{Limiter, Request, SettleError};
    ///
    /// let limiter = Limiter::from_yaml(
    ///     "policies: [{ name: jobs, reserve: 60s, limits: [{ name: all, rate: 1/h }] }]",
    /// )?;
    /// let reservation = limiter.reserve(&Request::new(), None).await?;
    /// limiter.refund(reservation.id().expect("there is room")).await?;
    /// assert!(limiter.check(&Request::new()).await?.is_allowed());
    ///
    /// assert!(matches!(limiter.refund("r1nonsense").await, Err(SettleError::Unknown)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn refund(&self, id: &str) -> Result<SettledReservation, SettleError> {
        self.settle(id, None).await
    }
}

impl<S: Store + 'static> Limiter<S> {
    /// Enables refunds in the background.
    pub(crate) fn with_background(self) -> Self {
        let weak = Arc::downgrade(&self.state);
        let background = move |charges: Arc<Charges>, held: RefundHold| {
            if let (Some(state), Ok(runtime)) = (Weak::upgrade(&weak), Handle::try_current()) {
                runtime.spawn(async move {
                    if let Err(error) = state.queue.refund(&state.backend, &charges).await {
                        tracing::debug!(event = "refund_failed", %error, "refund of an abandoned request failed; the charge stays");
                    }
                    drop(held);
                });
            }
        };
        self.state.queue.refund_by(background);
        self
    }
}

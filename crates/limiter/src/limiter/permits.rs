//! Permits by id, for callers that no guard can follow.

use super::Limiter;
use crate::ask;
use crate::error::CheckError;
use crate::permits::{InFlightStatus, in_flight};
use crate::reservations::Acquisition;
use crate::rules::Rules;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{Ask, Store};
use tidegate_policy::{Limit, Request};

impl<S: Store> Limiter<S> {
    /// Decides a request like [`check`](Self::check). At limits of requests in flight, its permits are held by
    /// an id until [`release`](Self::release), or until `ttl` is over and they were not [renewed](Self::renew).
    /// Without a `ttl`, each limit has its own time ([`LimitSpec::hold`](crate::LimitSpec::hold)).
    ///
    /// For callers across a network, which may disappear. In this process, the decision's
    /// [`Permit`](crate::Permit) is released when it is dropped.
    ///
    /// A `ttl` beyond 1 ms to a day is the nearest of the two.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check), and [`CheckError::CannotReserve`] if an id cannot hold all permits.
    pub async fn acquire(
        &self,
        request: &Request<'_>,
        ttl: impl Into<Option<Duration>>,
    ) -> Result<Acquisition, CheckError> {
        self.acquire_by(&self.rules()?, request, ttl.into()).await
    }

    /// Like [`acquire`](Self::acquire), by `rules`, under the conditions of [`attempt`](Self::attempt).
    ///
    /// # Errors
    ///
    /// Those of [`acquire`](Self::acquire).
    pub async fn acquire_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        ttl: Option<Duration>,
    ) -> Result<Acquisition, CheckError> {
        self.owns(rules);
        ask::acquire(&self.state, rules, request, ttl.map(micros)).await
    }

    /// Returns the permits that decisions of this limiter hold at each limit of requests in flight, in the order of the
    /// configuration. Those that are held by an id are not among them.
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("jobs").concurrent(5)).build()?;
    /// let decision = limiter.check_now(&Request::new().cost(3))?;
    /// let [jobs] = &limiter.in_flight()[..] else { panic!("one limit counts them") };
    /// assert_eq!((jobs.limit.as_str(), jobs.held), ("jobs", 3));
    /// drop(decision);
    /// let [jobs] = &limiter.in_flight()[..] else { panic!("one limit counts them") };
    /// assert_eq!((jobs.held, jobs.held_max), (0, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_flight(&self) -> Vec<InFlightStatus> {
        let rules = self.state.present();
        in_flight(&rules.in_flight, &rules.policies)
    }

    /// Prolongs the permits of an [`acquire`](Self::acquire): they end `ttl` from now, or without one the time from
    /// now that they were acquired for. An end never moves back. Returns false if they have ended, were released, or
    /// the id is unknown; then acquire again.
    ///
    /// # Errors
    ///
    /// [`CheckError::Store`] if the store did not answer, [`CheckError::Closed`] if the limiter is closed.
    pub async fn renew(
        &self,
        id: &str,
        ttl: impl Into<Option<Duration>>,
    ) -> Result<bool, CheckError> {
        let (state, rules) = (&self.state, self.rules()?);
        let ttl_us = ttl.into().map(micros);
        let reservations = &state.reservations;
        reservations
            .renew(&state.backend, (&rules, id), ttl_us)
            .await
    }

    /// Releases the permits of an [`acquire`](Self::acquire). Returns false if there was nothing to release: they
    /// have ended, were released before, or the id is unknown. So a call whose result is unknown can be repeated.
    ///
    /// # Errors
    ///
    /// Those of [`renew`](Self::renew).
    pub async fn release(&self, id: &str) -> Result<bool, CheckError> {
        let (state, rules) = (&self.state, self.rules()?);
        let released = |asks: &[Ask<'_>]| state.queue.note_release(asks);
        let reservations = &state.reservations;
        reservations
            .release(&state.backend, (&rules, id), released)
            .await
    }
}

fn micros(ttl: Duration) -> u64 {
    let ttl = ttl.clamp(Limit::HOLD_MIN, Limit::HOLD_MAX);
    u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX)
}

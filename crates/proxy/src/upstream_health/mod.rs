//! The health of one upstream: its load, and its condition.
//!
//! Two independent mechanisms decide. Active checks (`health_check`) determine if it is healthy. Forwarded requests
//! show if it answers: after a number of consecutive failures it is ejected, which means that it gets no
//! requests for a while. Once that is over, one request may try it, and decides for all others.
//!
//! | module | what it is |
//! |---|---|
//! | `turn` | a lease of an upstream for one request |

mod turn;

#[cfg(test)]
mod tests;

pub use turn::UpstreamLease;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_policy::route::EjectionRules;
use tokio::time::Instant;
use tracing::{info, warn};

/// The health of one upstream. Reading it costs a few loads, and no clock unless it is ejected.
#[derive(Debug)]
pub struct UpstreamHealth {
    route: Box<str>,
    upstream: Box<str>,
    eject: Option<EjectionRules>,
    /// Instants are in microseconds since this one.
    origin: Instant,
    in_flight: AtomicU32,
    /// The failures since the last success.
    failures: AtomicU32,
    /// True if it has ever been checked.
    is_checked: AtomicBool,
    is_unhealthy: AtomicBool,
    /// The end of the ejection; 0 if it is not ejected. Once it has passed, the request that moves it forward
    /// has the trial, so that there is one at a time, and another one if the first never ends.
    ejected_until: AtomicU64,
    /// The number of ejections.
    ejections: AtomicU64,
}

/// The condition of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamCondition {
    /// Usable, as far as known.
    In,
    /// One request may try. The number is for `UpstreamHealth::claim`.
    Due(u64),
    /// Not usable.
    Out,
}

/// The present time, read at most once, on first use.
#[derive(Debug, Default)]
pub struct LazyNow(Option<Instant>);

impl LazyNow {
    fn get(&mut self) -> Instant {
        *self.0.get_or_insert_with(Instant::now)
    }
}

impl UpstreamHealth {
    /// Creates the health of an upstream of a route, both under their configured names. It starts as usable.
    pub fn new(route: &str, upstream: &str, eject: Option<EjectionRules>) -> Self {
        Self {
            route: route.into(),
            upstream: upstream.into(),
            eject,
            origin: Instant::now(),
            in_flight: AtomicU32::new(0),
            failures: AtomicU32::new(0),
            is_checked: AtomicBool::new(false),
            is_unhealthy: AtomicBool::new(false),
            ejected_until: AtomicU64::new(0),
            ejections: AtomicU64::new(0),
        }
    }

    /// Returns the health of the same upstream after a reload, so that it keeps its state. Only for an
    /// upstream of the same route and name. Nothing changes for the holders of this one.
    pub fn continued(
        self: &Arc<Self>,
        eject: Option<EjectionRules>,
        is_checked: bool,
    ) -> Arc<Self> {
        let was_checked = self.is_checked.load(Relaxed);
        if self.eject == eject && (is_checked || !was_checked) {
            return Arc::clone(self);
        }
        // Failures counted by other rules are void; requests in flight count with the old ones. And if it is
        // no longer checked, the result of the last check must not stay.
        let next = Self::new(&self.route, &self.upstream, eject);
        let is_unhealthy = is_checked && !self.is_healthy();
        next.is_unhealthy.store(is_unhealthy, Relaxed);
        next.ejections.store(self.ejections(), Relaxed);
        Arc::new(next)
    }

    /// Returns the configured name of the route.
    pub fn route(&self) -> &str {
        &self.route
    }

    /// Returns the configured name of the upstream.
    pub fn upstream(&self) -> &str {
        &self.upstream
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// Returns the number of ejections.
    pub fn ejections(&self) -> u64 {
        self.ejections.load(Relaxed)
    }

    /// Returns true if it is neither unhealthy nor ejected.
    pub fn is_in(&self) -> bool {
        !self.is_unhealthy.load(Relaxed) && self.ejected_until.load(Relaxed) == 0
    }

    /// Returns true if its checks, if it has any, find it healthy.
    pub(crate) fn is_healthy(&self) -> bool {
        !self.is_unhealthy.load(Relaxed)
    }

    /// Records that it is checked from now on.
    pub(super) fn begin_checks(&self) {
        self.is_checked.store(true, Relaxed);
    }

    /// Sets the result of its checks. Returns true if that is a change.
    pub fn set_healthy(&self, is_healthy: bool) -> bool {
        self.is_unhealthy.swap(!is_healthy, Relaxed) == is_healthy
    }

    /// Returns the condition at present.
    pub fn condition(&self, present: &mut LazyNow) -> UpstreamCondition {
        if !self.is_healthy() {
            return UpstreamCondition::Out;
        }
        match self.ejected_until.load(Relaxed) {
            0 => UpstreamCondition::In,
            until if until <= self.micros(present.get()) => UpstreamCondition::Due(until),
            _ => UpstreamCondition::Out,
        }
    }

    /// Takes the trial that was due at `until`; `None` if another request was faster. Returns the end of the
    /// trial's time, which also identifies the trial.
    fn claim(&self, until: u64, present: &mut LazyNow) -> Option<u64> {
        let next = self.ejection_from(present.get());
        let swapped = self
            .ejected_until
            .compare_exchange(until, next, Relaxed, Relaxed);
        swapped.is_ok().then_some(next)
    }

    /// Ends a trial without a result: the next request may have it.
    fn reopen(&self, claimed: u64) {
        let now = self.micros(Instant::now());
        let until = &self.ejected_until;
        // If another request has the trial by now, or the upstream is back, there is nothing to do.
        until.compare_exchange(claimed, now, Relaxed, Relaxed).ok();
    }

    /// Starts a new ejection after a failed trial.
    fn renew(&self, claimed: u64) {
        let next = self.ejection_from(Instant::now());
        let until = &self.ejected_until;
        until.compare_exchange(claimed, next, Relaxed, Relaxed).ok();
    }

    fn note_failure(&self) {
        let Some(eject) = self.eject else {
            return;
        };
        // Requests from before the ejection fail one after the other: they are no new information.
        if self.ejected_until.load(Relaxed) != 0 {
            return;
        }
        let failures = self.failures.fetch_add(1, Relaxed).saturating_add(1);
        if failures >= eject.failures {
            self.eject(eject, failures);
        }
    }

    #[cold]
    fn eject(&self, eject: EjectionRules, failures: u32) {
        let until = self.ejection_from(Instant::now());
        let swapped = self
            .ejected_until
            .compare_exchange(0, until, Relaxed, Relaxed);
        // Of many concurrent requests, one logs.
        if swapped.is_ok() {
            self.ejections.fetch_add(1, Relaxed);
            warn!(
                event = "upstream_ejected",
                route = &*self.route,
                upstream = &*self.upstream,
                failures,
                period = ?eject.lasts,
                "upstream ejected after consecutive failures"
            );
        }
    }

    #[inline]
    fn note_success(&self) {
        // Read first: in good times no shared value is written.
        if self.failures.load(Relaxed) != 0 {
            self.failures.store(0, Relaxed);
        }
    }

    /// Ends the ejection after a request that began in spite of it was answered.
    fn end_ejection(&self) {
        self.note_success();
        if self.ejected_until.swap(0, Relaxed) != 0 {
            info!(
                event = "upstream_restored",
                route = &*self.route,
                upstream = &*self.upstream,
                "ejected upstream responds again"
            );
        }
    }

    fn ejection_from(&self, now: Instant) -> u64 {
        let period = self.eject.map_or(Duration::ZERO, |eject| eject.lasts);
        let period = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
        self.micros(now).saturating_add(period)
    }

    /// Returns microseconds since the origin, from 1, because 0 means never.
    fn micros(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.origin);
        let since = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        since.saturating_add(1)
    }
}

//! What is known of one upstream: how busy it is, and whether it is worth trying.
//!
//! It has two judges, who do not ask each other. Checks of its own (`health`) say whether it is
//! healthy. The requests that it is given say whether it answers: after so many failures in a row it is
//! ejected, which is to say left alone for a while. Once that is over, one request may try, and decides
//! for all the others.
//!
//! | module | what it is |
//! |---|---|
//! | `turn` | one request's turn with an upstream |

mod turn;

#[cfg(test)]
mod tests;

pub(crate) use turn::UpstreamLease;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_policy::route::Eject;
use tokio::time::Instant;
use tracing::{info, warn};

/// What is known of one upstream. Reading it costs a few loads, and no clock unless it is ejected.
#[derive(Debug)]
pub(crate) struct UpstreamHealth {
    route: Box<str>,
    upstream: Box<str>,
    eject: Option<Eject>,
    /// Instants are in microseconds since this one.
    origin: Instant,
    in_flight: AtomicU32,
    /// Failures since the last success.
    failures: AtomicU32,
    /// Whether it has ever been checked.
    is_checked: AtomicBool,
    is_unhealthy: AtomicBool,
    /// Until when it is ejected; 0 if it is not. Once that has passed, whoever moves it on has the
    /// trial, so that there is one at a time, and another should the first never be heard of.
    ejected_until: AtomicU64,
    /// How often it was ejected.
    ejections: AtomicU64,
}

/// Whether an upstream is worth trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UpstreamCondition {
    /// It is, for all that is known.
    In,
    /// One request may find out. The number is for [`UpstreamHealth::claim`].
    Due(u64),
    /// It is not.
    Out,
}

/// The present, read once, and only if somebody asks.
#[derive(Debug, Default)]
pub(super) struct LazyNow(Option<Instant>);

impl LazyNow {
    fn get(&mut self) -> Instant {
        *self.0.get_or_insert_with(Instant::now)
    }
}

impl UpstreamHealth {
    /// Of an upstream of a route, as the configuration names both. Nothing bad is known of it.
    pub(crate) fn new(route: &str, upstream: &str, eject: Option<Eject>) -> Self {
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

    /// The same upstream after a reload, so that what is known of it is not forgotten. Ask it only for
    /// an upstream of the same route and name. Nothing changes for those who hold this one.
    pub(crate) fn continued(self: &Arc<Self>, eject: Option<Eject>, is_checked: bool) -> Arc<Self> {
        let was_checked = self.is_checked.load(Relaxed);
        if self.eject == eject && (is_checked || !was_checked) {
            return Arc::clone(self);
        }
        // What other rules said of its requests is void; those under way count with the old ones. And
        // if nobody checks it any more, it must not stay as a last check left it.
        let next = Self::new(&self.route, &self.upstream, eject);
        let is_unhealthy = is_checked && !self.is_healthy();
        next.is_unhealthy.store(is_unhealthy, Relaxed);
        next.ejections.store(self.ejections(), Relaxed);
        Arc::new(next)
    }

    /// The route, as the configuration names it.
    pub(crate) fn route(&self) -> &str {
        &self.route
    }

    /// The upstream, as the configuration names it.
    pub(crate) fn upstream(&self) -> &str {
        &self.upstream
    }

    /// How many requests are under way.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// How often it was ejected.
    pub(crate) fn ejections(&self) -> u64 {
        self.ejections.load(Relaxed)
    }

    /// Whether requests are given to it without a second thought.
    pub(crate) fn is_in(&self) -> bool {
        !self.is_unhealthy.load(Relaxed) && self.ejected_until.load(Relaxed) == 0
    }

    /// Whether its checks, if it has any, find it healthy.
    pub(crate) fn is_healthy(&self) -> bool {
        !self.is_unhealthy.load(Relaxed)
    }

    /// Somebody checks it from now on.
    pub(super) fn begin_checks(&self) {
        self.is_checked.store(true, Relaxed);
    }

    /// What its checks found; whether that is news.
    pub(crate) fn set_healthy(&self, is_healthy: bool) -> bool {
        self.is_unhealthy.swap(!is_healthy, Relaxed) == is_healthy
    }

    pub(super) fn condition(&self, present: &mut LazyNow) -> UpstreamCondition {
        if !self.is_healthy() {
            return UpstreamCondition::Out;
        }
        match self.ejected_until.load(Relaxed) {
            0 => UpstreamCondition::In,
            until if until <= self.micros(present.get()) => UpstreamCondition::Due(until),
            _ => UpstreamCondition::Out,
        }
    }

    /// Takes the trial that was due `until`; `None` if somebody else was faster. Until when the trial
    /// may take, which is also what it is known by.
    fn claim(&self, until: u64, present: &mut LazyNow) -> Option<u64> {
        let next = self.ejection_from(present.get());
        let swapped = self
            .ejected_until
            .compare_exchange(until, next, Relaxed, Relaxed);
        swapped.is_ok().then_some(next)
    }

    /// A trial ended without a verdict: the next request may have it.
    fn reopen(&self, claimed: u64) {
        let now = self.micros(Instant::now());
        let until = &self.ejected_until;
        // If it is another's by now, or the upstream is back, there is nothing to do.
        until.compare_exchange(claimed, now, Relaxed, Relaxed).ok();
    }

    /// A trial failed: everything begins again.
    fn renew(&self, claimed: u64) {
        let next = self.ejection_from(Instant::now());
        let until = &self.ejected_until;
        until.compare_exchange(claimed, next, Relaxed, Relaxed).ok();
    }

    fn note_failure(&self) {
        let Some(eject) = self.eject else {
            return;
        };
        // Requests from before it was ejected fail one after the other: they say nothing new.
        if self.ejected_until.load(Relaxed) != 0 {
            return;
        }
        let failures = self.failures.fetch_add(1, Relaxed).saturating_add(1);
        if failures >= eject.failures {
            self.eject(eject, failures);
        }
    }

    #[cold]
    fn eject(&self, eject: Eject, failures: u32) {
        let until = self.ejection_from(Instant::now());
        let swapped = self
            .ejected_until
            .compare_exchange(0, until, Relaxed, Relaxed);
        // Of many at once, one tells.
        if swapped.is_ok() {
            self.ejections.fetch_add(1, Relaxed);
            warn!(
                route = &*self.route,
                upstream = &*self.upstream,
                failures,
                period = ?eject.lasts,
                "an upstream failed again and again and is left alone"
            );
        }
    }

    #[inline]
    fn note_success(&self) {
        // Read first: in good times nothing is written that others read.
        if self.failures.load(Relaxed) != 0 {
            self.failures.store(0, Relaxed);
        }
    }

    /// A request that began in spite of the ejection was answered.
    fn come_back(&self) {
        self.note_success();
        if self.ejected_until.swap(0, Relaxed) != 0 {
            info!(
                route = &*self.route,
                upstream = &*self.upstream,
                "an upstream answers again"
            );
        }
    }

    fn ejection_from(&self, now: Instant) -> u64 {
        let period = self.eject.map_or(Duration::ZERO, |eject| eject.lasts);
        let period = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
        self.micros(now).saturating_add(period)
    }

    /// Begins at 1, for 0 is never.
    fn micros(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.origin);
        let since = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        since.saturating_add(1)
    }
}

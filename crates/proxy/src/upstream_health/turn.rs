//! A lease of an upstream for one request.

use super::{LazyNow, UpstreamCondition, UpstreamHealth};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A lease of an upstream for one request, which counts as in flight until this is dropped: hold it until the
/// response body ends.
///
/// Report the outcome by [`succeeded`](Self::succeeded) or [`failed`](Self::failed). A lease dropped without
/// either, because the client disconnected, counts neither for the upstream nor against it.
#[derive(Debug)]
#[must_use]
pub struct UpstreamLease {
    index: usize,
    standing: Arc<UpstreamHealth>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Usual,
    /// It decides if the upstream comes back. The number identifies the trial.
    Trial(u64),
    /// The upstream is out, and so are all others.
    Desperate,
}

impl UpstreamLease {
    /// Starts a lease of the upstream at `index`, whose condition was just read. Returns `None` for a trial
    /// that another request has taken meanwhile.
    pub fn begin(
        index: usize,
        standing: &Arc<UpstreamHealth>,
        condition: UpstreamCondition,
        present: &mut LazyNow,
    ) -> Option<Self> {
        let kind = match condition {
            UpstreamCondition::In => Kind::Usual,
            UpstreamCondition::Due(until) => Kind::Trial(standing.claim(until, present)?),
            UpstreamCondition::Out => Kind::Desperate,
        };
        standing.in_flight.fetch_add(1, Relaxed);
        Some(Self {
            index,
            standing: Arc::clone(standing),
            kind,
        })
    }

    /// Returns the index of the upstream, in configuration order.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns true if this upstream is tried only because all upstreams of the route are out.
    pub fn is_desperate(&self) -> bool {
        self.kind == Kind::Desperate
    }

    /// Records that the upstream answered.
    #[inline]
    pub fn succeeded(&mut self) {
        match self.kind {
            // The request may have begun long before the ejection, and cannot end it.
            Kind::Usual => self.standing.note_success(),
            Kind::Trial(_) => {
                self.kind = Kind::Usual;
                self.standing.end_ejection();
            }
            Kind::Desperate => self.standing.end_ejection(),
        }
    }

    /// Records that the upstream did not answer, or not correctly.
    #[cold]
    pub fn failed(&mut self) {
        match self.kind {
            Kind::Trial(claimed) => {
                self.kind = Kind::Usual;
                self.standing.renew(claimed);
            }
            Kind::Usual | Kind::Desperate => self.standing.note_failure(),
        }
    }
}

impl Drop for UpstreamLease {
    #[inline]
    fn drop(&mut self) {
        self.standing.in_flight.fetch_sub(1, Relaxed);
        if let Kind::Trial(claimed) = mem::replace(&mut self.kind, Kind::Usual) {
            self.standing.reopen(claimed);
        }
    }
}

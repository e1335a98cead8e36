//! One request's turn with an upstream.

use super::{LazyNow, UpstreamCondition, UpstreamHealth};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// One request's turn with an upstream, which counts as in flight until this is dropped: hold it for
/// as long as the answer's body comes.
///
/// Say what came of it, by [`succeeded`](Self::succeeded) or [`failed`](Self::failed). A turn dropped
/// in silence, because the client went away, speaks neither for the upstream nor against it.
#[derive(Debug)]
#[must_use]
pub(crate) struct UpstreamLease {
    index: usize,
    standing: Arc<UpstreamHealth>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Usual,
    /// It decides whether the upstream comes back. The number is what the trial is known by.
    Trial(u64),
    /// The upstream is out, and so are all the others.
    Desperate,
}

impl UpstreamLease {
    /// A turn with the upstream at `index`, whose condition is as just looked up. `None` if it was a
    /// trial that somebody else has taken meanwhile.
    pub(in crate::proxy) fn begin(
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

    /// Which upstream it is, in the order of the configuration.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// Whether this upstream is tried only because every one of the route is out.
    pub(crate) fn is_desperate(&self) -> bool {
        self.kind == Kind::Desperate
    }

    /// The upstream answered.
    #[inline]
    pub(crate) fn succeeded(&mut self) {
        match self.kind {
            // It may have begun long before the upstream was ejected, and cannot end that.
            Kind::Usual => self.standing.note_success(),
            Kind::Trial(_) => {
                self.kind = Kind::Usual;
                self.standing.come_back();
            }
            Kind::Desperate => self.standing.come_back(),
        }
    }

    /// The upstream did not answer, or not as it should.
    #[cold]
    pub(crate) fn failed(&mut self) {
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

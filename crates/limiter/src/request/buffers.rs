//! Buffers for preparing requests, which stay warm from one request to the next.

use crate::guards::GuardBuffers;
use crate::plans::PreparedPlans;
use crate::request_limits::RequestLimits;
use std::cell::Cell;
use std::sync::Arc;
use tidegate_policy::policy::Scratch;

thread_local! {
    // Buffers that stay warm, so that a decision allocates nothing. They are taken and put back rather than
    // borrowed in a closure: the decision would be returned through the closure, and copied three times.
    pub(crate) static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Buffers that a [`PreparedRequest`](super::PreparedRequest) borrows. They stay warm between requests, so that preparing one
/// allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(super) scratch: Scratch,
    pub(crate) guards: GuardBuffers,
    pub(super) brought: Option<Arc<RequestLimits>>,
    pub(super) planned: Option<Arc<PreparedPlans>>,
    pub(super) reuse: Reuse,
}

/// The owner of the limits in `scratch`: the current request, or another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reuse {
    /// They belong to another request.
    #[default]
    Never,
    /// They will, once they have been matched.
    Later,
    Now,
}

impl Reuse {
    /// Records that the limits have been matched.
    #[inline]
    pub(super) fn advance(&mut self) {
        if *self == Self::Later {
            *self = Self::Now;
        }
    }
}

impl Buffers {
    /// Returns buffers for a single request under one version of the rules. The request may be decided any
    /// number of times; its limits are matched once.
    pub(crate) fn of_one_request() -> Self {
        Self {
            reuse: Reuse::Later,
            ..Self::default()
        }
    }

    /// Drops lists and plans, which are large and change in the meantime.
    pub(crate) fn release(&mut self) {
        self.guards.lists.clear();
        self.planned = None;
    }
}

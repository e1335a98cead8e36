//! Counts the expensive steps of a request in debug builds, so that tests can hold every frontend to one of
//! each per request.

use std::cell::Cell;

/// The number of times that each step was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkCounts {
    /// Tokens whose signature and claims were checked.
    pub tokens: u64,
    /// Requests whose limits were matched.
    pub matchings: u64,
    /// Calls of a store.
    pub store_calls: u64,
}

thread_local! {
    static DONE: Cell<WorkCounts> = const { Cell::new(WorkCounts::NONE) };
}

impl WorkCounts {
    /// Zero counts.
    pub const NONE: Self = Self {
        tokens: 0,
        matchings: 0,
        store_calls: 0,
    };

    /// Returns the counts of this thread since it started.
    pub fn of_this_thread() -> Self {
        DONE.get()
    }
}

/// Counts a call of a store.
pub fn count_store_call() {
    let done = DONE.get();
    DONE.set(WorkCounts {
        store_calls: done.store_calls.saturating_add(1),
        ..done
    });
}

pub(crate) fn count_token() {
    let done = DONE.get();
    DONE.set(WorkCounts {
        tokens: done.tokens.saturating_add(1),
        ..done
    });
}

pub(crate) fn count_matching() {
    let done = DONE.get();
    DONE.set(WorkCounts {
        matchings: done.matchings.saturating_add(1),
        ..done
    });
}

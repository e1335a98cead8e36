//! Waiting for a condition: the only place of the kit that reads the clock.

use std::time::{Duration, Instant};

/// Time after which a condition counts as never true: many times the longest ever seen, because
/// tests share their machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// Waits until `condition` is true.
///
/// It blocks the thread: on a runtime with one thread nothing else runs meanwhile.
///
/// # Panics
///
/// With `what` if that does not happen within 30 seconds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    until_some(what, || condition().then_some(()));
}

/// Waits until `find` has found something, and returns it. See [`until`].
pub fn until_some<T>(what: &str, find: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, find).unwrap_or_else(|| panic!("did not happen within {PATIENCE:?}: {what}"))
}

/// Returns the result of `find`, if there is one within `limit`.
#[expect(
    clippy::disallowed_methods,
    reason = "other processes are waited for, and they live in real time"
)]
pub(crate) fn within<T>(limit: Duration, mut find: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = find() {
            return Some(found);
        }
        if began.elapsed() > limit {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}

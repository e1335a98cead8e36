//! Waiting for something to become true: the only place of the kit that knows the time.

use std::time::{Duration, Instant};

/// How long anything may take before it counts as never: many times what was ever seen, for tests
/// share their machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// Waits until `condition` is true.
///
/// Panics with `what` if that does not happen within 30 seconds. It blocks the thread: on a
/// runtime with one thread nothing else goes on meanwhile.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    until_some(what, || condition().then_some(()));
}

/// Waits until `find` has found something, and returns it. See [`until`].
pub fn until_some<T>(what: &str, find: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, find).unwrap_or_else(|| panic!("did not happen within {PATIENCE:?}: {what}"))
}

/// What `find` found within `limit`, if anything.
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

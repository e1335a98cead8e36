//! The source of time.

use crate::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Source of time for a store.
///
/// An implementation must not run backwards: a later call never returns an earlier instant. The one
/// implementation that reads real time is `SystemClock` in `tidegate-memory`.
pub trait Clock: Send + Sync {
    /// Returns the present instant.
    fn now(&self) -> Timestamp;

    /// Returns true for the clock of this machine, which ignores steps of the wall clock. Answers that
    /// name an instant then use the wall clock, and not the instant of the decision.
    fn is_machine(&self) -> bool {
        false
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn is_machine(&self) -> bool {
        (**self).is_machine()
    }
}

/// A clock that moves only when [set](ManualClock::set) or advanced. Clones share one time.
///
/// Tests and the simulator use it, so that nothing ever waits for real time to pass.
///
/// ```
/// use tidegate_core::{Clock, ManualClock, Timestamp};
///
/// let clock = ManualClock::at(Timestamp::from_millis(1_000));
/// clock.advance_micros(5);
/// clock.set(Timestamp::from_millis(900)); // earlier: ignored
/// assert_eq!(clock.now().as_micros(), 1_000_005);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// Creates a clock that shows `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(AtomicU64::new(start.as_micros())))
    }

    /// Moves to `instant`. An instant in the past is ignored.
    pub fn set(&self, instant: Timestamp) {
        self.0.fetch_max(instant.as_micros(), Relaxed);
    }

    /// Moves `micros` microseconds ahead.
    pub fn advance_micros(&self, micros: u64) {
        self.0.fetch_add(micros, Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Relaxed))
    }
}

//! Whose clock decides: the server's, but for tests.

use crate::script::ScriptClock;
use tidegate_core::Timestamp;

/// Where scripts take the time from.
#[derive(Clone)]
pub(crate) enum StoreClock {
    /// They read the server's clock.
    Server,
    /// They are told.
    #[cfg(any(test, feature = "test-clock"))]
    Argument(std::sync::Arc<dyn tidegate_core::Clock>),
}

impl StoreClock {
    /// What a script has to be told, if anything.
    pub(crate) fn argument(&self) -> Option<Timestamp> {
        match self {
            Self::Server => None,
            #[cfg(any(test, feature = "test-clock"))]
            Self::Argument(clock) => Some(clock.now()),
        }
    }

    /// Which variant of a script goes with it.
    pub(crate) fn variant(&self) -> ScriptClock {
        match self {
            Self::Server => ScriptClock::Server,
            #[cfg(any(test, feature = "test-clock"))]
            Self::Argument(_) => ScriptClock::Argument,
        }
    }
}

impl std::fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.argument().is_none() {
            "Server"
        } else {
            "Argument"
        })
    }
}

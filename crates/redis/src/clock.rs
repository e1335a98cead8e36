//! The clock that decides: the server's, except in tests.

use crate::script::ScriptClock;
use tidegate_core::Timestamp;

/// The source of time of the scripts.
#[derive(Clone)]
pub(crate) enum StoreClock {
    /// They read the server's clock.
    Server,
    /// They get the time as an argument.
    #[cfg(any(test, feature = "test-clock"))]
    Argument(std::sync::Arc<dyn tidegate_core::Clock>),
}

impl StoreClock {
    /// Returns the time argument of a script, if it takes one.
    pub(crate) fn argument(&self) -> Option<Timestamp> {
        match self {
            Self::Server => None,
            #[cfg(any(test, feature = "test-clock"))]
            Self::Argument(clock) => Some(clock.now()),
        }
    }

    /// Returns the variant of the script for this clock.
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

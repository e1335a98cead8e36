//! Which configuration is served: since when, and what became of those that were to follow it.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use tidegate::{Clock, SystemClock};

/// What became of reloads. Whoever reloads by hand looks here whether it worked, and whoever does
/// it by a program has something to be alerted by.
#[derive(Debug)]
pub(crate) struct ReloadMetrics {
    outcomes: Family<[(&'static str, &'static str); 1], Counter>,
    loaded: Gauge,
}

impl ReloadMetrics {
    /// A configuration has just been loaded.
    pub(crate) fn new() -> Self {
        let metrics = Self {
            outcomes: Family::default(),
            loaded: Gauge::default(),
        };
        // They start at zero, so that a rate over their first increase is right.
        for outcome in ["applied", "refused"] {
            drop(metrics.outcomes.get_or_create(&[("outcome", outcome)]));
        }
        metrics.note_loaded();
        metrics
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "reloads",
            "Configurations that were to replace the one that is served, by what came of it",
            self.outcomes.clone(),
        );
        registry.register_with_unit(
            "configuration_loaded_timestamp",
            "When the configuration that is served was loaded, since 1970",
            Unit::Seconds,
            self.loaded.clone(),
        );
    }

    /// Counts a configuration that is served from now on.
    pub(crate) fn count_applied(&self) {
        self.outcomes.get_or_create(&[("outcome", "applied")]).inc();
        self.note_loaded();
    }

    /// Counts one that changed nothing.
    pub(crate) fn count_refused(&self) {
        self.outcomes.get_or_create(&[("outcome", "refused")]).inc();
    }

    /// How many were applied, and how many refused.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let count = |outcome| self.outcomes.get_or_create(&[("outcome", outcome)]).get();
        (count("applied"), count("refused"))
    }

    /// When the configuration that is served was loaded, in seconds since 1970.
    pub(crate) fn loaded(&self) -> i64 {
        self.loaded.get()
    }

    fn note_loaded(&self) {
        // A new clock each time: one that runs does not hear of a wall clock that was set.
        let seconds = SystemClock::new().now().as_micros() / 1_000_000;
        self.loaded.set(i64::try_from(seconds).unwrap_or(i64::MAX));
    }
}

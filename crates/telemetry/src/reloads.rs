//! Load time of the current configuration, and outcomes of reloads.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use tidegate::{Clock, SystemClock};

/// Outcomes of reloads, for operators that check a manual reload, and for alerts on automated ones.
#[derive(Debug)]
pub struct ReloadMetrics {
    outcomes: Family<[(&'static str, &'static str); 1], Counter>,
    loaded: Gauge,
}

impl ReloadMetrics {
    /// Starts with a configuration that has just been loaded.
    pub(crate) fn new() -> Self {
        let metrics = Self {
            outcomes: Family::default(),
            loaded: Gauge::default(),
        };
        // Start at zero, so that a rate over the first increase is right.
        for outcome in ["applied", "rejected"] {
            drop(metrics.outcomes.get_or_create(&[("outcome", outcome)]));
        }
        metrics.note_loaded();
        metrics
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "reloads",
            "Config reloads by outcome",
            self.outcomes.clone(),
        );
        registry.register_with_unit(
            "configuration_loaded_timestamp",
            "Time at which the current config was loaded",
            Unit::Seconds,
            self.loaded.clone(),
        );
    }

    /// Counts a configuration that took effect.
    pub fn count_applied(&self) {
        self.outcomes.get_or_create(&[("outcome", "applied")]).inc();
        self.note_loaded();
    }

    /// Counts a rejected configuration, which changed nothing.
    pub fn count_refused(&self) {
        self.outcomes
            .get_or_create(&[("outcome", "rejected")])
            .inc();
    }

    /// Returns the number of applied and of rejected configurations.
    pub fn counts(&self) -> (u64, u64) {
        let count = |outcome| self.outcomes.get_or_create(&[("outcome", outcome)]).get();
        (count("applied"), count("rejected"))
    }

    /// Returns the time at which the current configuration was loaded, in seconds since 1970.
    pub fn loaded(&self) -> i64 {
        self.loaded.get()
    }

    fn note_loaded(&self) {
        // Use a new clock each time: a running one does not see that the wall clock was set.
        let seconds = SystemClock::new().now().as_micros() / 1_000_000;
        self.loaded.set(i64::try_from(seconds).unwrap_or(i64::MAX));
    }
}

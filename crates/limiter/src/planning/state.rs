//! How old what the sources told is, and what went wrong since.

use crate::known::{IN_ALL, delay};
use std::time::Duration;
use tidegate_policy::plan::{Notes, PlanSource};
use tokio::time::Instant;
use tracing::{info, warn};

/// How a source of plans is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanState {
    /// Its name.
    pub name: String,
    /// Where it is, in a word, such as `file`, `http` or `program`.
    pub kind: &'static str,
    /// How many subjects it knows; 0 before anything was loaded.
    pub subjects: usize,
    /// How many groups.
    pub groups: usize,
    /// How many distinct rates they have.
    pub rates: usize,
    /// What is odd about what it told.
    pub notes: Notes,
    /// How long ago it was last loaded, or found unchanged; `None` if never.
    pub age: Option<Duration>,
    /// For how long it could not be loaded, if the last time it could not.
    pub failing_for: Option<Duration>,
    /// How often it was loaded, or found unchanged.
    pub loads: u64,
    /// How often that failed.
    pub failures: u64,
    /// Why it failed, if it did the last time.
    pub error: Option<String>,
}

/// The same as it is kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) loaded: Option<Instant>,
    pub(super) loads: u64,
    pub(super) failing_since: Option<Instant>,
    /// In a row.
    failed: u32,
    pub(super) failures: u64,
    pub(super) error: Option<String>,
    /// Whether it was said aloud.
    is_reported: bool,
    /// Rises whenever somebody else than whoever keeps it says what it tells.
    pub(super) told: u64,
    /// The version of what it told last, and where that was: a reload leaves it as it is.
    seen: Option<(PlanSource, String)>,
}

impl Kept {
    pub(super) fn succeeded(&mut self, name: &str, now: Instant) {
        if self.is_reported {
            info!(plans = name, "plans can be loaded again");
        }
        *self = Self {
            loaded: Some(now),
            loads: self.loads.saturating_add(1),
            failures: self.failures,
            told: self.told,
            seen: self.seen.take(),
            ..Self::default()
        };
    }

    pub(super) fn failed(&mut self, name: &str, error: String, now: Instant) {
        let since = *self.failing_since.get_or_insert(now);
        let is_first = self.failed == 0 && self.loaded.is_none();
        let is_long = now.duration_since(since) >= IN_ALL;
        self.failed = self.failed.saturating_add(1);
        self.failures = self.failures.saturating_add(1);
        if is_first {
            self.is_reported = true;
            warn!(
                plans = name,
                error, "plans cannot be loaded: no subject is known until they can"
            );
        } else if is_long && !self.is_reported {
            self.is_reported = true;
            warn!(
                plans = name,
                error, "plans cannot be loaded any more: the last ones count"
            );
        }
        self.error = Some(error);
    }

    /// The version of what `source` told last, if it told any.
    pub(super) fn tag(&self, source: &PlanSource) -> Option<&str> {
        let (last, tag) = self.seen.as_ref()?;
        // What subjects have of whom nothing is said is part of what is made of it.
        let is_same = last.is_same_place(source) && last.unset == source.unset;
        is_same.then_some(tag)
    }

    /// Notes the version of what `source` tells.
    pub(super) fn see(&mut self, source: &PlanSource, tag: Option<String>) {
        self.seen = tag.map(|tag| (source.clone(), tag));
    }

    /// How long until it is asked again: soon where it has failed, and after a while no sooner than ever.
    pub(super) fn wait(&self, refresh: Duration) -> Duration {
        match (self.failed.checked_sub(1), self.failing_since) {
            (Some(earlier), Some(since)) if since.elapsed() < IN_ALL => delay(earlier),
            _ => refresh,
        }
    }
}

//! How old what the sources told is, and what went wrong since.

use super::replace::PlansError;
use crate::known::{FILE_RETRY, IN_ALL, delay};
use std::time::Duration;
use tidegate_policy::plan::{Notes, Origin, PlanErrors, PlanSource};
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
    /// Whether the last failure was an invalid document, and not a source that cannot be reached.
    is_invalid: bool,
    /// Rises whenever somebody else than whoever keeps it says what it tells.
    pub(super) told: u64,
    /// The version of what it told last, and where that was: a reload leaves it as it is.
    seen: Option<(PlanSource, String)>,
    /// The tag of the file that was loaded last, and its errors, if it is invalid.
    condemned: Option<(PlanSource, String, PlanErrors)>,
}

impl Kept {
    pub(super) fn succeeded(&mut self, name: &str, now: Instant) {
        if self.failed > 0 {
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

    /// Notes a failure. The first in a row is logged, and each invalid document once: an outage changes
    /// its words with every attempt, a document only with its text.
    pub(super) fn failed(&mut self, name: &str, error: &PlansError, now: Instant) {
        self.failing_since.get_or_insert(now);
        self.is_invalid = !matches!(error, PlansError::Load { .. });
        let error = error.to_string();
        if self.failed == 0 || (self.is_invalid && self.error.as_ref() != Some(&error)) {
            let event = if self.is_invalid {
                "plans are invalid"
            } else {
                "plans cannot be loaded"
            };
            let consequence = if self.loaded.is_some() {
                "keeping the last good ones"
            } else {
                "no subject is known until they can be loaded"
            };
            warn!(plans = name, error, "{event}; {consequence}");
        }
        self.failed = self.failed.saturating_add(1);
        self.failures = self.failures.saturating_add(1);
        self.error = Some(error);
    }

    /// Remembers that `source` is invalid under this tag. Only a file's tag is certain to change with its
    /// text: others may be corrected by hand and keep theirs.
    pub(super) fn condemn(
        &mut self,
        source: &PlanSource,
        tag: Option<String>,
        errors: &PlanErrors,
    ) {
        let tag = tag.filter(|_| is_file(source));
        self.condemned = tag.map(|tag| (source.clone(), tag, errors.clone()));
    }

    /// The errors of what `source` told last, if that was invalid.
    pub(super) fn errors(&self, source: &PlanSource) -> Option<&PlanErrors> {
        let (_, errors) = self.condemned(source)?;
        Some(errors)
    }

    fn condemned(&self, source: &PlanSource) -> Option<(&str, &PlanErrors)> {
        let (last, tag, errors) = self.condemned.as_ref()?;
        is_same(last, source).then_some((tag, errors))
    }

    /// The tag of what `source` told last, valid or not: the same needs no second look.
    pub(super) fn tag_to_compare(&self, source: &PlanSource) -> Option<&str> {
        let condemned = self.condemned(source).map(|(tag, _)| tag);
        condemned.or_else(|| self.tag(source))
    }

    /// The version of what `source` told last, if it told any.
    pub(super) fn tag(&self, source: &PlanSource) -> Option<&str> {
        let (last, tag) = self.seen.as_ref()?;
        is_same(last, source).then_some(tag)
    }

    /// Notes the version of what `source` tells.
    pub(super) fn see(&mut self, source: &PlanSource, tag: Option<String>) {
        self.seen = tag.map(|tag| (source.clone(), tag));
    }

    /// Time until it is loaded again: `refresh` at most, and less soon after a source became unreachable.
    pub(super) fn wait(&self, source: &PlanSource) -> Duration {
        match (self.failed.checked_sub(1), self.failing_since) {
            (Some(_), _) if is_file(source) => source.refresh.min(FILE_RETRY),
            (Some(earlier), Some(since)) if !self.is_invalid && since.elapsed() < IN_ALL => {
                delay(earlier).min(source.refresh)
            }
            _ => source.refresh,
        }
    }
}

fn is_file(source: &PlanSource) -> bool {
    matches!(source.origin, Origin::File(_))
}

/// Whether a text of `last` says the same as one of `source`.
fn is_same(last: &PlanSource, source: &PlanSource) -> bool {
    // What subjects have of whom nothing is said is part of what is made of it.
    last.is_same_place(source) && last.unset == source.unset
}

//! How old what the sources told is, and what went wrong since.

use super::replace::PlansError;
use crate::fresh::{FILE_RETRY, RefreshError, RefreshHealth, Retry};
use std::time::Duration;
use tidegate_policy::plan::{PlanErrors, PlanNotes, PlanOrigin, PlanSource};
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
    pub notes: PlanNotes,
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

/// The same as it is kept, and the version that was loaded last.
#[derive(Debug, Default)]
pub(super) struct PlanHealth {
    pub(super) health: RefreshHealth,
    /// Rises whenever somebody else than whoever keeps it says what it tells.
    pub(super) told: u64,
    /// The version of what it told last, and where that was: a reload leaves it as it is.
    seen: Option<(PlanSource, String)>,
    /// The tag of the file that was loaded last, and its errors, if it is invalid.
    condemned: Option<(PlanSource, String, PlanErrors)>,
}

impl PlanHealth {
    pub(super) fn succeeded(&mut self, source: &PlanSource) {
        self.condemned = None;
        if self.health.succeeded() {
            info!(plans = source.name, "plans can be loaded again");
        }
    }

    /// Notes a failure; each invalid document is logged once.
    pub(super) fn failed(&mut self, source: &PlanSource, error: &PlansError) {
        let is_invalid = !matches!(error, PlansError::Load { .. });
        let refresh = source.refresh;
        let retry = match is_invalid {
            _ if is_file(source) => Retry::After(refresh.min(FILE_RETRY)),
            true => Retry::After(refresh),
            false => Retry::Backoff {
                most: refresh,
                refresh,
            },
        };
        let (why, event) = if is_invalid {
            (
                RefreshError::Invalid(error.to_string()),
                "plans are invalid",
            )
        } else {
            (
                RefreshError::Outage(error.to_string()),
                "plans cannot be loaded",
            )
        };
        let consequence = if self.health.read_at.is_some() {
            "keeping the last good ones"
        } else {
            "no subject is known until they can be loaded"
        };
        if let Some(error) = self.health.failed(why, retry) {
            warn!(plans = source.name, error, "{event}; {consequence}");
        }
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
}

fn is_file(source: &PlanSource) -> bool {
    matches!(source.origin, PlanOrigin::File(_))
}

/// Whether a text of `last` says the same as one of `source`.
fn is_same(last: &PlanSource, source: &PlanSource) -> bool {
    // What subjects have of whom nothing is said is part of what is made of it.
    last.is_same_place(source) && last.unset == source.unset
}

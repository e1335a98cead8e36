//! The age of the plans, and errors since.

use super::sources::PlansError;
use crate::refresh::{FILE_RETRY, RefreshError, RefreshHealth, Retry};
use std::time::Duration;
use tidegate_policy::plan::{PlanErrors, PlanNotes};
use tidegate_policy::plan_source::{PlanOrigin, PlanSource};
use tracing::{info, warn};

/// The state of a plan source: from [`Limiter::plans`](crate::Limiter::plans).
///
/// A source that cannot be loaded keeps its last good plans. With an [`age`](Self::age) of `None` it was
/// never loaded: no subject is known, and each limit's `default` applies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanState {
    /// The source's name.
    pub name: String,
    /// The kind of the source, such as `file`, `http` or `program`.
    pub kind: &'static str,
    /// The number of subjects; 0 before the first load.
    pub subjects: usize,
    /// The number of groups.
    pub groups: usize,
    /// The number of distinct rates.
    pub rates: usize,
    /// Warnings about the plans.
    pub notes: PlanNotes,
    /// The time since the source was last loaded, or found unchanged; `None` if never.
    pub age: Option<Duration>,
    /// The time for which loads have failed, if the last one did.
    pub failing_for: Option<Duration>,
    /// The number of successful loads, including those that found the plans unchanged.
    pub loads: u64,
    /// The number of failed loads.
    pub failures: u64,
    /// The reason of the last failure, if the last load failed.
    pub error: Option<String>,
}

/// The health of a plan source, and the version loaded last.
#[derive(Debug, Default)]
pub(super) struct PlanHealth {
    pub(super) health: RefreshHealth,
    /// The number of times a caller, rather than the background loader, has set its plans.
    pub(super) set_count: u64,
    /// The tag of its last plans, and the source they came from. A reload does not change it.
    seen: Option<(PlanSource, String)>,
    /// The tag of the file that was loaded last, and its errors, if it is invalid.
    condemned: Option<(PlanSource, String, PlanErrors)>,
}

impl PlanHealth {
    pub(super) fn succeeded(&mut self, source: &PlanSource) {
        self.condemned = None;
        if self.health.succeeded() {
            info!(
                event = "plans_recovered",
                plans = source.name,
                "loading plans works again"
            );
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
        let why = if is_invalid {
            RefreshError::Invalid(error.to_string())
        } else {
            RefreshError::Outage(error.to_string())
        };
        let consequence = if self.health.read_at.is_some() {
            "using the last good plans"
        } else {
            "all subjects are unknown until plans are loaded"
        };
        if let Some(error) = self.health.failed(why, retry) {
            let plans = &source.name;
            if is_invalid {
                warn!(
                    event = "plans_invalid",
                    plans, error, "plans are invalid; {consequence}"
                );
            } else {
                warn!(
                    event = "plans_failed",
                    plans, error, "cannot load plans; {consequence}"
                );
            }
        }
    }

    /// Remembers that `source` is invalid under this tag. Only a file's tag is certain to change with its
    /// text: other sources may be corrected by hand and keep their tag.
    pub(super) fn condemn(
        &mut self,
        source: &PlanSource,
        tag: Option<String>,
        errors: &PlanErrors,
    ) {
        let tag = tag.filter(|_| is_file(source));
        self.condemned = tag.map(|tag| (source.clone(), tag, errors.clone()));
    }

    /// Returns the errors of the last document of `source`, if that was invalid.
    pub(super) fn errors(&self, source: &PlanSource) -> Option<&PlanErrors> {
        let (_, errors) = self.condemned(source)?;
        Some(errors)
    }

    fn condemned(&self, source: &PlanSource) -> Option<(&str, &PlanErrors)> {
        let (last, tag, errors) = self.condemned.as_ref()?;
        is_same(last, source).then_some((tag, errors))
    }

    /// Returns the tag of the last document of `source`, valid or not: the same need not be parsed again.
    pub(super) fn tag_to_compare(&self, source: &PlanSource) -> Option<&str> {
        let condemned = self.condemned(source).map(|(tag, _)| tag);
        condemned.or_else(|| self.tag(source))
    }

    /// Returns the tag of the last plans of `source`, if they had one.
    pub(super) fn tag(&self, source: &PlanSource) -> Option<&str> {
        let (last, tag) = self.seen.as_ref()?;
        is_same(last, source).then_some(tag)
    }

    /// Records the tag of the plans of `source`.
    pub(super) fn see(&mut self, source: &PlanSource, tag: Option<String>) {
        self.seen = tag.map(|tag| (source.clone(), tag));
    }
}

fn is_file(source: &PlanSource) -> bool {
    matches!(source.origin, PlanOrigin::File(_))
}

/// Returns true if the same text from `last` and from `source` gives the same plans.
fn is_same(last: &PlanSource, source: &PlanSource) -> bool {
    // The default for unset subjects and the names of rates are part of the result.
    last.is_same_place(source) && last.terms == source.terms
}

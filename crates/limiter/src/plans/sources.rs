//! The plan sources of a limiter: their health, and the versions loaded last.

use super::bands::{CurrentPlans, PreparedPlans};
use super::health::{PlanHealth, PlanState};
use crate::retired_value::RetiredValue;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::fmt;
use tidegate_policy::plan::{PlanErrors, PlanTable};
use tidegate_policy::plan_source::PlanSource;
use tokio::time::Instant;

/// The plan sources of a limiter, across versions of its rules.
#[derive(Debug, Default)]
pub(crate) struct PlanSources {
    /// Held while replacing tables, or the rules that they belong to: neither may miss the other.
    pub(crate) writing: Mutex<RetiredValue<PreparedPlans>>,
    /// The health of each source, by name.
    kept: Mutex<HashMap<String, PlanHealth, RandomState>>,
}

/// The reason why plans could not be replaced. The last good plans stay active.
///
/// ```
/// use tidegate::{Limiter, PlansError, plans_from_text};
///
/// let limiter = Limiter::from_yaml("
/// plans: [{ name: shop, file: plans.yaml }]
/// policies:
///   - name: api
///     limits: [{ name: each, key: user, rate: { plan: shop, subject: user, default: 1/h } }]
/// ")?;
/// let document = plans_from_text("subjects: { ann: 100/h }", false)?;
/// let error = limiter.replace_plans("stock", document).unwrap_err();
/// assert_eq!(error, PlansError::Unknown { name: "stock".to_owned() });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlansError {
    /// There is no source of this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// The document is invalid.
    Document(PlanErrors),
    /// A rate is invalid for a limit that uses it.
    Rate {
        /// The subject, the limit, and the reason.
        reason: String,
    },
    /// The source could not be loaded.
    Load {
        /// The reason.
        reason: String,
    },
}

impl fmt::Display for PlansError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => write!(f, "unknown plan source `{name}`"),
            Self::Document(errors) => errors.fmt(f),
            Self::Rate { reason } | Self::Load { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for PlansError {}

// === impl PlanSources ===

impl PlanSources {
    /// Records the result of loading a source.
    pub(crate) fn note(&self, source: &PlanSource, outcome: Result<(), &PlansError>) {
        let mut kept = self.kept.lock();
        let kept = kept.entry(source.name.clone()).or_default();
        match outcome {
            Ok(()) => kept.succeeded(source),
            Err(error) => kept.failed(source, error),
        }
    }

    /// Remembers an invalid document by its tag, so that the same text is not parsed again.
    pub(crate) fn condemn(&self, source: &PlanSource, tag: Option<String>, errors: &PlanErrors) {
        let mut kept = self.kept.lock();
        kept.entry(source.name.clone())
            .or_default()
            .condemn(source, tag, errors);
    }

    /// Returns the result of a load that found the plans unchanged: that of the load before.
    pub(crate) fn verdict(&self, source: &PlanSource) -> Result<(), PlansError> {
        let kept = self.kept.lock();
        let errors = kept.get(&source.name).and_then(|it| it.errors(source));
        errors.map_or(Ok(()), |errors| Err(PlansError::Document(errors.clone())))
    }

    /// Returns the tag of the last load of a source, and the number of times its plans were set by a caller
    /// rather than by the background loader.
    pub(crate) fn seen(&self, source: &PlanSource) -> (Option<String>, u64) {
        let kept = self.kept.lock();
        kept.get(&source.name).map_or((None, 0), |kept| {
            (
                kept.tag_to_compare(source).map(str::to_owned),
                kept.set_count,
            )
        })
    }

    pub(crate) fn set_count(&self, name: &str) -> u64 {
        self.kept.lock().get(name).map_or(0, |kept| kept.set_count)
    }

    /// Records the tag of the plans that a source has from now on. `is_told` is true if a caller set them,
    /// rather than the background loader.
    pub(crate) fn see(&self, source: &PlanSource, tag: Option<String>, is_told: bool) {
        let mut kept = self.kept.lock();
        let kept = kept.entry(source.name.clone()).or_default();
        kept.see(source, tag);
        kept.set_count = kept.set_count.wrapping_add(u64::from(is_told));
    }

    /// Returns the time when a source is due, every `refresh` while loads succeed.
    pub(crate) fn due(&self, source: &PlanSource) -> Instant {
        let kept = self.kept.lock();
        let kept = kept.get(&source.name);
        kept.map_or_else(Instant::now, |kept| kept.health.due(source.refresh))
    }

    /// Returns the tag of the current plans of `source`, if they have one.
    pub(crate) fn tag(&self, source: &PlanSource) -> Option<String> {
        let kept = self.kept.lock();
        kept.get(&source.name)?.tag(source).map(str::to_owned)
    }

    /// Returns the state of `sources`, whose tables are those of `current`.
    pub(crate) fn states(&self, sources: &[PlanSource], current: &CurrentPlans) -> Vec<PlanState> {
        let planned = current.load();
        let kept = self.kept.lock();
        let nothing = PlanHealth::default();
        let states = sources.iter().enumerate().map(|(number, source)| {
            let table = planned.tables().get(number).and_then(Option::as_deref);
            let health = &kept.get(&source.name).unwrap_or(&nothing).health;
            PlanState {
                name: source.name.clone(),
                kind: source.kind(),
                subjects: table.map_or(0, PlanTable::subjects),
                groups: table.map_or(0, PlanTable::groups),
                rates: table.map_or(0, PlanTable::rates_count),
                notes: table.map(PlanTable::notes).unwrap_or_default(),
                age: health.read_at.map(|at| at.elapsed()),
                failing_for: health.failing_since.map(|at| at.elapsed()),
                loads: health.reads,
                failures: health.failures,
                error: health.error.clone(),
            }
        });
        states.collect()
    }
}

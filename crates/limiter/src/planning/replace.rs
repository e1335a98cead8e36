//! Atomic replacement of a source's table.

use super::planned::PreparedPlans;
use super::state::{PlanHealth, PlanState};
use crate::limiter::Limiter;
use crate::replaced::RetiredValue;
use crate::rules::Rules;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use tidegate_core::Store;
use tidegate_policy::plan::{PlanDocument, PlanErrors, PlanSource, PlanTable};
use tokio::time::Instant;

/// The plan sources of a limiter, across versions of its rules.
#[derive(Debug, Default)]
pub(crate) struct PlanSources {
    /// Held while replacing tables, or the rules that they belong to: neither may miss the other.
    pub(super) writing: Mutex<RetiredValue<PreparedPlans>>,
    /// The health of each source, by name.
    kept: Mutex<HashMap<String, PlanHealth, RandomState>>,
}

/// The reason why plans could not be replaced. The last good plans stay active.
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
            Self::Unknown { name } => write!(f, "there is no source of plans `{name}`"),
            Self::Document(errors) => errors.fmt(f),
            Self::Rate { reason } | Self::Load { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for PlansError {}

// === impl PlanSources ===

impl PlanSources {
    /// Publishes the rules `next` through `store`, with the tables of `last` for sources of the same names.
    ///
    /// # Errors
    ///
    /// Names a rate that is invalid under the new rules. Nothing has changed then.
    pub(crate) fn carry_over(
        &self,
        last: &Rules,
        next: Rules,
        store: impl FnOnce(Rules),
    ) -> Result<(), String> {
        let mut replaced = self.writing.lock();
        let planned = last.planned.load();
        let next_planned = Self::planned(last, &next)?;
        next.planned.replace(next_planned);
        store(next);
        replaced.add(Arc::clone(&planned));
        Ok(())
    }

    /// Returns the plans for `next`, from the tables of `last`.
    pub(crate) fn planned(last: &Rules, next: &Rules) -> Result<PreparedPlans, String> {
        let planned = last.planned.load();
        let table = |source: &PlanSource| {
            // Inline plans belong to the configuration, and change with it.
            if let Some(inline) = source.inline() {
                return Some(Arc::clone(inline));
            }
            let same = |it: &PlanSource| it.name == source.name;
            let number = last.plans.iter().position(same)?;
            planned.tables().get(number)?.clone()
        };
        let tables = next.plans.iter().map(table).collect();
        PreparedPlans::build(&next.policies, tables)
    }

    /// Records the result of loading a source.
    fn note(&self, source: &PlanSource, outcome: Result<(), &PlansError>) {
        let mut kept = self.kept.lock();
        let kept = kept.entry(source.name.clone()).or_default();
        match outcome {
            Ok(()) => kept.succeeded(source),
            Err(error) => kept.failed(source, error),
        }
    }

    /// Remembers an invalid document by its tag, so that the same text is not parsed again.
    pub(super) fn condemn(&self, source: &PlanSource, tag: Option<String>, errors: &PlanErrors) {
        let mut kept = self.kept.lock();
        kept.entry(source.name.clone())
            .or_default()
            .condemn(source, tag, errors);
    }

    /// Returns the result of a load that found the plans unchanged: that of the load before.
    pub(super) fn verdict(&self, source: &PlanSource) -> Result<(), PlansError> {
        let kept = self.kept.lock();
        let errors = kept.get(&source.name).and_then(|it| it.errors(source));
        errors.map_or(Ok(()), |errors| Err(PlansError::Document(errors.clone())))
    }

    /// Returns the tag of the last load of a source, and the number of times its plans were set by a caller
    /// rather than by the background loader.
    pub(super) fn seen(&self, source: &PlanSource) -> (Option<String>, u64) {
        let kept = self.kept.lock();
        kept.get(&source.name).map_or((None, 0), |kept| {
            (kept.tag_to_compare(source).map(str::to_owned), kept.told)
        })
    }

    fn told(&self, name: &str) -> u64 {
        self.kept.lock().get(name).map_or(0, |kept| kept.told)
    }

    /// Records the tag of the plans that a source has from now on. `is_told` is true if a caller set them,
    /// rather than the background loader.
    fn see(&self, source: &PlanSource, tag: Option<String>, is_told: bool) {
        let mut kept = self.kept.lock();
        let kept = kept.entry(source.name.clone()).or_default();
        kept.see(source, tag);
        kept.told = kept.told.wrapping_add(u64::from(is_told));
    }

    /// Returns the time when a source is due, every `refresh` while loads succeed.
    pub(super) fn due(&self, source: &PlanSource) -> Instant {
        let kept = self.kept.lock();
        let kept = kept.get(&source.name);
        kept.map_or_else(Instant::now, |kept| kept.health.due(source.refresh))
    }
}

// === impl Limiter ===

impl<S: Store> Limiter<S> {
    /// Replaces the plans of the source `name` atomically, for programs that manage their plans themselves.
    ///
    /// Returns once all later decisions use the new plans. With many subjects that takes a while and blocks
    /// the thread; on a runtime, call it where blocking is allowed. Requests never wait for it.
    ///
    /// Buckets are kept: a subject with another amount or another period keeps its usage.
    ///
    /// # Errors
    ///
    /// If there is no source `name`, or `document` or one of its rates is invalid. The last good plans then
    /// stay active.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::plan::PlanDocument;
    /// use tidegate::{Limiter, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// plans: [{ name: shop, from: { file: plans.yaml } }]
    /// policies:
    ///   - name: api
    ///     limits:
    ///       - name: per-user
    ///         key: user
    ///         rate: { plan: shop, subject: user, default: 1/h }
    /// ")?;
    /// limiter.replace_plans("shop", PlanDocument::read("subjects: { ann: 100/h }", false)?)?;
    ///
    /// let remaining = |user| -> Result<_, tidegate::CheckError> {
    ///     let decision = limiter.check_now(&Request::new().user(user))?;
    ///     Ok(decision.binding().map(|band| band.remaining()))
    /// };
    /// assert_eq!(remaining("ann")?, Some(99));
    /// assert_eq!(remaining("bob")?, Some(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace_plans(&self, name: &str, document: PlanDocument) -> Result<(), PlansError> {
        let rules = self.present();
        let source = source_of(&rules, name)?;
        match document.table(source.unset) {
            Ok(table) => self.use_plans(name, Arc::new(table)),
            Err(errors) => {
                let error = PlansError::Document(errors);
                self.note_plans(source, Err(&error));
                Err(error)
            }
        }
    }

    /// Like [`replace_plans`](Self::replace_plans), with a table, for callers that inspect it first.
    ///
    /// # Errors
    ///
    /// Those of [`replace_plans`](Self::replace_plans), except [`PlansError::Document`].
    pub fn use_plans(&self, name: &str, table: Arc<PlanTable>) -> Result<(), PlansError> {
        self.use_plans_of(name, table, None)
    }

    /// Like [`use_plans`](Self::use_plans), with the `tag` of the table, as [`LoadPlans`](super::LoadPlans)
    /// returns it: the next load compares with it.
    ///
    /// # Errors
    ///
    /// Those of [`use_plans`](Self::use_plans).
    #[expect(
        clippy::needless_pass_by_value,
        reason = "they are theirs no more who hand them over"
    )]
    pub fn use_plans_of(
        &self,
        name: &str,
        table: Arc<PlanTable>,
        tag: Option<String>,
    ) -> Result<(), PlansError> {
        let rules = self.present();
        let source = source_of(&rules, name)?;
        let replaced = loop {
            let draft = match self.draft_plans(name, &table) {
                Ok(draft) => draft,
                Err(error) => break Err(error),
            };
            let see = || self.plan_sources().see(source, tag.clone(), true);
            if let Some(settled) = self.settle_plans(&draft, draft.build(), || true, see) {
                break settled;
            }
        };
        self.note_replaced(source, replaced)
    }

    /// Returns the tag of the current plans of the source `name`, if they have one.
    pub fn plans_tag(&self, name: &str) -> Option<String> {
        let rules = self.present();
        let source = source_of(&rules, name).ok()?;
        let kept = self.plan_sources().kept.lock();
        kept.get(name)?.tag(source).map(str::to_owned)
    }

    /// Checks if `table` is valid for the source `name`; changes nothing. Takes as long as
    /// [`use_plans`](Self::use_plans).
    ///
    /// # Errors
    ///
    /// Those of [`use_plans`](Self::use_plans).
    pub fn could_use_plans(&self, name: &str, table: &Arc<PlanTable>) -> Result<(), PlansError> {
        let built = self.draft_plans(name, table)?.build();
        built.map_or_else(|reason| Err(PlansError::Rate { reason }), |_| Ok(()))
    }

    /// Like [`use_plans_of`](Self::use_plans_of), for the background loader, which shares its thread with
    /// other tasks: builds on a blocking thread. If a caller has set the plans of the source since the
    /// counter was `told`, those are newer, and stay.
    pub(super) async fn use_plans_apart(
        &self,
        source: &PlanSource,
        table: Arc<PlanTable>,
        (tag, told): (Option<String>, u64),
    ) -> Result<(), PlansError> {
        let name = &source.name;
        let replaced = loop {
            let draft = match self.draft_plans(name, &table) {
                Ok(draft) => draft,
                Err(error) => break Err(error),
            };
            let building = draft.clone();
            let built = tokio::task::spawn_blocking(move || building.build()).await;
            let built = built.unwrap_or_else(|_| Err("it came to no end".to_owned()));
            let is_still = || self.plan_sources().told(name) == told;
            let see = || self.plan_sources().see(source, tag.clone(), false);
            if let Some(settled) = self.settle_plans(&draft, built, is_still, see) {
                break settled;
            }
        };
        self.note_replaced(source, replaced)
    }

    fn note_replaced(
        &self,
        source: &PlanSource,
        replaced: Result<(), PlansError>,
    ) -> Result<(), PlansError> {
        self.plan_sources()
            .note(source, replaced.as_ref().map(drop));
        replaced
    }

    /// Records that a source has nothing new, or the reason why it could not be loaded.
    pub(super) fn note_plans(&self, source: &PlanSource, outcome: Result<(), &PlansError>) {
        self.plan_sources().note(source, outcome);
        self.plan_sources().writing.lock().free();
    }

    /// Returns the state of the plan sources, in the order of the configuration.
    pub fn plans(&self) -> Vec<PlanState> {
        let rules = self.present();
        let planned = rules.planned.load();
        let kept = self.plan_sources().kept.lock();
        let nothing = PlanHealth::default();
        let states = rules.plans.iter().enumerate().map(|(number, source)| {
            let table = planned.tables().get(number).and_then(Option::as_deref);
            let health = &kept.get(&source.name).unwrap_or(&nothing).health;
            PlanState {
                name: source.name.clone(),
                kind: source.kind(),
                subjects: table.map_or(0, PlanTable::subjects),
                groups: table.map_or(0, PlanTable::groups),
                rates: table.map_or(0, |table| table.rates().len()),
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

fn source_of<'r>(rules: &'r Rules, name: &str) -> Result<&'r PlanSource, PlansError> {
    let source = rules.plans.iter().find(|source| source.name == name);
    source.ok_or_else(|| PlansError::Unknown {
        name: name.to_owned(),
    })
}

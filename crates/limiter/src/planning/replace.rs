//! Another table in place of the last, at once.

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

/// The sources of plans of a limiter, beyond one version of its rules.
#[derive(Debug, Default)]
pub(crate) struct PlanSources {
    /// Held by whoever replaces tables, or the rules that they belong to: neither is to miss the other.
    pub(super) writing: Mutex<RetiredValue<PreparedPlans>>,
    /// How each is, by its name.
    kept: Mutex<HashMap<String, PlanHealth, RandomState>>,
}

/// Why plans could not be replaced. What was told last stays.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlansError {
    /// There is no source of this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// What it told is wrong.
    Document(PlanErrors),
    /// A rate that it told cannot be, for a limit that asks for it.
    Rate {
        /// Whose rate, for which limit, and why.
        reason: String,
    },
    /// It could not be had.
    Load {
        /// Why.
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
    /// Lets `next` be the rules, with the tables of `last` as far as it has sources of the same names.
    /// The error says which rate cannot be by them; then nothing has changed.
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

    /// What plans would say of `next`, by the tables of `last`.
    pub(crate) fn planned(last: &Rules, next: &Rules) -> Result<PreparedPlans, String> {
        let planned = last.planned.load();
        let table = |source: &PlanSource| {
            // These belong to the configuration: they change with it, at once.
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

    /// Takes note of what came of asking a source.
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

    /// The outcome of a load that found the same as before: that of the load before.
    pub(super) fn verdict(&self, source: &PlanSource) -> Result<(), PlansError> {
        let kept = self.kept.lock();
        let errors = kept.get(&source.name).and_then(|it| it.errors(source));
        errors.map_or(Ok(()), |errors| Err(PlansError::Document(errors.clone())))
    }

    /// The version of what a source told last, and how often somebody else than whoever keeps it has said
    /// what it tells.
    pub(super) fn seen(&self, source: &PlanSource) -> (Option<String>, u64) {
        let kept = self.kept.lock();
        kept.get(&source.name).map_or((None, 0), |kept| {
            (kept.tag_to_compare(source).map(str::to_owned), kept.told)
        })
    }

    fn told(&self, name: &str) -> u64 {
        self.kept.lock().get(name).map_or(0, |kept| kept.told)
    }

    /// Notes of which version it is what a source tells from now on; and that somebody else says so, where
    /// it is not whoever keeps it.
    fn see(&self, source: &PlanSource, tag: Option<String>, is_told: bool) {
        let mut kept = self.kept.lock();
        let kept = kept.entry(source.name.clone()).or_default();
        kept.see(source, tag);
        kept.told = kept.told.wrapping_add(u64::from(is_told));
    }

    /// Returns when a source is due, every `refresh` while all is well.
    pub(super) fn due(&self, source: &PlanSource) -> Instant {
        let kept = self.kept.lock();
        let kept = kept.get(&source.name);
        kept.map_or_else(Instant::now, |kept| kept.health.due(source.refresh))
    }
}

// === impl Limiter ===

impl<S: Store> Limiter<S> {
    /// Replaces what the source of plans `name` tells, at once: for programs that know their plans
    /// themselves. Where anything is wrong with `document`, what was told last stays.
    ///
    /// It returns once all that is decided from then on goes by it. With many subjects that takes a while,
    /// and on a thread of a runtime nobody else is served meanwhile: such a program calls it where it may
    /// block. Requests never wait for it.
    ///
    /// Buckets are kept: whoever has another amount or another period goes on with what is used.
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

    /// The same for what is a table already: for those who look into it first.
    pub fn use_plans(&self, name: &str, table: Arc<PlanTable>) -> Result<(), PlansError> {
        self.use_plans_of(name, table, None)
    }

    /// The same for what is known by a `tag`, as [`LoadPlans`](super::LoadPlans) tells it: whoever asks the
    /// source from now on has seen this.
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

    /// The version of what the source of plans `name` told last, if it is known by any.
    pub fn plans_tag(&self, name: &str) -> Option<String> {
        let rules = self.present();
        let source = source_of(&rules, name).ok()?;
        let kept = self.plan_sources().kept.lock();
        kept.get(name)?.tag(source).map(str::to_owned)
    }

    /// Whether the source of plans `name` could tell `table`: changes nothing. It takes as long as
    /// [`use_plans`](Self::use_plans) does.
    pub fn could_use_plans(&self, name: &str, table: &Arc<PlanTable>) -> Result<(), PlansError> {
        let built = self.draft_plans(name, table)?.build();
        built.map_or_else(|reason| Err(PlansError::Rate { reason }), |_| Ok(()))
    }

    /// The same for whoever keeps plans, and shares its thread with others: what takes a while is done on
    /// another. Where somebody else has said what the source tells since it was `told` so often, that is
    /// newer, and stays.
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

    /// Notes that a source has nothing new, or why nothing could be had of it.
    pub(super) fn note_plans(&self, source: &PlanSource, outcome: Result<(), &PlansError>) {
        self.plan_sources().note(source, outcome);
        self.plan_sources().writing.lock().free();
    }

    /// How the sources of plans are, in the order of the configuration.
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

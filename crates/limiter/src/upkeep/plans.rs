//! Replaces plans, and loads them again from their sources, for as long as the limiter exists.

use crate::plans::{LoadPlans, LoadedPlans, PlanSources, PlansError};
use crate::refresh::{Refresh, within};
use crate::rules::Rules;
use crate::state::LimiterState;
use arc_swap::ArcSwap;
use futures_util::future::join_all;
use std::sync::Arc;
use tidegate_core::Store;
use tidegate_policy::plan::{PlanDocument, PlanErrors, PlanTable};
use tidegate_policy::plan_source::PlanSource;
use tokio::time::Instant;

/// Replaces the plans of a limiter.
#[derive(Clone, Copy)]
pub(crate) struct PlanUpdates<'a> {
    pub(crate) rules: &'a ArcSwap<Rules>,
    pub(crate) sources: &'a PlanSources,
}

impl PlanUpdates<'_> {
    /// Publishes the rules `next` after `prepare`, with the tables of `last` for sources of the same names.
    ///
    /// # Errors
    ///
    /// Names a rate that is invalid under the new rules. Nothing has changed then.
    pub(crate) fn carry_over(
        self,
        last: &Rules,
        next: Rules,
        prepare: impl FnOnce(&Rules),
    ) -> Result<(), String> {
        let mut replaced = self.sources.writing.lock();
        let planned = last.planned.load();
        next.planned.replace(next.plans_from(last)?);
        prepare(&next);
        self.rules.store(Arc::new(next));
        replaced.add(Arc::clone(&planned));
        Ok(())
    }

    /// Replaces the plans of the source `name` atomically.
    pub(crate) fn replace(self, name: &str, document: PlanDocument) -> Result<(), PlansError> {
        let rules = self.rules.load_full();
        let source = source_of(&rules, name)?;
        match document.table(source.terms.clone()) {
            Ok(table) => self.use_table(name, Arc::new(table), None),
            Err(errors) => {
                let error = PlansError::Document(errors);
                self.note(source, Err(&error));
                Err(error)
            }
        }
    }

    /// Like [`replace`](Self::replace), with a table and its tag, which the next load compares with.
    #[expect(clippy::needless_pass_by_value, reason = "the caller hands them over")]
    pub(crate) fn use_table(
        self,
        name: &str,
        table: Arc<PlanTable>,
        tag: Option<String>,
    ) -> Result<(), PlansError> {
        let rules = self.rules.load_full();
        let source = source_of(&rules, name)?;
        let replaced = loop {
            let draft = match self.draft(name, &table) {
                Ok(draft) => draft,
                Err(error) => break Err(error),
            };
            let see = || self.sources.see(source, tag.clone(), true);
            if let Some(settled) = self.apply(&draft, draft.build(), || true, see) {
                break settled;
            }
        };
        self.note_replaced(source, replaced)
    }

    /// Checks if `table` is valid for the source `name`; changes nothing.
    pub(crate) fn could_use(self, name: &str, table: &Arc<PlanTable>) -> Result<(), PlansError> {
        let built = self.draft(name, table)?.build();
        built.map_or_else(|reason| Err(PlansError::Rate { reason }), |_| Ok(()))
    }

    /// Like [`use_table`](Self::use_table), for the background loader, which shares its thread with other
    /// tasks: builds on a blocking thread. If a caller has set the plans of the source since the counter was
    /// `told`, those are newer, and stay.
    async fn use_table_blocking(
        self,
        source: &PlanSource,
        table: Arc<PlanTable>,
        (tag, told): (Option<String>, u64),
    ) -> Result<(), PlansError> {
        let name = &source.name;
        let replaced = loop {
            let draft = match self.draft(name, &table) {
                Ok(draft) => draft,
                Err(error) => break Err(error),
            };
            let building = draft.clone();
            let built = tokio::task::spawn_blocking(move || building.build()).await;
            let built = built.unwrap_or_else(|_| Err("it did not finish".to_owned()));
            let is_still = || self.sources.set_count(name) == told;
            let see = || self.sources.see(source, tag.clone(), false);
            if let Some(settled) = self.apply(&draft, built, is_still, see) {
                break settled;
            }
        };
        self.note_replaced(source, replaced)
    }

    fn note_replaced(
        self,
        source: &PlanSource,
        replaced: Result<(), PlansError>,
    ) -> Result<(), PlansError> {
        self.sources.note(source, replaced.as_ref().map(drop));
        replaced
    }

    /// Records that a source has nothing new, or the reason why it could not be loaded.
    fn note(self, source: &PlanSource, outcome: Result<(), &PlansError>) {
        self.sources.note(source, outcome);
        self.sources.writing.lock().free();
    }

    /// Returns the tag of the current plans of the source `name`, if they have one.
    pub(crate) fn tag(self, name: &str) -> Option<String> {
        let rules = self.rules.load_full();
        self.sources.tag(source_of(&rules, name).ok()?)
    }

    /// Loads the plans of all sources once. Returns the errors, with the names of their sources.
    pub(crate) async fn load_all(self, loader: &impl LoadPlans) -> Vec<(String, PlansError)> {
        let rules = self.rules.load_full();
        let loads = rules.plans.iter().map(async |source| {
            let outcome = self.load_one(loader, source).await;
            Some((source.name.clone(), outcome.err()?))
        });
        join_all(loads).await.into_iter().flatten().collect()
    }

    async fn load_one(
        self,
        loader: &impl LoadPlans,
        source: &PlanSource,
    ) -> Result<(), PlansError> {
        if source.inline().is_some() {
            // Active together with the configuration.
            self.note(source, Ok(()));
            return Ok(());
        }
        let hides = hides_subjects(&self.rules.load_full(), &source.name);
        let (tag, told) = self.sources.seen(source);
        // If the source was missing from an earlier configuration, these rules have no table of it: ignore
        // the tag.
        let tag = tag.filter(|_| self.rules.load_full().plan_table(&source.name).is_some());
        let loading = loader.load(source, tag.as_deref(), hides);
        let late = "it has not responded";
        match within(source.timeout, late, loading, |error| error).await {
            Ok(LoadedPlans::Unchanged) => {
                let outcome = self.sources.verdict(source);
                self.note(source, outcome.as_ref().map(drop));
                outcome
            }
            Ok(LoadedPlans::Changed {
                document,
                tag: next,
            }) => {
                let terms = source.terms.clone();
                // Many subjects take a while to process.
                let made = tokio::task::spawn_blocking(move || document.table(terms)).await;
                let made = made.unwrap_or_else(|_| Err(PlanErrors::one("it did not finish")));
                match made {
                    Ok(table) => {
                        let table = Arc::new(table);
                        self.use_table_blocking(source, table, (next, told)).await?;
                    }
                    Err(errors) => {
                        self.sources.condemn(source, next, &errors);
                        let error = PlansError::Document(errors);
                        self.note(source, Err(&error));
                        return Err(error);
                    }
                }
                Ok(())
            }
            Err(reason) => {
                let error = PlansError::Load { reason };
                self.note(source, Err(&error));
                Err(error)
            }
        }
    }
}

/// The plans of sources, as items of [`refresh`](crate::refresh).
pub(crate) struct PlanRefresh<L>(pub(crate) L);

impl<S: Store, L: LoadPlans> Refresh<LimiterState<S>> for PlanRefresh<L> {
    type Item = PlanSource;

    fn items(&self, limiter: &LimiterState<S>) -> Vec<(PlanSource, Instant)> {
        // Immediately: a reload may have changed their locations.
        let plans = limiter.present().plans.clone().into_iter();
        plans.map(|source| (source, Instant::now())).collect()
    }

    async fn read(&self, limiter: &LimiterState<S>, source: &PlanSource) -> Instant {
        // The result is recorded, and logged if necessary.
        let updates = PlanUpdates {
            rules: &limiter.rules,
            sources: &limiter.plan_sources,
        };
        updates.load_one(&self.0, source).await.ok();
        limiter.plan_sources.due(source)
    }
}

/// Returns true if any limit identifies the subjects of a source by a secret.
fn hides_subjects(rules: &Rules, source: &str) -> bool {
    let number = rules.plans.iter().position(|it| it.name == source);
    let limits = rules.policies.iter().flat_map(|policy| &policy.limits);
    let mut plans = limits.filter_map(|limit| limit.plan.as_ref());
    plans.any(|plan| Some(plan.source) == number && plan.hides_subject())
}

/// Returns the plan source of this name.
fn source_of<'r>(rules: &'r Rules, name: &str) -> Result<&'r PlanSource, PlansError> {
    let source = rules.plans.iter().find(|source| source.name == name);
    source.ok_or_else(|| PlansError::Unknown {
        name: name.to_owned(),
    })
}

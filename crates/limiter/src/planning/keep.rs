//! Loading plans from their sources repeatedly.

use super::replace::PlansError;
use crate::fresh::{self, Refresh, within};
use crate::limiter::Limiter;
use crate::rules::Rules;
use futures_util::future::join_all;
use std::future::Future;
use std::sync::Arc;
use tidegate_core::Store;
use tidegate_policy::plan::{PlanDocument, PlanErrors, PlanSource};
use tokio::time::Instant;

/// Loads plans from their sources. The program `tidegate` implements it for HTTP, Redis, etcd and `MongoDB`;
/// [`FilePlans`] is for files.
pub trait LoadPlans: Send + Sync {
    /// Loads the current plans of `source`. `tag` is the tag of the last load: if it still matches, return
    /// [`LoadedPlans::Unchanged`]. If `hides_subjects`, subjects are secrets, such as API keys, and must not
    /// appear in messages.
    ///
    /// The future is dropped after [`PlanSource::timeout`].
    ///
    /// # Errors
    ///
    /// The source cannot be reached, or does not answer. A text that cannot be parsed is no such error: it is
    /// a [`PlanDocument`] made from its [`PlanErrors`].
    fn load(
        &self,
        source: &PlanSource,
        tag: Option<&str>,
        hides_subjects: bool,
    ) -> impl Future<Output = Result<LoadedPlans, String>> + Send;
}

/// The result of a load.
#[derive(Debug)]
pub enum LoadedPlans {
    /// The plans have the tag of the last load.
    Unchanged,
    /// The plans have changed.
    Changed {
        /// The new plans.
        document: PlanDocument,
        /// The tag of this version, if the source has one.
        tag: Option<String>,
    },
}

/// Plans in files.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilePlans;

impl<S: Store> Limiter<S> {
    /// Loads the plans of all sources once. Returns the errors, with the names of their sources. A source
    /// with an error keeps its last good plans.
    pub async fn load_plans(&self, loader: &impl LoadPlans) -> Vec<(String, PlansError)> {
        let rules = self.present();
        let loads = rules.plans.iter().map(async |source| {
            let outcome = self.load_one(loader, source).await;
            Some((source.name.clone(), outcome.err()?))
        });
        join_all(loads).await.into_iter().flatten().collect()
    }

    /// Loads the plans of all sources, and loads them again after every `refresh`, for as long as the limiter
    /// exists. Follows reloads. The caller must drive the future once for all clones, usually as a separate
    /// task. `tidegate serve` does so automatically.
    ///
    /// Requests never wait for it: they are decided by the last plans that could be loaded. The first failure
    /// is logged. An invalid document is loaded again after `refresh`, and a file after two seconds at most.
    /// A source that cannot be reached is retried after a second, then after twice as long each time, but
    /// after `refresh` at the latest. See [`plans`](Self::plans).
    ///
    /// Requires a `tokio` runtime with timers.
    pub fn keep_plans<L: LoadPlans>(
        &self,
        loader: L,
    ) -> impl Future<Output = ()> + Send + use<S, L> {
        fresh::keep(self.downgrade(), self.reloads(), PlanRefresh(loader))
    }

    async fn load_one(
        &self,
        loader: &impl LoadPlans,
        source: &PlanSource,
    ) -> Result<(), PlansError> {
        if source.inline().is_some() {
            // Active together with the configuration.
            self.note_plans(source, Ok(()));
            return Ok(());
        }
        let hides = hides_subjects(&self.present(), &source.name);
        let (tag, told) = self.plan_sources().seen(source);
        // If the source was missing from an earlier configuration, these rules have no table of it: ignore
        // the tag.
        let tag = tag.filter(|_| self.present().plan_table(&source.name).is_some());
        let loading = loader.load(source, tag.as_deref(), hides);
        let late = "it has not answered";
        match within(source.timeout, late, loading, |error| error).await {
            Ok(LoadedPlans::Unchanged) => {
                let outcome = self.plan_sources().verdict(source);
                self.note_plans(source, outcome.as_ref().map(drop));
                outcome
            }
            Ok(LoadedPlans::Changed {
                document,
                tag: next,
            }) => {
                let unset = source.unset;
                // Many subjects take a while to process.
                let made = tokio::task::spawn_blocking(move || document.table(unset)).await;
                let made = made.unwrap_or_else(|_| Err(PlanErrors::one("it came to no end")));
                match made {
                    Ok(table) => {
                        let table = Arc::new(table);
                        self.use_plans_apart(source, table, (next, told)).await?;
                    }
                    Err(errors) => {
                        self.plan_sources().condemn(source, next, &errors);
                        let error = PlansError::Document(errors);
                        self.note_plans(source, Err(&error));
                        return Err(error);
                    }
                }
                Ok(())
            }
            Err(reason) => {
                let error = PlansError::Load { reason };
                self.note_plans(source, Err(&error));
                Err(error)
            }
        }
    }
}

/// The plans of sources, as items of [`fresh`].
struct PlanRefresh<L>(L);

impl<S: Store, L: LoadPlans> Refresh<S> for PlanRefresh<L> {
    type Item = PlanSource;

    fn items(&self, limiter: &Limiter<S>) -> Vec<(PlanSource, Instant)> {
        // Immediately: a reload may have changed their locations.
        let plans = limiter.present().plans.clone().into_iter();
        plans.map(|source| (source, Instant::now())).collect()
    }

    async fn read(&self, limiter: &Limiter<S>, source: &PlanSource) -> Instant {
        // The result is recorded, and logged if necessary.
        limiter.load_one(&self.0, source).await.ok();
        limiter.plan_sources().due(source)
    }
}

/// Returns true if any limit identifies the subjects of a source by a secret.
fn hides_subjects(rules: &Rules, source: &str) -> bool {
    let number = rules.plans.iter().position(|it| it.name == source);
    let limits = rules.policies.iter().flat_map(|policy| &policy.limits);
    let mut plans = limits.filter_map(|limit| limit.plan.as_ref());
    plans.any(|plan| Some(plan.source) == number && plan.hides_subject())
}

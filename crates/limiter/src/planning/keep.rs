//! Asking the sources of plans again and again.

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

/// Where plans are loaded from. The program `tidegate` has one for HTTP, Redis, etcd and `MongoDB`;
/// [`FilePlans`] is for files.
pub trait LoadPlans: Send + Sync {
    /// What `source` tells now. `tag` is that of what was loaded last: whoever finds the same says so.
    /// `hides_subjects` is whether subjects are secrets, such as API keys, and so in no message.
    ///
    /// It is given up after [`PlanSource::timeout`].
    ///
    /// # Errors
    ///
    /// The source cannot be reached, or does not answer. A text that cannot be read is no such error: it is
    /// a [`PlanDocument`] made from its [`PlanErrors`].
    fn load(
        &self,
        source: &PlanSource,
        tag: Option<&str>,
        hides_subjects: bool,
    ) -> impl Future<Output = Result<LoadedPlans, String>> + Send;
}

/// What a source tells.
#[derive(Debug)]
pub enum LoadedPlans {
    /// The same as before.
    Unchanged,
    /// This.
    Changed {
        /// What it tells.
        document: PlanDocument,
        /// What tells this version from others, if the source has such a thing.
        tag: Option<String>,
    },
}

/// Plans in files.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilePlans;

impl<S: Store> Limiter<S> {
    /// Loads what all sources of plans tell, once, and says what went wrong, by the names of the
    /// sources. What was told last stays where anything is wrong.
    pub async fn load_plans(&self, loader: &impl LoadPlans) -> Vec<(String, PlansError)> {
        let rules = self.present();
        let loads = rules.plans.iter().map(async |source| {
            let outcome = self.load_one(loader, source).await;
            Some((source.name.clone(), outcome.err()?))
        });
        join_all(loads).await.into_iter().flatten().collect()
    }

    /// Loads what the sources of plans tell, and loads it again whenever their `refresh` has passed,
    /// for as long as there is a limiter; a reload is followed. Somebody has to drive it, once for all
    /// clones: a task of its own, most often. `tidegate serve` does so by itself.
    ///
    /// Requests never wait for it: they are decided by what could be loaded last. The first failure is
    /// logged. An invalid document is loaded again after `refresh`, and a file after two seconds at most.
    /// A source that cannot be reached is tried again after a second, then twice as long each time, but
    /// after `refresh` at the latest. See [`plans`](Self::plans).
    ///
    /// It needs a runtime of `tokio` with its timers.
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
            // In force since the configuration is.
            self.note_plans(source, Ok(()));
            return Ok(());
        }
        let hides = hides_subjects(&self.present(), &source.name);
        let (tag, told) = self.plan_sources().seen(source);
        // A source that was away from the configuration, and is back, has told nothing to these rules.
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
                // Many subjects take a while to put together.
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

/// The plans of sources, as [`fresh`] keeps them.
struct PlanRefresh<L>(L);

impl<S: Store, L: LoadPlans> Refresh<S> for PlanRefresh<L> {
    type Item = PlanSource;

    fn items(&self, limiter: &Limiter<S>) -> Vec<(PlanSource, Instant)> {
        // At once: a reload may have changed where they are.
        let plans = limiter.present().plans.clone().into_iter();
        plans.map(|source| (source, Instant::now())).collect()
    }

    async fn read(&self, limiter: &Limiter<S>, source: &PlanSource) -> Instant {
        // The outcome is noted, and logged where that is due.
        limiter.load_one(&self.0, source).await.ok();
        limiter.plan_sources().due(source)
    }
}

/// Whether any limit knows the subjects of a source by a secret.
fn hides_subjects(rules: &Rules, source: &str) -> bool {
    let number = rules.plans.iter().position(|it| it.name == source);
    let limits = rules.policies.iter().flat_map(|policy| &policy.limits);
    let mut plans = limits.filter_map(|limit| limit.plan.as_ref());
    plans.any(|plan| Some(plan.source) == number && plan.hides_subject())
}

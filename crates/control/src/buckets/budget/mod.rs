//! Budgets of a subject: the used and the remaining amount of every limit that it meets.
//!
//! | module | what it is |
//! |---|---|
//! | this one | from identities to their buckets, one for each limit |
//! | `report` | the content of these buckets |
//!
//! The buckets are named by the same code as one bucket of `tidegate inspect`, so that both agree with
//! decisions. Open reservations are used units in these buckets: no list of them exists, because their ids
//! carry them.

mod report;

pub use report::{BandBudget, BudgetReport, LimitBudget, SkippedLimit};

use super::identity::{self, KeyValue, Naming};
use super::{NamedBucket, alone, unknown_policy};
use crate::failure::Failure;
use crate::sources::once;
use std::sync::Arc;
use tidegate::Store;
use tidegate_config::Config;
use tidegate_policy::plan::PlanTable;
use tidegate_policy::{KeyPart, Limit, Policy};

/// A subject, by its identities.
#[derive(Clone, Debug, Default)]
pub struct BudgetQuery {
    /// Only the limits of this policy. Default: those of all policies.
    pub policy: Option<String>,
    /// The identities, such as `user=ann`.
    pub key: Vec<String>,
}

/// The buckets of a subject: one for each limit that counts by its identities.
#[derive(Debug)]
pub struct Budget {
    met: Vec<NamedBucket>,
    skipped: Vec<SkippedLimit>,
    note: Option<String>,
}

/// Plans, or the reasons why they could not be loaded, by the number of their source.
struct LoadedTables {
    tables: Vec<Option<Arc<PlanTable>>>,
    why: Vec<String>,
}

// === impl Budget ===

impl Budget {
    /// Finds the buckets of the subject that `query` describes, in the order of policies and limits.
    ///
    /// Loads the plans of these limits. If plans cannot be loaded, the buckets are found all the same, without a
    /// rate.
    ///
    /// # Errors
    ///
    /// [`Failure::Input`] if the policy does not exist, or if an identity is invalid.
    pub fn find(config: &Config, query: &BudgetQuery) -> Result<Self, Failure> {
        let (identities, refused) = identity::given(&config.client, &query.key)?;
        let limits = limits(config, query.policy.as_deref())?;
        let plans = LoadedTables::of(config, &limits);
        let naming = Naming {
            rules: config.key_rules(),
            client: &config.client,
            tables: &plans.tables,
        };
        let mut budget = Self {
            met: Vec::new(),
            skipped: Vec::new(),
            note: refused.map(|why| format!("the token is not accepted: {why}")),
        };
        for (policy, limit) in limits {
            if let Some(skipped) = SkippedLimit::of(policy, limit, &identities) {
                budget.skipped.push(skipped);
                continue;
            }
            let alone = alone(policy, limit.clone());
            match identity::names(&alone, naming, &identities) {
                Some(names) => {
                    let bucket = NamedBucket::new(alone, naming, names, plans.why(limit));
                    budget.met.push(bucket);
                }
                None => budget
                    .skipped
                    .push(SkippedLimit::without_name(policy, limit)),
            }
        }
        Ok(budget)
    }

    /// Reads all buckets.
    ///
    /// # Errors
    ///
    /// [`Failure::Runtime`] if the store did not answer, or if a value is corrupt.
    pub async fn read(self, store: &impl Store) -> Result<BudgetReport, Failure> {
        let mut limits = Vec::new();
        for mut named in self.met {
            named.choose(store).await?;
            let seen = super::report::levels(store, &named).await?;
            limits.extend(named.limit().map(|limit| LimitBudget::of(limit, seen)));
        }
        Ok(BudgetReport {
            limits,
            skipped: self.skipped,
            note: self.note,
        })
    }
}

/// Returns the limits of a policy, or of all written ones, each with the policy that its buckets are named
/// after.
fn limits<'c>(
    config: &'c Config,
    policy: Option<&str>,
) -> Result<Vec<(&'c str, &'c Limit)>, Failure> {
    let of = |policy: &'c Policy| {
        let limits = policy.limits.iter().enumerate();
        limits.map(|(nth, limit)| (policy.origin(nth), limit))
    };
    match policy {
        None => Ok(config.written().flat_map(of).collect()),
        Some(name) => {
            let policy = config.policy(Some(name));
            let policy = policy.ok_or_else(|| unknown_policy(config, name))?;
            Ok(of(policy).collect())
        }
    }
}

/// Returns true if all subjects share the buckets of `limit`.
fn is_shared(limit: &Limit) -> bool {
    limit.key.iter().all(|part| *part == KeyPart::Global)
}

// === impl LoadedTables ===

impl LoadedTables {
    /// Loads the plans that `limits` use. One that cannot be loaded does not prevent the others.
    fn of(config: &Config, limits: &[(&str, &Limit)]) -> Self {
        let limits = || limits.iter().map(|(_, limit)| *limit);
        let is_used = |number| {
            let mut plans = limits().filter_map(|limit| limit.plan.as_ref());
            plans.any(|plan| plan.source == number)
        };
        let (mut tables, mut why) = (Vec::new(), Vec::new());
        for number in 0..config.plans.len() {
            let loaded = if is_used(number) {
                once::load(&config.plans, limits(), |nth, _| nth == number)
            } else {
                Ok(Vec::new())
            };
            let (table, failure) = match loaded {
                Ok(loaded) => (loaded.into_iter().nth(number).flatten(), String::new()),
                Err(failure) => (None, failure.to_string()),
            };
            tables.push(table);
            why.push(failure);
        }
        Self { tables, why }
    }

    /// Returns why the plans of `limit` could not be loaded.
    fn why(&self, limit: &Limit) -> &str {
        let source = limit.plan.as_ref().map(|plan| plan.source);
        let why = source.and_then(|source| self.why.get(source));
        why.map_or("", String::as_str)
    }
}

// === impl SkippedLimit ===

impl SkippedLimit {
    /// Returns why the identities have no bucket of this limit; `None` if they have one.
    fn of(policy: &str, limit: &Limit, identities: &[KeyValue]) -> Option<Self> {
        let missing = identity::missing(limit, identities).map(identity::as_written);
        let missing: Vec<String> = missing.collect();
        let reason = match missing.as_slice() {
            _ if !limit.enabled => "it is off".to_owned(),
            _ if limit.is_unlimited() => "it counts nothing: the rate is `unlimited`".to_owned(),
            [] => return None,
            parts => format!("it also needs {}", parts.join(", ")),
        };
        let is_about_key = limit.enabled && !limit.is_unlimited();
        Some(Self {
            missing: if is_about_key { missing } else { Vec::new() },
            ..Self::because(policy, limit, reason)
        })
    }

    fn without_name(policy: &str, limit: &Limit) -> Self {
        let reason = "a value is empty or invalid, or its plan has no group for the subject";
        Self::because(policy, limit, reason.to_owned())
    }

    fn because(policy: &str, limit: &Limit, reason: String) -> Self {
        Self {
            policy: policy.to_owned(),
            limit: limit.name.clone(),
            missing: Vec::new(),
            reason,
        }
    }
}

#[cfg(test)]
mod tests;

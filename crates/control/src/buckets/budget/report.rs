//! The budgets of a subject, as data: the JSON of `tidegate budget` and of the admin API.

use super::is_shared;
use crate::buckets::report::{BandSight, BucketReport, is_zero};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidegate_core::LimitMode;
use tidegate_policy::Limit;

/// The budgets of a subject.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetReport {
    /// The limits that count by its identities, in the order of policies and limits.
    pub limits: Vec<LimitBudget>,
    /// The limits that do not, with the reasons.
    pub skipped: Vec<SkippedLimit>,
    /// A warning about the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The used and the remaining amount of a limit.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct LimitBudget {
    /// The policy of the limit.
    pub policy: String,
    /// The limit.
    pub limit: String,
    /// `enforce` or `shadow`.
    pub mode: String,
    /// The unit that the limit counts; absent for requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The bucket.
    pub bucket: String,
    /// True if the bucket counts for all clients together, and not for this subject alone.
    pub shared: bool,
    /// False if the store has no record of the bucket: nothing is used, or another one is meant.
    pub found: bool,
    /// The reason why there are no bands, if their rate comes from a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// The remaining time for which the limit blocks the subject; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_for_ms: Option<u64>,
    /// The bands of the limit.
    pub bands: Vec<BandBudget>,
}

/// The used and the remaining amount of a band.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct BandBudget {
    /// The band as it is written.
    pub band: String,
    /// Its label.
    pub label: Option<String>,
    /// Its algorithm.
    pub algorithm: String,
    /// The amount that it admits at once.
    pub capacity: u64,
    /// The amount that is used, rounded up: with reservations until they are settled, and with what it owes.
    pub used: u64,
    /// The amount that is left.
    pub left: u64,
    /// The amount that it owes below empty; absent if it owes nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub overdrawn: u64,
    /// The length of its period.
    pub period_ms: u64,
    /// The time until it is full: for a window, until it ends.
    pub reset_ms: u64,
}

/// A limit that does not count by the identities that were given.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SkippedLimit {
    /// The policy of the limit.
    pub policy: String,
    /// The limit.
    pub limit: String,
    /// The parts of its key that are missing.
    pub missing: Vec<String>,
    /// The reason, for people.
    pub reason: String,
}

impl BudgetReport {
    /// Returns true if the store has a record of a bucket of the subject alone.
    pub fn is_found(&self) -> bool {
        self.limits.iter().any(|it| it.found && !it.shared)
    }
}

impl LimitBudget {
    /// Creates the budget of `limit` from its bucket.
    pub(super) fn of(limit: &Limit, seen: BucketReport) -> Self {
        let mode = match limit.mode {
            LimitMode::Enforce => "enforce",
            LimitMode::Shadow => "shadow",
        };
        Self {
            policy: seen.policy,
            limit: seen.limit,
            mode: mode.to_owned(),
            unit: limit.unit.reported().map(str::to_owned),
            bucket: seen.bucket,
            shared: is_shared(limit),
            found: seen.found,
            rate: seen.rate,
            blocked_for_ms: seen.blocked_for_ms,
            bands: seen.bands.into_iter().map(BandBudget::from).collect(),
        }
    }
}

impl From<BandSight> for BandBudget {
    fn from(seen: BandSight) -> Self {
        let used = seen.capacity.saturating_sub(seen.remaining);
        Self {
            band: seen.band,
            label: seen.label,
            algorithm: seen.algorithm.to_owned(),
            capacity: seen.capacity,
            used: used.saturating_add(seen.overdrawn),
            left: seen.remaining,
            overdrawn: seen.overdrawn,
            period_ms: seen.period_ms,
            reset_ms: seen.reset_ms,
        }
    }
}

//! Counts for each limit, in bounded memory.

mod distinct;
mod frequent;
mod rows;
mod summary;
#[cfg(test)]
mod tests;

use foldhash::quality::FixedState;
use hashbrown::HashMap;
use rows::{GuardRow, RowCounts, Rows};
use std::sync::Arc;
use tidegate::plan::PlanTable;
use tidegate::{AppliedBand, Config, Decision, Request, Timestamp};
use tidegate_policy::guard::GuardEffect;
use tidegate_policy::matching::KeyRules;
use tidegate_policy::policy::Scratch;
use tidegate_policy::{Limit, Policy};

/// Counts decisions. It displays as the summary.
///
/// For each limit: the number of requests it applied to, the number of those it allowed, and the number
/// of distinct keys. A request that one limit refuses may be allowed by another.
#[derive(Debug)]
pub struct SimulationTally {
    rows: Rows,
    policies: Vec<PolicyRows>,
    total: RowCounts,
    /// Requests that no limit applied to.
    unlimited: u64,
    /// Requests that limits or guards in shadow mode would have refused.
    would_refuse: u64,
    guards: Vec<GuardRow>,
    span: Option<(Timestamp, Timestamp)>,
    keys: KeyRules,
    /// The loaded plans.
    plans: Vec<Option<Arc<PlanTable>>>,
    scratch: Scratch,
}

/// A policy, and the rows of its limits.
#[derive(Debug)]
struct PolicyRows {
    policy: Policy,
    /// The row of each limit. A limit of a joined policy counts in the row of its original policy.
    rows: Vec<usize>,
    by_name: HashMap<Box<str>, usize, FixedState>,
}

impl SimulationTally {
    /// Creates an empty tally for the limits of `config`.
    pub fn new(config: Config) -> Self {
        let keys = config.key_rules();
        let guards = config.guards.iter().filter(|guard| guard.enabled);
        let guards = guards.map(GuardRow::new).collect();
        let mut rows = Rows::default();
        let mut policies: Vec<PolicyRows> = Vec::new();
        for policy in config.policies {
            policies.push(PolicyRows::new(policy, &policies, &mut rows));
        }
        Self {
            policies,
            rows,
            total: RowCounts::default(),
            unlimited: 0,
            would_refuse: 0,
            guards,
            span: None,
            keys,
            plans: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Sets the plans, by which subjects are looked up.
    pub(super) fn use_plans(&mut self, tables: Vec<Option<Arc<PlanTable>>>) {
        self.plans = tables;
    }

    /// Counts one decision.
    #[inline]
    pub fn add(&mut self, request: &Request<'_>, decision: &Decision, at: Timestamp) {
        self.total.add(decision.is_allowed());
        let met_none = decision.is_unlimited() && !decision.applied().any(|it| it.is_shadow());
        self.unlimited += u64::from(met_none && decision.is_allowed());
        self.count_guards(decision);
        let (first, last) = self.span.unwrap_or((at, at));
        self.span = Some((first, last.max(at)));

        let mut policies = self.policies.iter();
        let Some(policy) = policies.find(|it| it.policy.name == decision.policy()) else {
            return;
        };
        if let Some((limit, is_allowed, key)) = sole(decision) {
            if let Some(row) = policy.by_name.get(limit) {
                self.rows.count(*row, is_allowed, key);
            }
            return;
        }
        let scratch = &mut self.scratch;
        let meeting = policy
            .policy
            .match_with(request, &self.keys, &self.plans, scratch);
        let mut bands = decision.applied().peekable();
        for met in meeting.met {
            let Some(first) = bands.next() else { break };
            let mut is_allowed = first.is_allowed();
            while let Some(band) = bands.next_if(|band| is_same_met(band, &first)) {
                is_allowed &= band.is_allowed();
            }
            if let Some(row) = policy.rows.get(met.limit) {
                self.rows.count(*row, is_allowed, meeting.subject(met));
            }
        }
        // Limits in shadow mode that would refuse because an identity or a plan is missing.
        for watching in bands {
            if let Some(row) = policy.rows.get(watching.limit_index()) {
                self.rows.count(*row, watching.is_allowed(), "");
            }
        }
    }
}

impl SimulationTally {
    /// Counts decisions of guards, and refusals that shadow mode prevented.
    fn count_guards(&mut self, decision: &Decision) {
        let shadow_limits = decision.shadow_refusals().next().is_some();
        let mut would_refuse = shadow_limits;
        let decided = decision.guard().into_iter();
        for guard in decided.chain(decision.shadow_guards()) {
            let mut rows = self.guards.iter_mut();
            if let Some(row) = rows.find(|row| *row.name == *guard.name) {
                would_refuse |= row.is_shadow && row.effect == GuardEffect::Refuse;
                row.count += 1;
            }
        }
        self.would_refuse += u64::from(would_refuse);
    }
}

impl PolicyRows {
    /// Creates the rows of `policy`, which comes after the `known` ones.
    fn new(policy: Policy, known: &[Self], rows: &mut Rows) -> Self {
        let limits = policy.limits.iter().enumerate();
        let row = |(nth, limit): (usize, &Limit)| {
            let origin = policy.origin(nth);
            let mut known = known.iter().filter(|_| policy.is_joined());
            let known = known.find(|it| it.policy.name == origin);
            let row = known.and_then(|it| it.by_name.get(limit.name.as_str()));
            row.copied().unwrap_or_else(|| rows.add(origin, limit))
        };
        let rows: Vec<usize> = limits.map(row).collect();
        let names = policy.limits.iter().map(|limit| limit.name.as_str().into());
        Self {
            by_name: names.zip(rows.iter().copied()).collect(),
            rows,
            policy,
        }
    }
}

/// Returns the only limit that applied, whether it allowed the request, and its key.
///
/// A decision contains one key, that of the limit that it reports. If several limits applied, or one in
/// shadow mode, there is none, and the keys have to be computed again.
#[inline]
fn sole(decision: &Decision) -> Option<(&str, bool, &str)> {
    let mut bands = decision.applied();
    let first = bands.next()?;
    let mut is_allowed = first.is_allowed();
    for band in bands {
        if !is_same_met(&band, &first) {
            return None;
        }
        is_allowed &= band.is_allowed();
    }
    let binding = decision.binding()?;
    Some((binding.limit(), is_allowed, binding.key()))
}

/// Returns true if two bands belong to one limit, compared by the address of its name, and to one
/// descriptor, if to any.
#[inline]
fn is_same_met(one: &AppliedBand<'_>, other: &AppliedBand<'_>) -> bool {
    std::ptr::eq(one.limit(), other.limit()) && one.descriptor() == other.descriptor()
}

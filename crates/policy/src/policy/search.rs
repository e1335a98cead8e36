//! The search for the limits that apply to one request: first for the request as a whole, then for each of
//! its descriptors.

use super::meet::{MetLimit, UnmetLimit};
use super::{Evaluate, Policy};
use crate::limit::{Condition, Limit, MissingIdentity};
use crate::matching::{Candidate, KeyRules, MatchInput, TrieWalk, ValuesScratch, condition};
use crate::patterns::DescriptorPattern;
use crate::plan::{PlanAnswer, PlanLookup, PlannedRate};
use crate::request::{Descriptor, DescriptorHits};
use crate::unit::Cost;
use std::ops::ControlFlow;
use tidegate_core::LimitMode;

/// A search for the limits that apply to a request.
pub(super) struct LimitSearch<'s> {
    pub(super) policy: &'s Policy,
    pub(super) rules: &'s KeyRules,
    /// The plan tables.
    pub(super) lookup: PlanLookup<'s>,
    pub(super) met: &'s mut Vec<MetLimit>,
    /// The names of their buckets.
    pub(super) text: &'s mut String,
    /// Limits that refuse because an identity is missing.
    pub(super) refusing: &'s mut Vec<UnmetLimit>,
    /// Limits in shadow mode that would refuse for that reason.
    pub(super) watching: &'s mut Vec<UnmetLimit>,
}

/// The cause of a match: the request as a whole, or one of its descriptors.
#[derive(Clone, Copy)]
struct MatchCause<'a> {
    facts: &'a MatchInput<'a>,
    descriptor: Option<u16>,
    /// The result of the limit's plan, if it has one.
    planned: PlanAnswer,
}

/// The result for a limit whose conditions hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LimitTrial {
    Met,
    PassedOver,
    Refused,
}

// === impl LimitSearch ===

impl LimitSearch<'_> {
    /// Finds the limits of the request as a whole, and those with a condition on single entries of any
    /// descriptor, each of which applies once. Breaks if a limit refuses and no limit can replace it.
    pub(super) fn whole(
        &mut self,
        facts: &MatchInput<'_>,
        walk: &mut TrieWalk,
        values: &mut ValuesScratch,
    ) -> ControlFlow<()> {
        let policy = self.policy;
        let whole = MatchCause {
            facts,
            descriptor: None,
            planned: PlanAnswer::NotAsked,
        };
        let mut settled = None;
        for candidate in policy.matcher.candidates(facts, walk, values) {
            let Some(limit) = policy.limits.get(candidate.limit) else {
                continue;
            };
            if settled == Some(candidate.limit) {
                continue;
            }
            let held;
            let mut by = whole;
            if let Some(condition) = limit.conditions.get(candidate.condition) {
                if !condition::holds(condition, facts) {
                    continue;
                }
                if condition.descriptor.is_some() {
                    let Some((number, descriptor)) = holding(condition, facts) else {
                        continue;
                    };
                    held = facts.described_by(descriptor);
                    by = MatchCause::descriptor(&held, number);
                }
            }
            settled = Some(candidate.limit);
            match self.try_one(candidate.limit, limit, &by) {
                LimitTrial::Met if self.decides(limit) => break,
                LimitTrial::Refused if !policy.matcher.replaces() => return ControlFlow::Break(()),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    /// Finds the limits that each descriptor matches by its entries, or the hidden one if it carries its own
    /// limit.
    pub(super) fn described(&mut self, facts: &MatchInput<'_>, walk: &mut TrieWalk) {
        let policy = self.policy;
        let paths = policy.matcher.described_paths(facts.path, walk);
        for (number, descriptor) in (0..=u16::MAX).zip(facts.request.descriptors) {
            let facts = facts.described_by(descriptor);
            let by = MatchCause::descriptor(&facts, number);
            if descriptor.limit.is_some() {
                self.try_one(policy.limits.len(), &policy.hidden, &by);
                continue;
            }
            let candidates = policy.matcher.described(descriptor.entries);
            if self.at_place(candidates, &by, paths).is_break() {
                return;
            }
        }
    }

    /// Tries the limits at the descriptor's position in the tree. `paths` are the candidates whose path
    /// condition holds.
    fn at_place(
        &mut self,
        candidates: &[Candidate],
        by: &MatchCause<'_>,
        paths: Option<&[Candidate]>,
    ) -> ControlFlow<()> {
        let policy = self.policy;
        let mut settled = None;
        for candidate in candidates {
            let limit = policy.limits.get(candidate.limit);
            let Some((limit, condition)) =
                limit.and_then(|it| Some((it, it.conditions.get(candidate.condition)?)))
            else {
                continue;
            };
            let has_path = || {
                condition.path.is_none()
                    || paths.is_some_and(|paths| paths.binary_search(candidate).is_ok())
            };
            if settled == Some(candidate.limit)
                || !condition::holds(condition, by.facts)
                || !has_path()
            {
                continue;
            }
            settled = Some(candidate.limit);
            match self.try_one(candidate.limit, limit, by) {
                LimitTrial::Met if self.decides(limit) => break,
                LimitTrial::Refused if !policy.matcher.replaces() => return ControlFlow::Break(()),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns true if the search ends with this limit.
    fn decides(&self, limit: &Limit) -> bool {
        self.policy.evaluate == Evaluate::First && limit.ends_search()
    }

    /// Applies a limit whose conditions hold, unless an identity that it needs is absent.
    fn try_one(&mut self, number: usize, limit: &Limit, by: &MatchCause<'_>) -> LimitTrial {
        match &limit.plan {
            None => self.try_key(number, limit, by),
            Some(plan) => self.try_planned((number, limit), plan, by),
        }
    }

    /// Like `try_one`, for a limit with a plan.
    // Out of line: most limits have no plan, and their path should not carry the data of one.
    #[inline(never)]
    fn try_planned(
        &mut self,
        (number, limit): (usize, &Limit),
        plan: &PlannedRate,
        by: &MatchCause<'_>,
    ) -> LimitTrial {
        let subject = by.facts.identity(&plan.subject);
        let (planned, group) = plan.answer(subject, self.lookup);
        let facts = MatchInput { group, ..*by.facts };
        let by = MatchCause {
            facts: &facts,
            descriptor: by.descriptor,
            planned,
        };
        let is_refused = matches!(planned, PlanAnswer::Refused { .. });
        if !is_refused && planned != PlanAnswer::UnknownSkipped {
            return self.try_key(number, limit, &by);
        }
        // A subject that the request lacks is first of all an absent identity. A limit refuses by its plan
        // only if its key could be written.
        if subject.is_none() {
            let start = self.text.len();
            let tried = self.try_key(number, limit, &by);
            if tried != LimitTrial::Met {
                return tried;
            }
            self.met.pop();
            self.text.truncate(start);
        }
        // A request that asks for nothing of the unit is never refused by its limit.
        if is_refused && self.policy.asked(cost_of(by.facts), limit).is_some() {
            return self.refuse(number, limit, &by);
        }
        LimitTrial::PassedOver
    }

    /// Applies a limit in the bucket of its key, unless an identity that it needs is absent.
    #[inline]
    fn try_key(&mut self, number: usize, limit: &Limit, by: &MatchCause<'_>) -> LimitTrial {
        let Some(key) = self.policy.matcher.key(number) else {
            return LimitTrial::PassedOver;
        };
        let start = self.text.len();
        if let Some(written) = key.write(by.facts, self.rules, self.text) {
            self.met.push(MetLimit {
                limit: number,
                bucket: start..written.end,
                scope: written.scope,
                subject: written.subject,
                descriptor: by.descriptor,
                planned: by.planned,
            });
            return LimitTrial::Met;
        }
        self.text.truncate(start);
        if limit.missing == MissingIdentity::Refuse {
            let planned = PlanAnswer::NotAsked;
            return self.refuse(number, limit, &MatchCause { planned, ..*by });
        }
        LimitTrial::PassedOver
    }

    /// Refuses the request, or records that a limit in shadow mode would.
    fn refuse(&mut self, number: usize, limit: &Limit, by: &MatchCause<'_>) -> LimitTrial {
        let refused = UnmetLimit {
            limit: number,
            descriptor: by.descriptor,
            planned: by.planned,
        };
        if limit.mode != LimitMode::Enforce {
            self.watching.push(refused);
            return LimitTrial::PassedOver;
        }
        self.refusing.push(refused);
        LimitTrial::Refused
    }

    /// Removes all limits that any applicable limit replaces, even if that one is replaced itself: of two
    /// limits that replace each other, both are removed.
    pub(super) fn replace(&mut self, replaced: &mut Vec<usize>) {
        replaced.clear();
        let limits = self.met.iter().map(|met| self.policy.limit(met.limit));
        replaced.extend(limits.flatten().flat_map(|limit| &limit.replaces));
        if replaced.is_empty() {
            return;
        }
        replaced.sort_unstable();
        let stays = |limit: usize| replaced.binary_search(&limit).is_err();
        self.met.retain(|met| stays(met.limit));
        self.refusing.retain(|refused| stays(refused.limit));
        self.watching.retain(|refused| stays(refused.limit));
    }
}

// === impl By ===

impl<'a> MatchCause<'a> {
    /// Returns the match for the descriptor with this number; `facts` must be about it.
    fn descriptor(facts: &'a MatchInput<'a>, number: u16) -> Self {
        Self {
            facts,
            descriptor: Some(number),
            planned: PlanAnswer::NotAsked,
        }
    }
}

/// Returns the cost of a request, or that of the descriptor that matches.
fn cost_of<'a>(facts: &MatchInput<'a>) -> Cost<'a> {
    match facts.descriptor.map(|it| it.hits) {
        Some(DescriptorHits::Units(cost)) => cost,
        Some(DescriptorHits::Take(units)) => Cost::from(units),
        Some(DescriptorHits::AsRequest | DescriptorHits::GiveBack(_)) | None => facts.request.cost,
    }
}

/// Returns the first descriptor that has the entries of a condition, if any has.
fn holding<'a>(condition: &Condition, facts: &MatchInput<'a>) -> Option<(u16, &'a Descriptor<'a>)> {
    let Some(DescriptorPattern::Holds(entries)) = &condition.descriptor else {
        return None;
    };
    let mut descriptors = (0..=u16::MAX).zip(facts.request.descriptors);
    descriptors.find(|(_, it)| condition::is_held(entries, it))
}

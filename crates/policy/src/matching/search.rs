//! The search for the limits that one request meets: first of the request as a whole, then of each of
//! its descriptors.

use super::condition;
use super::entry::DescriptorPattern;
use super::facts::Facts;
use super::key::KeyRules;
use super::meet::Met;
use super::trie::{Candidate, Walk};
use crate::{Condition, Evaluate, Limit, Missing, Policy};
use std::ops::ControlFlow;
use tidegate_core::Mode;

/// A search for the limits that a request meets.
pub(super) struct Search<'s> {
    pub(super) policy: &'s Policy,
    pub(super) rules: &'s KeyRules,
    pub(super) met: &'s mut Vec<Met>,
    /// The names of their buckets.
    pub(super) text: &'s mut String,
    /// Limits that refuse because an identity is missing.
    pub(super) refusing: &'s mut Vec<usize>,
}

/// What a limit is met by: the request as a whole, or one of its descriptors.
struct By<'a> {
    facts: Facts<'a>,
    descriptor: Option<u16>,
}

/// What became of a limit whose conditions hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tried {
    Met,
    PassedOver,
    Refused,
}

// === impl Search ===

impl Search<'_> {
    /// The limits that the request as a whole meets, and those for descriptors that hold something,
    /// each of which is met once. Breaks where one refuses and nothing can replace it.
    pub(super) fn whole(&mut self, facts: &Facts<'_>, walk: &mut Walk) -> ControlFlow<()> {
        let policy = self.policy;
        let whole = By {
            facts: *facts,
            descriptor: None,
        };
        let mut settled = None;
        for candidate in policy.matcher.candidates(facts.path, walk) {
            let Some(limit) = policy.limits.get(candidate.limit) else {
                continue;
            };
            if settled == Some(candidate.limit) {
                continue;
            }
            let mut holding = None;
            if let Some(condition) = limit.conditions.get(candidate.condition) {
                if !condition::holds(condition, facts) {
                    continue;
                }
                if condition.descriptor.is_some() {
                    holding = By::holding(condition, facts);
                    if holding.is_none() {
                        continue;
                    }
                }
            }
            settled = Some(candidate.limit);
            let by = holding.as_ref().unwrap_or(&whole);
            match self.try_one(candidate.limit, limit, by) {
                Tried::Met if self.decides(limit) => break,
                Tried::Refused if !policy.matcher.replaces() => return ControlFlow::Break(()),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    /// The limits that each descriptor meets by its entries, or the hidden one where it brings a limit
    /// of its own.
    pub(super) fn described(&mut self, facts: &Facts<'_>, walk: &mut Walk) {
        let policy = self.policy;
        let paths = policy.matcher.described_paths(facts.path, walk);
        for (number, descriptor) in (0..=u16::MAX).zip(facts.request.descriptors) {
            let by = By {
                facts: Facts {
                    descriptor: Some(descriptor),
                    ..*facts
                },
                descriptor: Some(number),
            };
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

    /// The limits of the place in the tree that a descriptor found. `paths` are those that ask for a path
    /// and get it.
    fn at_place(
        &mut self,
        candidates: &[Candidate],
        by: &By<'_>,
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
                || !condition::holds(condition, &by.facts)
                || !has_path()
            {
                continue;
            }
            settled = Some(candidate.limit);
            match self.try_one(candidate.limit, limit, by) {
                Tried::Met if self.decides(limit) => break,
                Tried::Refused if !policy.matcher.replaces() => return ControlFlow::Break(()),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether nothing is looked at after this one.
    fn decides(&self, limit: &Limit) -> bool {
        self.policy.evaluate == Evaluate::First && limit.mode == Mode::Enforce
    }

    /// Meets a limit whose conditions hold, unless an identity is absent that it needs.
    fn try_one(&mut self, number: usize, limit: &Limit, by: &By<'_>) -> Tried {
        let Some(key) = self.policy.matcher.key(number) else {
            return Tried::PassedOver;
        };
        let start = self.text.len();
        if let Some(subject) = key.write(&by.facts, self.rules, self.text) {
            self.met.push(Met {
                limit: number,
                bucket: start..self.text.len(),
                subject: subject..self.text.len(),
                descriptor: by.descriptor,
            });
            return Tried::Met;
        }
        self.text.truncate(start);
        if refuses(limit) {
            self.refusing.push(number);
            return Tried::Refused;
        }
        Tried::PassedOver
    }

    /// Leaves out what any of the met replaces, though it be replaced itself: of two that replace each
    /// other, neither stays.
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
        self.refusing.retain(|limit| stays(*limit));
    }
}

// === impl By ===

impl<'a> By<'a> {
    /// The first descriptor that holds what a condition asks for, if any does.
    fn holding(condition: &Condition, facts: &Facts<'a>) -> Option<Self> {
        let Some(DescriptorPattern::Holds(entries)) = &condition.descriptor else {
            return None;
        };
        let mut descriptors = (0..=u16::MAX).zip(facts.request.descriptors);
        let (number, descriptor) = descriptors.find(|(_, it)| condition::is_held(entries, it))?;
        Some(Self {
            facts: Facts {
                descriptor: Some(descriptor),
                ..*facts
            },
            descriptor: Some(number),
        })
    }
}

/// Whether a limit refuses a request whose identity is absent.
fn refuses(limit: &Limit) -> bool {
    limit.missing == Missing::Refuse && limit.mode == Mode::Enforce
}

//! The evaluation of all guards of a configuration for one request.

use super::{Guard, GuardEffect, GuardMembers};
use crate::client::{SAID_API_KEYS, SAID_ATTRIBUTES, SAID_USERS, said_of};
use crate::digest::DigestedText;
use crate::key_part::KeyPart;
use crate::matching::{FieldNeeds, MatchInput, Spellings};
use crate::request::Request;
use std::fmt;
use tidegate_core::LimitMode;

/// All guards of a configuration.
#[derive(Debug, Default)]
pub struct Guards {
    /// The guards in the order written.
    all: Vec<Guard>,
    /// Indices in the order of evaluation: guards that exempt come first. Disabled guards are left out.
    order: Vec<usize>,
    reads: FieldNeeds,
    /// True if all guards look up addresses, or refuse by attributes. Both need no normalisation.
    is_plain: bool,
    /// The first guard that refuses by an attribute.
    by_attribute: Option<usize>,
}

/// Buffers that are reused for the next request.
#[derive(Default)]
pub struct GuardScratch(Spellings);

/// The result of all guards for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuardVerdict {
    /// The effect on the request.
    pub outcome: GuardOutcome,
    /// The guards in shadow mode that would have acted: bit N is guard number N.
    pub watched: u64,
}

/// The effect of all guards on a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuardOutcome {
    /// The limits decide.
    #[default]
    Pass,
    /// The guard with this number allows the request, without evaluating limits.
    Exempt(usize),
    /// The guard with this number refuses the request.
    Refuse(usize),
}

// === impl Guards ===

impl Guards {
    /// Creates the guards of a configuration, in the order written.
    pub fn new(all: Vec<Guard>) -> Self {
        let numbered = |effect| {
            let of = asked(&all);
            of.filter(move |(_, guard)| guard.effect == effect)
                .map(|(nth, _)| nth)
        };
        let order = numbered(GuardEffect::Exempt).chain(numbered(GuardEffect::Refuse));
        let order = order.collect();
        let is_plain = asked(&all).all(|(_, guard)| is_plain(guard));
        let by_attribute = asked(&all).find(|(_, guard)| is_by_attribute(guard));
        let by_attribute = by_attribute.map(|(nth, _)| nth);
        Self {
            order,
            reads: reads(&all),
            is_plain,
            by_attribute,
            all,
        }
    }

    /// Returns the same guards in a configuration with this mode. In shadow mode, all guards that refuse are
    /// in shadow mode too. Exemptions stay in force, so that limits count only requests that they would
    /// refuse.
    #[must_use]
    pub fn in_mode(mut self, mode: LimitMode) -> Self {
        let refusing = self
            .all
            .iter_mut()
            .filter(|it| it.effect == GuardEffect::Refuse);
        if mode == LimitMode::Shadow {
            refusing.for_each(|guard| guard.mode = LimitMode::Shadow);
        }
        self
    }

    /// Returns true if there are no enabled guards.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the guards in the order written, including disabled ones.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Guard> {
        self.all.iter()
    }

    /// Returns the guard with this number, counted from 0 in the order written.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&Guard> {
        self.all.get(number)
    }

    /// Returns the subjects of the enabled guards, in the order written.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = &KeyPart> {
        asked(&self.all).map(|(_, guard)| &guard.subject)
    }

    /// Returns the facts that its enabled guards read.
    pub(crate) fn reads(&self) -> FieldNeeds {
        self.reads
    }

    /// Returns the subject whose digest [`mark`](Self::mark) computes.
    #[inline]
    pub(crate) fn marked(&self) -> Option<&KeyPart> {
        Some(&self.all.get(self.by_attribute?)?.subject)
    }

    /// Returns the text of `request` that is looked up first, with its digest, for reuse by other lookups.
    #[inline]
    pub fn mark<'r>(&self, request: &Request<'r>) -> Option<DigestedText<'r>> {
        let KeyPart::Attr(name) = self.marked()? else {
            return None;
        };
        let mut attributes = request.attributes.iter();
        let (_, value) = attributes.find(|(known, _)| known == name)?;
        DigestedText::new(value)
    }

    /// Evaluates the guards for `request`: exemptions first, then refusals, each in the order written. Stops
    /// at the first enforced guard that lists the request. `list` returns the list of each guard by number.
    /// `marked` is the result of [`mark`](Self::mark), if it was computed.
    pub fn ask<'l>(
        &self,
        request: &Request<'_>,
        list: impl Fn(usize) -> Option<&'l GuardMembers>,
        scratch: &mut GuardScratch,
        marked: Option<DigestedText<'_>>,
    ) -> GuardVerdict {
        // Most guards need no normalisation.
        let facts = (!self.is_plain).then(|| MatchInput::of(request, self.reads, &mut scratch.0));
        let mut verdict = GuardVerdict::default();
        for nth in &self.order {
            let (Some(guard), Some(list)) = (self.all.get(*nth), list(*nth)) else {
                continue;
            };
            let is_listed = match &facts {
                None => lists_plainly(guard, list, request, marked),
                Some(facts) => lists(guard, list, facts),
            };
            if !is_listed {
                continue;
            }
            match (guard.mode, guard.effect) {
                (LimitMode::Shadow, _) => verdict.watched |= bit(*nth),
                (LimitMode::Enforce, GuardEffect::Exempt) => {
                    verdict.outcome = GuardOutcome::Exempt(*nth);
                    break;
                }
                (LimitMode::Enforce, GuardEffect::Refuse) => {
                    verdict.outcome = GuardOutcome::Refuse(*nth);
                    break;
                }
            }
        }
        verdict
    }
}

impl From<Vec<Guard>> for Guards {
    fn from(all: Vec<Guard>) -> Self {
        Self::new(all)
    }
}

// === impl GuardScratch ===

// Written by hand because it holds data from clients.
impl fmt::Debug for GuardScratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardScratch").finish_non_exhaustive()
    }
}

// === impl GuardVerdict ===

impl GuardVerdict {
    /// Returns true if the guard with this number is in shadow mode and would have acted.
    pub fn is_watched(&self, number: usize) -> bool {
        self.watched & bit(number) != 0
    }
}

/// Returns the enabled guards with their numbers, in the order written.
fn asked(all: &[Guard]) -> impl Iterator<Item = (usize, &Guard)> {
    all.iter().enumerate().filter(|(_, guard)| guard.enabled)
}

fn bit(number: usize) -> u64 {
    u32::try_from(number)
        .ok()
        .and_then(|number| 1_u64.checked_shl(number))
        .unwrap_or(0)
}

/// Returns true if a guard can look up its subject without normalisation.
fn is_plain(guard: &Guard) -> bool {
    guard.subject == KeyPart::Ip || is_by_attribute(guard)
}

fn is_by_attribute(guard: &Guard) -> bool {
    matches!(guard.subject, KeyPart::Attr(_)) && guard.effect == GuardEffect::Refuse
}

/// Returns true if such a guard lists the request; the result equals that of [`lists`].
#[inline]
fn lists_plainly(
    guard: &Guard,
    list: &GuardMembers,
    request: &Request<'_>,
    marked: Option<DigestedText<'_>>,
) -> bool {
    match &guard.subject {
        KeyPart::Ip => request.ip.is_some_and(|ip| list.contains_address(ip)),
        KeyPart::Attr(name) => {
            let mut attributes = request.attributes.iter();
            attributes.any(|(known, value)| {
                if known == name {
                    list.contains_marked(value, marked)
                } else {
                    *known == SAID_ATTRIBUTES && said_beside(name, value, list)
                }
            })
        }
        _ => false,
    }
}

/// Returns true if a guard lists the request.
fn lists(guard: &Guard, list: &GuardMembers, facts: &MatchInput<'_>) -> bool {
    if list.is_empty() {
        return false;
    }
    // Of a value that was sent twice, the effective one is unknown. Such a request is never exempt. But a
    // listed client must not evade a refusal by sending a second value.
    let refuses = guard.effect == GuardEffect::Refuse;
    match &guard.subject {
        KeyPart::Ip => facts.ip.is_some_and(|ip| list.contains_address(ip)),
        KeyPart::Header(name) if refuses => facts.header(name).any(|it| list.contains(it)),
        KeyPart::Attr(name) if refuses => {
            let mut beside = facts.attribute(SAID_ATTRIBUTES);
            facts.attribute(name).any(|it| list.contains(it))
                || beside.any(|it| said_beside(name, it, list))
        }
        KeyPart::DescriptorEntry { .. } => any_descriptor(guard, list, facts, refuses),
        // Conditions treat `get` as `GET`, and so do applications.
        KeyPart::Method => facts
            .identity(&guard.subject)
            .is_some_and(|method| list.contains(&method.to_ascii_uppercase())),
        KeyPart::User if refuses => said(SAID_USERS, list, facts) || is_listed(guard, list, facts),
        KeyPart::ApiKey if refuses => {
            said(SAID_API_KEYS, list, facts) || is_listed(guard, list, facts)
        }
        _ => is_listed(guard, list, facts),
    }
}

fn is_listed(guard: &Guard, list: &GuardMembers, facts: &MatchInput<'_>) -> bool {
    let value = facts.identity(&guard.subject);
    value.is_some_and(|value| list.contains(value))
}

/// Returns true if any of several values in a request is listed.
fn said(name: &str, list: &GuardMembers, facts: &MatchInput<'_>) -> bool {
    facts.attribute(name).any(|value| list.contains(value))
}

/// Returns true if an ambiguous value of the attribute from an earlier source is listed.
#[cold]
fn said_beside(name: &str, said: &str, list: &GuardMembers) -> bool {
    said_of(name, said).is_some_and(|value| list.contains(value))
}

/// Returns true if descriptors have listed values: one is enough to refuse, but an exemption needs all.
fn any_descriptor(
    guard: &Guard,
    list: &GuardMembers,
    facts: &MatchInput<'_>,
    refuses: bool,
) -> bool {
    let mut descriptors = facts.request.descriptors.iter();
    let is_listed = |descriptor| {
        let facts = MatchInput {
            descriptor: Some(descriptor),
            ..*facts
        };
        let value = facts.identity(&guard.subject);
        value.is_some_and(|value| list.contains(value))
    };
    if refuses {
        descriptors.any(is_listed)
    } else {
        descriptors.len() > 0 && descriptors.all(is_listed)
    }
}

fn reads(guards: &[Guard]) -> FieldNeeds {
    let mut reads = FieldNeeds::default();
    for (_, guard) in asked(guards) {
        reads.host |= guard.subject == KeyPart::Host;
        reads.path |= guard.subject == KeyPart::Path;
        reads.method |= guard.subject == KeyPart::Method;
        reads.who.user |= guard.subject == KeyPart::User;
        reads.who.api_key |= guard.subject == KeyPart::ApiKey;
    }
    reads
}

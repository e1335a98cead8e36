//! Decisions by guards, and the reason of a decision.

use super::bands::NO_BAND;
use super::{DecidedBy, Decision, NOTHING};
use crate::purpose::AskPurpose;
use crate::rules::Rules;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::Timestamp;
use tidegate_policy::guard::{GuardEffect, GuardOutcome, GuardVerdict};
use tidegate_policy::plan::PlanAnswer;
use tidegate_policy::{AnswerReason, Guard, Guards, KeyPart, Policy, Request};

/// The value of `guard` if no guard decided.
pub(super) const NO_GUARD: u16 = u16::MAX;

/// Returns the time until no list of addresses bans the client that the guard `by` has just refused.
/// Considers all later lists too, so that the client is not sent from one ban to the next. Returns `None` if
/// one of the bans has no end.
#[cold]
fn banned_for(rules: &Rules, by: usize, request: &Request<'_>) -> Option<Duration> {
    let address = request.ip?;
    let mut longest = rules.lists.left(by, address)?;
    for (number, guard) in rules.guards.iter().enumerate().skip(by.saturating_add(1)) {
        let bans = guard.effect == GuardEffect::Refuse
            && guard.is_enforced()
            && guard.subject == KeyPart::Ip;
        let list = rules.lists.list(number).filter(|_| bans);
        if list.is_some_and(|list| list.contains_address(address)) {
            longest = longest.max(rules.lists.left(number, address)?);
        }
    }
    Some(longest)
}

impl Decision {
    /// Returns the decision of the guards alone: refused by one, or exempt from all limits. No limit is
    /// evaluated.
    pub(crate) fn guarded(
        rules: &Arc<Rules>,
        policy: usize,
        request: &Request<'_>,
        verdict: GuardVerdict,
    ) -> Self {
        let (allowed, guard) = match verdict.outcome {
            GuardOutcome::Pass => (true, None),
            GuardOutcome::Exempt(guard) => (true, Some(guard)),
            GuardOutcome::Refuse(guard) => (false, Some(guard)),
        };
        let left = match verdict.outcome {
            GuardOutcome::Refuse(guard) => banned_for(rules, guard, request),
            GuardOutcome::Pass | GuardOutcome::Exempt(_) => None,
        };
        let left_us = left.map_or(0, |left| {
            u64::try_from(left.as_micros()).unwrap_or(u64::MAX)
        });
        Self {
            rules: Arc::clone(rules),
            policy: super::matched::index(policy),
            at: Timestamp::default(),
            allowed,
            decided_by: DecidedBy::Store,
            // Irrelevant: no limit was evaluated.
            purpose: AskPurpose::Pass,
            descriptors: u16::try_from(request.descriptors.len()).unwrap_or(u16::MAX),
            guard: guard
                .and_then(|guard| u16::try_from(guard).ok())
                .unwrap_or(NO_GUARD),
            watched: verdict.watched,
            binding: NOTHING,
            key: SmallVec::new(),
            bands: SmallVec::new(),
            charges: None,
            brought: None,
            planned: None,
            warned: None,
            held_us: left_us,
        }
    }

    /// Returns the guard that decided before any limit was evaluated, by refusing or exempting the request.
    /// `None` if limits decided.
    pub fn guard(&self) -> Option<&Guard> {
        if self.guard == NO_GUARD {
            return None;
        }
        self.rules.guards.get(usize::from(self.guard))
    }

    /// Returns true if a guard refuses the request. No limit was evaluated then, and a retry is useless
    /// before [`banned_for`](Self::banned_for) has passed, if that is known.
    ///
    /// ```
    /// use tidegate::{Limiter, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// guards: [{ name: blocklist, deny: ip, list: [192.0.2.0/24] }]
    /// policies: [{ name: api, limits: [{ name: all, key: ip, rate: 10/s }] }]
    /// ")?;
    /// let decision = limiter.check_now(&Request::new().ip("192.0.2.7".parse()?))?;
    /// assert!(!decision.is_allowed() && decision.is_denied_by_guard());
    /// assert!(decision.binding().is_none() && decision.banned_for().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn is_denied_by_guard(&self) -> bool {
        self.guard != NO_GUARD && !self.allowed
    }

    /// Returns the time until the guard that refuses the request unbans its address automatically, if the ban
    /// has an end. The actual unban may come one refresh of the guard's list later.
    ///
    /// Returns `None` if no guard refuses, or if an administrator has to unban the client: entries of a file
    /// or of the configuration have no end, only bans made by counting addresses have.
    pub fn banned_for(&self) -> Option<Duration> {
        let has_end = self.is_denied_by_guard() && self.held_us > 0;
        has_end.then(|| Duration::from_micros(self.held_us))
    }

    /// Returns true if the request is refused because its address is banned: by the guard `enforcer`, to
    /// whose set bans are added, or, without one, by any list of addresses.
    pub(crate) fn is_ban(&self, enforcer: Option<&str>) -> bool {
        match (enforcer, self.guard()) {
            (Some(enforcer), Some(guard)) => self.is_denied_by_guard() && enforcer == guard.name,
            _ => self.reason() == AnswerReason::Blacklisted,
        }
    }

    /// Returns the guards in shadow mode that would have decided, in the order of the configuration. A guard
    /// in shadow mode neither refuses nor exempts.
    ///
    /// ```
    /// use tidegate::{Limiter, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// guards: [{ name: blocklist, deny: user, list: [eve], mode: shadow }]
    /// policies: [{ name: api, limits: [{ name: all, rate: 10/s }] }]
    /// ")?;
    /// let decision = limiter.check_now(&Request::new().user("eve"))?;
    /// assert!(decision.is_allowed() && decision.has_shadow_guards());
    /// let names: Vec<_> = decision.shadow_guards().map(|guard| guard.name.as_str()).collect();
    /// assert_eq!(names, ["blocklist"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shadow_guards(&self) -> impl Iterator<Item = &Guard> {
        let watched = GuardVerdict {
            watched: self.watched,
            ..GuardVerdict::default()
        };
        let guards = self.rules.guards.iter().enumerate();
        guards
            .filter(move |(number, _)| watched.is_watched(*number))
            .map(|(_, guard)| guard)
    }

    /// Returns true if any guard in shadow mode would have decided.
    #[inline]
    pub fn has_shadow_guards(&self) -> bool {
        self.watched != 0
    }

    /// Returns true if responses contain the [`reason`](Self::reason): there are guards or plans, or a limit
    /// of the policy has a `block`.
    #[inline]
    pub fn reports_reason(&self) -> bool {
        !self.guards().is_empty()
            || !self.rules.plans.is_empty()
            || self.policy_rules().is_some_and(Policy::blocks)
    }

    fn guards(&self) -> &Guards {
        &self.rules.guards
    }

    /// Returns true if the request is refused because a plan has no rate for the subject.
    fn lacks_plan(&self) -> bool {
        let bound = self.bound();
        bound.is_some_and(|entry| matches!(entry.planned, PlanAnswer::Refused { .. }))
    }

    /// Returns the reason of the decision as a single code.
    ///
    /// ```
    /// use tidegate::{Limiter, AnswerReason, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// guards: [{ name: closed, deny: user, list: [eve] }]
    /// policies: [{ name: api, limits: [{ name: all, key: user, rate: 1/h }] }]
    /// ")?;
    /// let reason = |user| limiter.check_now(&Request::new().user(user)).map(|it| it.reason());
    /// assert_eq!(reason("ann")?, AnswerReason::Allowed);
    /// assert_eq!(reason("ann")?, AnswerReason::Limited);
    /// assert_eq!(reason("eve")?, AnswerReason::Blocked);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reason(&self) -> AnswerReason {
        if let Some(guard) = self.guard() {
            return guard.reason;
        }
        let asked_nobody = self.bound().is_some_and(|entry| entry.band == NO_BAND);
        match self.decided_by {
            _ if self.allowed => AnswerReason::Allowed,
            DecidedBy::Failure => AnswerReason::NoStore,
            _ if self.lacks_plan() => AnswerReason::NoPlan,
            _ if asked_nobody => AnswerReason::NoIdentity,
            _ if self.is_blocked() => AnswerReason::LimitBlocked,
            DecidedBy::Store | DecidedBy::Local => AnswerReason::Limited,
        }
    }
}

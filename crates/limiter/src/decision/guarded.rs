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

impl Rules {
    /// Returns the time until no list of addresses bans the client that the guard `by` has just refused.
    /// Considers all later lists too, so that the client is not sent from one ban to the next. Returns `None`
    /// if one of the bans has no end.
    #[cold]
    fn kept_out_for(&self, by: usize, request: &Request<'_>) -> Option<Duration> {
        let address = request.ip?;
        let mut longest = self.known.left(by, address)?;
        for (number, guard) in self.guards.iter().enumerate().skip(by.saturating_add(1)) {
            let keeps_out = guard.effect == GuardEffect::Refuse
                && guard.is_enforced()
                && guard.subject == KeyPart::Ip;
            let list = self.known.list(number).filter(|_| keeps_out);
            if list.is_some_and(|list| list.contains_address(address)) {
                longest = longest.max(self.known.left(number, address)?);
            }
        }
        Some(longest)
    }
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
            GuardOutcome::Refuse(guard) => rules.kept_out_for(guard, request),
            GuardOutcome::Pass | GuardOutcome::Exempt(_) => None,
        };
        let left_us = left.map_or(0, |left| {
            u64::try_from(left.as_micros()).unwrap_or(u64::MAX)
        });
        Self {
            rules: Arc::clone(rules),
            policy,
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
            warned: 0,
            held_us: left_us,
        }
    }

    /// Returns the guard that decided before any limit was evaluated, by refusing or exempting the request.
    pub fn guard(&self) -> Option<&Guard> {
        if self.guard == NO_GUARD {
            return None;
        }
        self.rules.guards.get(usize::from(self.guard))
    }

    /// Returns true if a guard refuses the request. No limit was evaluated then, and a retry is useless
    /// before [`barred_for`](Self::barred_for) has passed, if that is known.
    #[inline]
    pub fn is_barred(&self) -> bool {
        self.guard != NO_GUARD && !self.allowed
    }

    /// Returns the time until the guard that refuses the request unbans its address automatically, if the ban
    /// has an end. The actual unban may come one refresh of the guard's list later. Returns `None` if an
    /// administrator has to unban the client, or if no guard refuses.
    pub fn barred_for(&self) -> Option<Duration> {
        let has_end = self.is_barred() && self.held_us > 0;
        has_end.then(|| Duration::from_micros(self.held_us))
    }

    /// Returns the guards in shadow mode that would have decided.
    pub fn watching_guards(&self) -> impl Iterator<Item = &Guard> {
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
    pub fn is_watched(&self) -> bool {
        self.watched != 0
    }

    /// Returns true if responses contain the [`reason`](Self::reason): there are guards or plans, or a limit
    /// of the policy has a `block`.
    #[inline]
    pub fn tells_reason(&self) -> bool {
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
    /// guards: [{ name: closed, refuse: user, list: [eve] }]
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

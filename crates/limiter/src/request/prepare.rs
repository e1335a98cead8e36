//! Preparing a request: its guards, its plans, its limits, and the asks for the store.

use super::buffers::{Buffers, Reuse};
use super::{PreparedRequest, is_charge};
use crate::decision::{Decision, MatchedLimits};
use crate::error::CheckError;
use crate::plans::PreparedPlans;
use crate::purpose::AskPurpose;
use crate::request_limits::RequestLimits;
use crate::rules::Rules;
use crate::units::check_costs;
use smallvec::SmallVec;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_core::{Ask, Op, Quota};
use tidegate_policy::guard::GuardOutcome;
use tidegate_policy::plan::PlanLookup;
use tidegate_policy::{Evaluate, Policy, Request};

/// The next step for a request.
pub(crate) enum NextStep<'a> {
    /// Send it to the store.
    Ask(PreparedRequest<'a>),
    /// Nothing: a guard decided, no limit applies, or a limit refuses because an identity is missing.
    Decided(Decision),
}

impl NextStep<'_> {
    /// Counts the request for its client address, if addresses are counted. Call once per request.
    #[inline]
    pub(crate) fn count(&self, rules: &Rules, request: &Request<'_>) {
        let decided = match self {
            Self::Ask(_) => None,
            Self::Decided(decision) => Some(decision),
        };
        count_address(rules, request.ip, decided);
    }
}

/// Counts a request for its client address, if addresses are counted. `decided` is its decision if it needs no
/// store. Call once per request.
#[inline]
pub(crate) fn count_address(rules: &Rules, ip: Option<IpAddr>, decided: Option<&Decision>) {
    if let Some(counting) = &rules.counting {
        let is_banned = decided.is_some_and(|decision| decision.is_ban(counting.guard()));
        counting.count(ip, is_banned);
    }
}

impl<'a> PreparedRequest<'a> {
    /// Evaluates guards, matches limits, and builds the asks.
    pub(crate) fn prepare(
        rules: &'a Arc<Rules>,
        request: &Request<'_>,
        purpose: AskPurpose,
        buffers: &'a mut Buffers,
    ) -> Result<NextStep<'a>, CheckError> {
        let mut prepared = Self::begin(rules, request, purpose, buffers)?;
        if let NextStep::Ask(question) = &mut prepared {
            question.ask(request, purpose);
        }
        Ok(prepared)
    }

    /// Like [`prepare`](Self::prepare), but leaves building the asks to [`ask`](Self::ask). A prepared
    /// request is large: calling `ask` where it is stored avoids a move.
    pub(crate) fn begin(
        rules: &'a Arc<Rules>,
        request: &Request<'_>,
        purpose: AskPurpose,
        buffers: &'a mut Buffers,
    ) -> Result<NextStep<'a>, CheckError> {
        let (number, policy) = rules.find(request)?;
        if purpose == AskPurpose::Guards {
            return Ok(NextStep::Decided(guarded(rules, number, request, buffers)));
        }
        if !request.cost.is_plain() || !request.descriptors.is_empty() {
            check_costs(policy, request)?;
        }
        let planned = current_plans(rules, policy, &mut buffers.planned);
        let mut lookup = PlanLookup::from(planned.map_or(&[][..], |planned| planned.tables()));
        let mut watched = 0;
        if rules.guards.is_empty() {
            buffers.guards.lists.clear();
        }
        // Guards do not apply to a report: the usage has already happened, for any client.
        if !rules.guards.is_empty() && purpose != AskPurpose::Report {
            lookup.marked = rules.guards.mark(request);
            policy.fetch_plan(lookup);
            let verdict = buffers.guards.evaluate(rules, request, lookup.marked);
            if verdict.outcome != GuardOutcome::Pass {
                let decision = Decision::guarded(rules, number, request, verdict);
                return Ok(NextStep::Decided(decision));
            }
            watched = verdict.watched;
        }
        if !request.descriptors.is_empty() || buffers.brought.is_some() {
            buffers.brought = RequestLimits::of(policy, request.descriptors)?;
        }
        // Plans change while the rules stay, so their limits are matched each time.
        let meeting = if buffers.reuse == Reuse::Now && planned.is_none() {
            buffers.scratch.meeting()
        } else {
            policy.match_with_lookup(request, &rules.keys, lookup, &mut buffers.scratch)
        };
        buffers.reuse.advance();
        rules.unknown_clients.note(request, policy, &meeting);
        let matched = MatchedLimits {
            rules,
            number,
            policy,
            purpose,
            meeting,
            brought: buffers.brought.as_ref(),
            planned,
            descriptors: u16::try_from(request.descriptors.len()).unwrap_or(u16::MAX),
            watched,
        };
        if meeting.refused.is_some() || meeting.met.iter().all(|it| matched.bands(it).is_empty()) {
            return Ok(NextStep::Decided(decided(&matched)));
        }
        let is_in_line = policy.waits() && charges_waiting(&matched, request, purpose);
        Ok(NextStep::Ask(Self {
            matched,
            asks: SmallVec::new(),
            may_wait: is_in_line
                && purpose == AskPurpose::Pass
                && policy.evaluate != Evaluate::Each,
            is_in_line,
        }))
    }

    /// Adds an ask for every band of every matched limit, and one for its block.
    #[inline]
    pub(crate) fn ask(&mut self, request: &Request<'_>, purpose: AskPurpose) {
        let matched = &self.matched;
        for (nth, met) in matched.meeting.met.iter().enumerate() {
            let Some(limit) = matched.limit(met) else {
                continue;
            };
            let op = purpose.op(request, (matched.policy, limit), met.descriptor);
            let ask = |quota: &'a Quota, op: Op| Ask {
                bucket: matched.meeting.bucket(met),
                scope: met.scope,
                quota,
                op,
                limit: u16::try_from(nth).unwrap_or(u16::MAX),
                mode: limit.mode,
            };
            for band in matched.bands(met) {
                self.asks.push(ask(&band.quota, op));
            }
            if let Some(block) = matched.block(met) {
                self.asks.push(ask(block, blocking(op)));
            }
        }
    }
}

/// Returns the current plans, cached in `cached`; `None` if no limit of the policy has one.
#[inline]
fn current_plans<'a>(
    rules: &Rules,
    policy: &Policy,
    cached: &'a mut Option<Arc<PreparedPlans>>,
) -> Option<&'a Arc<PreparedPlans>> {
    if policy.is_planned() {
        Some(rules.planned.follow(cached))
    } else {
        // Do not keep plans for policies without any: they may be large and outdated.
        *cached = None;
        None
    }
}

/// Returns the decision of the guards alone.
// Out of line, like the next.
#[cold]
fn guarded(
    rules: &Arc<Rules>,
    policy: usize,
    request: &Request<'_>,
    buffers: &mut Buffers,
) -> Decision {
    let verdict = buffers.guards.evaluate(rules, request, None);
    Decision::guarded(rules, policy, request, verdict)
}

/// Returns the decision on a request that needs no store: a limit refuses because an identity is missing, or no
/// limit has a band for it.
// Out of line: a decision is large, and nearly all requests need the store.
#[cold]
fn decided(matched: &MatchedLimits<'_>) -> Decision {
    match matched.meeting.refused {
        Some(refused) => Decision::identity_missing(matched, refused),
        None => Decision::unlimited(matched),
    }
}

/// Returns true if the request charges a limit that makes requests wait.
fn charges_waiting(
    matched: &MatchedLimits<'_>,
    request: &Request<'_>,
    purpose: AskPurpose,
) -> bool {
    matched.meeting.met.iter().any(|met| {
        let limit = matched.limit(met).filter(|limit| limit.waiting.is_some());
        limit.is_some_and(|limit| {
            is_charge(purpose.op(request, (matched.policy, limit), met.descriptor))
        })
    })
}

/// Returns the operation on the block of a limit whose bands get `op`: a read if `op` cannot be refused.
fn blocking(op: Op) -> Op {
    match op {
        Op::Take(_) | Op::Force(_) | Op::Debit(_) | Op::Test(_) | Op::Acquire(_) => Op::Block,
        Op::Look
        | Op::GiveBack(_)
        | Op::Return { .. }
        | Op::Block
        | Op::Renew { .. }
        | Op::Release(_) => Op::Look,
    }
}

//! Translates a request into asks for the store, and the store's reply into a decision.

use crate::answers::{Answers, FallbackTerms};
use crate::decision::{Decision, MatchedLimits, RequestLimits, WarnedCharge};
use crate::error::CheckError;
use crate::giving::{BucketCharge, Charges};
use crate::guarding::GuardBuffers;
use crate::planning::PreparedPlans;
use crate::purpose::AskPurpose;
use crate::rules::Rules;
use crate::waiting::WaitRoom;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::{Ask, Op, Quota, Receipt, Reply};
use tidegate_policy::guard::GuardOutcome as Guarded;
use tidegate_policy::matching::{Met, Scratch};
use tidegate_policy::plan::PlanLookup;
use tidegate_policy::{Descriptor, Evaluate, Limit, Policy, Request};

/// A request prepared for the store to decide.
pub(crate) struct PreparedRequest<'a> {
    pub(crate) scene: MatchedLimits<'a>,
    /// One ask per band of every matched limit, and after them one for its block, if it has one. Most
    /// requests need no allocation.
    pub(crate) asks: SmallVec<[Ask<'a>; 4]>,
    /// True if a matched limit may make the request wait.
    pub(crate) may_wait: bool,
    /// True if the request charges a limit that other requests may wait for.
    pub(crate) is_in_line: bool,
}

/// Buffers that a [`PreparedRequest`] borrows. They stay warm between requests, so that preparing one
/// allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    scratch: Scratch,
    pub(crate) guards: GuardBuffers,
    brought: Option<Arc<RequestLimits>>,
    planned: Option<Arc<PreparedPlans>>,
    reuse: Reuse,
}

/// The owner of the limits in `scratch`: the current request, or another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reuse {
    /// They belong to another request.
    #[default]
    Never,
    /// They will, once they have been matched.
    Later,
    Now,
}

impl Buffers {
    /// Returns buffers for a single request under one version of the rules. The request may be decided any
    /// number of times; its limits are matched once.
    pub(crate) fn of_one_request() -> Self {
        Self {
            reuse: Reuse::Later,
            ..Self::default()
        }
    }

    /// Drops lists and plans, which are large and change in the meantime.
    pub(crate) fn let_go(&mut self) {
        self.guards.lists.clear();
        self.planned = None;
    }
}

/// A [`PreparedRequest`] without its borrows. Together with the buffers it was prepared in, it can be sent
/// later.
#[derive(Debug)]
pub(crate) struct KeptQuestion {
    number: usize,
    purpose: AskPurpose,
    watched: u64,
    may_wait: bool,
    is_in_line: bool,
    /// The cost of the request; `descriptors` holds their hits.
    cost: u64,
    descriptors: SmallVec<[Descriptor<'static>; 1]>,
}

impl KeptQuestion {
    /// Rebuilds the prepared request with its asks. `rules` and `buffers` must be those it was prepared with.
    pub(crate) fn question<'a>(
        &self,
        rules: &'a Arc<Rules>,
        buffers: &'a Buffers,
    ) -> PreparedRequest<'a> {
        let policy = self.policy(rules);
        let planned = buffers.planned.as_ref();
        let mut question = PreparedRequest {
            scene: MatchedLimits {
                rules,
                number: self.number,
                policy,
                purpose: self.purpose,
                meeting: buffers.scratch.meeting(),
                brought: buffers.brought.as_ref(),
                planned: planned.filter(|_| policy.is_planned()),
                descriptors: u16::try_from(self.descriptors.len()).unwrap_or(u16::MAX),
                watched: self.watched,
            },
            asks: SmallVec::new(),
            may_wait: self.may_wait,
            is_in_line: self.is_in_line,
        };
        question.ask(&self.counted(rules), self.purpose);
        question
    }

    /// Returns the parts of the request that its decision is counted by.
    pub(crate) fn counted<'a>(&'a self, rules: &'a Rules) -> Request<'a> {
        Request {
            policy: Some(&self.policy(rules).name),
            cost: self.cost,
            descriptors: &self.descriptors,
            ..Request::new()
        }
    }

    fn policy<'a>(&self, rules: &'a Rules) -> &'a Policy {
        let policy = rules.policies.get(self.number);
        policy.expect("it was prepared by these rules")
    }
}

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
        if let Some(counting) = &rules.counting {
            let is_kept_out = match self {
                Self::Ask(_) => false,
                Self::Decided(decision) => counting.keeps_out(decision),
            };
            counting.count(request.ip, is_kept_out);
        }
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
        let planned = if policy.is_planned() {
            Some(rules.planned.follow(&mut buffers.planned))
        } else {
            // Do not keep plans for policies without any: they may be large and outdated.
            buffers.planned = None;
            None
        };
        let mut told = PlanLookup::from(planned.map_or(&[][..], |planned| planned.tables()));
        let mut watched = 0;
        if rules.guards.is_empty() {
            buffers.guards.lists.clear();
        }
        // Guards do not apply to a report: the usage has already happened, for any client.
        if !rules.guards.is_empty() && purpose != AskPurpose::Report {
            told.marked = rules.guards.mark(request);
            policy.fetch_plan(told);
            let verdict = rules.ask_guards(request, told.marked, &mut buffers.guards);
            if verdict.outcome != Guarded::Pass {
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
            policy.meet_told(request, &rules.keys, told, &mut buffers.scratch)
        };
        if buffers.reuse == Reuse::Later {
            buffers.reuse = Reuse::Now;
        }
        let scene = MatchedLimits {
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
        if let Some(refused) = meeting.refused {
            let refused = Decision::identity_missing(&scene, refused);
            return Ok(NextStep::Decided(refused));
        }
        if meeting.met.iter().all(|met| scene.bands(met).is_empty()) {
            return Ok(NextStep::Decided(Decision::unlimited(&scene)));
        }
        let is_in_line = policy.waits() && charges_waiting(&scene, request, purpose);
        Ok(NextStep::Ask(Self {
            scene,
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
        let scene = &self.scene;
        for (nth, met) in scene.meeting.met.iter().enumerate() {
            let Some(limit) = scene.limit(met) else {
                continue;
            };
            let op = purpose.op(request, limit, met.descriptor);
            let ask = |quota: &'a Quota, op: Op| Ask {
                bucket: scene.meeting.bucket(met),
                scope: met.scope,
                quota,
                op,
                limit: u16::try_from(nth).unwrap_or(u16::MAX),
                mode: limit.mode,
            };
            for band in scene.bands(met) {
                self.asks.push(ask(&band.quota, op));
            }
            if let Some(block) = scene.block(met) {
                self.asks.push(ask(block, blocking(op)));
            }
        }
    }

    /// Returns a copy without borrows that can be sent later. `request` must be the one this was prepared
    /// from.
    pub(crate) fn keep(&self, request: &Request<'_>) -> KeptQuestion {
        let kept = |descriptor: &Descriptor<'_>| Descriptor {
            entries: &[],
            hits: descriptor.hits,
            limit: None,
        };
        KeptQuestion {
            number: self.scene.number,
            purpose: self.scene.purpose,
            watched: self.scene.watched,
            may_wait: self.may_wait,
            is_in_line: self.is_in_line,
            cost: request.cost,
            descriptors: request.descriptors.iter().map(kept).collect(),
        }
    }

    #[inline]
    pub(crate) fn answer(&self, reply: &Reply) -> Decision {
        if reply.passed && (self.is_refundable() || self.scene.policy.warns()) {
            return self.answer_in_full(reply);
        }
        // Return it without touching it: a decision is large, and binding it to a variable would move it.
        Decision::new(&self.scene, reply)
    }

    /// Like [`answer`](Self::answer), and also records refundable charges and warnings.
    fn answer_in_full(&self, reply: &Reply) -> Decision {
        let mut decision = Decision::new(&self.scene, reply);
        if self.is_refundable() {
            decision.charge(self.charges(reply));
        }
        self.warn(&mut decision);
        decision
    }

    /// Returns the decision for `reply`, which made `charges`.
    pub(crate) fn conclude(&self, reply: &Reply, charges: Arc<Charges>) -> Decision {
        let mut decision = Decision::new(&self.scene, reply);
        decision.charge(charges);
        self.warn(&mut decision);
        decision
    }

    /// Returns the refundable charges of a reply that passed.
    pub(crate) fn charges(&self, reply: &Reply) -> Arc<Charges> {
        self.charges_by(|nth, ask| reply.receipt(nth, ask.op))
    }

    /// Like [`charges`](Self::charges), with receipts from `receipt`, which returns one for each ask that was
    /// charged.
    fn charges_by(&self, receipt: impl Fn(usize, &Ask<'_>) -> Option<Receipt>) -> Arc<Charges> {
        let mut charges = SmallVec::new();
        for ((i, ask), (met, limit, band)) in self.asks.iter().enumerate().zip(self.numbers()) {
            // `Op::Force` is not refundable: it charges usage that has already happened.
            if let Op::Take(_) | Op::Debit(_) = ask.op
                && limit.refundable
                && let Some(receipt) = receipt(i, ask)
            {
                charges.push(BucketCharge {
                    ask: i,
                    bucket: ask.bucket.into(),
                    scope: ask.scope,
                    limit: met.limit,
                    band: match (self.scene.brought, met.descriptor) {
                        // A limit carried by the request is identified by its descriptor.
                        (Some(_), Some(nth)) if self.scene.is_hidden(met) => usize::from(nth),
                        _ => band,
                    },
                    rate: met.planned.rate(),
                    receipt,
                });
            }
        }
        let charges = Charges::new(Arc::clone(self.scene.rules), self.scene.number, charges);
        let charges = charges.bringing(self.scene.brought.cloned());
        Arc::new(charges.planned(self.scene.planned.cloned()))
    }

    /// Returns true if charges of any limit of the policy are refundable.
    #[inline]
    pub(crate) fn is_refundable(&self) -> bool {
        self.scene.policy.refundable()
    }

    /// Returns true if every matched limit is decided separately, regardless of the others.
    #[inline]
    pub(crate) fn is_apart(&self) -> bool {
        self.scene.policy.evaluate == Evaluate::Each
    }

    /// Returns for each ask the matched limit, the limit itself, and the index of its band. A block has the
    /// index after its limit's last band.
    fn numbers(&self) -> impl Iterator<Item = (&'a Met, &'a Limit, usize)> {
        let scene = self.scene;
        let of = move |met: &'a Met| {
            let blocks = usize::from(scene.block(met).is_some());
            let asks = scene.bands(met).len().saturating_add(blocks);
            Some((met, scene.limit(met)?, asks))
        };
        let limits = scene.meeting.met.iter().filter_map(of);
        limits.flat_map(|(met, limit, asks)| (0..asks).map(move |band| (met, limit, band)))
    }

    /// Returns the matched limits with their indexes among the matched limits.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (usize, &'a Limit)> {
        let scene = self.scene;
        let met = scene.meeting.met.iter().enumerate();
        met.filter_map(move |(nth, met)| Some((nth, scene.limit(met)?)))
    }

    /// Returns true if the request charges the matched limit `nth`, rather than only reading or refunding it.
    pub(crate) fn takes(&self, nth: usize) -> bool {
        let mut asks = self.asks.iter();
        asks.any(|ask| usize::from(ask.limit) == nth && is_charge(ask.op))
    }

    /// Returns the bucket of the matched limit `nth`.
    pub(crate) fn bucket(&self, nth: usize) -> &'a [u8] {
        let met = self.scene.meeting.met.get(nth);
        met.map_or(&[], |met| self.scene.meeting.bucket(met))
    }

    /// Returns the room in which requests wait for the matched limit `nth`, if it lets them wait.
    pub(crate) fn room(&self, nth: usize) -> Option<&'a Arc<WaitRoom>> {
        let met = self.scene.meeting.met.get(nth)?;
        self.scene.rules.rooms.get(self.scene.number, met.limit)
    }

    /// Returns the decision for `answers`, with warnings.
    pub(crate) fn decide(&self, answers: &Answers) -> Decision {
        let mut decision = Decision::of_answers(&self.scene, answers);
        self.warn(&mut decision);
        decision
    }

    /// Like [`decide`](Self::decide), and lets the caller refund the store's charges.
    pub(crate) fn decide_refundable(&self, answers: &Answers) -> Decision {
        let mut decision = self.decide(answers);
        if answers.passed && self.is_refundable() && (self.is_apart() || !answers.is_fallback()) {
            decision.charge(self.charges_by(|nth, _| (*answers.list.get(nth)?)?.receipt));
        }
        decision
    }

    /// Returns the fallback terms of the asks.
    pub(crate) fn terms(&self) -> FallbackTerms<'_> {
        FallbackTerms {
            rules: self.scene.rules,
            scene: Some(&self.scene),
        }
    }

    /// Records in `decision` the bands whose usage reached the `warn` threshold of their limit through its
    /// charges.
    pub(crate) fn warn(&self, decision: &mut Decision) {
        if !self.scene.policy.warns() || !decision.is_allowed() {
            return;
        }
        let charged = self.asks.iter().zip(self.numbers());
        let charged = charged.filter_map(|(ask, (met, limit, band))| {
            let (Op::Take(cost) | Op::Force(cost) | Op::Debit(cost)) = ask.op else {
                return None;
            };
            Some(WarnedCharge {
                met,
                band,
                cost,
                capacity: ask.quota.capacity(),
                warn: limit.warn?,
            })
        });
        decision.warn(charged);
    }
}

/// Returns true if the request charges a limit that makes requests wait.
fn charges_waiting(scene: &MatchedLimits<'_>, request: &Request<'_>, purpose: AskPurpose) -> bool {
    scene.meeting.met.iter().any(|met| {
        let limit = scene.limit(met).filter(|limit| limit.waiting.is_some());
        limit.is_some_and(|limit| is_charge(purpose.op(request, limit, met.descriptor)))
    })
}

/// Returns the operation on the block of a limit whose bands get `op`: a read if `op` cannot be refused.
fn blocking(op: Op) -> Op {
    match op {
        Op::Take(_) | Op::Force(_) | Op::Debit(_) | Op::Test(_) => Op::Block,
        Op::Look | Op::GiveBack(_) | Op::Return { .. } | Op::Block => Op::Look,
    }
}

fn is_charge(op: Op) -> bool {
    matches!(op, Op::Take(_) | Op::Force(_) | Op::Debit(_))
}

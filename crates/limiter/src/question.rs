//! From a request to what is asked of the store, and from its reply to a decision.

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

/// A request that a store has to decide.
pub(crate) struct PreparedRequest<'a> {
    pub(crate) scene: MatchedLimits<'a>,
    /// Every band of every limit met, and after them its block, if it has one; most requests need no
    /// allocation.
    pub(crate) asks: SmallVec<[Ask<'a>; 4]>,
    /// Whether a limit met may make the request wait.
    pub(crate) may_wait: bool,
    /// Whether it charges a limit that others may wait for.
    pub(crate) is_in_line: bool,
}

/// What a question borrows: buffers that stay warm from one to the next, so that asking allocates
/// nothing.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    scratch: Scratch,
    pub(crate) guards: GuardBuffers,
    brought: Option<Arc<RequestLimits>>,
    planned: Option<Arc<PreparedPlans>>,
    reuse: Reuse,
}

/// Whether the limits that `scratch` holds are those of the request at hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reuse {
    /// They are another request's.
    #[default]
    Never,
    /// They will be, once they have been matched.
    Later,
    Now,
}

impl Buffers {
    /// Buffers that serve one request alone, by one version of the rules, however often it is decided:
    /// its limits are matched once.
    pub(crate) fn of_one_request() -> Self {
        Self {
            reuse: Reuse::Later,
            ..Self::default()
        }
    }

    /// Lets go of lists and plans, which are large and change meanwhile.
    pub(crate) fn let_go(&mut self) {
        self.guards.lists.clear();
        self.planned = None;
    }
}

/// A question without its borrows: with the buffers that it was prepared in, it can be asked later.
#[derive(Debug)]
pub(crate) struct KeptQuestion {
    number: usize,
    purpose: AskPurpose,
    watched: u64,
    may_wait: bool,
    is_in_line: bool,
    /// The cost of the request, and what its descriptors take.
    cost: u64,
    descriptors: SmallVec<[Descriptor<'static>; 1]>,
}

impl KeptQuestion {
    /// Returns the question, ready to be asked. `rules` and `buffers` are those that it was prepared by and
    /// in.
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

/// What is to be done about a request.
pub(crate) enum NextStep<'a> {
    /// Ask the store.
    Ask(PreparedRequest<'a>),
    /// Nothing: a guard decides, no limit applies, or one refuses for want of an identity.
    Decided(Decision),
}

impl NextStep<'_> {
    /// Counts the request by its address, if addresses are counted. Once a request.
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
    /// Finds out what has to be asked.
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

    /// The same, but what is asked is left to [`ask`](Self::ask): a question is large, and whoever has
    /// it where it stays spares moving it about.
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
            // Not kept for those who do not ask: it may be large, and outdated.
            buffers.planned = None;
            None
        };
        let mut told = PlanLookup::from(planned.map_or(&[][..], |planned| planned.tables()));
        let mut watched = 0;
        if rules.guards.is_empty() {
            buffers.guards.lists.clear();
        }
        // What has been used already has been used, whoever it was.
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
        // Plans change while the rules stay, so that their limits are matched each time.
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

    /// Asks for every band of every limit met, and whether it is closed to the subject.
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

    /// Returns what it takes to ask it later. `request` is the one that it was prepared of.
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
        // Nothing is done to it here: it is large, and whoever takes hold of it has to move it.
        Decision::new(&self.scene, reply)
    }

    /// The same with what may be given back, and with what is warned of.
    fn answer_in_full(&self, reply: &Reply) -> Decision {
        let mut decision = Decision::new(&self.scene, reply);
        if self.is_refundable() {
            decision.charge(self.charges(reply));
        }
        self.warn(&mut decision);
        decision
    }

    /// The decision that `reply` amounts to, which has charged `charges`.
    pub(crate) fn conclude(&self, reply: &Reply, charges: Arc<Charges>) -> Decision {
        let mut decision = Decision::new(&self.scene, reply);
        decision.charge(charges);
        self.warn(&mut decision);
        decision
    }

    /// What a reply that passes has charged and may be given back.
    pub(crate) fn charges(&self, reply: &Reply) -> Arc<Charges> {
        self.charges_by(|nth, ask| reply.receipt(nth, ask.op))
    }

    /// The same by `receipt`, which has one of each ask that was charged.
    fn charges_by(&self, receipt: impl Fn(usize, &Ask<'_>) -> Option<Receipt>) -> Arc<Charges> {
        let mut charges = SmallVec::new();
        for ((i, ask), (met, limit, band)) in self.asks.iter().enumerate().zip(self.numbers()) {
            // What is charged always has been used already.
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
                        // What a request brings is known by its descriptor.
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

    /// Whether charges of any limit of the policy may be given back.
    #[inline]
    pub(crate) fn is_refundable(&self) -> bool {
        self.scene.policy.refundable()
    }

    /// Whether every limit met is asked by itself, and counts whatever the others say.
    #[inline]
    pub(crate) fn is_apart(&self) -> bool {
        self.scene.policy.evaluate == Evaluate::Each
    }

    /// For each ask, the limit met, the limit itself, and the number of its band; that of a block comes
    /// after its limit's.
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

    /// The limits met, each with its number among them.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (usize, &'a Limit)> {
        let scene = self.scene;
        let met = scene.meeting.met.iter().enumerate();
        met.filter_map(move |(nth, met)| Some((nth, scene.limit(met)?)))
    }

    /// Whether anything is taken of a limit met, and not just asked or given back.
    pub(crate) fn takes(&self, nth: usize) -> bool {
        let mut asks = self.asks.iter();
        asks.any(|ask| usize::from(ask.limit) == nth && is_charge(ask.op))
    }

    /// The bucket of a limit met.
    pub(crate) fn bucket(&self, nth: usize) -> &'a [u8] {
        let met = self.scene.meeting.met.get(nth);
        met.map_or(&[], |met| self.scene.meeting.bucket(met))
    }

    /// Where those wait whom a limit met holds back, if it does.
    pub(crate) fn room(&self, nth: usize) -> Option<&'a Arc<WaitRoom>> {
        let met = self.scene.meeting.met.get(nth)?;
        self.scene.rules.rooms.get(self.scene.number, met.limit)
    }

    /// The decision that `answers` amount to.
    pub(crate) fn decide(&self, answers: &Answers) -> Decision {
        let mut decision = Decision::of_answers(&self.scene, answers);
        self.warn(&mut decision);
        decision
    }

    /// The same, from which the caller can give back what the store charged.
    pub(crate) fn decide_refundable(&self, answers: &Answers) -> Decision {
        let mut decision = self.decide(answers);
        if answers.passed && self.is_refundable() && (self.is_apart() || !answers.is_fallback()) {
            decision.charge(self.charges_by(|nth, _| (*answers.list.get(nth)?)?.receipt));
        }
        decision
    }

    /// What the asks fall back on.
    pub(crate) fn terms(&self) -> FallbackTerms<'_> {
        FallbackTerms {
            rules: self.scene.rules,
            scene: Some(&self.scene),
        }
    }

    /// Lets a decision tell the bands that its charges have brought to what their limits warn of.
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

/// Whether anything is charged of a limit that makes requests wait.
fn charges_waiting(scene: &MatchedLimits<'_>, request: &Request<'_>, purpose: AskPurpose) -> bool {
    scene.meeting.met.iter().any(|met| {
        let limit = scene.limit(met).filter(|limit| limit.waiting.is_some());
        limit.is_some_and(|limit| is_charge(purpose.op(request, limit, met.descriptor)))
    })
}

/// What is asked of the block of a limit of which `op` is: nothing where that cannot be refused.
fn blocking(op: Op) -> Op {
    match op {
        Op::Take(_) | Op::Force(_) | Op::Debit(_) | Op::Test(_) => Op::Block,
        Op::Look | Op::GiveBack(_) | Op::Return { .. } | Op::Block => Op::Look,
    }
}

fn is_charge(op: Op) -> bool {
    matches!(op, Op::Take(_) | Op::Force(_) | Op::Debit(_))
}

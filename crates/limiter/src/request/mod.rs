//! A request prepared for the store: its guards and limits are evaluated once, and the store's reply becomes a
//! decision.
//!
//! | module | what it is |
//! |---|---|
//! | this one | a prepared request, and its decision |
//! | `prepare` | preparing one: guards, plans, limits, asks |
//! | `buffers` | the buffers for that, which stay warm between requests |
//! | `kept_request` | a prepared request without its borrows, to be sent later |
//! | `repeated` | a request that is decided repeatedly |

mod buffers;
mod kept_request;
mod prepare;
mod repeated;

pub(crate) use buffers::{BUFFERS, Buffers};
pub use kept_request::CountedRequest;
pub(crate) use kept_request::DetachedRequest;
pub(crate) use prepare::{NextStep, count_address};
pub use repeated::RepeatedRequest;

use crate::charges::{BucketCharge, Charges};
use crate::decision::{Answers, ChargeHome, ChargedBand, Decision, MatchedLimits};
use crate::failure::FallbackTerms;
use crate::permits::HeldPermits;
use crate::wait_room::WaitRoom;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::{Ask, Op, Receipt, Reply};
use tidegate_policy::policy::MetLimit;
use tidegate_policy::{Evaluate, Limit};

/// A request prepared for the store to decide.
pub(crate) struct PreparedRequest<'a> {
    pub(crate) matched: MatchedLimits<'a>,
    /// One ask per band of every matched limit, and after them one for its block, if it has one. Most
    /// requests need no allocation.
    pub(crate) asks: SmallVec<[Ask<'a>; 4]>,
    /// True if a matched limit may make the request wait.
    pub(crate) may_wait: bool,
    /// True if the request charges a limit that other requests may wait for.
    pub(crate) is_in_line: bool,
}

impl<'a> PreparedRequest<'a> {
    #[inline]
    pub(crate) fn answer(&self, reply: &Reply) -> Decision {
        let is_plain = if reply.passed {
            !self.records_charges() && !self.matched.policy.warns()
        } else {
            reply.applied.is_empty()
        };
        if !is_plain {
            return self.answer_in_full(reply);
        }
        // Return it without touching it: a decision is large, and binding it to a variable would move it.
        Decision::new(&self.matched, &self.asks, reply)
    }

    /// Like [`answer`](Self::answer), and also records refundable charges, warnings, and the charges of a
    /// refused request.
    fn answer_in_full(&self, reply: &Reply) -> Decision {
        let mut decision = Decision::new(&self.matched, &self.asks, reply);
        if reply.passed && self.records_charges() {
            decision.charge(self.charges(reply));
        }
        self.note_reply(&mut decision, reply);
        decision
    }

    /// Returns the decision for `reply`, which made `charges`.
    pub(crate) fn conclude(&self, reply: &Reply, charges: Arc<Charges>) -> Decision {
        let mut decision = Decision::new(&self.matched, &self.asks, reply);
        decision.charge(charges);
        self.note_reply(&mut decision, reply);
        decision
    }

    /// Returns the charges of a reply that passed: those that are refundable, and the permits.
    pub(crate) fn charges(&self, reply: &Reply) -> Arc<Charges> {
        self.charges_by(|nth, ask| reply.receipt(nth, ask.op))
    }

    /// Like [`charges`](Self::charges), with receipts from `receipt`, which returns one for each ask that was
    /// charged.
    fn charges_by(&self, receipt: impl Fn(usize, &Ask<'_>) -> Option<Receipt>) -> Arc<Charges> {
        let mut charges = SmallVec::new();
        let mut permits = HeldPermits::default();
        for ((i, ask), (met, limit, band)) in self.asks.iter().enumerate().zip(self.numbers()) {
            if ask.quota.algorithm().is_concurrent() {
                // One with an id has an end.
                if let (Op::Take(_), Some(receipt)) = (ask.op, receipt(i, ask)) {
                    let rules = self.matched.rules;
                    let count = rules.in_flight.get(self.matched.number, met.limit);
                    permits.add(&rules.permits, (ask, receipt), count);
                }
                continue;
            }
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
                    band: match (self.matched.brought, met.descriptor) {
                        // A limit carried by the request is identified by its descriptor.
                        (Some(_), Some(nth)) if self.matched.is_hidden(met) => usize::from(nth),
                        _ => band,
                    },
                    rate: met.planned.rate(),
                    receipt,
                });
            }
        }
        let charges = Charges::new(Arc::clone(self.matched.rules), self.matched.number, charges);
        let charges = charges.bringing(self.matched.brought.cloned());
        Arc::new(
            charges
                .planned(self.matched.planned.cloned())
                .holding(permits),
        )
    }

    /// Returns true if a decision records its charges: they are refundable, or hold permits.
    #[inline]
    pub(crate) fn records_charges(&self) -> bool {
        self.matched.policy.records_charges()
    }

    /// Returns true if every matched limit is decided separately, regardless of the others.
    #[inline]
    pub(crate) fn is_apart(&self) -> bool {
        self.matched.policy.evaluate == Evaluate::Each
    }

    /// Returns for each ask the matched limit, the limit itself, and the index of its band. A block has the
    /// index after its limit's last band.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (&'a MetLimit, &'a Limit, usize)> {
        let matched = self.matched;
        let of = move |met: &'a MetLimit| {
            let blocks = usize::from(matched.block(met).is_some());
            let asks = matched.bands(met).len().saturating_add(blocks);
            Some((met, matched.limit(met)?, asks))
        };
        let limits = matched.meeting.met.iter().filter_map(of);
        limits.flat_map(|(met, limit, asks)| (0..asks).map(move |band| (met, limit, band)))
    }

    /// Returns the matched limits with their indexes among the matched limits.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (usize, &'a Limit)> {
        let matched = self.matched;
        let met = matched.meeting.met.iter().enumerate();
        met.filter_map(move |(nth, met)| Some((nth, matched.limit(met)?)))
    }

    /// Returns true if the request charges the matched limit `nth`, rather than only reading or refunding it.
    pub(crate) fn takes(&self, nth: usize) -> bool {
        let mut asks = self.asks.iter();
        asks.any(|ask| usize::from(ask.limit) == nth && is_charge(ask.op))
    }

    /// Returns the bucket of the matched limit `nth`.
    pub(crate) fn bucket(&self, nth: usize) -> &'a [u8] {
        let met = self.matched.meeting.met.get(nth);
        met.map_or(&[], |met| self.matched.meeting.bucket(met))
    }

    /// Returns the room in which requests wait for the matched limit `nth`, if it lets them wait.
    pub(crate) fn room(&self, nth: usize) -> Option<&'a Arc<WaitRoom>> {
        let met = self.matched.meeting.met.get(nth)?;
        self.matched.rules.rooms.get(self.matched.number, met.limit)
    }

    /// Returns the decision for `answers`.
    pub(crate) fn decide(&self, answers: &Answers) -> Decision {
        let mut decision = Decision::of_answers(&self.matched, &self.asks, answers);
        self.note(&mut decision, |nth, ask| {
            let answer = answers.answer(nth)?;
            let capacity = match (answer.home, answers.share) {
                (ChargeHome::Here, Some(share)) => share.part(ask.quota.capacity()).max(1),
                _ => ask.quota.capacity(),
            };
            Some((answer.receipt?.cost, answer.outcome.overdrawn, capacity))
        });
        decision
    }

    /// Like [`decide`](Self::decide), and lets the caller refund the store's charges and hold its permits.
    pub(crate) fn decide_refundable(&self, answers: &Answers) -> Decision {
        let mut decision = self.decide(answers);
        if !self.records_charges() {
            return decision;
        }
        let charges = || {
            self.charges_by(|nth, _| {
                let answer = answers.answer(nth)?;
                answer.receipt.filter(|_| answer.is_refundable)
            })
        };
        if answers.passed && (self.is_apart() || !answers.is_fallback()) {
            decision.charge(charges());
        } else if self.is_apart() {
            // Limits that are decided separately have counted a request that others refuse. It is not in flight.
            charges().permits().release();
        }
        decision
    }

    /// Returns the fallback terms of the asks.
    pub(crate) fn terms(&self) -> FallbackTerms<'_> {
        FallbackTerms {
            rules: self.matched.rules,
            matched: Some(&self.matched),
        }
    }

    /// Records the results of the charges of `reply`.
    fn note_reply(&self, decision: &mut Decision, reply: &Reply) {
        self.note(decision, |nth, ask| {
            let overdrawn = reply.outcomes.get(nth)?.overdrawn;
            let units = reply.applied.units(nth, ask.op);
            Some((units, overdrawn, ask.quota.capacity()))
        });
    }

    /// Records in `decision` the results of its charges: the bands whose usage they brought to a `warn`
    /// share of their limit; of a refused request, the bands that it charged all the same. `charged` returns
    /// the units that an ask was charged, those that its bucket owes below empty, and the capacity of that
    /// bucket: local buckets have a share of the limit's.
    fn note(
        &self,
        decision: &mut Decision,
        charged: impl Fn(usize, &Ask<'_>) -> Option<(u64, u64, u64)>,
    ) {
        if decision.is_allowed() && !self.matched.policy.warns() {
            return;
        }
        let asks = self.asks.iter().enumerate().zip(self.numbers());
        let charged = asks.filter_map(|((nth, ask), (met, limit, band))| {
            let (units, overdrawn, capacity) = charged(nth, ask)?;
            (ask.op.cost() > 0 && units > 0).then_some(ChargedBand {
                met,
                band,
                units,
                overdrawn,
                capacity,
                warn: limit.warn,
            })
        });
        decision.note(&self.matched.meeting, charged);
    }
}

fn is_charge(op: Op) -> bool {
    matches!(
        op,
        Op::Take(_) | Op::Force(_) | Op::Debit(_) | Op::Acquire(_)
    )
}

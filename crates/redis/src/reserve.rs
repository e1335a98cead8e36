//! A request on several slots of a Cluster: reserve in all of them at once, give back on refusal.
//!
//! No step spans slots, so each group of buckets is decided in its own, and charged if it passes:
//! that is the reservation, and where all groups pass there is nothing left to do. Where one refuses,
//! the others get back what was charged, as far as that is safe (`Op::GiveBack`); what came between
//! was refused where it need not have been, but nothing was admitted that should not. Only a charge
//! that Redis has acknowledged is given back, and at most once: another try might give back twice.
//!
//! A limit that refuses charges its block in its own step; one whose buckets lie in several slots, in
//! a step thereafter (see [`apart`](crate::apart)).

use crate::apart;
use crate::general::cost_beside;
use crate::lane::Answer;
use crate::plan::{Group, Groups};
use crate::request::{OwnedAsk, Request, RequestOp};
use crate::shared::{AskOptions, Shared};
use crate::tasks::{self, Spawner};
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::{Answered, Hold, Mode, Op, Outcome, Reply, StoreError, Timestamp};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Decides a request of several groups. It goes on to its end, refunds included, even if nobody
/// waits for it any more: else whoever hangs up early could drain the buckets of others.
pub(crate) async fn reserve(shared: &Arc<Shared>, groups: Groups) -> Result<Reply, StoreError> {
    let (told, answer) = oneshot::channel();
    let to_its_end = Arc::clone(shared);
    tasks::spawn_short(async move {
        let reply = decide(&to_its_end, groups).await;
        told.send(reply).ok();
    });
    answer.await.unwrap_or_else(|_| Err(shared.too_late()))
}

/// What became of a group: its answer, or why there is none.
pub(crate) struct Part {
    pub(crate) group: Group,
    pub(crate) answer: Result<Answer, StoreError>,
}

async fn decide(shared: &Arc<Shared>, groups: Groups) -> Result<Reply, StoreError> {
    let now = Instant::now();
    let options = AskOptions {
        now,
        deadline: now + shared.timeout,
        wants_before: true,
    };
    // All are on their way before the first is waited for.
    let apart = apart::find(&groups);
    let pending: SmallVec<[_; 4]> = (0..)
        .zip(&groups)
        .map(|(nth, group)| {
            let request = apart::only_ask(&group.request, nth, &apart);
            shared.send(group.slot, request, options)
        })
        .collect();
    let mut parts: SmallVec<[Part; 4]> = SmallVec::new();
    for (group, pending) in groups.into_iter().zip(pending) {
        let answer = match pending {
            Ok(pending) => pending.answer().await,
            Err(error) => Err(error),
        };
        parts.push(Part { group, answer });
    }
    if let Some(error) = take_error(&mut parts) {
        return Err(error.with_answers(answers(&parts), hold(shared, &parts)));
    }
    let passed = Verdict::of(&parts).passed;
    if let Err(error) = apart::charge(shared, &mut parts, (&apart, passed), options).await {
        return Err(error.with_answers(answers(&parts), hold(shared, &parts)));
    }
    let verdict = Verdict::of(&parts);
    let spawner = Spawner::here();
    for refund in parts.iter().filter_map(|part| refund(part, &verdict)) {
        refund.start(shared, &spawner);
    }
    Ok(verdict.reply(&parts))
}

/// The first error, if there is one. That there was one stays known.
fn take_error(parts: &mut [Part]) -> Option<StoreError> {
    let failed = parts
        .iter_mut()
        .find_map(|part| part.answer.as_mut().err())?;
    let kind = failed.kind();
    let known = StoreError::transient(String::new()).with_kind(kind);
    Some(std::mem::replace(failed, known))
}

/// What the groups say together.
struct Verdict {
    /// Every enforced bucket had room.
    passed: bool,
    /// Every enforced bucket that is not forced had.
    taken: bool,
    /// The shadow limits of which a bucket had none.
    shadows_refusing: SmallVec<[u16; 2]>,
}

impl Verdict {
    fn of(parts: &[Part]) -> Self {
        let mut verdict = Self {
            passed: true,
            taken: true,
            shadows_refusing: SmallVec::new(),
        };
        for (ask, answer, nth) in parts.iter().flat_map(Part::asks) {
            let refuses = answer
                .reply
                .outcomes
                .get(nth)
                .is_some_and(|it| !it.is_allowed());
            match ask.mode {
                // Its limit has refused, which is counted there.
                Mode::Enforce if refuses && is_just_blocked(ask, answer, nth) => {}
                Mode::Enforce if refuses => {
                    verdict.passed = false;
                    verdict.taken &= is_forced(ask);
                }
                Mode::Shadow if refuses => verdict.shadows_refusing.push(ask.limit),
                _ => {}
            }
        }
        verdict
    }

    /// Whether a charge that a group has made is to stay.
    fn keeps(&self, ask: &OwnedAsk) -> bool {
        match (ask.op, ask.mode) {
            (_, Mode::Enforce) if is_forced(ask) => self.taken,
            (_, Mode::Enforce) => self.passed,
            (_, Mode::Shadow) => self.passed && !self.shadows_refusing.contains(&ask.limit),
        }
    }

    /// Whether the group has charged its `nth` ask, may not keep that, and all of it can be refunded.
    fn refunds(&self, ask: &OwnedAsk, answer: &Answer, part: &Part, nth: usize) -> bool {
        is_charged(ask, answer, part, nth)
            && !self.keeps(ask)
            && is_known_whole(ask, answer, part, nth)
    }

    /// One reply in the order of the caller's asks. A charge that is refunded reads as if it had never
    /// been made; one that cannot be refunded reads as it was left.
    fn reply(&self, parts: &[Part]) -> Reply {
        let mut placed: SmallVec<[(u16, (Timestamp, Outcome)); 8]> = SmallVec::new();
        for part in parts {
            for (ask, answer, nth) in part.asks() {
                let after = answer.reply.outcomes.get(nth);
                let before = answer.before.as_ref().and_then(|before| before.get(nth));
                let shown = if self.refunds(ask, answer, part, nth) {
                    before.or(after)
                } else {
                    after
                };
                if let (Some(outcome), Some(place)) = (shown, part.group.places.get(nth)) {
                    placed.push((*place, (answer.reply.at, *outcome)));
                }
            }
        }
        placed.sort_by_key(|(place, _)| *place);
        Reply::of_steps(
            self.passed,
            placed.into_iter().map(|(_, answered)| answered),
        )
    }
}

/// Whether an ask is charged even where it refuses itself; see core's `step`.
pub(crate) fn is_forced(ask: &OwnedAsk) -> bool {
    matches!(ask.op, RequestOp::Engine(Op::Force(_) | Op::Debit(_)))
}

/// Whether an ask that refuses is a block that was not in force before.
fn is_just_blocked(ask: &OwnedAsk, answer: &Answer, nth: usize) -> bool {
    let before = answer.before.as_ref().and_then(|before| before.get(nth));
    ask.op == RequestOp::Engine(Op::Block) && before.is_some_and(|before| before.remaining > 0)
}

impl Part {
    /// The asks of a group that answered, with the answer and their numbers in the group.
    pub(crate) fn asks(&self) -> impl Iterator<Item = (&OwnedAsk, &Answer, usize)> {
        let answer = self.answer.as_ref().ok();
        let asks = self.group.request.asks.iter();
        asks.enumerate()
            .filter_map(move |(nth, ask)| Some((ask, answer?, nth)))
    }
}

/// Whether the group charged its `nth` ask, as far as the group alone could tell.
fn is_charged(ask: &OwnedAsk, answer: &Answer, part: &Part, nth: usize) -> bool {
    let outcomes = &answer.reply.outcomes;
    let asks = &part.group.request.asks;
    let allows = |nth: usize| outcomes.get(nth).is_some_and(Outcome::is_allowed);
    match (ask.op, ask.mode) {
        (RequestOp::Engine(Op::Take(cost)), Mode::Enforce) => cost > 0 && answer.reply.passed,
        (RequestOp::Engine(Op::Force(cost) | Op::Debit(cost)), Mode::Enforce) => {
            let mut refusing = asks.iter().enumerate().filter(|(nth, other)| {
                let is_free = is_forced(other) || is_just_blocked(other, answer, *nth);
                other.mode == Mode::Enforce && !is_free && !allows(*nth)
            });
            cost > 0 && refusing.next().is_none()
        }
        (RequestOp::Engine(Op::Take(cost) | Op::Force(cost) | Op::Debit(cost)), Mode::Shadow) => {
            let mut limit = asks
                .iter()
                .enumerate()
                .filter(|(_, other)| other.limit == ask.limit && other.mode == Mode::Shadow);
            cost > 0 && answer.reply.passed && limit.all(|(nth, _)| allows(nth)) && allows(nth)
        }
        _ => false,
    }
}

/// What gives back what a group has charged and may not keep, if it has.
fn refund(part: &Part, verdict: &Verdict) -> Option<Refund> {
    let mut request = Request::default();
    for (ask, answer, nth) in part.asks() {
        if let RequestOp::Engine(Op::Take(cost) | Op::Force(cost) | Op::Debit(cost)) = ask.op
            && verdict.refunds(ask, answer, part, nth)
        {
            let receipt = answer.reply.receipt(nth, cost);
            request.asks.push(OwnedAsk {
                op: RequestOp::Engine(Op::GiveBack(receipt)),
                ..*ask
            });
        }
    }
    if request.asks.is_empty() {
        return None;
    }
    request.keys.clone_from(&part.group.request.keys);
    let slot = part.group.slot;
    Some(Refund { slot, request })
}

/// Whether it is certain that the whole cost was charged. A forced charge may have been cut short by the
/// overdraft, and refunding more than was taken would let other requests pass.
///
/// While a unit is left, nothing of the overdraft is used. With none left it may be, and the reading does
/// not show how much. Earlier asks of the same bucket have taken their cost first.
fn is_known_whole(ask: &OwnedAsk, answer: &Answer, part: &Part, nth: usize) -> bool {
    let before = answer.before.as_ref().and_then(|before| before.get(nth));
    match ask.op {
        RequestOp::Engine(Op::Force(cost) | Op::Debit(cost)) => {
            let room = match before.map_or(0, |before| before.remaining) {
                0 => 0,
                left => left.saturating_add(ask.quota.overdraft()),
            };
            cost.saturating_add(cost_beside(&part.group.request, nth)) <= room
        }
        _ => true,
    }
}

/// A charge that is to be given back.
struct Refund {
    slot: u16,
    request: Request,
}

impl Refund {
    /// Gives back in the background, once.
    fn start(self, shared: &Arc<Shared>, spawner: &Spawner) {
        shared.stats.refunds_due.add(1);
        let shared = Arc::clone(shared);
        spawner.spawn_short(async move {
            let given = shared.give_back(self.slot, &self.request).await;
            let stats = &shared.stats;
            if given {
                &stats.refunds
            } else {
                &stats.refunds_lost
            }
            .add(1);
        });
    }
}

/// Everything that the groups have charged, to be given back unless somebody keeps it.
fn hold(shared: &Arc<Shared>, parts: &[Part]) -> Option<Hold> {
    let nothing = Verdict {
        passed: false,
        taken: false,
        shadows_refusing: SmallVec::new(),
    };
    let refunds = parts.iter().filter_map(|part| refund(part, &nothing));
    let refunds: Vec<Refund> = refunds.collect();
    // Whoever drops it may be anywhere.
    let (shared, spawner) = (Arc::clone(shared), Spawner::here());
    (!refunds.is_empty()).then(|| {
        Hold::new(move || {
            for refund in refunds {
                refund.start(&shared, &spawner);
            }
        })
    })
}

/// What is known of each of the caller's asks although a group did not answer.
fn answers(parts: &[Part]) -> Box<[Option<Answered>]> {
    let asks = parts.iter().map(|part| part.group.places.len()).sum();
    let mut answers = vec![None; asks];
    for part in parts {
        for (ask, answer, nth) in part.asks() {
            let place = part.group.places.get(nth).map(|place| usize::from(*place));
            let slot = place.and_then(|place| answers.get_mut(place));
            if let (Some(slot), Some(outcome)) = (slot, answer.reply.outcomes.get(nth)) {
                *slot = Some(Answered {
                    at: answer.reply.at,
                    outcome: *outcome,
                    charged: is_charged(ask, answer, part, nth),
                });
            }
        }
    }
    answers.into_boxed_slice()
}

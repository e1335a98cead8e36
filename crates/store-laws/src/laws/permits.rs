//! Requests in flight, in every store that holds permits.

use super::against_the_model::Dice;
use super::{StoreUnderTest, every_kind};
use crate::history::model_of;
use crate::model::PermitsModel;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use tidegate_core::ask::{PermitId, PermitTerms};
use tidegate_core::{Ask, LimitMode, Op, Quota, Receipt, Reply, Store, Wait};

const CALLERS: usize = 4;

/// Returns a limit of this many requests in flight.
fn concurrent(permits: u64) -> Quota {
    Quota::concurrent(permits).build().expect("a valid quota")
}

/// Returns true if the store holds permits. One that does not must not decide about any.
fn holds_permits(subject: &impl StoreUnderTest) -> bool {
    let (store, one) = (subject.store(), concurrent(1));
    if store.holds_permits() {
        return true;
    }
    for op in [Op::Take(1), Op::Look, acquire(1, 1, 1_000_000)] {
        let request = [ask(b"no permits", &one, op)];
        let decided = subject.block_on(store.decide(&request));
        assert!(decided.is_err(), "a store without permits decided {op:?}");
    }
    false
}

fn ask<'a>(bucket: &'a [u8], quota: &'a Quota, op: Op) -> Ask<'a> {
    Ask {
        op,
        ..Ask::take(bucket, quota, 0)
    }
}

/// Returns an acquisition under an id that is named by a number.
fn acquire(id: u64, units: u64, ttl_us: u64) -> Op {
    let id = PermitId([id, 0]);
    Op::Acquire(PermitTerms { id, units, ttl_us })
}

/// A permit is in use for hours if it is not refunded, and free as soon as it is. Next to rates,
/// either refusal takes nothing of the other.
pub fn law_19_permits_are_held_until_released(subject: &impl StoreUnderTest) {
    if !holds_permits(subject) {
        return;
    }
    let two = concurrent(2);
    for (name, rate) in every_kind() {
        let (permits, units) = (format!("permits {name}"), format!("beside {name}"));
        let (permits, units) = (permits.as_bytes(), units.as_bytes());
        let request = [Ask::take(permits, &two, 1), Ask::take(units, &rate, 1)];
        let (first, second) = (subject.decide(&request), subject.decide(&request));
        assert!(first.passed && second.passed, "{name}");

        let refused = subject.decide(&request);
        let waits: Vec<Wait> = refused.outcomes.iter().map(|it| it.wait).collect();
        assert_eq!(waits, [Wait::RELEASE, Wait::NONE], "{name}");
        let left = subject.decide_one(Ask::look(units, &rate)).remaining;
        assert_eq!(
            left, 1,
            "{name}: refused for want of a permit, and not charged"
        );

        subject.advance_micros(3_600_000_000);
        assert!(!subject.decide(&request).passed, "{name}: held for an hour");

        // The rate refuses now, and no permit is taken.
        let full = rate.capacity();
        let spent = [Ask::take(permits, &two, 0), Ask::take(units, &rate, full)];
        assert!(subject.decide(&spent).passed, "{name}");
        let receipt = first.receipt(0, Op::Take(1)).expect("it was taken");
        subject.decide_one(ask(permits, &two, Op::GiveBack(receipt)));
        assert!(!subject.decide(&request).passed, "{name}");
        let free = subject.decide_one(Ask::look(permits, &two)).remaining;
        assert_eq!(free, 1, "{name}: refused by the rate, and no permit taken");
    }
}

/// The permits of an id end when they should, not before, and not after a renewal.
pub fn law_19_acquired_permits_end(subject: &impl StoreUnderTest) {
    if !holds_permits(subject) {
        return;
    }
    let one = concurrent(1);
    let decide = |op| subject.decide_one(ask(b"ends", &one, op));
    let renew = Op::Renew {
        id: PermitId([7, 0]),
        ttl_us: 5_000_000,
    };
    assert_eq!(decide(renew).wait, Wait::NEVER, "nothing to renew");
    assert!(decide(acquire(7, 1, 5_000_000)).is_allowed());
    assert!(
        decide(acquire(7, 1, 5_000_000)).is_allowed(),
        "a repetition"
    );
    assert_eq!(decide(Op::Take(1)).wait, Wait::from_micros(5_000_000));
    subject.advance_micros(4_999_999);
    assert_eq!(decide(acquire(8, 1, 1)).wait, Wait::from_micros(1));
    assert!(decide(renew).is_allowed());
    subject.advance_micros(4_999_999);
    assert!(!decide(Op::Take(1)).is_allowed(), "renewed");
    subject.advance_micros(1);
    assert_eq!(decide(renew).wait, Wait::NEVER, "it has ended");
    assert!(decide(acquire(8, 1, 1_000_000)).is_allowed());

    let release = |id| subject.decide(&[ask(b"ends", &one, Op::Release(PermitId([id, 0])))]);
    assert!(!release(7).applied.contains(0), "it has ended");
    assert!(release(8).applied.contains(0));
    assert!(!release(8).applied.contains(0), "once");
    assert_eq!(decide(Op::Look).remaining, 1);
}

/// A lower limit refuses newcomers until enough is refunded, and takes nothing away.
pub fn law_19_a_lower_limit_takes_nothing_away(subject: &impl StoreUnderTest) {
    if !holds_permits(subject) {
        return;
    }
    let (five, two) = (concurrent(5), concurrent(2));
    let take = |quota: &Quota, units| subject.decide_one(Ask::take(b"cut", quota, units));
    assert!(take(&five, 4).is_allowed());
    assert_eq!((take(&two, 0).remaining, take(&two, 0).overdrawn), (0, 2));
    let back = |units| {
        let receipt = Receipt::latest(units);
        subject.decide_one(ask(b"cut", &two, Op::GiveBack(receipt)))
    };
    back(2);
    assert_eq!(take(&two, 1).wait, Wait::RELEASE);
    back(1);
    assert!(take(&two, 1).is_allowed());
    assert_eq!(take(&five, 0).remaining, 3);
}

/// A limit in shadow mode refuses nothing, and holds permits only for requests that it would have let pass.
pub fn law_19_shadows_hold_permits(subject: &impl StoreUnderTest) {
    if !holds_permits(subject) {
        return;
    }
    let (one, three) = (concurrent(1), concurrent(3));
    let request = [
        Ask::take(b"shadows", &three, 1),
        Ask {
            limit: 1,
            mode: LimitMode::Shadow,
            ..Ask::take(b"shadowed", &one, 1)
        },
    ];
    let replies: Vec<_> = (0..4).map(|_| subject.decide(&request)).collect();
    let passed: Vec<bool> = replies.iter().map(|it| it.passed).collect();
    assert_eq!(passed, [true, true, true, false]);
    let charged: Vec<bool> = replies.iter().map(|it| it.applied.contains(1)).collect();
    assert_eq!(charged, [true, false, false, false]);
}

/// Any sequence of operations gets the model's answers.
pub fn law_19_permits_match_the_model(subject: &impl StoreUnderTest) {
    if !holds_permits(subject) {
        return;
    }
    let mut dice = Dice(19);
    for round in 0..30 {
        let quota = concurrent(1 + dice.roll(6));
        let bucket = format!("permits {round}").into_bytes();
        let mut modelled = ModelledPermits {
            model: PermitsModel::new(model_of(&quota)),
            held: Vec::new(),
        };
        for _ in 0..60 {
            subject.advance_micros(match dice.roll(3) {
                0 => 0,
                1 => dice.roll(3),
                _ => dice.roll(400),
            });
            let op = modelled.roll(&mut dice);
            let reply = subject.decide(&[ask(&bucket, &quota, op)]);
            modelled.check(op, &quota, &reply);
        }
    }
}

/// A model, and the units that were taken without an id.
struct ModelledPermits {
    model: PermitsModel,
    held: Vec<u64>,
}

impl ModelledPermits {
    /// Returns the next operation.
    fn roll(&mut self, dice: &mut Dice) -> Op {
        let (id, units, ttl_us) = (dice.roll(4), 1 + dice.roll(3), 1 + dice.roll(900));
        match dice.roll(6) {
            0 | 1 => Op::Take(units),
            2 if !self.held.is_empty() => {
                Op::GiveBack(Receipt::latest(self.held.pop().unwrap_or_default()))
            }
            3 => Op::Renew {
                id: PermitId([id, 0]),
                ttl_us,
            },
            4 => Op::Release(PermitId([id, 0])),
            _ => acquire(id, units, ttl_us),
        }
    }

    /// Carries out `op` at the instant of `reply`. Returns whether it passes, and whether it takes or frees permits.
    fn step(&mut self, op: Op, now: u64) -> (bool, bool) {
        let model = &mut self.model;
        match op {
            Op::Take(units) => {
                let fits = model.take(now, units);
                self.held.extend(fits.then_some(units));
                (fits, fits)
            }
            Op::GiveBack(receipt) => {
                model.give_back(receipt.cost);
                (true, true)
            }
            Op::Renew { id, ttl_us } => (model.renew(now, id.0[0], now + ttl_us), false),
            Op::Release(id) => (true, model.release(now, id.0[0])),
            Op::Acquire(PermitTerms { id, units, ttl_us }) => {
                let is_new = model.end_us(now, id.0[0]).is_none();
                let fits = model.acquire(now, (id.0[0], units), now + ttl_us);
                (fits, fits && is_new)
            }
            Op::Look
            | Op::Force(_)
            | Op::Debit(_)
            | Op::Test(_)
            | Op::Return { .. }
            | Op::Block => unreachable!("not among those that are rolled"),
        }
    }

    /// Compares a reply with the model's.
    fn check(&mut self, op: Op, quota: &Quota, reply: &Reply) {
        let now = reply.at.as_micros();
        let before = self.model.clone();
        let (passed, changed) = self.step(op, now);
        assert_eq!(reply.passed, passed, "{op:?} on {before:?}");
        let is_prolonging = matches!(op, Op::Renew { .. } | Op::Acquire(_));
        assert!(
            is_prolonging || reply.applied.contains(0) == changed,
            "{op:?}"
        );
        let outcome = reply.outcomes.first().expect("one for each ask");
        let free = quota.amount().saturating_sub(self.model.used(now));
        assert_eq!(outcome.remaining, free, "{op:?} on {before:?}");
        if let (Op::Take(units) | Op::Acquire(PermitTerms { units, .. }), false) = (op, passed) {
            let wait = match before.fits_at_us(now, units) {
                _ if units > quota.amount() => Wait::NEVER,
                Some(at) => Wait::from_micros(at - now),
                None => Wait::RELEASE,
            };
            assert_eq!(outcome.wait, wait, "{op:?} on {before:?}");
        }
    }
}

/// Many callers take and give back: never more than the limit hold permits at once, and at the end none is lost.
pub fn law_19_never_more_in_flight(subject: &impl StoreUnderTest) {
    if !holds_permits(subject) {
        return;
    }
    let three = concurrent(3);
    let (in_flight, most) = (AtomicU64::new(0), AtomicU64::new(0));
    let kinds = every_kind();
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let (kinds, in_flight, most, three) = (&kinds, &in_flight, &most, &three);
            scope.spawn(move || {
                for step in 0..200 {
                    // Alone, and next to a rate that refuses sooner or later.
                    let (name, rate) = kinds.get((step + caller) % kinds.len()).expect("within");
                    let beside = format!("in flight {name} {}", step / 8);
                    let alone = [Ask::take(b"in flight", three, 1)];
                    let both = [alone[0], Ask::take(beside.as_bytes(), rate, 1)];
                    let request = if step % 2 == 0 { &alone[..] } else { &both };
                    let reply = subject.decide(request);
                    if !reply.passed {
                        continue;
                    }
                    let now = in_flight.fetch_add(1, SeqCst) + 1;
                    most.fetch_max(now, SeqCst);
                    thread::yield_now();
                    in_flight.fetch_sub(1, SeqCst);
                    let receipt = reply.receipt(0, Op::Take(1)).expect("it was taken");
                    subject.decide_one(ask(b"in flight", three, Op::GiveBack(receipt)));
                }
            });
        }
    });
    assert!(most.into_inner() <= 3, "more in flight than the limit");
    let free = subject
        .decide_one(Ask::look(b"in flight", &three))
        .remaining;
    assert_eq!(free, 3, "every permit was given back");
}

use tidegate_core::{Algorithm, Align, Ask, Outcome, Quota};

use super::StoreUnderTest;
use crate::history::model_algorithm;
use crate::model::{ModelAnswer, ModelBucket, ModelQuota, decide_all};

/// Requests at random over a few keys, each under several quotas at once: every field of every
/// outcome is the model's.
pub fn law_4_nothing_lost(subject: &impl StoreUnderTest) {
    law_4_nothing_lost_but_for(subject, |_| false);
}

/// Checks [`law_4_nothing_lost`] without the quotas that `but_for` selects: those that a store is
/// known to count in coarser time.
pub fn law_4_nothing_lost_but_for(subject: &impl StoreUnderTest, but_for: impl Fn(&Quota) -> bool) {
    let mut dice = Dice(7);
    for round in 0..40 {
        let quotas: Vec<(Quota, ModelQuota)> = (0..=dice.roll(4))
            .map(|_| quota(&mut dice))
            .filter(|(quota, _)| !but_for(quota))
            .collect();
        let mut models: Vec<Vec<ModelBucket>> = (0..3)
            .map(|_| quotas.iter().map(|(_, it)| ModelBucket::new(*it)).collect())
            .collect();
        for _ in 0..40 {
            subject.advance_micros(match dice.roll(4) {
                0 => 0,
                1 => dice.roll(3),
                2 => dice.roll(2_000),
                _ => dice.roll(300_000),
            });
            let key = usize::try_from(dice.roll(3)).unwrap_or(0);
            let model = models.get_mut(key).expect("three keys");
            let cost = dice.roll(5);
            let names: Vec<Vec<u8>> = (0..quotas.len())
                .map(|band| format!("model {round} {key} {band}").into_bytes())
                .collect();
            let asks: Vec<Ask<'_>> = names
                .iter()
                .zip(&quotas)
                .map(|(bucket, (quota, _))| Ask::take(bucket, quota, cost))
                .collect();
            let reply = subject.decide(&asks);
            let mut all: Vec<&mut ModelBucket> = model.iter_mut().collect();
            let (passed, expected) = decide_all(&mut all, reply.at.as_micros(), cost);
            assert_eq!(reply.passed, passed, "{asks:?}");
            let outcomes: Vec<ModelAnswer> = reply.outcomes.iter().map(answer).collect();
            assert_eq!(outcomes, expected, "{asks:?}");
        }
    }
}

pub(super) fn answer(outcome: &Outcome) -> ModelAnswer {
    ModelAnswer {
        allowed: outcome.is_allowed(),
        remaining: outcome.remaining,
        wait_us: outcome.wait.as_micros(),
        reset_us: outcome.reset_us,
    }
}

/// Returns a quota of a few units, in core's words and in the model's.
pub(super) fn quota(dice: &mut Dice) -> (Quota, ModelQuota) {
    let pick = |dice: &mut Dice, from: &[u64]| {
        let place = dice.roll(u64::try_from(from.len()).unwrap_or(1));
        usize::try_from(place)
            .ok()
            .and_then(|place| from.get(place).copied())
            .unwrap_or(1)
    };
    let amount = pick(dice, &[1, 2, 3, 7, 11, 97, 4_099]);
    let period_us = pick(dice, &[7, 1_000, 99_991, 1_000_000, 60_000_000]);
    let burst = 1 + dice.roll(9);
    let algorithm = match dice.roll(8) {
        0 => Algorithm::FixedWindow(Align::FirstRequest),
        1 => Algorithm::FixedWindow(Align::Clock),
        2 => Algorithm::SlidingWindow,
        3 => Algorithm::SlidingLog,
        4 => Algorithm::BucketedWindow,
        5 => Algorithm::CalendarWindow,
        _ => Algorithm::TokenBucket,
    };
    let spec = Quota::new(amount, period_us)
        .algorithm(algorithm)
        .refundable(dice.roll(3) == 0);
    let spec = match algorithm {
        Algorithm::TokenBucket => spec.burst(burst),
        Algorithm::FixedWindow(_)
        | Algorithm::SlidingWindow
        | Algorithm::SlidingLog
        | Algorithm::BucketedWindow
        | Algorithm::CalendarWindow
        | Algorithm::Concurrent => spec,
    };
    let model = ModelQuota {
        burst,
        ..ModelQuota::new(model_algorithm(algorithm), amount, period_us)
    };
    let quota = spec.build().expect("a valid quota");
    let lends = quota.is_refundable() && dice.roll(2) == 0;
    (quota.with_lending(lends), model)
}

/// Numbers that look random and are the same in every run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// Rolls a number below `sides`.
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

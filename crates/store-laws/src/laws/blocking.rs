//! Laws of blocks: the first refusal closes a limit to the subject, and nothing else does.
//!
//! A block is stored under the name of its limit's bucket.

use tidegate_core::{Algorithm, Align, Ask, LimitMode, Op, Quota, Receipt, Reply};

use super::against_the_model::{Dice, answer, quota};
use super::{StoreUnderTest, every_kind};
use crate::history::model_of;
use crate::model::{ModelAnswer, ModelBucket, ModelLimit, ModelQuota, decide_limits};

const SECOND_US: u64 = 1_000_000;

/// Length of a block: longer than any bucket of these tests takes to refill.
const LENGTH_US: u64 = 300 * SECOND_US;

fn block() -> Quota {
    Quota::block(LENGTH_US).expect("a valid quota")
}

/// A subject of a limit that blocks.
struct BlockedBucket<'a, S> {
    subject: &'a S,
    bucket: Vec<u8>,
    quota: Quota,
    block: Quota,
}

impl<'a, S: StoreUnderTest> BlockedBucket<'a, S> {
    fn new(subject: &'a S, name: &str, quota: Quota) -> Self {
        Self {
            subject,
            bucket: format!("law/{name}/x").into_bytes(),
            quota,
            block: block(),
        }
    }

    fn asks(&self, op: Op) -> [Ask<'_>; 2] {
        let ask = |quota, op| Ask {
            op,
            ..Ask::look(&self.bucket, quota)
        };
        [ask(&self.quota, op), ask(&self.block, Op::Block)]
    }

    fn decide(&self, op: Op) -> Reply {
        self.subject.decide(&self.asks(op))
    }

    /// Uses all three units up.
    fn use_up(&self) {
        assert!(self.decide(Op::Take(3)).passed);
        assert!(!self.is_blocked(), "by a request that passed");
    }

    fn is_blocked(&self) -> bool {
        self.subject.inspect(&self.bucket, &self.block).is_some()
    }

    fn kept(&self) -> Option<tidegate_core::Bucket> {
        let inspection = self.subject.inspect(&self.bucket, &self.quota);
        inspection.map(|it| it.bucket)
    }
}

/// Returns the wait of the block next to one bucket.
fn block_wait_us(reply: &Reply) -> Option<u64> {
    let outcome = reply.outcomes.get(1).expect("one outcome for each ask");
    outcome.wait.as_micros()
}

/// The first refusal blocks for the whole length, for any number of requests; no bucket is charged
/// meanwhile.
pub fn law_16_the_first_refusal_blocks(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        // Windows may begin with whole seconds; a block does not.
        subject.advance_micros(123_457);
        let it = BlockedBucket::new(subject, &format!("block {name}"), quota);
        it.use_up();
        let kept = it.kept();
        let first = it.decide(Op::Take(1));
        assert!(!first.passed && it.is_blocked(), "{name}");
        assert_eq!(block_wait_us(&first), Some(LENGTH_US), "{name}");
        assert_eq!(it.kept(), kept, "{name}: that is all");
        for passed_s in 1..4 {
            subject.advance_micros(SECOND_US);
            let again = it.decide(Op::Take(1));
            let left = LENGTH_US - passed_s * SECOND_US;
            assert!(!again.passed, "{name}");
            assert_eq!(block_wait_us(&again), Some(left), "{name}: not prolonged");
        }
        // The bucket is full by now, and the block is not over.
        subject.advance_micros(LENGTH_US - 3 * SECOND_US - 1);
        for op in [Op::Take(1), Op::Force(1), Op::Take(1)] {
            let last = it.decide(op);
            assert_eq!((last.passed, block_wait_us(&last)), (false, Some(1)));
            assert!(it.kept().is_none(), "{name}: nothing is charged");
        }
        subject.advance_micros(1);
        assert!(it.decide(Op::Take(3)).passed, "{name}: it is over");
        assert!(!it.is_blocked(), "{name}");
        // And it begins again.
        let again = it.decide(Op::Take(1));
        assert_eq!(block_wait_us(&again), Some(LENGTH_US), "{name}");
    }
}

/// A forced charge that is refused is charged, and blocks; while it is blocked, it is not charged.
pub fn law_16_a_refused_force_blocks(subject: &impl StoreUnderTest) {
    let quota = Quota::new(3, 60 * SECOND_US).overdraft(5).label("forced");
    let quota = quota.algorithm(Algorithm::FixedWindow(Align::FirstRequest));
    let quota = quota.build().expect("a valid quota");
    let it = BlockedBucket::new(subject, "block forced", quota);
    assert!(it.decide(Op::Force(3)).passed && !it.is_blocked());
    let kept = it.kept();
    let first = it.decide(Op::Force(2));
    assert!(!first.passed && it.is_blocked());
    assert_eq!(block_wait_us(&first), Some(LENGTH_US));
    assert_ne!(it.kept(), kept, "it is charged all the same");
    let kept = it.kept();
    assert!(!it.decide(Op::Force(1)).passed);
    assert_eq!(it.kept(), kept, "the block refuses, and it is not forced");
}

/// A limit in shadow mode blocks itself alone: while its block lasts, it would refuse, and is not
/// charged, and every request passes. No enforced limit reads that block.
pub fn law_16_a_shadow_blocks_itself_alone(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        let it = BlockedBucket {
            block: Quota::shadow_block(LENGTH_US).expect("a valid quota"),
            ..BlockedBucket::new(subject, &format!("watch {name}"), quota)
        };
        let watch = |op| {
            let shadow = it.asks(op).map(|ask| Ask {
                mode: LimitMode::Shadow,
                ..ask
            });
            let reply = subject.decide(&shadow);
            assert!(reply.passed, "{name}");
            block_wait_us(&reply)
        };
        assert_eq!(watch(Op::Take(3)), Some(0), "{name}");
        for op in [Op::Look, Op::Test(1), Op::Take(4)] {
            assert_eq!(watch(op), Some(0), "{name} {op:?}");
            assert!(!it.is_blocked(), "{name} {op:?}");
        }
        let kept = it.kept();
        assert_eq!(watch(Op::Take(1)), Some(LENGTH_US), "{name}");
        assert_eq!(it.kept(), kept, "{name}: a refusal charges nothing else");
        subject.advance_micros(LENGTH_US - 1);
        assert_eq!(watch(Op::Take(1)), Some(1), "{name}: not prolonged");
        assert!(it.kept().is_none(), "{name}: it has room, and is closed");
        let enforced = BlockedBucket {
            block: block(),
            ..it
        };
        assert!(enforced.decide(Op::Take(1)).passed, "{name}");
    }
}

/// A read, a test, a refund, or a cost that can never pass does not block. No subject is blocked by
/// a limit that does not apply to it.
pub fn law_16_nothing_else_blocks(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        let it = BlockedBucket::new(subject, &format!("free {name}"), quota);
        it.use_up();
        let receipt = Receipt::latest(0);
        for op in [
            Op::Look,
            Op::Take(0),
            Op::Force(0),
            Op::Test(1),
            Op::Take(4),
            Op::GiveBack(receipt),
        ] {
            it.decide(op);
            assert!(!it.is_blocked(), "{name} {op:?}");
        }
        let [take, block] = it.asks(Op::Take(1));
        for block in [
            Ask { limit: 7, ..block },
            Ask {
                mode: LimitMode::Shadow,
                ..block
            },
        ] {
            assert!(!subject.decide(&[take, block]).passed, "{name}");
            assert!(!it.is_blocked(), "{name}: {block:?}");
        }
        assert!(subject.decide(&[block]).passed, "{name}: alone");
        assert!(!it.is_blocked(), "{name}");
        // One more limit that always refuses does not prevent this one from blocking.
        let none = Quota::new(0, SECOND_US).label("none").build();
        let none = none.expect("a valid quota");
        let other = Ask {
            limit: 1,
            ..Ask::take(&it.bucket, &none, 1)
        };
        assert!(!subject.decide(&[other, take, block]).passed, "{name}");
        assert!(it.is_blocked(), "{name}");
    }
}

/// A reset of the block lifts it.
pub fn law_16_a_reset_ends_the_block(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        let it = BlockedBucket::new(subject, &format!("lift {name}"), quota);
        it.use_up();
        assert!(!it.decide(Op::Take(1)).passed, "{name}");
        assert!(subject.reset(&it.bucket, &quota), "{name}");
        assert!(!it.decide(Op::Take(1)).passed, "{name}: still blocked");
        assert!(subject.reset(&it.bucket, &it.block), "{name}");
        assert!(!subject.reset(&it.bucket, &it.block), "{name}: once");
        assert!(it.decide(Op::Take(3)).passed, "{name}");
    }
}

/// Requests at random over limits of several bands, most of which block: every outcome is the
/// model's.
pub fn law_16_blocks_match_the_model(subject: &impl StoreUnderTest) {
    law_16_blocks_match_the_model_but_for(subject, |_| false);
}

/// The same without the quotas that `but_for` names.
pub fn law_16_blocks_match_the_model_but_for(
    subject: &impl StoreUnderTest,
    but_for: impl Fn(&Quota) -> bool,
) {
    let mut dice = Dice(11);
    for round in 0..40 {
        let limits: Vec<RandomLimit> = (0..=dice.roll(2))
            .map(|nth| RandomLimit::new(&mut dice, (round, nth), &but_for))
            .collect();
        let mut models: Vec<Vec<Model>> = (0..2)
            .map(|_| limits.iter().map(RandomLimit::model).collect())
            .collect();
        for _ in 0..50 {
            subject.advance_micros(match dice.roll(4) {
                0 => 0,
                1 => dice.roll(3),
                2 => dice.roll(2_000),
                _ => dice.roll(300_000),
            });
            let key = usize::try_from(dice.roll(2)).unwrap_or(0);
            let cost = dice.roll(5);
            let names: Vec<Vec<u8>> = limits
                .iter()
                .map(|limit| format!("{}/{key}", limit.name).into_bytes())
                .collect();
            let asks: Vec<Ask<'_>> = (0_u16..)
                .zip(names.iter().zip(&limits))
                .flat_map(|(nth, (name, limit))| limit.asks(nth, name, cost))
                .collect();
            let reply = subject.decide(&asks);
            let models = models.get_mut(key).expect("two keys");
            let mut all: Vec<ModelLimit<'_>> = models.iter_mut().map(Model::limit).collect();
            let (passed, expected) = decide_limits(&mut all, reply.at.as_micros(), cost);
            assert_eq!(reply.passed, passed, "{asks:?}");
            let outcomes: Vec<ModelAnswer> = reply.outcomes.iter().map(answer).collect();
            assert_eq!(outcomes, expected, "{asks:?}");
        }
    }
}

/// A limit at random, in core's words and in the model's.
struct RandomLimit {
    name: String,
    bands: Vec<(Quota, ModelQuota)>,
    block: Option<Quota>,
}

/// Its buckets.
struct Model {
    bands: Vec<ModelBucket>,
    block: Option<ModelBucket>,
}

impl RandomLimit {
    fn new(dice: &mut Dice, (round, nth): (u64, u64), but_for: impl Fn(&Quota) -> bool) -> Self {
        let bands = (0..=dice.roll(2))
            .map(|_| quota(dice))
            .filter(|(quota, _)| !but_for(quota));
        let mut distinct: Vec<(Quota, ModelQuota)> = Vec::new();
        for band in bands {
            if distinct.iter().all(|(known, _)| known.id() != band.0.id()) {
                distinct.push(band);
            }
        }
        let length_us = 1 + dice.roll(400_000);
        Self {
            name: format!("law/blocks {round} {nth}"),
            bands: distinct,
            block: (dice.roll(4) > 0).then(|| Quota::block(length_us).expect("a valid quota")),
        }
    }

    fn model(&self) -> Model {
        let block = self.block.as_ref().map(model_of);
        Model {
            bands: self
                .bands
                .iter()
                .map(|(_, it)| ModelBucket::new(*it))
                .collect(),
            block: block.map(ModelBucket::new),
        }
    }

    fn asks<'a>(&'a self, nth: u16, name: &'a [u8], cost: u64) -> impl Iterator<Item = Ask<'a>> {
        let takes = self
            .bands
            .iter()
            .map(move |(quota, _)| Ask::take(name, quota, cost));
        let block = self.block.iter().map(move |quota| Ask {
            op: Op::Block,
            ..Ask::look(name, quota)
        });
        takes.chain(block).map(move |ask| Ask { limit: nth, ..ask })
    }
}

impl Model {
    fn limit(&mut self) -> ModelLimit<'_> {
        ModelLimit {
            bands: self.bands.iter_mut().collect(),
            block: self.block.as_mut(),
        }
    }
}

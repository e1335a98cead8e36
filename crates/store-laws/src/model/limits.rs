//! Limits of several buckets, each of which a refusal may close.

use super::{ModelAnswer, ModelBucket};

/// One limit of a request: its buckets, and its block.
#[derive(Debug)]
pub struct ModelLimit<'a> {
    /// Buckets that the cost is taken from.
    pub bands: Vec<&'a mut ModelBucket>,
    /// Of an amount of one: while that is charged, the limit is closed.
    pub block: Option<&'a mut ModelBucket>,
}

/// Decides one request over several limits, all or nothing.
///
/// Returns whether all of them allow, and the answers of each: its bands', then its block's. A limit
/// whose block is charged refuses. Where the bands of a limit refuse although waiting would help, its
/// block is charged, if it is not already; that is all that a refusal changes.
pub fn decide_limits(
    limits: &mut [ModelLimit<'_>],
    now_us: u64,
    cost: u64,
) -> (bool, Vec<ModelAnswer>) {
    let allowed = limits.iter().all(|limit| limit.allows(now_us, cost));
    let mut answers = Vec::new();
    for limit in limits {
        let refusals: Vec<ModelAnswer> = limit
            .bands
            .iter()
            .map(|band| band.would(now_us, cost))
            .filter(|answer| !answer.allowed)
            .collect();
        for band in &mut limit.bands {
            let is_asked = allowed || !band.would(now_us, cost).allowed;
            answers.push(band.take(now_us, if is_asked { cost } else { 0 }));
        }
        if let Some(block) = &mut limit.block {
            let waiting_helps = refusals.iter().all(|answer| answer.wait_us.is_some());
            if !refusals.is_empty() && waiting_helps {
                block.take(now_us, 1);
            }
            answers.push(block.test(now_us, 1));
        }
    }
    (allowed, answers)
}

impl ModelLimit<'_> {
    fn allows(&self, now_us: u64, cost: u64) -> bool {
        let block = self.block.as_ref();
        block.is_none_or(|block| block.would(now_us, 1).allowed)
            && self
                .bands
                .iter()
                .all(|band| band.would(now_us, cost).allowed)
    }
}

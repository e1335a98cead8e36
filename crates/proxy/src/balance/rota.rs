//! The order of upstreams by weight.
//!
//! The order is computed once, by smooth weighted round robin: `a a b a c a a`, and not `a a a a a b c`.
//! Taking the next turn is then one atomic addition, also under concurrency. Only if the next upstream cannot
//! be used, a substitute is chosen by the same rule among the usable ones, under a lock. Both follow the
//! weights, so their sum does as well.

use super::set::UpstreamSet;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The longest precomputed order, in turns. With weights that have so little in common, every turn is a
/// substitute's: correct as well, only slower.
const ORDER_MAX: u64 = 16_384;

#[derive(Debug)]
pub(super) struct Rota {
    /// The weights divided by their greatest common divisor, never 0.
    weights: Box<[u32]>,
    order: Box<[u8]>,
    /// The number of turns so far.
    turns: AtomicUsize,
    stand_ins: Mutex<UpstreamCredits>,
}

/// The credit of each upstream. The sum is always zero.
#[derive(Debug)]
struct UpstreamCredits(Box<[i64]>);

impl Rota {
    /// Creates a rota for upstreams of these weights.
    pub(super) fn new(weights: &[u32]) -> Self {
        let weights: Vec<u32> = weights.iter().map(|weight| (*weight).max(1)).collect();
        let divisor = weights.iter().copied().fold(0, common_divisor).max(1);
        let weights: Box<[u32]> = weights.iter().map(|weight| weight / divisor).collect();
        Self {
            order: write_down(&weights),
            turns: AtomicUsize::new(0),
            stand_ins: Mutex::new(UpstreamCredits::none(weights.len())),
            weights,
        }
    }

    pub(super) fn weight(&self, index: usize) -> u32 {
        self.weights.get(index).copied().unwrap_or(1)
    }

    /// Returns the next upstream of the order if it is in `among`, or else a substitute from `among`.
    pub(super) fn next(&self, among: UpstreamSet) -> Option<usize> {
        self.in_order()
            .filter(|index| among.has(*index))
            .or_else(|| self.stand_in(among))
    }

    fn in_order(&self) -> Option<usize> {
        // With a single upstream there is nothing to count.
        let turn = match self.order.len() {
            0 => return None,
            1 => 0,
            length => self.turns.fetch_add(1, Relaxed) % length,
        };
        self.order.get(turn).map(|index| usize::from(*index))
    }

    /// Returns an upstream from `among`, without taking a turn of the order.
    pub(super) fn stand_in(&self, among: UpstreamSet) -> Option<usize> {
        self.stand_ins.lock().next(&self.weights, among)
    }
}

impl UpstreamCredits {
    fn none(count: usize) -> Self {
        Self(vec![0; count].into())
    }

    /// Credits each upstream its weight. The one with the most credit is next, and pays for all.
    fn next(&mut self, weights: &[u32], among: UpstreamSet) -> Option<usize> {
        let mut paid = 0;
        let mut next: Option<(usize, i64)> = None;
        for (index, (credit, weight)) in self.0.iter_mut().zip(weights).enumerate() {
            if !among.has(index) {
                continue;
            }
            let weight = i64::from(*weight);
            *credit += weight;
            paid += weight;
            if next.is_none_or(|(_, most)| *credit > most) {
                next = Some((index, *credit));
            }
        }
        let (index, _) = next?;
        if let Some(credit) = self.0.get_mut(index) {
            *credit -= paid;
        }
        Some(index)
    }
}

fn write_down(weights: &[u32]) -> Box<[u8]> {
    let turns: u64 = weights.iter().copied().map(u64::from).sum();
    if turns > ORDER_MAX {
        return Box::default();
    }
    let mut all = UpstreamSet::default();
    (0..weights.len()).for_each(|index| all.add(index));
    let mut credits = UpstreamCredits::none(weights.len());
    let next = |_| u8::try_from(credits.next(weights, all)?).ok();
    (0..turns).filter_map(next).collect()
}

fn common_divisor(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => common_divisor(b, a % b),
    }
}

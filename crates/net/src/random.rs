//! Pseudorandom numbers for samples and ids. Not for secrets.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// The odd number nearest to 2^64 divided by the golden ratio: repeated addition visits every value.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

thread_local! {
    /// Generator state, seeded by the system: each thread and each process starts elsewhere.
    static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one("begin"));
    /// The number of calls of [`is_turn`]. The first call is a turn.
    static TURNS: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Returns a pseudorandom number, unpredictable only for clients that do not try. Costs a nanosecond or two:
/// see `SplitMix64`, by Steele, Lea and Flood.
pub fn chance() -> u64 {
    let state = STATE.with(|state| {
        let next = state.get().wrapping_add(STEP);
        state.set(next);
        next
    });
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns true for one of `every` calls (a power of two) of this thread, starting with the first.
#[inline]
pub fn is_turn(every: u32) -> bool {
    TURNS.with(|turns| {
        let next = turns.get().wrapping_add(1);
        turns.set(next);
        next & (every - 1) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::{chance, is_turn};
    use std::collections::BTreeSet;
    use std::thread;

    #[test]
    fn random_numbers_are_spread_and_do_not_repeat() {
        let here: Vec<u64> = (0..10_000).map(|_| chance()).collect();
        let there = thread::spawn(|| (0..10_000).map(|_| chance()).collect::<Vec<u64>>());
        let all: BTreeSet<u64> = here.iter().copied().chain(there.join().unwrap()).collect();
        assert_eq!(all.len(), 20_000);
        let high = here.iter().filter(|number| **number > u64::MAX / 2).count();
        assert!((4_500..5_500).contains(&high), "{high} of 10,000 are high");
    }

    #[test]
    fn samples_are_taken_at_the_configured_rate() {
        let turns = thread::spawn(|| (0..640).map(|_| is_turn(64)).collect::<Vec<bool>>());
        let turns = turns.join().unwrap();
        assert!(turns[0]);
        assert_eq!(turns.iter().filter(|turn| **turn).count(), 10);
    }
}

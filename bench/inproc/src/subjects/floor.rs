//! The floor: the minimal cost of a keyed decision on this machine.
//!
//! A TSC clock, foldhash, a flat table of fingerprint and state, and one compare-and-swap. It is no
//! limiter: it neither grows nor evicts, trusts a 64-bit hash, and returns a single bit.

use std::hash::BuildHasher as _;
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use foldhash::fast::FixedState;

use crate::subject::Subject;
use crate::workload::{Keys, Quota};

struct Floor {
    clock: quanta::Clock,
    started: u64,
    hasher: FixedState,
    slots: Box<[Slot]>,
    /// Nanoseconds in which one unit refills.
    interval_ns: u64,
    /// The maximum distance of `paid_off` ahead of now.
    burst_ns: u64,
}

/// Sixteen bytes a key, four keys a cache line.
#[derive(Default)]
#[repr(align(16))]
struct Slot {
    /// The key's hash, never 0 once taken.
    fingerprint: AtomicU64,
    /// The instant at which the bucket is full, in nanoseconds of the floor's clock.
    paid_off: AtomicU64,
}

impl Floor {
    #[inline]
    fn slot(&self, name: &str) -> &Slot {
        let hash = self.hasher.hash_one(name);
        let fingerprint = hash | 1;
        let mask = self.slots.len() - 1;
        let mut at = usize::try_from(hash >> 16).unwrap_or(0) & mask;
        loop {
            let slot = &self.slots[at];
            let seen = slot.fingerprint.load(Relaxed);
            if seen == fingerprint {
                return slot;
            }
            if seen == 0 {
                let taken = slot
                    .fingerprint
                    .compare_exchange(0, fingerprint, Relaxed, Relaxed);
                if taken.is_ok() || taken == Err(fingerprint) {
                    return slot;
                }
            }
            at = (at + 1) & mask;
        }
    }
}

impl Subject for Floor {
    #[inline]
    fn decide(&self, keys: &Keys, at: usize) -> bool {
        let now = self.clock.delta_as_nanos(self.started, self.clock.raw());
        let state = &self.slot(&keys.names[at]).paid_off;
        let mut seen = state.load(Relaxed);
        black_box(loop {
            let next = seen.max(now) + self.interval_ns;
            if next - now > self.burst_ns {
                break false;
            }
            match state.compare_exchange_weak(seen, next, Relaxed, Relaxed) {
                Ok(_) => break true,
                Err(newer) => seen = newer,
            }
        })
    }
}

pub(crate) fn build(keys: usize, quota: Quota) -> anyhow::Result<Box<dyn Subject>> {
    let clock = quanta::Clock::new();
    let interval_ns = u64::from(quota.period_s) * 1_000_000_000 / u64::from(quota.amount);
    let slots = (keys * 2).next_power_of_two().max(1_024);
    Ok(Box::new(Floor {
        started: clock.raw(),
        clock,
        hasher: FixedState::with_seed(7),
        slots: (0..slots).map(|_| Slot::default()).collect(),
        interval_ns,
        burst_ns: interval_ns * u64::from(quota.burst),
    }))
}

//! A store with a manual clock, and quotas for it.

use tidegate_core::{Algorithm, Align, Ask, ManualClock, Outcome, Quota, Timestamp};
use tidegate_memory::MemoryStore;

pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(crate) const MINUTE_US: u64 = 60_000_000;

/// Returns a store with room for `max_keys`, and its clock.
pub(crate) fn store(max_keys: usize) -> (MemoryStore<ManualClock>, ManualClock) {
    let clock = ManualClock::at(START);
    let store = MemoryStore::builder()
        .max_keys(max_keys)
        .clock(clock.clone())
        .build();
    (store, clock)
}

/// Returns a quota of this many units per minute that fits a word.
pub(crate) fn narrow(amount: u64) -> Quota {
    Quota::new(amount, MINUTE_US).build().unwrap()
}

/// Returns a quota of this many units per minute that needs a record.
pub(crate) fn wide(amount: u64) -> Quota {
    Quota::new(amount, MINUTE_US)
        .refundable(true)
        .label("wide")
        .build()
        .unwrap()
}

pub(crate) fn log(amount: u64) -> Quota {
    Quota::new(amount, MINUTE_US)
        .algorithm(Algorithm::SlidingLog)
        .build()
        .unwrap()
}

pub(crate) fn window(amount: u64) -> Quota {
    Quota::new(amount, MINUTE_US)
        .algorithm(Algorithm::FixedWindow(Align::FirstRequest))
        .build()
        .unwrap()
}

/// Returns the name of a limit's subject. All are of one network, so that those without a slot
/// share one overflow bucket.
pub(crate) fn name(limit: &str, subject: u64) -> String {
    format!("{limit}/ip:10.0.{subject}")
}

/// Takes one unit for a subject of a limit.
pub(crate) fn take(
    store: &MemoryStore<ManualClock>,
    limit: &str,
    subject: u64,
    quota: &Quota,
) -> Outcome {
    store.decide_one(&ask(&name(limit, subject), limit, quota))
}

/// Returns an ask of one unit under `name`, whose limit is `limit`.
pub(crate) fn ask<'a>(name: &'a str, limit: &str, quota: &'a Quota) -> Ask<'a> {
    Ask {
        scope: limit.len(),
        ..Ask::take(name.as_bytes(), quota, 1)
    }
}

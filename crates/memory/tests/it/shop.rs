//! A store with a clock moved by hand, and quotas for it.

use tidegate_core::{Algorithm, Align, Ask, ManualClock, Outcome, Quota, Timestamp};
use tidegate_memory::MemoryStore;

pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(crate) const MINUTE_US: u64 = 60_000_000;

/// A store with room for `max_keys`, and its clock.
pub(crate) fn store(max_keys: usize) -> (MemoryStore<ManualClock>, ManualClock) {
    let clock = ManualClock::at(START);
    let store = MemoryStore::builder()
        .max_keys(max_keys)
        .clock(clock.clone())
        .build();
    (store, clock)
}

/// So many a minute, as a word.
pub(crate) fn narrow(amount: u64) -> Quota {
    Quota::new(amount, MINUTE_US).build().unwrap()
}

/// So many a minute, as a record.
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

/// The name of a subject of a limit; the limit's own name comes first. All are of one network, so that
/// those without a place share one overflow bucket.
pub(crate) fn name(limit: &str, subject: u64) -> String {
    format!("{limit}/ip:10.0.{subject}")
}

/// A take of one by a subject of a limit.
pub(crate) fn take(
    store: &MemoryStore<ManualClock>,
    limit: &str,
    subject: u64,
    quota: &Quota,
) -> Outcome {
    store.decide_one(&ask(&name(limit, subject), limit, quota))
}

/// An ask of one unit under `name`, whose limit is `limit`.
pub(crate) fn ask<'a>(name: &'a str, limit: &str, quota: &'a Quota) -> Ask<'a> {
    Ask {
        scope: limit.len(),
        ..Ask::take(name.as_bytes(), quota, 1)
    }
}

//! The laws that every store obeys, by a large store and by one so small that it is always full.

use tidegate_core::{ManualClock, Timestamp};
use tidegate_memory::MemoryStore;
use tidegate_testkit::laws::Manual;

fn subject() -> Manual<MemoryStore<ManualClock>> {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let store = MemoryStore::builder()
        .max_keys(10_000)
        .clock(clock.clone())
        .build();
    Manual::new(store, clock)
}

tidegate_testkit::store_laws!(subject);

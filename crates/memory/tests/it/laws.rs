//! The store laws, with a large store and with one so small that it is always full.

use std::pin::pin;
use std::task::{Context, Waker};
use tidegate_core::{ManualClock, Store, Timestamp};
use tidegate_memory::MemoryStore;
use tidegate_testkit::laws::Manual;
use tidegate_testkit::shared_state;

fn subject() -> Manual<MemoryStore<ManualClock>> {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let store = MemoryStore::builder()
        .max_keys(10_000)
        .clock(clock.clone())
        .build();
    Manual::new(store, clock)
}

tidegate_testkit::store_laws!(subject);

#[test]
fn sets_and_counts_in_memory_behave_as_in_redis() {
    let store = MemoryStore::builder().max_keys(10).build();
    let state = store.shared_state().unwrap();
    let checked = pin!(shared_state::check(state, "own"));
    let mut context = Context::from_waker(Waker::noop());
    assert!(checked.poll(&mut context).is_ready(), "nothing waits");
}

//! The law of stores that can fail.

use tidegate_core::{Ask, Quota, Store};

use super::StoreUnderTest;

/// A store that does not know the result returns an error for every call: never a guess, neither
/// way.
///
/// `break_it` makes the store unable to answer. It is not in [`store_laws!`](crate::store_laws),
/// because only a store's own tests know how to break it.
pub fn law_12_unknown_is_an_error(subject: &impl StoreUnderTest, break_it: impl FnOnce()) {
    let quota = Quota::new(3, 60_000_000).build().expect("a valid quota");
    let store = subject.store();
    // One bucket that exists and has room, and one that never existed.
    assert!(subject.decide(&[Ask::take(b"known", &quota, 1)]).passed);
    assert!(store.can_fail(), "it is about to");
    break_it();
    for bucket in [&b"known"[..], b"unknown"] {
        for ask in [Ask::take(bucket, &quota, 1), Ask::look(bucket, &quota)] {
            let decided = subject.block_on(store.decide(&[ask, Ask::look(b"other", &quota)]));
            assert!(decided.is_err(), "a guess: {decided:?}");
            assert!(store.decide_at_once(&[ask]).is_none(), "a guess at once");
        }
        let inspected = subject.block_on(store.inspect(bucket, &quota));
        assert!(inspected.is_err(), "a guess: {inspected:?}");
        let reset = subject.block_on(store.reset(bucket, &quota));
        assert!(reset.is_err(), "a guess: {reset:?}");
    }
}

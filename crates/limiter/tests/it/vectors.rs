//! Sends every vector to a limiter in memory, with a clock that its trace sets, and compares each decision
//! with that of an independent model.

#[path = "../common/vector.rs"]
mod vector;

use tidegate::{Limiter, ManualClock};
use tidegate_testkit::laws::block_on;
use tidegate_testkit::vectors;

#[test]
fn every_vector_matches_exactly() {
    for vector in vectors::decided() {
        let clock = ManualClock::default();
        let limiter = Limiter::builder().clock(clock.clone());
        let limiter = limiter.yaml(&vector.config).unwrap().build().unwrap();
        block_on(vector::replay(&vector, &limiter, &clock, || {}));
    }
}

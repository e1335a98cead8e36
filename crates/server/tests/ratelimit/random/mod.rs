//! Random configurations and calls.

use crate::kit::{Buckets, Call, Code, Pair, within_an_hour};
use dice::Dice;
use std::fmt::Write as _;

/// Pseudo-random numbers, the same in every run.
pub(crate) mod dice;
/// A configuration.
mod tree;

const DOMAINS: u64 = 60;
const CALLS: usize = 1500;

#[test]
fn random_configs_are_decided_alike() {
    compare(Buckets::InMemory, 20_260_122);
}

#[test]
fn random_configs_are_decided_alike_in_redis() {
    compare(Buckets::InRedis, 20_260_123);
}

fn compare(buckets: Buckets, seed: u64) {
    let mut dice = Dice::new(seed);
    let files: Vec<(String, String)> = (0..DOMAINS)
        .map(|nth| (format!("d{nth}"), tree::domain(nth, &mut dice)))
        .collect();
    let calls: Vec<Call> = (0..CALLS).map(|_| call(&mut dice)).collect();
    within_an_hour(|redis| {
        let Some(pair) = Pair::start((redis, buckets), &files) else {
            return Vec::new();
        };
        let mut differences = Vec::new();
        let mut refused = 0;
        for call in &calls {
            let [theirs, ours] = pair.ask(call);
            refused += usize::from(theirs.overall == Code::Over);
            if !theirs.is_also(&ours) {
                let text = &files
                    .iter()
                    .find(|(name, _)| *name == call.domain)
                    .unwrap()
                    .1;
                let mut difference = format!("{call:?}\ntheirs {theirs:?}\nours   {ours:?}");
                write!(difference, "\n{text}").unwrap();
                differences.push(difference);
            }
        }
        // A check that the comparison covered both results.
        assert!(
            (CALLS / 20..CALLS * 19 / 20).contains(&refused),
            "{refused}"
        );
        differences
    });
}

/// Keys and values are few, so that calls match limits, repeatedly.
fn call(dice: &mut Dice) -> Call {
    // A few domains get most of the calls.
    let domain = dice.below(DOMAINS).min(dice.below(DOMAINS));
    let descriptors = 1 + dice.below(3);
    Call {
        domain: format!("d{domain}"),
        descriptors: (0..descriptors).map(|_| descriptor(dice)).collect(),
        hits: None,
    }
}

fn descriptor(dice: &mut Dice) -> Vec<(String, String)> {
    let entries = 1 + dice.below(3).min(dice.below(3));
    let entry = |dice: &mut Dice| {
        let key = dice.of(&["a", "a", "b", "b", "c"]);
        let value = dice.of(&["x", "x", "y", "xy", "xay", "z", "x*", ""]);
        (key.to_owned(), value.to_owned())
    };
    (0..entries).map(|_| entry(dice)).collect()
}

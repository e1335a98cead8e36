//! The units admitted in any interval, counted without access to the state.

use crate::world::{ALGORITHMS, Act, Cost, Pause, Spec, Walk, fine_spec_of, start_us, takes};
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::{Algorithm, Align, Op};

/// Admitted units: instant and amount.
type Admissions = Vec<(u64, u64)>;

/// Takes everything that remains at each step, and records what passed.
fn admitted(spec: &Spec, start_us: u64, trace: Vec<(Pause, Act)>) -> Admissions {
    let quota = spec.fine().unwrap();
    let mut walk = Walk::new(&quota, start_us);
    let mut admitted = Admissions::new();
    for (pause, act) in trace {
        walk.pause(pause);
        for act in [act, Act::Take(Cost::Remaining(0))] {
            let op = walk.op(act);
            if let Op::Take(cost) = op
                && walk.decide(op).is_allowed()
                && cost > 0
            {
                admitted.push((walk.now_us, cost));
            }
        }
    }
    admitted
}

/// Returns every interval between two admissions, with the sum admitted in it.
fn intervals(admitted: &Admissions) -> impl Iterator<Item = (u64, u64, u128)> {
    admitted.iter().enumerate().flat_map(|(i, (from, _))| {
        let mut sum = 0_u128;
        admitted[i..].iter().map(move |(to, cost)| {
            sum += u128::from(*cost);
            (*from, *to, sum)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(4_000)))]

    /// A token bucket admits at most burst + amount × length / period in any interval.
    #[test]
    fn a_token_bucket_never_exceeds_its_envelope(
        spec in fine_spec_of(Just(Algorithm::TokenBucket)),
        start_us in start_us(),
        trace in takes(40),
    ) {
        let burst = u128::from(spec.burst.unwrap_or(spec.amount));
        let (amount, period) = (u128::from(spec.amount), u128::from(spec.period_us));
        for (from, to, sum) in intervals(&admitted(&spec, start_us, trace)) {
            let length = u128::from(to - from);
            // sum ≤ burst + amount × length / period, without dividing
            prop_assert!(sum * period <= burst * period + amount * length, "{from} to {to}");
        }
    }

    #[test]
    fn an_exact_window_never_exceeds_its_amount_in_any_period(
        spec in fine_spec_of(select(&[Algorithm::SlidingLog, Algorithm::BucketedWindow][..])),
        start_us in start_us(),
        trace in takes(40),
    ) {
        for (from, to, sum) in intervals(&admitted(&spec, start_us, trace)) {
            if to - from < spec.period_us {
                prop_assert!(sum <= u128::from(spec.amount), "{from} to {to}");
            }
        }
    }

    #[test]
    fn a_clock_window_never_exceeds_its_amount_in_a_clock_period(
        spec in fine_spec_of(Just(Algorithm::FixedWindow(Align::Clock))),
        start_us in start_us(),
        trace in takes(40),
    ) {
        for (from, to, sum) in intervals(&admitted(&spec, start_us, trace)) {
            if from / spec.period_us == to / spec.period_us {
                prop_assert!(sum <= u128::from(spec.amount), "{from} to {to}");
            }
        }
    }

    /// A window opens with the first unit that passes after the previous window.
    #[test]
    fn a_fixed_window_never_exceeds_its_amount(
        spec in fine_spec_of(Just(Algorithm::FixedWindow(Align::FirstRequest))),
        start_us in start_us(),
        trace in takes(40),
    ) {
        let mut window: Option<(u64, u64)> = None;
        for (at, cost) in admitted(&spec, start_us, trace) {
            let (opened, sum) = match window {
                Some((opened, sum)) if at < opened + spec.period_us => (opened, sum + cost),
                _ => (at, cost),
            };
            prop_assert!(sum <= spec.amount);
            window = Some((opened, sum));
        }
    }

    /// Every kind of window admits at most twice its amount in any period.
    #[test]
    fn no_window_exceeds_twice_its_amount_in_any_period(
        spec in fine_spec_of(select(&ALGORITHMS[1..])),
        start_us in start_us(),
        trace in takes(40),
    ) {
        for (from, to, sum) in intervals(&admitted(&spec, start_us, trace)) {
            if to - from < spec.period_us {
                prop_assert!(sum <= 2 * u128::from(spec.amount), "{from} to {to}");
            }
        }
    }
}

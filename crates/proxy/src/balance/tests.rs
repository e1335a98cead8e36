//! Leases are taken of upstreams of any weights and conditions; their distribution is counted, or compared
//! with a plain restatement of the rule.

use super::*;
use proptest::prelude::*;
use std::thread;

fn balancer(weights: &[u32], balance: Balance) -> Balancer {
    let upstream = |(nth, weight): (usize, &u32)| {
        let standing = UpstreamHealth::new("orders", &format!("10.0.0.{nth}:80"), None);
        (Arc::new(standing), *weight)
    };
    Balancer::new(weights.iter().enumerate().map(upstream), balance)
}

/// Returns the number of turns of each upstream among the next `turns`, each of which ends at once.
fn counts(balancer: &Balancer, turns: u64) -> Vec<u64> {
    let mut counts = vec![0; balancer.upstreams().len()];
    for _ in 0..turns {
        counts[balancer.pick(UpstreamSet::default()).unwrap().index()] += 1;
    }
    counts
}

fn set(members: &[bool]) -> UpstreamSet {
    let mut set = UpstreamSet::default();
    let members = members
        .iter()
        .enumerate()
        .filter(|(_, is_member)| **is_member);
    members.for_each(|(index, _)| set.add(index));
    set
}

fn weights() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1..=9_u32, 1..=6)
}

fn balances() -> impl Strategy<Value = Balance> {
    prop_oneof![Just(Balance::RoundRobin), Just(Balance::LeastRequests)]
}

/// Generates weights, and for each upstream true if it is out and true if it was tried.
fn situations() -> impl Strategy<Value = Vec<(u32, bool, bool)>> {
    prop::collection::vec((1..=9_u32, any::<bool>(), any::<bool>()), 1..=8)
}

fn exact(weights: &[u32]) -> Vec<u64> {
    weights.iter().copied().map(u64::from).collect()
}

proptest! {
    #[test]
    fn over_a_cycle_each_upstream_gets_its_weight(
        weights in weights(),
        balance in balances(),
        cycles in 1..4_u64,
    ) {
        let balancer = balancer(&weights, balance);
        let cycle = exact(&weights).iter().sum::<u64>();
        for _ in 0..cycles {
            prop_assert_eq!(counts(&balancer, cycle), exact(&weights));
        }
    }

    #[test]
    fn within_a_cycle_no_upstream_is_two_turns_ahead_or_behind(
        weights in weights(),
    ) {
        let balancer = balancer(&weights, Balance::RoundRobin);
        let cycle = exact(&weights).iter().sum::<u64>();
        let mut had = vec![0_u64; weights.len()];
        for turn in 1..=cycle {
            had[balancer.pick(UpstreamSet::default()).unwrap().index()] += 1;
            for (had, weight) in had.iter().zip(exact(&weights)) {
                // Multiplied by the cycle's length, so that the numbers are whole.
                let ahead = (had * cycle).abs_diff(turn * weight);
                prop_assert!(ahead < cycle * 2);
            }
        }
    }

    #[test]
    fn remaining_upstreams_get_turns_by_weight(
        situation in situations(),
        balance in balances(),
    ) {
        let weights: Vec<u32> = situation.iter().map(|it| it.0).collect();
        let balancer = balancer(&weights, balance);
        let mut left = exact(&weights);
        for (index, (_, is_out, _)) in situation.iter().enumerate() {
            if *is_out {
                left[index] = 0;
                balancer.upstreams()[index].set_healthy(false);
            }
        }
        let whole = exact(&weights).iter().sum::<u64>();
        // If all are out, all are left.
        if left.iter().sum::<u64>() == 0 {
            left = exact(&weights);
        }
        // The order and the substitutes repeat together after this many.
        let cycle = left.iter().sum::<u64>() * whole;
        let expected: Vec<u64> = left.iter().map(|weight| weight * whole).collect();
        prop_assert_eq!(counts(&balancer, cycle), expected);
    }

    #[test]
    fn tried_and_ejected_upstreams_are_chosen_only_if_all_are(
        situation in situations(),
        balance in balances(),
    ) {
        let weights: Vec<u32> = situation.iter().map(|it| it.0).collect();
        let balancer = balancer(&weights, balance);
        for (index, (_, is_out, _)) in situation.iter().enumerate() {
            balancer.upstreams()[index].set_healthy(!is_out);
        }
        let all_out = situation.iter().all(|it| it.1);
        let tried: Vec<bool> = situation.iter().map(|it| it.2).collect();
        let may = |index: usize| (all_out || !situation[index].1) && !situation[index].2;
        let any = (0..situation.len()).any(may);
        let mut held = Vec::new();
        for _ in 0..30 {
            let turn = balancer.pick(set(&tried));
            prop_assert_eq!(turn.is_some(), any);
            if let Some(turn) = turn {
                prop_assert!(may(turn.index()));
                prop_assert_eq!(turn.is_desperate(), all_out);
                held.push(turn);
            }
        }
    }

    #[test]
    fn the_least_busy_for_its_weight_is_chosen(
        weights in weights(),
        ends in prop::collection::vec(any::<Option<prop::sample::Index>>(), 1..60),
    ) {
        let balancer = balancer(&weights, Balance::LeastRequests);
        let mut held: Vec<UpstreamLease> = Vec::new();
        for end in ends {
            if let (Some(end), false) = (end, held.is_empty()) {
                drop(held.swap_remove(end.index(held.len())));
            }
            let busy: Vec<u64> = balancer.upstreams().iter().map(|it| it.in_flight().into()).collect();
            let turn = balancer.pick(UpstreamSet::default()).unwrap();
            let chosen = turn.index();
            for (other, weight) in exact(&weights).into_iter().enumerate() {
                prop_assert!(busy[chosen] * weight <= busy[other] * exact(&weights)[chosen]);
            }
            held.push(turn);
        }
    }
}

#[test]
fn turns_are_spread_and_not_in_a_row() {
    let balancer = balancer(&[10, 2, 2], Balance::RoundRobin);
    let picks = (0..7).map(|_| balancer.pick(UpstreamSet::default()).unwrap().index());
    assert_eq!(picks.collect::<Vec<_>>(), [0, 0, 1, 0, 2, 0, 0]);
}

#[test]
fn coprime_weights_are_respected() {
    let weights = [16_384, 3, 1];
    let balancer = balancer(&weights, Balance::RoundRobin);
    assert_eq!(counts(&balancer, 16_388), exact(&weights));
}

#[test]
fn a_retry_does_not_use_a_first_attempts_turn() {
    let balancer = balancer(&[1, 1], Balance::RoundRobin);
    let mut firsts = [0; 2];
    for _ in 0..10 {
        let first = balancer.pick(UpstreamSet::default()).unwrap();
        firsts[first.index()] += 1;
        let second = balancer.pick(UpstreamSet::of(first.index())).unwrap();
        assert_ne!(first.index(), second.index());
    }
    assert_eq!(firsts, [5, 5]);
}

#[test]
fn concurrent_requests_are_shared_exactly() {
    let weights = [5, 1, 2];
    let balancer = balancer(&weights, Balance::RoundRobin);
    let total: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| counts(&balancer, 8 * 1_000)))
            .collect();
        let counts = threads.into_iter().map(|it| it.join().unwrap());
        counts.fold(vec![0; 3], |sum, count| {
            sum.iter().zip(count).map(|(a, b)| a + b).collect()
        })
    });
    assert_eq!(total, [20_000, 4_000, 8_000]);
    assert!(balancer.upstreams().iter().all(|it| it.in_flight() == 0));
}

#[test]
fn concurrent_requests_are_shared_exactly_with_one_ejected() {
    let balancer = balancer(&[5, 1, 2], Balance::RoundRobin);
    balancer.upstreams()[0].set_healthy(false);
    let total: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| counts(&balancer, 8 * 300)))
            .collect();
        let counts = threads.into_iter().map(|it| it.join().unwrap());
        counts.fold(vec![0; 3], |sum, count| {
            sum.iter().zip(count).map(|(a, b)| a + b).collect()
        })
    });
    assert_eq!(total, [0, 3_200, 6_400]);
}

#[test]
fn without_upstreams_there_is_no_turn() {
    assert!(
        balancer(&[], Balance::RoundRobin)
            .pick(UpstreamSet::default())
            .is_none()
    );
}

#[test]
fn too_many_upstreams_are_handled() {
    let balancer = balancer(&[1; UPSTREAMS_MAX + 1], Balance::LeastRequests);
    let counts = counts(&balancer, 128);
    assert_eq!(counts, [2; UPSTREAMS_MAX]);
}

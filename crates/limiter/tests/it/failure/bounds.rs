use super::Instance;
use proptest::prelude::*;

/// A capacity of twenty, ten a second.
const POLICY: &str = "policies: [{name: a, limits: [{name: x, key: user, rate: 10/s burst 20}]}]";
const CAPACITY: u64 = 20;
const RATE: u64 = 10;

/// All instances send as many requests as pass, ten times a second, for `seconds`.
fn hammer(instances: &[Instance], seconds: u64) -> u64 {
    let mut admitted = 0;
    for _ in 0..seconds * 10 {
        admitted += instances.iter().map(Instance::admitted).sum::<u64>();
        instances[0].clock.advance_micros(100_000);
    }
    admitted
}

#[test]
fn instances_that_are_cut_off_admit_their_share_above_the_policy_and_no_more() {
    let (seconds, cut_off) = (30, 3);
    let first = Instance::new(POLICY);
    let mut instances: Vec<Instance> = (0..4).map(|_| first.sharing_store(POLICY)).collect();
    instances.insert(0, first);
    for instance in instances.iter().take(cut_off) {
        instance.store.cut();
    }
    let admitted = hammer(&instances, seconds);
    let policy = CAPACITY + RATE * seconds;
    // k × f × (C + r × T), with a half for f.
    let above = cut_off as u64 * policy / 2;
    assert!(
        admitted <= policy + above,
        "{admitted} > {policy} + {above}"
    );
    assert!(
        admitted * 100 >= (policy + above) * 90,
        "{admitted}: the share is there to be used"
    );
}

#[test]
fn twenty_flaps_allow_one_local_burst() {
    let instance = Instance::new(POLICY);
    let mut local = 0;
    for _ in 0..20 {
        instance.store.cut();
        local += instance.admitted();
        instance.store.mend();
        // The store reports that plenty remains.
        assert!(instance.ask_for(0).is_allowed());
        instance.clock.advance_micros(10_000);
    }
    let passed_us = 20 * 10_000;
    let bound = CAPACITY / 2 + RATE * passed_us / 2_000_000;
    assert!(local <= bound, "{local} > {bound}");
    assert!(local >= CAPACITY / 2, "the local share is used");
}

#[test]
fn instances_with_a_share_per_live_instance_keep_to_the_policy() {
    let yaml = POLICY.replace("policies", "store: {local_share: auto}\npolicies");
    let first = Instance::new(&yaml);
    let mut instances: Vec<Instance> = (0..3).map(|_| first.sharing_store(&yaml)).collect();
    instances.push(first);
    for instance in &instances {
        let live = &instance.instances;
        live.store(4, std::sync::atomic::Ordering::Relaxed);
        instance.store.cut();
    }
    let admitted = hammer(&instances, 30);
    assert!(admitted <= CAPACITY + RATE * 30, "{admitted}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any pattern of cut wires: never more than the policy and, for each instance, its share of the
    /// policy.
    #[test]
    fn no_pattern_of_outages_exceeds_the_bound(
        steps in proptest::collection::vec((0..3_usize, any::<bool>(), 0..400_000_u64), 1..80),
        algorithm in proptest::sample::select(vec![
            "token-bucket", "sliding-log", "bucketed-window",
        ]),
    ) {
        let burst = if algorithm == "token-bucket" { " burst 20" } else { "" };
        let yaml = format!(
            "policies: [{{name: a, limits: [{{name: x, rate: 10/s{burst}, algorithm: {algorithm}}}]}}]"
        );
        let first = Instance::new(&yaml);
        let mut instances: Vec<Instance> = (0..2).map(|_| first.sharing_store(&yaml)).collect();
        instances.push(first);
        let (mut admitted, mut passed_us) = (0, 0);
        for (nth, cut, micros) in steps {
            let instance = &instances[nth];
            if cut { instance.store.cut() } else { instance.store.mend() }
            admitted += instance.admitted();
            instance.clock.advance_micros(micros);
            passed_us += micros;
        }
        // A log admits its amount in each period that begins: one capacity more than the rate.
        let policy = CAPACITY + RATE + RATE * passed_us / 1_000_000;
        let bound = policy + 3 * policy / 2;
        prop_assert!(admitted <= bound, "{} > {}", admitted, bound);
    }
}

use super::model::{
    Call, DescriptorInput, DescriptorResult, Evaluate, HOUR, HitRequest, Model, config,
};
use super::{START_S, limiter};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::time::Duration;
use tidegate::{Decision, Descriptor, DescriptorHits, Limiter, ManualClock, Request, Store};
use tidegate::{LimitOverride, Timestamp};
use tidegate_redis::{
    Address, ConnectionSettings, HashTag, RedisBuckets, RedisOptions, RedisTopology,
};
use tidegate_testkit::laws::block_on;
use tidegate_testkit::redis::{Cluster, Server, until};

const EVALUATES: [Evaluate; 3] = [Evaluate::All, Evaluate::First, Evaluate::Each];

fn descriptor_input() -> impl Strategy<Value = DescriptorInput> {
    let entries = prop::sample::select(vec![
        vec![("user", "ann")],
        vec![("user", "bob")],
        vec![("user", "vip")],
        vec![("plan", "gold"), ("user", "ann")],
        vec![("plan", "gold"), ("user", "bob")],
        vec![("tenant", "acme")],
        vec![("tenant", "free")],
        vec![("tenant", "big")],
        vec![("watch", "x")],
        vec![("pool", "a")],
        vec![("pool", "b")],
        vec![("unheard", "of")],
        vec![("user", "ann"), ("plan", "gold")],
    ]);
    let want = prop_oneof![
        3 => Just(HitRequest::Whole),
        2 => (0..4_u64).prop_map(HitRequest::Take),
        1 => (1..4_u64).prop_map(HitRequest::Back),
    ];
    let brings = prop_oneof![6 => Just(None), 1 => (0..5_u64).prop_map(Some)];
    (entries, want, brings).prop_map(|(entries, want, brings)| DescriptorInput {
        entries,
        want,
        brings,
    })
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = (
        prop_oneof![1 => Just(0), 6 => Just(1), 1 => Just(3_u64)],
        prop::collection::vec(descriptor_input(), 0..5),
        prop_oneof![12 => Just(0), 1 => Just(HOUR), 1 => Just(700_u64)],
    );
    let call = call.prop_map(|(cost, said, after_s)| Call {
        cost,
        said,
        after_s,
    });
    prop::collection::vec(call, 1..40)
}

/// Sends a call to the limiter.
async fn put<S: Store>(limiter: &Limiter<S>, call: &Call) -> Decision {
    let described = call.said.iter().map(|said| Descriptor {
        entries: &said.entries,
        hits: match said.want {
            HitRequest::Whole => DescriptorHits::AsRequest,
            HitRequest::Take(units) => DescriptorHits::Take(units),
            HitRequest::Back(units) => DescriptorHits::GiveBack(units),
        },
        limit: said.brings.map(|amount| LimitOverride {
            amount,
            period_us: HOUR * 1_000_000,
        }),
    });
    let described: Vec<Descriptor<'_>> = described.collect();
    let request = Request::new().cost(call.cost).descriptors(&described);
    limiter.check(&request).await.expect("the store answers")
}

fn results_of(decision: &Decision) -> (DescriptorResult, Vec<DescriptorResult>) {
    let whole = DescriptorResult {
        allowed: decision.is_allowed(),
        reported: decision
            .binding()
            .map(|band| (band.limit().to_owned(), band.remaining())),
        unlimited: false,
    };
    let each = (0..decision.descriptors()).map(|nth| DescriptorResult {
        allowed: decision.descriptor_allowed(nth),
        reported: decision
            .descriptor(nth)
            .map(|band| (band.limit().to_owned(), band.remaining())),
        unlimited: decision.descriptor_unlimited(nth),
    });
    (whole, each.collect())
}

/// Sends all `calls` to a limiter and to the model, and compares the results.
async fn compare<S: Store>(
    limiter: &Limiter<S>,
    clock: &ManualClock,
    calls: &[Call],
    evaluate: Evaluate,
    settle: impl Fn(),
) {
    let mut model = Model::at(START_S);
    let mut now_s = START_S;
    for (nth, call) in calls.iter().enumerate() {
        now_s += call.after_s;
        clock.set(Timestamp::from_millis(now_s * 1_000));
        let decision = put(limiter, call).await;
        let expected = model.decide(call, evaluate);
        assert_eq!(
            results_of(&decision),
            expected,
            "{evaluate:?}, call {nth}: {call:?}"
        );
        settle();
    }
}

proptest! {
    #[test]
    fn memory_matches_the_model(calls in calls()) {
        for evaluate in EVALUATES {
            let (limiter, clock) = limiter(&config(evaluate));
            block_on(compare(&limiter, &clock, &calls, evaluate, || {}));
        }
    }
}

/// Returns `count` random lists of calls, the same every time.
fn some_calls(count: usize) -> Vec<Vec<Call>> {
    let mut runner = TestRunner::deterministic();
    let list = || calls().new_tree(&mut runner).expect("calls").current();
    std::iter::repeat_with(list).take(count).collect()
}

/// Sends random calls to the Redis of `settings`.
fn compare_over(settings: &ConnectionSettings, options: &RedisOptions, count: usize) {
    let patience = Duration::from_secs(10);
    let settings = settings.clone().timeout(patience).connect_timeout(patience);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for (nth, calls) in some_calls(count).iter().enumerate() {
        for evaluate in EVALUATES {
            let clock = ManualClock::at(Timestamp::from_millis(START_S * 1_000));
            let options = options
                .clone()
                .prefix(format!("tg{nth}{evaluate:?}:"))
                // The deny cache uses real time.
                .deny_cache(0)
                .clock(clock.clone());
            runtime.block_on(async {
                let store = RedisBuckets::connect(settings.clone(), options);
                let store = store.await.expect("the server is up");
                let builder = Limiter::builder().clock(clock.clone());
                let builder = builder.yaml(&config(evaluate)).expect("a valid config");
                let limiter = builder.build_with(store.clone()).expect("a limiter");
                // On several slots of a Cluster, a refusal holds its cost until it is refunded.
                let stats = store.stats();
                let settled = || stats.refunds.get() == stats.refunds_due.get();
                compare(&limiter, &clock, calls, evaluate, || {
                    until("everything is given back", settled);
                })
                .await;
            });
        }
    }
}

#[test]
fn redis_matches_the_model() {
    let server = Server::start();
    let address = Address::new("127.0.0.1", server.port());
    let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![address]);
    compare_over(&settings, &RedisOptions::default(), 24);
}

#[test]
fn a_cluster_matches_the_model_with_descriptors_in_several_slots() {
    let cluster = Cluster::start(3, 0);
    let nodes = cluster.nodes().iter();
    let nodes = nodes.map(|node| Address::new("127.0.0.1", node.port()));
    let settings = ConnectionSettings::new(RedisTopology::Cluster, nodes.collect());
    for tag in [HashTag::Subject, HashTag::Policy] {
        for node in cluster.nodes() {
            node.command(&["FLUSHALL"]).done();
        }
        compare_over(&settings, &RedisOptions::default().tag(tag), 6);
    }
}

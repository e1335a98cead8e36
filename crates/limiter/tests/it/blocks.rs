use std::time::Duration;
use tidegate::{
    Descriptor, DescriptorHits, LimitSpec, Limiter, ManualClock, MemoryStore, Request, Store,
    Timestamp,
};
use tidegate_core::Quota;
use tidegate_testkit::laws::block_on;

type Local = Limiter<MemoryStore<ManualClock>>;

const FIVE_MINUTES: Duration = Duration::from_secs(300);

fn limiter(limits: &str) -> (Local, ManualClock) {
    configured(&format!("policies: [{{ name: api, limits: [{limits}] }}]"))
}

fn configured(yaml: &str) -> (Local, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let builder = Limiter::builder().clock(clock.clone()).yaml(yaml);
    let limiter = builder.expect("a valid config").build();
    (limiter.expect("a limiter"), clock)
}

fn user(name: &str) -> Request<'_> {
    Request::new().user(name)
}

/// Returns true if the store keeps a block for a bucket.
fn is_kept(limiter: &Local, bucket: &str) -> bool {
    let block = Quota::block(1_000_000).expect("a valid quota");
    let kept = block_on(limiter.store().inspect(bucket.as_bytes(), &block));
    kept.expect("an answer").is_some()
}

const PER_USER: &str = "{ name: per-user, key: user, rate: 2/s, block: 5m }";

#[test]
fn the_first_refusal_blocks_for_exactly_the_configured_time() {
    let (limiter, clock) = limiter(PER_USER);
    for _ in 0..2 {
        let passed = limiter.check_now(&user("ann")).unwrap();
        assert!(passed.is_allowed() && !passed.is_blocked());
        assert_eq!(passed.applied().count(), 1, "the block is no band");
    }
    assert!(!is_kept(&limiter, "api/per-user/user:ann"));
    for passed_s in 0..300 {
        let refused = limiter.check_now(&user("ann")).unwrap();
        let left = Duration::from_secs(300 - passed_s);
        assert!(!refused.is_allowed());
        assert_eq!(refused.blocked_for(), Some(left));
        let binding = refused.binding().unwrap();
        assert_eq!(binding.retry_after(), Some(left));
        assert_eq!(
            (binding.limit(), binding.band(), binding.capacity()),
            ("per-user", Some("2/s"), 2)
        );
        assert_eq!((binding.remaining(), binding.key()), (0, "user:ann"));
        assert_eq!(binding.reset_after(), left.max(binding.reset_after()));
        assert_eq!(refused.applied().count(), 1);
        clock.advance_micros(1_000_000);
    }
    let passed = limiter.check_now(&user("ann").cost(2)).unwrap();
    assert!(passed.is_allowed(), "nothing was charged meanwhile");
    assert_eq!(passed.blocked_for(), None);
}

#[test]
fn only_the_refused_client_is_blocked_and_clients_cannot_name_blocks() {
    let (limiter, _) = limiter(PER_USER);
    let others = [
        "victim",
        "victim:block",
        "victim#block",
        "x#block",
        "#block",
    ];
    assert!(
        limiter
            .check_now(&user("ann").cost(2))
            .unwrap()
            .is_allowed()
    );
    assert!(limiter.check_now(&user("ann")).unwrap().is_blocked());
    for other in others {
        let passed = limiter.check_now(&user(other).cost(2)).unwrap();
        assert!(passed.is_allowed(), "{other}");
    }
    // A client with such a name blocks only itself.
    for other in &others[1..] {
        assert!(limiter.check_now(&user(other)).unwrap().is_blocked());
    }
    assert!(!is_kept(&limiter, "api/per-user/user:victim"));
    assert!(limiter.check_now(&user("victim")).unwrap().is_blocked());
}

#[test]
fn a_band_labelled_block_is_not_the_block() {
    let band = "{ rate: 1/h, label: block }";
    let (limiter, clock) = limiter(&format!(
        "{{ name: all, algorithm: fixed-window, bands: [{band}, 100/s], block: 5m }}"
    ));
    assert!(limiter.check_now(&Request::new()).unwrap().is_allowed());
    assert!(!is_kept(&limiter, "api/all/global"));
    let refused = limiter.check_now(&Request::new()).unwrap();
    assert_eq!(refused.blocked_for(), Some(FIVE_MINUTES));
    let hour = Some(Duration::from_secs(3_600));
    assert_eq!(refused.binding().unwrap().retry_after(), hour, "the longer");
    clock.advance_micros(300_000_000);
    let refused = limiter.check_now(&Request::new()).unwrap();
    assert_eq!(refused.blocked_for(), Some(FIVE_MINUTES), "the next first");
}

#[test]
fn resetting_a_block_ends_it() {
    let (limiter, _) = limiter(PER_USER);
    limiter.check_now(&user("ann").cost(2)).unwrap();
    assert!(limiter.check_now(&user("ann")).unwrap().is_blocked());
    let rules = limiter.rules().unwrap();
    let limit = &rules.policy(None).unwrap().limits[0];
    let bands = limit.bands.iter().chain(&limit.block);
    for band in bands {
        let reset = block_on(limiter.store().reset(b"api/per-user/user:ann", &band.quota));
        assert!(reset.unwrap());
    }
    assert!(
        limiter
            .check_now(&user("ann").cost(2))
            .unwrap()
            .is_allowed()
    );
}

#[test]
fn shadow_limits_reads_and_tests_never_block() {
    for limit in [
        "{ name: l, rate: 1/h, block: 0 }",
        "{ name: l, rate: 1/h, mode: shadow, block: 5m }",
    ] {
        let (limiter, _) = limiter(limit);
        for _ in 0..3 {
            assert!(!limiter.check_now(&Request::new()).unwrap().is_blocked());
        }
        assert!(!is_kept(&limiter, "api/l/global"), "{limit}");
    }
    let (limiter, clock) = limiter("{ name: l, rate: 1/s, block: 5m }");
    assert!(limiter.check_now(&Request::new()).unwrap().is_allowed());
    let look = limiter.check_now(&Request::new().cost(0)).unwrap();
    assert!(look.is_allowed());
    let tested = block_on(limiter.test(&Request::new())).unwrap();
    assert!(!tested.is_allowed() && !tested.is_blocked());
    let never = limiter.check_now(&Request::new().cost(2)).unwrap();
    assert!(!never.is_allowed() && !never.is_blocked());
    assert!(!is_kept(&limiter, "api/l/global"));
    clock.advance_micros(1_000_000);
    assert!(limiter.check_now(&Request::new()).unwrap().is_allowed());

    // A test reports the block; a read is not refused.
    assert!(limiter.check_now(&Request::new()).unwrap().is_blocked());
    clock.advance_micros(1_000_000);
    let tested = block_on(limiter.test(&Request::new())).unwrap();
    let left = Some(Duration::from_secs(299));
    assert_eq!((tested.is_allowed(), tested.blocked_for()), (false, left));
    let look = limiter.check_now(&Request::new().cost(0)).unwrap();
    assert!(look.is_allowed() && !look.is_blocked());
}

#[test]
fn reported_usage_blocks_if_nothing_was_left() {
    let (limiter, clock) = limiter("{ name: l, rate: 2/h, block: 5m }");
    let report = || block_on(limiter.report(&Request::new())).unwrap();
    assert!(report().is_allowed() && report().is_allowed());
    assert_eq!(report().blocked_for(), Some(FIVE_MINUTES));
    clock.advance_micros(1);
    let left = Duration::from_micros(299_999_999);
    assert_eq!(report().blocked_for(), Some(left));
}

#[test]
fn each_limit_that_refuses_is_blocked_and_the_others_are_not_charged() {
    let (limiter, clock) = limiter(
        "{ name: a, rate: 1/s, block: 1m }, { name: b, rate: 1/s, block: 5m }, \
         { name: c, rate: 9/h, block: 1h }, { name: d, rate: 9/h }",
    );
    assert!(limiter.check_now(&Request::new()).unwrap().is_allowed());
    let refused = limiter.check_now(&Request::new()).unwrap();
    assert_eq!(refused.limit(), Some("b"), "the longest");
    assert_eq!(refused.blocked_for(), Some(FIVE_MINUTES));
    let kept = ["a", "b", "c", "d"].map(|limit| is_kept(&limiter, &format!("api/{limit}/global")));
    assert_eq!(kept, [true, true, false, false]);
    let bands: Vec<(bool, u64)> = refused
        .applied()
        .map(|band| (band.is_allowed(), band.remaining()))
        .collect();
    assert_eq!(bands, [(false, 0), (false, 0), (true, 8), (true, 8)]);
    // Meanwhile the block of `a` has ended; `b` refuses alone.
    clock.advance_micros(60_000_000);
    let refused = limiter.check_now(&Request::new()).unwrap();
    let allowed: Vec<bool> = refused.applied().map(|band| band.is_allowed()).collect();
    assert_eq!(allowed, [true, false, true, true]);
    assert_eq!(refused.blocked_for(), Some(Duration::from_secs(240)));
}

#[test]
fn limits_evaluated_separately_block_separately() {
    let (limiter, _) = configured(
        "
policies:
  - name: api
    evaluate: each
    limits:
      - { name: a, match: { descriptor: [a] }, key: descriptor:a, rate: 1/s, block: 5m, combine: any }
      - { name: b, match: { descriptor: [b] }, key: descriptor:b, rate: 3/s, block: 1h, combine: any }
",
    );
    let of = |entries| Descriptor {
        entries,
        hits: DescriptorHits::AsRequest,
        limit: None,
    };
    let described = [of(&[("a", "x")]), of(&[("b", "y")])];
    let check = || {
        let request = Request::new().descriptors(&described);
        limiter.check_now(&request).unwrap()
    };
    assert!(check().is_allowed());
    for _ in 0..2 {
        let decision = check();
        assert!(
            decision.is_allowed() && !decision.is_blocked(),
            "one is enough"
        );
        assert!(!decision.descriptor_allowed(0) && decision.descriptor_allowed(1));
        let first = decision.descriptor(0).unwrap();
        assert_eq!(first.retry_after(), Some(FIVE_MINUTES));
    }
    let refused = check();
    assert_eq!(refused.limit(), Some("a"), "the one that allows first");
    assert_eq!(refused.blocked_for(), Some(FIVE_MINUTES));
}

#[test]
fn reservations_are_refused_during_a_block() {
    let (limiter, clock) = configured(
        "policies: [{ name: llm, reserve: 60s, limits: [{ name: t, rate: 9/s, block: 5m }] }]",
    );
    let reserve = |cost| block_on(limiter.reserve(&Request::new().cost(cost), None)).unwrap();
    assert!(reserve(9).id().is_some());
    assert!(reserve(1).id().is_none());
    clock.advance_micros(9_000_000);
    for cost in [0, 1] {
        let refused = reserve(cost);
        assert!(refused.id().is_none(), "{cost}");
        let left = Some(Duration::from_secs(291));
        assert_eq!(refused.decision().blocked_for(), left, "{cost}");
    }
}

/// A refund never tests if a limit is blocked (law 16), in a reservation as in a check.
#[test]
fn a_reservation_refund_was_refused_by_an_unrelated_block() {
    let (limiter, _) = configured(
        "
policies:
  - name: llm
    reserve: 60s
    limits:
      - { name: a, match: { descriptor: [a] }, key: descriptor:a, rate: 9/h }
      - { name: b, match: { descriptor: [b] }, key: descriptor:b, rate: 1/h, block: 5m }
",
    );
    let of = |entries, hits| Descriptor {
        entries,
        hits,
        limit: None,
    };
    let taken = [of(&[("b", "x")], DescriptorHits::AsRequest)];
    let check = || limiter.check_now(&Request::new().descriptors(&taken));
    assert!(check().unwrap().is_allowed());
    assert!(check().unwrap().is_blocked());
    let reserve = |hits| {
        let described = [
            of(&[("a", "x")], DescriptorHits::AsRequest),
            of(&[("b", "x")], hits),
        ];
        let request = Request::new().descriptors(&described);
        block_on(limiter.reserve(&request, None)).unwrap()
    };
    assert!(reserve(DescriptorHits::GiveBack(1)).id().is_some());
    for hits in [DescriptorHits::AsRequest, DescriptorHits::Take(0)] {
        let refused = reserve(hits);
        assert!(refused.id().is_none(), "{hits:?}");
        assert!(refused.decision().is_blocked(), "{hits:?}");
    }
}

#[test]
fn usage_reported_during_a_block_is_not_counted() {
    let (limiter, clock) = limiter(
        "{ name: closes, match: [{ path: /a }], rate: 1/s, block: 5m }, { name: other, rate: 10/h }",
    );
    let report = |path| block_on(limiter.report(&Request::new().path(path))).unwrap();
    let left = || {
        let looked = limiter.check_now(&Request::new().path("/b").cost(0));
        looked.unwrap().binding().unwrap().remaining()
    };
    assert!(report("/a").is_allowed());
    assert!(report("/a").is_blocked(), "it closes, and is charged");
    assert_eq!(left(), 8);
    clock.advance_micros(1_000_000);
    assert!(report("/a").is_blocked());
    assert_eq!(left(), 8);
    assert!(report("/b").is_allowed());
    assert_eq!(left(), 7);
}

#[test]
fn a_block_in_code_is_checked_when_the_limiter_is_built() {
    let spec = || LimitSpec::new("l").band("1/s");
    let build = |spec: LimitSpec| Limiter::builder().limit(spec).build();
    assert!(build(spec().block(Duration::ZERO)).is_ok());
    assert!(build(spec().block(FIVE_MINUTES).shadow()).is_ok());
    for wrong in [
        spec().block(Duration::from_micros(1)),
        spec().block(Duration::from_secs(31_622_400)),
        spec().block(FIVE_MINUTES).wait(Duration::from_secs(1)),
    ] {
        assert!(build(wrong).is_err());
    }
}

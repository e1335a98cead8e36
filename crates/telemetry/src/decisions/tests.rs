use super::{DecisionMetrics, Timing};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use tidegate::{
    AskPurpose, Attempt, Config, Descriptor, DescriptorHits, LimitOverride, Limiter, Request, Rules,
};

/// A limiter and its decision metrics.
struct CountedLimiter {
    limiter: Limiter,
    decisions: Arc<DecisionMetrics>,
    registry: Registry,
}

impl CountedLimiter {
    fn new(policies: &str) -> Self {
        Self::of(config(policies))
    }

    fn of(config: Config) -> Self {
        let decisions = Arc::new(DecisionMetrics::new(&config.policies));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Arc::clone(&decisions)));
        Self {
            limiter: Limiter::builder().config(config).build().unwrap(),
            decisions,
            registry,
        }
    }

    fn reload(&self, policies: &str) {
        let config = config(policies);
        self.decisions.lay_out(&config.policies);
        self.limiter.reload(config).unwrap();
    }

    fn decide(&self, policy: &str) {
        self.decide_by(&self.limiter.rules().unwrap(), policy);
    }

    fn decide_by(&self, rules: &Arc<Rules>, policy: &str) {
        let request = Request::new().policy(policy);
        match self.limiter.attempt(rules, &request, AskPurpose::Pass) {
            Ok(Attempt::Done(decision)) => {
                let timing = Timing::start(true);
                self.decisions.count(&decision, &request, timing);
            }
            other => panic!("{other:?}"),
        }
    }

    fn check(&self, request: &Request<'_>) {
        let decision = self.limiter.check_now(request).unwrap();
        self.decisions
            .count(&decision, request, Timing::start(true));
    }

    fn describe(&self, descriptors: &[Descriptor<'_>]) {
        let request = Request::new().descriptors(descriptors);
        self.check(&request);
    }

    /// Returns the count of a series, if it is encoded.
    fn shown(&self, policy: &str, limit: &str, outcome: &str) -> Option<u64> {
        let reason = match outcome {
            "refused" | "shadow_refused" => "limited",
            _ => "allowed",
        };
        self.shown_for(policy, limit, outcome, reason)
    }

    /// Returns the count of a series with this reason, if it is encoded.
    fn shown_for(&self, policy: &str, limit: &str, outcome: &str, reason: &str) -> Option<u64> {
        self.series(&format!(
            "decisions_total{{policy=\"{policy}\",limit=\"{limit}\",outcome=\"{outcome}\",\
             decided_by=\"store\",reason=\"{reason}\"}}"
        ))
    }

    /// Returns the hits of a limit of the policy `api`, if they are encoded.
    fn hits(&self, limit: &str, mode: &str, result: &str) -> Option<u64> {
        self.series(&format!(
            "limit_hits_total{{policy=\"api\",limit=\"{limit}\",mode=\"{mode}\",outcome=\"{result}\"}}"
        ))
    }

    /// Returns those hits that are near the limit.
    fn near(&self, limit: &str, mode: &str) -> Option<u64> {
        self.series(&format!(
            "limit_near_hits_total{{policy=\"api\",limit=\"{limit}\",mode=\"{mode}\"}}"
        ))
    }

    fn series(&self, series: &str) -> Option<u64> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry).unwrap();
        let mut lines = page.lines();
        let count = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
        Some(count.parse().unwrap())
    }
}

fn config(policies: &str) -> Config {
    Config::from_yaml(&format!("policies: [{policies}]")).unwrap()
}

const API: &str = "{ name: api, limits: [{ name: all, rate: 1/h }] }";
const OTHER: &str = "{ name: other, limits: [{ name: all, rate: 9/h }] }";

#[test]
fn counters_of_kept_names_continue_and_new_ones_start() {
    let it = CountedLimiter::new(API);
    it.decide("api");
    it.reload(&format!("{API}, {OTHER}"));
    it.decide("api");
    it.decide("other");
    assert_eq!(it.shown("api", "all", "allowed"), Some(1));
    assert_eq!(it.shown("api", "all", "refused"), Some(1));
    assert_eq!(it.shown("other", "all", "allowed"), Some(1));
}

#[test]
fn decisions_of_older_policies_after_a_reload_are_counted() {
    let it = CountedLimiter::new(&format!("{API}, {OTHER}"));
    let older = it.limiter.rules().unwrap();
    it.decide("other");
    it.reload("{ name: api, limits: [{ name: another, rate: 1/h }] }");
    it.decide_by(&older, "other");
    it.decide_by(&older, "api");
    assert_eq!(it.shown("other", "all", "allowed"), Some(2));
    assert_eq!(it.shown("api", "all", "allowed"), Some(1));
    assert_eq!(it.shown("api", "another", "allowed"), Some(0));
}

#[test]
fn a_name_is_shown_until_the_reload_after_the_one_that_removed_it() {
    let it = CountedLimiter::new(&format!("{API}, {OTHER}"));
    let older = it.limiter.rules().unwrap();
    it.decide("other");
    it.reload(API);
    assert_eq!(it.shown("other", "all", "allowed"), Some(1));
    it.reload(API);
    assert_eq!(it.shown("other", "all", "allowed"), None);
    assert_eq!(it.shown("other", "", "unlimited"), None);
    // The request is still decided, and counted nowhere.
    it.decide_by(&older, "other");
    assert_eq!(it.shown("other", "all", "allowed"), None);
}

#[test]
fn a_name_restored_at_once_continues_its_counters() {
    let it = CountedLimiter::new(&format!("{API}, {OTHER}"));
    it.decide("other");
    it.reload(API);
    it.reload(&format!("{API}, {OTHER}"));
    it.decide("other");
    assert_eq!(it.shown("other", "all", "allowed"), Some(2));
}

#[test]
fn refusals_of_a_former_shadow_limit_stay_shadow_refusals() {
    let watched = "{ name: api, limits: [{ name: all, rate: 1/h, mode: shadow }] }";
    let it = CountedLimiter::new(watched);
    let older = it.limiter.rules().unwrap();
    it.decide("api");
    it.decide("api");
    assert_eq!(it.shown("api", "all", "shadow_refused"), Some(1));
    assert_eq!(it.shown("api", "all", "refused"), None);
    it.reload(API);
    it.decide("api");
    it.decide_by(&older, "api");
    assert_eq!(it.shown("api", "all", "shadow_refused"), Some(2));
    assert_eq!(it.shown("api", "all", "refused"), Some(1));
}

#[test]
fn a_restored_layout_has_the_counts_made_meanwhile() {
    let it = CountedLimiter::new(API);
    let before = it
        .decisions
        .lay_out(&config(&format!("{API}, {OTHER}")).policies);
    it.decide("api");
    it.decisions.put_back(before);
    assert_eq!(it.shown("api", "all", "allowed"), Some(1));
    assert_eq!(it.shown("other", "all", "allowed"), None);
}

fn user(amount: Option<u64>) -> Descriptor<'static> {
    Descriptor {
        entries: &[("user", "ann")],
        hits: DescriptorHits::AsRequest,
        limit: amount.map(|amount| LimitOverride {
            amount,
            period_us: 3_600_000_000,
        }),
    }
}

#[test]
fn limits_of_requests_are_counted_once_used() {
    let it = CountedLimiter::new(API);
    it.decide("api");
    assert_eq!(it.shown("api", "override", "allowed"), None);
    it.reload("{ name: api, limits: [{ name: user, match: { descriptor: [user] }, rate: 9/h }] }");
    it.describe(&[user(None)]);
    assert_eq!(it.shown("api", "user", "allowed"), Some(1));
    it.describe(&[user(Some(1))]);
    it.describe(&[user(Some(1))]);
    assert_eq!(it.shown("api", "override", "allowed"), Some(1));
    assert_eq!(it.shown("api", "override", "refused"), Some(1));
}

#[test]
fn a_shadow_limit_on_two_descriptors_counts_two_refusals() {
    let watched = "{ name: api, limits: [{ name: user, match: { descriptor: [user] }, rate: 0/h, \
                   mode: shadow }] }";
    let it = CountedLimiter::new(watched);
    it.describe(&[user(None), user(None)]);
    assert_eq!(it.shown("api", "user", "shadow_refused"), Some(2));
    assert_eq!(it.shown("api", "", "unlimited"), Some(1));
}

#[test]
fn decision_times_are_shown_by_policy_and_survive_reloads() {
    let counted = CountedLimiter::new(&format!("{API}, {OTHER}"));
    let series = |policy: &str| {
        counted.series(&format!(
            "decision_duration_seconds_count{{policy=\"{policy}\"}}"
        ))
    };
    assert_eq!(series("api"), None, "nothing of what was never asked");
    counted.decide("api");
    counted.reload(API);
    counted.decide("api");
    assert_eq!((series("api"), series("other")), (Some(2), None));
}

#[test]
fn with_a_memory_store_decision_times_are_sampled() {
    let timed = std::thread::spawn(|| {
        let all = (0..6_400).map(|_| Timing::start(false));
        all.filter(|timing| timing.is_timed()).count()
    });
    assert_eq!(timed.join().unwrap(), 100);
    assert!(Timing::start(true).is_timed());
}

#[test]
fn blocked_and_unidentified_clients_were_counted_as_over_the_rate() {
    let config = Config::from_yaml(
        "guards:
  - { name: staff, allow: user, list: [ann] }
  - { name: closed, deny: user, list: [eve] }
  - { name: banned, deny: ip, list: [192.0.2.1] }
policies:
  - name: api
    limits:
      - { name: named, key: user, missing: refuse, rate: 1/h }
",
    );
    let it = CountedLimiter::of(config.unwrap());
    let shown =
        |limit: &str, outcome: &str, reason: &str| it.shown_for("api", limit, outcome, reason);
    // The main reason starts at zero, so that a rate over its first increase is right.
    assert_eq!(shown("named", "refused", "limited"), Some(0));
    for reason in ["no-identity", "no-plan", "no-store", "blocked"] {
        assert_eq!(shown("named", "refused", reason), None, "{reason}");
    }
    let banned = "192.0.2.1".parse().unwrap();
    for request in [
        Request::new().user("bob"),
        Request::new().user("bob"),
        Request::new(),
        Request::new().user("eve"),
        Request::new().user("carl").ip(banned),
        Request::new().user("ann"),
    ] {
        it.check(&request);
    }
    for (limit, outcome, reason, count) in [
        ("named", "allowed", "allowed", 1),
        ("named", "refused", "limited", 1),
        ("named", "refused", "no-identity", 1),
        ("", "refused", "blocked", 1),
        ("", "refused", "blacklisted", 1),
        ("", "exempt", "exempt", 1),
    ] {
        let found = shown(limit, outcome, reason);
        assert_eq!(found, Some(count), "{limit} {outcome} {reason}");
    }
}

#[test]
fn hits_are_counted_for_every_limit_of_a_request() {
    let it = CountedLimiter::new(
        "{ name: api, limits: [{ name: small, rate: 5/h }, { name: large, rate: 9/h }, \
         { name: soon, rate: 4/h, mode: shadow }] }",
    );
    assert_eq!(it.hits("large", "enforce", "refused"), Some(0));
    assert_eq!(it.hits("large", "enforce", "not_charged"), None);
    assert_eq!(it.hits("large", "shadow", "allowed"), None);
    assert_eq!(it.near("soon", "shadow"), Some(0));
    for cost in [4, 4, 1] {
        it.check(&Request::new().cost(cost));
    }
    for (limit, mode, [allowed, refused, not_charged], near) in [
        ("small", "enforce", [5, 4, 0], 1),
        ("large", "enforce", [5, 0, 4], 0),
        ("soon", "shadow", [4, 5, 0], 1),
    ] {
        assert_eq!(it.hits(limit, mode, "allowed"), Some(allowed), "{limit}");
        assert_eq!(it.hits(limit, mode, "refused"), Some(refused), "{limit}");
        let shown = it.hits(limit, mode, "not_charged");
        assert_eq!(shown.unwrap_or(0), not_charged, "{limit}");
        assert_eq!(it.near(limit, mode), Some(near), "{limit}");
    }
    // Decisions are counted as before, each once.
    assert_eq!(it.shown("api", "small", "allowed"), Some(2));
    assert_eq!(it.shown("api", "large", "allowed"), Some(0));
}

#[test]
fn hits_of_older_policies_are_counted_under_the_names_of_their_limits() {
    let limit = |name: &str| format!("{{ name: {name}, rate: 9/h }}");
    let policy = |limits: &[&str]| {
        let limits: Vec<String> = limits.iter().map(|it| limit(it)).collect();
        format!("{{ name: api, limits: [{}] }}", limits.join(", "))
    };
    let it = CountedLimiter::new(&policy(&["one", "two"]));
    let older = it.limiter.rules().unwrap();
    it.reload(&policy(&["two", "three"]));
    it.decide_by(&older, "api");
    it.decide("api");
    for (limit, hits) in [("one", 1), ("two", 2), ("three", 1)] {
        assert_eq!(it.hits(limit, "enforce", "allowed"), Some(hits), "{limit}");
    }
}

#[test]
fn hits_of_request_limits_are_shown_once_used() {
    let it = CountedLimiter::new(
        "{ name: api, limits: [{ name: user, match: { descriptor: [user] }, rate: 9/h }] }",
    );
    it.describe(&[user(None)]);
    assert_eq!(it.hits("override", "enforce", "allowed"), None);
    it.describe(&[user(Some(1)), user(None)]);
    assert_eq!(it.hits("override", "enforce", "allowed"), Some(1));
    assert_eq!(it.hits("user", "enforce", "allowed"), Some(2));
}

use super::{Budget, BudgetQuery, BudgetReport, LimitBudget};
use tidegate::{Limiter, ManualClock, MemoryStore, Request};
use tidegate_config::{Config, NoEnvironment};
use tidegate_core::Timestamp;
use tidegate_testkit::laws::block_on;

const TIERS: &str = "
routes: [{ name: all, upstreams: ['http://127.0.0.1:9'], policy: [api, web] }]
policies:
  - name: api
    reserve: 60s
    limits:
      - name: tokens
        key: user
        unit: tokens
        algorithm: fixed-window
        bands: [{ rate: 1000/h, label: hour }, { rate: 4000/d, label: day }]
      - { name: per-route, key: [user, route], rate: 5/s }
      - { name: all, rate: 100/s, mode: shadow }
      - { name: lifted, key: user, rate: unlimited }
      - { name: gone, key: user, rate: 1/s, mode: off }
  - name: web
    limits:
      - { name: per-tenant, key: 'attr:tenant', rate: 100/min, missing: skip }
      - name: debts
        key: user
        rate: 10/h
        algorithm: fixed-window
        charge: always
        overdraft: 20
        block: 1h
";

struct SubjectBudgets {
    config: Config,
    limiter: Limiter<MemoryStore<ManualClock>>,
    clock: ManualClock,
}

impl SubjectBudgets {
    fn new(text: &str) -> Self {
        let parse = || Config::parse(text, "x", &NoEnvironment);
        let config = parse().unwrap_or_else(|errors| panic!("{errors}"));
        let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
        let built = Limiter::builder().config(parse().unwrap());
        let limiter = built.clock(clock.clone()).build().unwrap();
        Self {
            config,
            limiter,
            clock,
        }
    }

    fn take(&self, request: &Request<'_>) {
        self.limiter.check_now(request).unwrap();
    }

    fn read(&self, policy: Option<&str>, key: &[&str]) -> Result<BudgetReport, String> {
        let query = BudgetQuery {
            policy: policy.map(str::to_owned),
            key: key.iter().map(|it| (*it).to_owned()).collect(),
        };
        let budget = Budget::find(&self.config, &query).map_err(|failure| failure.to_string())?;
        Ok(block_on(budget.read(self.limiter.store())).unwrap())
    }
}

/// Returns each band as `policy/limit band used+left reset`.
fn lines(report: &BudgetReport) -> Vec<String> {
    let of = |it: &LimitBudget| {
        let name = format!("{}/{}", it.policy, it.limit);
        let bands = it.bands.iter();
        bands
            .map(|band| {
                let label = band.label.as_ref().unwrap_or(&band.band);
                format!(
                    "{name} {label} {}+{} {}",
                    band.used, band.left, band.reset_ms
                )
            })
            .collect::<Vec<_>>()
    };
    report.limits.iter().flat_map(of).collect()
}

#[test]
fn a_budget_of_a_month_has_the_length_of_that_month() {
    let watched = SubjectBudgets::new(
        "policies: [{ name: api, limits: [{ name: month, key: user, rate: 100/month }] }]",
    );
    let length = |days: u64| days * 86_400_000;
    watched.take(&Request::new().user("ann").cost(4));
    let report = watched.read(None, &["user=ann"]).unwrap();
    // From 14 November, 22:13:20, to 1 December.
    assert_eq!(lines(&report), ["api/month 100/month 4+96 1388800000"]);
    assert_eq!(report.limits[0].bands[0].period_ms, length(30));
    watched.clock.advance_micros(1_388_800_000_000);
    watched.take(&Request::new().user("ann").cost(1));
    let report = watched.read(None, &["user=ann"]).unwrap();
    assert_eq!(lines(&report), ["api/month 100/month 1+99 2678400000"]);
    assert_eq!(report.limits[0].bands[0].period_ms, length(31));
}

#[test]
fn every_limit_of_a_subject_is_read_across_policies() {
    let watched = SubjectBudgets::new(TIERS);
    let tokens = [("tokens", 800)];
    watched.take(&Request::new().user("ann").policy("api").cost(&tokens));
    watched.take(&Request::new().user("ann").policy("web").cost(4));
    watched.clock.advance_micros(600_000_000);
    let report = watched.read(None, &["user=ann"]).unwrap();
    assert_eq!(
        lines(&report),
        [
            "api/tokens hour 800+200 3000000",
            "api/tokens day 800+3200 85800000",
            "api/all 100/s 0+100 0",
            "web/debts 10/h 4+6 3000000",
        ]
    );
    let tokens = &report.limits[0];
    assert_eq!(
        (&*tokens.bucket, tokens.unit.as_deref(), &*tokens.mode),
        ("api/tokens/user:ann", Some("tokens"), "enforce")
    );
    let band = &tokens.bands[0];
    assert_eq!((band.period_ms, band.capacity), (3_600_000, 1_000));
    let shared: Vec<(bool, &str)> = report
        .limits
        .iter()
        .map(|it| (it.shared, &*it.mode))
        .collect();
    let own = (false, "enforce");
    assert_eq!(shared, [own, (true, "shadow"), own]);
    assert!(report.is_found());

    let skipped = report.skipped.iter();
    let skipped: Vec<String> = skipped
        .map(|it| format!("{}/{} {:?} {}", it.policy, it.limit, it.missing, it.reason))
        .collect();
    assert_eq!(
        skipped,
        [
            "api/per-route [\"route\"] it also needs route",
            "api/lifted [] it counts nothing: the rate is `unlimited`",
            "api/gone [] it is off",
            "web/per-tenant [\"attr:tenant\"] it also needs attr:tenant",
        ]
    );
}

#[test]
fn further_identities_reach_further_limits() {
    let watched = SubjectBudgets::new(TIERS);
    let acme = Request::new()
        .attributes(&[("tenant", "acme")])
        .policy("web");
    watched.take(&acme.cost(30));
    let report = watched.read(Some("web"), &["user=ann", "attr:tenant=acme"]);
    assert_eq!(
        lines(&report.unwrap()),
        [
            "web/per-tenant 100/min 30+70 18000",
            "web/debts 10/h 0+10 0"
        ]
    );
    // The address takes the place of an absent user, as in decisions.
    let report = watched.read(Some("api"), &["ip=192.0.2.1"]).unwrap();
    assert_eq!(report.limits[0].bucket, "api/tokens/user~ip:192.0.2.1");
    assert!(!report.is_found());
}

#[test]
fn a_joined_policy_shows_the_buckets_of_its_origins() {
    let watched = SubjectBudgets::new(TIERS);
    watched.take(&Request::new().user("ann").policy("web").cost(1));
    let joined = watched.read(Some("api+web"), &["user=ann"]).unwrap();
    let alone = watched.read(None, &["user=ann"]).unwrap();
    assert_eq!(lines(&joined), lines(&alone));
    assert!(lines(&joined).contains(&"web/debts 10/h 1+9 3600000".to_owned()));
}

#[test]
fn a_subject_in_debt_owes_and_a_blocked_one_waits() {
    let watched = SubjectBudgets::new(TIERS);
    let request = Request::new().user("ann").policy("web");
    watched.take(&request.cost(8));
    watched.take(&request.cost(7));
    let debts = |report: BudgetReport| report.limits.into_iter().next_back().unwrap();
    let seen = debts(watched.read(Some("web"), &["user=ann"]).unwrap());
    let band = &seen.bands[0];
    assert_eq!((band.used, band.left, band.overdrawn), (15, 0, 5));
    assert_eq!(seen.blocked_for_ms, None);
    watched.take(&request.cost(1));
    let seen = debts(watched.read(Some("web"), &["user=ann"]).unwrap());
    assert_eq!(seen.blocked_for_ms, Some(3_600_000));
}

#[test]
fn reserved_units_are_used_until_they_are_settled() {
    let watched = SubjectBudgets::new(TIERS);
    let tokens = [("tokens", 500)];
    let request = Request::new().user("ann").policy("api").cost(&tokens);
    let reserved = block_on(watched.limiter.reserve(&request, None)).unwrap();
    let used = || watched.read(Some("api"), &["user=ann"]).unwrap().limits[0].bands[0].used;
    assert_eq!(used(), 500);
    let id = reserved.id().unwrap().to_owned();
    block_on(watched.limiter.commit(&id, 120)).unwrap();
    assert_eq!(used(), 120);
}

#[test]
fn the_rate_of_a_plan_is_that_of_the_subject() {
    let watched = SubjectBudgets::new(
        "
plans:
  - name: tiers
    inline:
      plans: { small: { rate: 10/h } }
      subjects: { ann: { plan: small }, root: unlimited }
policies:
  - name: api
    limits:
      - name: per-user
        key: user
        rate: { plan: tiers, subject: user, default: refuse }
        algorithm: fixed-window
",
    );
    watched.take(&Request::new().user("ann").cost(3));
    let seen = |user: &str| watched.read(None, &[&format!("user={user}")]).unwrap();
    assert_eq!(lines(&seen("ann")), ["api/per-user plan 3+7 3600000"]);
    for (user, why) in [("root", "unlimited"), ("eve", "does not know this subject")] {
        let report = seen(user);
        let limit = &report.limits[0];
        assert!(limit.bands.is_empty(), "{user}");
        assert!(
            limit.rate.as_ref().unwrap().contains(why),
            "{:?}",
            limit.rate
        );
    }
}

#[test]
fn invalid_identities_are_errors_without_their_values() {
    let watched = SubjectBudgets::new(TIERS);
    for (policy, key, said) in [
        (None, "usr=hunter2", "`usr` is not a part of a key"),
        (None, "hunter2", "a key needs the name of its part"),
        (None, "ip=nowhere", "is not an address"),
        (None, "user=", "`user` has no value"),
        (
            Some("nope"),
            "user=ann",
            "unknown policy `nope`; expected `api`, `web`",
        ),
    ] {
        let error = watched.read(policy, &[key]).unwrap_err();
        assert!(error.contains(said), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_token_that_is_not_accepted_is_noted() {
    let budgets = SubjectBudgets::new(
        "
client:
  user: { claim: sub }
  jwt: { secret: 0123456789abcdef0123456789abcdef }
policies: [{ name: api, limits: [{ name: per-user, key: user, missing: skip, rate: 1/s }] }]
",
    );
    let report = budgets
        .read(None, &["header:authorization=Bearer hunter2"])
        .unwrap();
    assert_eq!(report.skipped[0].missing, ["user"]);
    let note = report.note.unwrap();
    assert!(note.starts_with("the token is not accepted: "), "{note}");
    assert!(!note.contains("hunter2"), "{note}");
}

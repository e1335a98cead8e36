//! Calendar windows of instances whose clocks differ.

use crate::runtime;
use crate::skewed::SkewedStore;
use tidegate::redis::{Address, ConnectionSettings, RedisTopology};
use tidegate::{Config, Limiter, ManualClock, Request, Timestamp};
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_testkit::redis::Server;
use tokio::task::JoinSet;

/// 2026-03-29 in Berlin, when the clock goes from 02:00 to 03:00, and the days around it.
const MARCH_28: u64 = 1_774_652_400_000;

const HOUR_MS: u64 = 3_600_000;

/// Returns limiters over one Redis, by how many hours each instance's clock is ahead.
async fn instances(
    server: &Server,
    clock: &ManualClock,
    policy: &str,
    ahead: &[i64],
) -> Vec<Limiter<SkewedStore<RedisBuckets>>> {
    let mut instances = Vec::new();
    for ahead_hours in ahead {
        let address = Address::new("127.0.0.1", server.port());
        let patience = std::time::Duration::from_secs(10);
        let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![address]);
        let options = RedisOptions::default().deny_cache(0).clock(clock.clone());
        let store = RedisBuckets::connect(settings.timeout(patience), options).await;
        let limiter = Limiter::builder().yaml(policy).expect("a valid config");
        let limiter = limiter.build_with(SkewedStore {
            store: store.expect("the server is up"),
            clock: clock.clone(),
            ahead_hours: *ahead_hours,
        });
        instances.push(limiter.expect("a limiter"));
    }
    instances
}

/// Sends 20 requests to each instance at once, and returns the number that passed.
async fn admitted(instances: &[Limiter<SkewedStore<RedisBuckets>>]) -> usize {
    let mut tasks = JoinSet::new();
    for limiter in instances.iter().cycle().take(20 * instances.len()) {
        let limiter = limiter.clone();
        tasks.spawn(async move {
            let decision = limiter.check(&Request::new().user("ann").cost(1)).await;
            decision.expect("the store answers").is_allowed()
        });
    }
    let decided = tasks.join_all().await;
    decided.into_iter().filter(|passed| *passed).count()
}

#[test]
fn instances_an_hour_apart_admit_exactly_the_limit() {
    let server = Server::start();
    for (rate, ahead, windows) in [
        // Days of 24, 23 and 24 hours.
        ("7/day, align: calendar", [-1, 0, 1], [0, 24, 47, 71]),
        // The window of each instance is another, and the night has no hour from 02:00.
        ("7/hour, align: calendar", [-1, 0, 1], [24, 25, 26, 27]),
        // Further apart than the windows that they send: each request is sent again.
        ("7/hour, align: calendar", [-9, 0, 5], [24, 25, 26, 27]),
    ] {
        server.client().command(&["FLUSHALL"]).done();
        let policy = format!(
            "policies: [{{ name: api, limits: [{{ name: x, key: user, time_zone: Europe/Berlin, rate: {rate} }}] }}]"
        );
        let clock = ManualClock::at(Timestamp::from_millis(MARCH_28));
        runtime().block_on(async {
            let instances = instances(&server, &clock, &policy, &ahead).await;
            for hours in windows.windows(2) {
                let (start, end) = (hours[0] * HOUR_MS, hours[1] * HOUR_MS);
                clock.set(Timestamp::from_millis(MARCH_28 + start));
                assert_eq!(admitted(&instances).await, 7, "{rate} {ahead:?}: {hours:?}");
                clock.set(Timestamp::from_millis(MARCH_28 + end - 1));
                assert_eq!(admitted(&instances).await, 0, "{rate} {ahead:?}: {hours:?}");
            }
        });
    }
}

#[test]
fn instances_agree_on_the_calendar_that_a_plan_sets_for_a_subject() {
    let server = Server::start();
    let policy = |calendar: &str| {
        format!(
            "
plans:
  - name: tiers
    rates: [tokens]
    inline:
      plans: {{ gold: {{ rates: {{ tokens: 7/day }} }} }}
      groups: {{ acme: {{ plan: gold, time_zone: Europe/Berlin }} }}
      subjects: {{ ann: {{ group: acme{calendar} }} }}
policies:
  - name: api
    limits:
      - name: x
        key: user
        unit: tokens
        align: calendar
        rate: {{ plan: tiers, subject: user, default: refuse }}
"
        )
    };
    let clock = ManualClock::at(Timestamp::from_millis(MARCH_28));
    let at = |hours: u64| clock.set(Timestamp::from_millis(MARCH_28 + hours * HOUR_MS));
    runtime().block_on(async {
        let instances = instances(&server, &clock, &policy(""), &[-1, 0, 1]).await;
        at(20);
        assert_eq!(admitted(&instances).await, 7);
        at(24);
        assert_eq!(admitted(&instances).await, 7, "the next day in Berlin");
        at(46);
        assert_eq!(admitted(&instances).await, 0);
        // The day in Kathmandu begins after 43 hours and a quarter, when nothing was charged any more.
        for limiter in &instances {
            let moved = Config::from_yaml(&policy(", time_zone: Asia/Kathmandu"));
            limiter
                .reload(moved.expect("a valid config"))
                .expect("it is loaded");
        }
        at(47);
        assert_eq!(admitted(&instances).await, 7, "nothing was charged in it");
        at(67);
        assert_eq!(admitted(&instances).await, 0);
        at(68);
        assert_eq!(admitted(&instances).await, 7, "18:15 in UTC is midnight");
    });
}

#[test]
fn a_subject_that_is_silent_after_a_change_of_its_zone_gets_no_day_twice() {
    let server = Server::start();
    let policy = |zone: &str| {
        format!(
            "
plans: [{{ name: tiers, inline: {{ subjects: {{ ann: {{ rate: 7/day, time_zone: {zone} }} }} }} }}]
policies:
  - name: api
    limits:
      - {{ name: x, key: user, align: calendar, rate: {{ plan: tiers, subject: user, default: refuse }} }}
"
        )
    };
    let clock = ManualClock::at(Timestamp::from_millis(MARCH_28 + 20 * HOUR_MS));
    runtime().block_on(async {
        let instances = instances(&server, &clock, &policy("Europe/Berlin"), &[-1, 0, 1]).await;
        assert_eq!(admitted(&instances).await, 7);
        for limiter in &instances {
            let moved = Config::from_yaml(&policy("Asia/Kathmandu"));
            limiter
                .reload(moved.expect("a valid config"))
                .expect("it is loaded");
        }
        // The day in Berlin is over. That in Kathmandu contains what was charged.
        clock.set(Timestamp::from_millis(MARCH_28 + 24 * HOUR_MS));
        assert_eq!(admitted(&instances).await, 0);
        let midnight = MARCH_28 + 43 * HOUR_MS + HOUR_MS / 4;
        clock.set(Timestamp::from_millis(midnight - 1));
        assert_eq!(admitted(&instances).await, 0);
        clock.set(Timestamp::from_millis(midnight));
        assert_eq!(admitted(&instances).await, 7);
    });
}

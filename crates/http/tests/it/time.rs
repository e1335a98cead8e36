//! Seconds and instants: rounding, and clocks.

use crate::kit::{AT, UnreachableStore};
use http::HeaderMap;
use http::header::RETRY_AFTER;
use tidegate::{
    Clock, Decision, Limiter, ManualClock, MemoryStore, Request, SystemClock, Timestamp,
};
use tidegate_http::answer::{self, Correlation};
use tidegate_testkit::laws::block_on;

const SECOND_US: u64 = 1_000_000;

fn limiter<C: Clock + 'static>(rate: &str, clock: C) -> Limiter<MemoryStore<C>> {
    let yaml = format!(
        "respond: {{ headers: [x-ratelimit] }}\n\
         policies: [{{ name: p, limits: [{{ name: l, rate: {rate} }}] }}]"
    );
    let builder = Limiter::builder().yaml(&yaml).unwrap();
    builder.clock(clock).build().unwrap()
}

fn headers(decision: &Decision) -> HeaderMap {
    if decision.is_allowed() {
        let mut headers = HeaderMap::new();
        answer::inform(decision, &mut headers);
        return headers;
    }
    let refusal = answer::refuse(decision, &Correlation::made());
    refusal.headers().clone()
}

fn number(headers: &HeaderMap, name: &str) -> u64 {
    headers[name].to_str().unwrap().parse().unwrap()
}

#[test]
fn waits_are_reported_in_seconds_rounded_up() {
    for (rate, passed_us, expected) in [
        ("1/s", 0, 1),
        ("1/s", 1, 1),
        ("1/s", SECOND_US - 1, 1),
        ("1/2s", 0, 2),
        ("1/2s", SECOND_US, 1),
        ("1/2s", SECOND_US - 1, 2),
        ("3/s burst 1", 0, 1),
        ("1/min", 0, 60),
    ] {
        let clock = ManualClock::at(AT);
        let limiter = limiter(rate, clock.clone());
        assert!(limiter.check_now(&Request::new()).unwrap().is_allowed());
        clock.advance_micros(passed_us);
        let decision = limiter.check_now(&Request::new()).unwrap();
        assert!(!decision.is_allowed(), "{rate} after {passed_us} µs");
        let told = number(&headers(&decision), RETRY_AFTER.as_str());
        assert_eq!(told, expected, "{rate} after {passed_us} µs");
        // A client that waits as long as reported passes.
        clock.advance_micros(told * SECOND_US);
        assert!(limiter.check_now(&Request::new()).unwrap().is_allowed());
    }
}

/// The machine's clock in a process that started before the wall clock was set.
#[derive(Clone)]
struct SteppedClock {
    machine: SystemClock,
    /// By how much the wall clock was set forward.
    ahead_us: u64,
}

impl Clock for SteppedClock {
    fn now(&self) -> Timestamp {
        let now = self.machine.now().as_micros();
        Timestamp::from_micros(now - self.ahead_us)
    }

    fn is_machine(&self) -> bool {
        self.machine.is_machine()
    }
}

#[test]
fn reset_was_an_hour_early_after_the_wall_clock_was_set() {
    let clock = SteppedClock {
        machine: SystemClock::new(),
        ahead_us: 3_600 * SECOND_US,
    };
    let limiter = limiter("1/min", clock);
    for is_allowed in [true, false] {
        let before = SystemClock::wall();
        let decision = limiter.check_now(&Request::new()).unwrap();
        assert_eq!(decision.is_allowed(), is_allowed);
        let reset = number(&headers(&decision), "x-ratelimit-reset") * SECOND_US;
        let after = SystemClock::wall();
        let bucket_us = u64::try_from(decision.binding().unwrap().reset_after().as_micros());
        let bucket_us = bucket_us.unwrap();
        assert!(reset >= before.as_micros() + bucket_us);
        assert!(reset < after.as_micros() + bucket_us + SECOND_US);
    }
}

#[test]
fn reset_of_a_limit_that_was_skipped_was_an_hour_early_after_the_wall_clock_was_set() {
    let clock = SteppedClock {
        machine: SystemClock::new(),
        ahead_us: 3_600 * SECOND_US,
    };
    let yaml = "respond: { headers: [x-ratelimit] }\n\
                policies: [{ name: p, limits: [{ name: l, rate: 9/min, \
                algorithm: fixed-window, align: clock, on_failure: allow }] }]";
    let builder = Limiter::builder().yaml(yaml).unwrap().clock(clock);
    let limiter = builder.build_with(UnreachableStore).unwrap();
    let decision = block_on(limiter.check(&Request::new())).unwrap();
    let minute_us = 60 * SECOND_US;
    let before = SystemClock::wall().as_micros();
    let reset = number(&headers(&decision), "x-ratelimit-reset") * SECOND_US;
    let after = SystemClock::wall().as_micros();
    assert_eq!(reset % minute_us, 0, "windows end with the minute");
    assert!(reset > before && reset <= after + minute_us);
}

#[test]
fn instants_follow_the_clock_of_the_store() {
    let limiter = limiter("1/min", ManualClock::at(AT));
    let decision = limiter.check_now(&Request::new()).unwrap();
    let reset = number(&headers(&decision), "x-ratelimit-reset");
    assert_eq!(reset, 1_700_000_061, "60 s after 1,700,000,000.25");
}

/// The window of a calendar band is the present one. Days and months differ in length.
#[test]
fn the_window_of_the_calendar_is_the_present_one() {
    let yaml = "respond: { headers: [draft-03, draft-11] }\n\
                policies: [{ name: p, limits: [{ name: l, align: calendar, time_zone: Europe/Berlin, \
                bands: [9/min, 50/day, 700/month] }] }]";
    let clock = ManualClock::default();
    let builder = Limiter::builder().yaml(yaml).unwrap();
    let limiter = builder.clock(clock.clone()).build().unwrap();
    for (at_ms, day, month) in [
        // 10 February and 28 March 2026, and 29 March, which has 23 hours.
        (1_770_721_200_000, 24, 28 * 24),
        (1_774_652_400_000, 24, 31 * 24 - 1),
        (1_774_738_800_000, 23, 31 * 24 - 1),
    ] {
        clock.set(Timestamp::from_millis(at_ms));
        let headers = headers(&limiter.check_now(&Request::new()).unwrap());
        let (day, month) = (day * 3_600, month * 3_600);
        assert_eq!(
            headers["ratelimit-policy"].to_str().unwrap(),
            format!("\"l.1min\";q=9;w=60, \"l.day\";q=50;w={day}, \"l.month\";q=700;w={month}")
        );
        let limit = headers["ratelimit-limit"].to_str().unwrap();
        assert_eq!(limit, format!("9, 9;w=60, 50;w={day}, 700;w={month}"));
    }
}

use super::*;

struct Bench {
    breaker: Breaker,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        Self {
            breaker: Breaker::new(),
            now: Instant::now(),
        }
    }

    fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn ask(&mut self) -> Option<BreakerPass> {
        self.breaker.ask()
    }

    fn report(&mut self, leave: BreakerPass, verdict: CallHealth) -> bool {
        self.breaker.report(leave, verdict, self.now)
    }

    /// Makes one call; returns true if it opened the breaker. Panics if it is not admitted.
    fn call(&mut self, verdict: CallHealth) -> bool {
        let leave = self.ask().expect("admitted");
        self.report(leave, verdict)
    }

    fn fail_until_open(&mut self) {
        for _ in 0..4 {
            assert!(!self.call(CallHealth::Bad));
        }
        assert!(self.call(CallHealth::Bad));
    }
}

#[test]
fn five_consecutive_failures_open_the_breaker() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    assert_eq!(bench.ask(), None);
    assert!(!bench.breaker.is_closed());
}

#[test]
fn a_success_ends_the_series_of_failures() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.call(CallHealth::Bad);
    }
    bench.call(CallHealth::Good);
    for _ in 0..4 {
        assert!(!bench.call(CallHealth::Bad));
    }
    assert!(bench.breaker.is_closed());
}

#[test]
fn series_of_failures_may_span_windows() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        assert!(!bench.call(CallHealth::Bad));
        bench.pass(10_000);
    }
    assert!(bench.call(CallHealth::Bad));
}

#[test]
fn more_than_half_of_twenty_failing_in_a_second_opens_the_breaker() {
    let mut bench = Bench::new();
    // Eight successes, eleven failures, never five in a row: nineteen calls.
    for _ in 0..8 {
        bench.call(CallHealth::Good);
        bench.call(CallHealth::Bad);
    }
    bench.call(CallHealth::Bad);
    bench.call(CallHealth::Bad);
    bench.call(CallHealth::Bad);
    assert!(bench.breaker.is_closed(), "too few to tell");
    bench.call(CallHealth::Good);
    assert!(bench.breaker.is_closed(), "a success opens nothing");
    assert!(bench.call(CallHealth::Bad), "twelve of twenty-one");
}

#[test]
fn exactly_half_failing_does_not_open_the_breaker() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        bench.call(CallHealth::Good);
        assert!(!bench.call(CallHealth::Bad));
    }
}

#[test]
fn the_window_is_a_second() {
    let mut bench = Bench::new();
    for _ in 0..9 {
        bench.call(CallHealth::Good);
        bench.call(CallHealth::Bad);
    }
    bench.call(CallHealth::Bad);
    // Ten of nineteen; the next window starts from zero.
    bench.pass(1000);
    bench.call(CallHealth::Bad);
    assert!(bench.breaker.is_closed());
}

#[test]
fn an_open_breaker_admits_no_call_at_any_age() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    for _ in 0..100 {
        bench.pass(1_000);
        assert_eq!(bench.ask(), None);
    }
}

/// Regression: it let 1 % of all calls pass at first, and took 1.4 s to let all of them pass.
#[test]
fn a_closed_breaker_admits_all_calls_at_once() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    bench.breaker.close();
    for _ in 0..1_000 {
        assert!(!bench.call(CallHealth::Good));
    }
    assert!(bench.breaker.is_closed());
}

#[test]
fn a_breaker_that_was_closed_by_a_probe_counts_from_zero() {
    let mut bench = Bench::new();
    for _ in 0..3 {
        bench.fail_until_open();
        bench.breaker.close();
    }
    bench.breaker.close();
    bench.fail_until_open();
}

#[test]
fn calls_started_before_a_state_change_are_ignored() {
    let mut bench = Bench::new();
    let old = bench.ask().unwrap();
    bench.fail_until_open();
    assert!(!bench.report(old, CallHealth::Bad));
    bench.breaker.close();
    for _ in 0..10 {
        assert!(!bench.report(old, CallHealth::Bad));
    }
    assert!(bench.breaker.is_closed());
}

#[test]
fn unknown_results_are_not_counted() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        assert!(!bench.call(CallHealth::Unknown));
    }
    for _ in 0..4 {
        bench.call(CallHealth::Bad);
        bench.call(CallHealth::Unknown);
    }
    assert!(bench.call(CallHealth::Bad), "five in a row all the same");
}

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

    fn ask(&mut self) -> Option<Leave> {
        self.breaker.ask()
    }

    fn report(&mut self, leave: Leave, verdict: CallHealth) -> bool {
        self.breaker.report(leave, verdict, self.now)
    }

    /// One call; tells whether it opened the breaker. Panics if it is not admitted.
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
fn five_failures_in_a_row_open_it() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    assert_eq!(bench.ask(), None);
    assert!(!bench.breaker.is_closed());
}

#[test]
fn a_success_breaks_the_row() {
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
fn rows_are_not_bound_to_a_window() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        assert!(!bench.call(CallHealth::Bad));
        bench.pass(10_000);
    }
    assert!(bench.call(CallHealth::Bad));
}

#[test]
fn over_half_of_twenty_in_a_second_opens_it() {
    let mut bench = Bench::new();
    // Eight good, eleven bad, never five bad in a row: nineteen calls.
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
fn exactly_half_is_not_too_much() {
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
    // Ten of nineteen; the next window starts anew.
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

/// It let 1 % of all calls pass at first, and took 1.4 s to let all of them pass.
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
fn calls_from_before_have_no_say() {
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
fn what_nobody_knows_counts_for_nothing() {
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

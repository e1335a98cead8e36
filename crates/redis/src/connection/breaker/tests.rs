use super::*;
use proptest::prelude::*;

/// The middle of the jitter: pauses are exact.
const NO_JITTER: u64 = 50;

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
        self.breaker.ask(self.now)
    }

    fn report(&mut self, leave: Leave, verdict: Verdict) -> bool {
        self.breaker.report(leave, verdict, self.now, || NO_JITTER)
    }

    /// One call; tells whether it opened the breaker. Panics if it is not admitted.
    fn call(&mut self, verdict: Verdict) -> bool {
        let leave = self.ask().expect("admitted");
        self.report(leave, verdict)
    }

    fn fail_until_open(&mut self) {
        for _ in 0..4 {
            assert!(!self.call(Verdict::Bad));
        }
        assert!(self.call(Verdict::Bad));
    }

    /// How many of `calls` are admitted now.
    fn admitted(&mut self, calls: u32) -> usize {
        (0..calls).filter(|_| self.ask().is_some()).count()
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
        bench.call(Verdict::Bad);
    }
    bench.call(Verdict::Good);
    for _ in 0..4 {
        assert!(!bench.call(Verdict::Bad));
    }
    assert!(bench.breaker.is_closed());
}

#[test]
fn rows_are_not_bound_to_a_window() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        assert!(!bench.call(Verdict::Bad));
        bench.pass(10_000);
    }
    assert!(bench.call(Verdict::Bad));
}

#[test]
fn over_half_of_twenty_in_a_second_opens_it() {
    let mut bench = Bench::new();
    // Eight good, eleven bad, never five bad in a row: nineteen calls.
    for _ in 0..8 {
        bench.call(Verdict::Good);
        bench.call(Verdict::Bad);
    }
    bench.call(Verdict::Bad);
    bench.call(Verdict::Bad);
    bench.call(Verdict::Bad);
    assert!(bench.breaker.is_closed(), "too few to tell");
    bench.call(Verdict::Good);
    assert!(bench.breaker.is_closed(), "a success opens nothing");
    assert!(bench.call(Verdict::Bad), "twelve of twenty-one");
}

#[test]
fn exactly_half_is_not_too_much() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        bench.call(Verdict::Good);
        assert!(!bench.call(Verdict::Bad));
    }
}

#[test]
fn the_window_is_a_second() {
    let mut bench = Bench::new();
    for _ in 0..9 {
        bench.call(Verdict::Good);
        bench.call(Verdict::Bad);
    }
    bench.call(Verdict::Bad);
    // Ten of nineteen; the next window starts anew.
    bench.pass(1000);
    bench.call(Verdict::Bad);
    assert!(bench.breaker.is_closed());
}

#[test]
fn it_stays_open_for_its_time_and_admits_one_probe() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    bench.pass(99);
    assert_eq!(bench.ask(), None);
    bench.pass(1);
    assert!(bench.ask().is_some());
    bench.pass(60_000);
    assert_eq!(bench.ask(), None, "the probe is still under way");
}

#[test]
fn pauses_double_up_to_five_seconds() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    for millis in [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000] {
        bench.pass(millis - 1);
        assert_eq!(bench.ask(), None, "{millis}");
        bench.pass(1);
        assert!(bench.call(Verdict::Bad), "{millis}");
    }
}

#[test]
fn pauses_are_spread_by_half() {
    for (random, millis) in [(0, 50), (50, 100), (100, 150), (101, 50)] {
        let mut bench = Bench::new();
        for _ in 0..5 {
            let leave = bench.ask().unwrap();
            let now = bench.now;
            bench.breaker.report(leave, Verdict::Bad, now, || random);
        }
        bench.pass(millis - 1);
        assert_eq!(bench.ask(), None, "{random}");
        bench.pass(1);
        assert!(bench.ask().is_some(), "{random}");
    }
}

#[test]
fn no_pause_is_longer_than_five_seconds() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    for _ in 0..40 {
        bench.pass(5_000);
        let leave = bench.ask().expect("at most five seconds");
        bench.breaker.report(leave, Verdict::Bad, bench.now, || 100);
    }
}

#[test]
fn a_probe_that_passes_ramps_up_and_closes() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    bench.pass(100);
    assert!(!bench.call(Verdict::Good));
    for percent in [1, 2, 4, 8, 16, 32, 64] {
        let admitted = bench.admitted(1000);
        assert!(
            admitted.abs_diff(percent * 10) <= 1,
            "{percent} %: {admitted}"
        );
        assert!(!bench.breaker.is_closed());
        bench.pass(200);
    }
    assert_eq!(bench.admitted(1000), 1000);
    assert!(bench.breaker.is_closed());
}

#[test]
fn the_first_call_of_a_ramp_goes() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    bench.pass(100);
    bench.call(Verdict::Good);
    assert!(bench.ask().is_some());
    assert_eq!(bench.ask(), None);
}

#[test]
fn a_failure_in_the_ramp_opens_it_for_longer() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    bench.pass(100);
    bench.call(Verdict::Good);
    bench.pass(1000);
    assert!(bench.call(Verdict::Bad));
    bench.pass(199);
    assert_eq!(bench.ask(), None);
    bench.pass(1);
    assert!(bench.ask().is_some());
}

#[test]
fn once_closed_pauses_start_small_again() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    bench.pass(100);
    bench.call(Verdict::Bad);
    bench.pass(200);
    bench.call(Verdict::Good);
    bench.pass(1400);
    bench.call(Verdict::Good);
    bench.fail_until_open();
    bench.pass(100);
    assert!(bench.ask().is_some());
}

#[test]
fn a_probe_that_was_never_sent_makes_room_for_another() {
    let mut bench = Bench::new();
    bench.fail_until_open();
    bench.pass(100);
    assert!(!bench.call(Verdict::Unknown));
    assert!(bench.ask().is_some());
}

#[test]
fn calls_from_before_have_no_say() {
    let mut bench = Bench::new();
    let old = bench.ask().unwrap();
    bench.fail_until_open();
    assert!(!bench.report(old, Verdict::Bad));
    bench.pass(100);
    bench.call(Verdict::Good);
    assert!(!bench.report(old, Verdict::Bad), "the ramp goes on");
    bench.pass(1400);
    bench.call(Verdict::Good);
    for _ in 0..10 {
        assert!(!bench.report(old, Verdict::Bad));
    }
    assert!(bench.breaker.is_closed());
}

#[test]
fn what_nobody_knows_counts_for_nothing() {
    let mut bench = Bench::new();
    for _ in 0..100 {
        assert!(!bench.call(Verdict::Unknown));
    }
    for _ in 0..4 {
        bench.call(Verdict::Bad);
        bench.call(Verdict::Unknown);
    }
    assert!(bench.call(Verdict::Bad), "five in a row all the same");
}

#[test]
fn a_new_connection_is_as_good_as_a_probe() {
    let mut bench = Bench::new();
    let now = bench.now;
    bench.breaker.connected(now);
    assert!(bench.breaker.is_closed());
    bench.fail_until_open();
    bench.breaker.connected(now);
    assert!(bench.ask().is_some());
    assert!(!bench.breaker.is_closed());
}

proptest! {
    /// Whatever happens: once nothing fails any more, it is closed within the longest pause and
    /// the ramp; and while it is open nothing gets through.
    #[test]
    fn it_always_comes_back(
        steps in prop::collection::vec((0_u64..3000, 0_u8..3, any::<u64>()), 0..200)
    ) {
        let mut bench = Bench::new();
        for (millis, verdict, random) in steps {
            bench.pass(millis);
            let verdict = [Verdict::Good, Verdict::Bad, Verdict::Unknown][usize::from(verdict)];
            if let Some(leave) = bench.ask() {
                let opened = bench.breaker.report(leave, verdict, bench.now, || random);
                if opened {
                    prop_assert_eq!(bench.ask(), None);
                }
            }
        }
        for _ in 0..70 {
            bench.pass(100);
            if let Some(leave) = bench.ask() {
                bench.report(leave, Verdict::Good);
            }
        }
        prop_assert!(bench.breaker.is_closed());
    }
}

use proptest::prelude::*;
use std::time::Duration;
use tidegate::{Algorithm, KeyPart, KeyedLimiter, LimitSpec, Limiter, Rate, Request};
use tidegate_policy::Band;

/// Returns the quota that a limit with `rate` counts by: amount, period and capacity.
fn numbers(rate: Rate) -> Result<(u64, u64, u64), String> {
    let band = Band::parse(&rate.to_string(), Algorithm::TokenBucket)?;
    let quota = band.quota;
    Ok((quota.amount(), quota.period_us(), quota.capacity()))
}

#[test]
fn a_rate_is_written_in_its_longest_unit() {
    for (rate, text) in [
        (Rate::per_second(50), "50/s"),
        (Rate::per_second(50).burst(100), "50/s burst 100"),
        (Rate::per_minute(5), "5/min"),
        (Rate::per_hour(1_000), "1000/h"),
        (Rate::per_day(7), "7/d"),
        (Rate::new(40, Duration::from_secs(10)), "40/10s"),
        (Rate::new(40, Duration::from_secs(60)), "40/min"),
        (Rate::new(2, Duration::from_secs(5_400)), "2/90min"),
        (Rate::with_period(Duration::from_millis(1_500)), "1/1500ms"),
        (Rate::with_period(Duration::from_micros(250)), "1/250us"),
        (Rate::per_second(0), "0/s"),
    ] {
        assert_eq!(rate.to_string(), text);
    }
}

#[test]
fn an_uncountable_rate_is_an_error_of_its_limit() {
    for (rate, reason) in [
        (Rate::with_period(Duration::ZERO), "the period is zero"),
        (
            Rate::with_period(Duration::from_nanos(1_500)),
            "`ns` is not a unit",
        ),
        (Rate::with_period(Duration::MAX), "is not a duration"),
        (Rate::new(1, Duration::from_secs(u64::MAX)), "is too long"),
        (Rate::per_second(1).burst(0), "a burst of 0"),
        (Rate::per_second(0).burst(1), "a rate of 0"),
        (Rate::per_day(u64::MAX), "cannot be represented"),
    ] {
        let error = Limiter::keyed(rate).unwrap_err().to_string();
        assert!(error.starts_with("limit `per-key`: "), "{error}");
        assert!(error.contains(reason), "{rate}: {error}");
    }
}

proptest! {
    /// Nothing is rounded on the way through the text.
    #[test]
    fn a_rate_counts_exactly(
        amount in 1..1_000_000_u64,
        period_us in 1..1_000_000_000_u64,
        burst in proptest::option::of(1..1_000_u64),
    ) {
        let rate = Rate::new(amount, Duration::from_micros(period_us));
        let rate = burst.map_or(rate, |units| rate.burst(units));
        // Some are too fine or too large for exact arithmetic.
        if let Ok(numbers) = numbers(rate) {
            prop_assert_eq!(numbers, (amount, period_us, burst.unwrap_or(amount)));
        }
    }
}

#[test]
fn keys_with_the_same_text_share_a_bucket_and_others_do_not() {
    let limiter = Limiter::keyed(Rate::per_day(1)).unwrap();
    let passes = |key: &dyn std::fmt::Display| limiter.check_key(key).unwrap().is_allowed();
    assert!(passes(&42));
    assert!(!passes(&"42"));
    let long = "x".repeat(200);
    for key in [
        "ann",
        "ann,bob",
        "ann:bob",
        "",
        " ",
        "ünï",
        &long,
        &format!("{long}y"),
    ] {
        assert!(passes(&key), "{key}");
        assert!(!passes(&key), "{key}");
    }
}

#[test]
fn a_key_is_decided_like_a_request_by_that_user() {
    let rate = "2/h";
    let limit = LimitSpec::new("per-user").key(KeyPart::User).band(rate);
    let keyed = KeyedLimiter::new(Limiter::builder().limit(limit).build().unwrap());
    let request = Request::new().user("ann");
    assert!(keyed.check_key("ann").unwrap().is_allowed());
    let other = keyed.limiter().check_now(&request).unwrap();
    let band = other.binding().unwrap();
    assert_eq!((band.key(), band.remaining()), ("user:ann", 0));
    assert!(!keyed.clone().check_key("ann").unwrap().is_allowed());
}

//! Describes the amount that a band admits on average, at once and at worst.

// A new algorithm is an error here, and not a guess.
#![deny(clippy::wildcard_enum_match_arm)]

use super::words::{any, per, period};
use tidegate_core::quota::WINDOW_PARTS;
use tidegate_core::{Algorithm, Align, Quota};
use tidegate_policy::calendar::{CalendarAnchor, CalendarPeriod, CalendarSettings};
use tidegate_policy::limit::{Band, ChargeTime};
use tidegate_policy::plan::LABEL;

/// Describes a band in one sentence. With `charge: always`, a single charge may exceed the limit by any
/// amount, so there is no worst case to state.
pub(super) fn explain(band: &Band, charge: ChargeTime) -> String {
    let quota = &band.quota;
    let label = match band.label.as_ref().filter(|label| *label != LABEL) {
        Some(label) => format!("Band `{label}`: "),
        None => String::new(),
    };
    if quota.amount() == 0 {
        return format!("{label}All requests are refused.");
    }
    if matches!(charge, ChargeTime::Always | ChargeTime::InFlight) {
        return format!("{label}{}.", how_much(quota));
    }
    format!("{label}{}; {}.", how_much(quota), at_worst(quota))
}

fn how_much(quota: &Quota) -> String {
    let (amount, period_us) = (quota.amount(), quota.period_us());
    match quota.algorithm() {
        Algorithm::TokenBucket => format!(
            "{amount} {} on average, up to {} at once (a bucket that refills evenly, exact)",
            per(period_us),
            quota.capacity()
        ),
        Algorithm::FixedWindow(Align::FirstRequest) => format!(
            "{amount} in each window of {}, which opens with its first request",
            period(period_us)
        ),
        Algorithm::FixedWindow(Align::Clock) => format!(
            "{amount} in each window of {}, which starts by the clock (UTC)",
            period(period_us)
        ),
        Algorithm::CalendarWindow => calendar_windows(quota),
        Algorithm::Concurrent => format!("{amount} in flight at once (exact)"),
        Algorithm::SlidingWindow => format!(
            "{amount} {}, as two counters estimate it (cheap, not exact)",
            per(period_us)
        ),
        Algorithm::BucketedWindow => format!(
            "{amount} {}, counted in {WINDOW_PARTS} parts (never over; each returns up to one part late)",
            per(period_us)
        ),
        Algorithm::SlidingLog => {
            format!("{amount} {}, each request recorded (exact)", per(period_us))
        }
    }
}

/// Describes windows of the calendar, such as "1000 in each month of the calendar in Europe/Berlin".
fn calendar_windows(quota: &Quota) -> String {
    let amount = quota.amount();
    let Some((period, settings)) = quota.calendar().and_then(CalendarSettings::of) else {
        return format!("{amount} in each window of the calendar");
    };
    let start = match (settings.anchor, period) {
        (Some(CalendarAnchor::DayOfMonth(day)), _) => {
            format!(", from day {day} at 00:00 or the last day of a shorter month")
        }
        (Some(anchor @ CalendarAnchor::DateTime(_)), _) => format!(", counted from {anchor}"),
        (None, CalendarPeriod::Week) => format!(", from {}", settings.week_start.word()),
        (None, _) => String::new(),
    };
    let (period, zone) = (period.word(), settings.zone.name());
    format!("{amount} in each {period} of the calendar in {zone}{start}")
}

/// Returns the maximum that can pass in any interval as long as the period.
fn at_worst(quota: &Quota) -> String {
    let amount = quota.amount();
    let most = match quota.algorithm() {
        Algorithm::TokenBucket => quota.capacity().saturating_add(amount),
        Algorithm::FixedWindow(_) | Algorithm::CalendarWindow => amount.saturating_mul(2),
        // One less than twice the amount: the last unit of a full window still counts in the next
        // window until that one ends.
        Algorithm::SlidingWindow => amount.saturating_mul(2).saturating_sub(1),
        Algorithm::SlidingLog | Algorithm::BucketedWindow | Algorithm::Concurrent => amount,
    };
    match quota.calendar().and_then(CalendarSettings::of) {
        Some((period, _)) => format!("at worst {most} in any {}", period.word()),
        None => format!("at worst {most} in {}", any(quota.period_us())),
    }
}

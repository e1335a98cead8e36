//! Describes the amount that a band admits on average, at once and at worst.

use super::words::{any, per, period};
use crate::limit::{Band, ChargeTime};
use crate::plan::LABEL;
use tidegate_core::quota::WINDOW_PARTS;
use tidegate_core::{Algorithm, Align, Quota};

/// Describes a band in one sentence. With `charge: always`, a single charge may exceed the limit by any
/// amount, so there is no worst case to state.
pub(super) fn explain(band: &Band, charge: ChargeTime) -> String {
    let quota = &band.quota;
    let label = match band.label.as_ref().filter(|label| *label != LABEL) {
        Some(label) => format!("Band `{label}`: "),
        None => String::new(),
    };
    if quota.amount() == 0 {
        return format!("{label}Nothing passes at all.");
    }
    if charge == ChargeTime::Always {
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
        Algorithm::SlidingWindow => format!(
            "{amount} {}, as two counters estimate it (cheap, not exact)",
            per(period_us)
        ),
        Algorithm::BucketedWindow => format!(
            "{amount} {}, counted in {WINDOW_PARTS} parts (never over; each returns up to one part late)",
            per(period_us)
        ),
        Algorithm::SlidingLog => format!("{amount} {}, each remembered (exact)", per(period_us)),
    }
}

/// Returns the maximum that can pass in any interval as long as the period.
fn at_worst(quota: &Quota) -> String {
    let amount = quota.amount();
    let most = match quota.algorithm() {
        Algorithm::TokenBucket => quota.capacity().saturating_add(amount),
        Algorithm::FixedWindow(_) => amount.saturating_mul(2),
        // One less than twice the amount: the last unit of a full window still counts in the next
        // window until that one ends.
        Algorithm::SlidingWindow => amount.saturating_mul(2).saturating_sub(1),
        Algorithm::SlidingLog | Algorithm::BucketedWindow => amount,
    };
    format!("at worst {most} in {}", any(quota.period_us()))
}

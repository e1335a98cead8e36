//! How much a band lets through, on average, at once, and at worst.

use super::words::{any, per, period};
use crate::limit::{Band, ChargeTime};
use crate::plan::LABEL;
use tidegate_core::quota::WINDOW_PARTS;
use tidegate_core::{Algorithm, Align, Quota};

/// One sentence for a band. What is charged always may be over by any cost, so that there is no
/// worst case to tell.
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

/// The most that can pass in any stretch of time as long as the period.
fn at_worst(quota: &Quota) -> String {
    let amount = quota.amount();
    let most = match quota.algorithm() {
        Algorithm::TokenBucket => quota.capacity().saturating_add(amount),
        Algorithm::FixedWindow(_) => amount.saturating_mul(2),
        // One short of twice: the last unit of a full window weighs on the next until it is over.
        Algorithm::SlidingWindow => amount.saturating_mul(2).saturating_sub(1),
        Algorithm::SlidingLog | Algorithm::BucketedWindow => amount,
    };
    format!("at worst {most} in {}", any(quota.period_us()))
}

//! Fixed windows of whole seconds, `start:count`.
//!
//! A window that begins between two seconds is stored as beginning with the later one: it ends up to a
//! second later than it would, and never admits more. A charge from before that second can be refunded
//! until it begins; after that it cannot be distinguished from charges of the previous window.

use super::key::Form;
use super::text::whole;
use tidegate_core::algorithm::FixedWindow;
use tidegate_core::quota::EXACT_MAX;
use tidegate_core::{Algorithm, Bucket, Outcome, Quota, Receipt, Timestamp, Wait};

/// A second in microseconds: the documented instants are whole seconds.
const SECOND_US: u64 = 1_000_000;

/// Returns true if windows of this quota end with whole seconds if they begin with them.
pub(super) fn is_whole(quota: &Quota) -> bool {
    matches!(quota.algorithm(), Algorithm::FixedWindow(_))
        && quota.period_us().is_multiple_of(SECOND_US)
}

/// The window in `start:count`.
pub(super) fn read(value: &[u8]) -> Option<FixedWindow> {
    let colon = value.iter().position(|byte| *byte == b':')?;
    let (start, count) = value.split_at_checked(colon)?;
    let start = whole(start)?.saturating_mul(SECOND_US);
    let used = whole(count.strip_prefix(b":")?)?;
    if start > EXACT_MAX {
        return None;
    }
    // Without a count there is no window.
    let start = if used == 0 { 0 } else { start };
    Some(FixedWindow { start, used })
}

/// The shift of a window's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounding {
    later_us: u64,
}

impl Rounding {
    /// Lets a window begin with a whole second.
    pub(crate) fn of(bucket: &mut Bucket) -> Self {
        let mut later_us = 0;
        if let Bucket::Fixed(window) = bucket
            && window.used > 0
        {
            let start = window.start.next_multiple_of(SECOND_US);
            later_us = start.saturating_sub(window.start);
            window.start = start;
        }
        Self { later_us }
    }

    /// Corrects an outcome from before the shift.
    pub(crate) fn correct(self, outcome: &mut Outcome) {
        if outcome.reset_us > 0 {
            outcome.reset_us = outcome.reset_us.saturating_add(self.later_us);
        }
        if let Some(wait_us @ 1..) = outcome.wait.as_micros() {
            outcome.wait = Wait::from_micros(wait_us.saturating_add(self.later_us));
        }
    }
}

/// Returns a receipt as the engine understands it: a charge in the second before the window begins
/// belongs to it.
pub(crate) fn receipt(
    form: Form,
    (bucket, quota): (&Bucket, &Quota),
    mut receipt: Receipt,
    now: Timestamp,
) -> Receipt {
    let now = now.as_micros();
    if form == Form::Window
        && let Bucket::Fixed(window) = bucket
    {
        let is_open = window.used > 0 && now < window.start.saturating_add(quota.period_us());
        // Where there is none, one may be opened before this has its turn.
        let start = if is_open {
            window.start
        } else {
            now.next_multiple_of(SECOND_US)
        };
        if now < start && receipt.at.as_micros() > start.saturating_sub(SECOND_US) {
            receipt.at = Timestamp::from_micros(start);
        }
    }
    receipt
}

//! The name of a band, and its quota, as written in header fields. They are computed once because every
//! response contains them.

// A new algorithm is an error here, and not a guess.
#![deny(clippy::wildcard_enum_match_arm)]

use crate::calendar::starts_around;
use crate::unit::Unit;
use std::borrow::Cow;
use tidegate_core::quota::CalendarCode;
use tidegate_core::{Algorithm, Quota};

/// The texts of a band in header fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderNames {
    name: String,
    draft_11: String,
    draft_03: String,
    window_s: u64,
    per_second: u64,
    capacity: u64,
    /// The calendar of its windows, whose lengths differ.
    calendar: Option<CalendarCode>,
    /// The parameter that names the unit; empty for requests.
    unit: String,
    /// True if it counts requests in flight, which have no window.
    concurrent: bool,
}

impl HeaderNames {
    /// Returns the name, unique in the policy: the limit's name and, if the limit has several bands, the
    /// band's label or period after a dot. If names are hidden, it is a number.
    ///
    /// It is visible ASCII without quotes and backslashes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns an item of `RateLimit-Policy` in draft 11: `"per-client";q=50;w=5`, with `;qu="tokens"` after
    /// `q` if the limit does not count requests. Requests in flight are `"per-client";q=20;qu="concurrent-requests"`. The window of a calendar is the
    /// one around an instant in Unix milliseconds.
    pub fn draft_11(&self, at_ms: u64) -> Cow<'_, str> {
        match self.calendar {
            None => Cow::Borrowed(&self.draft_11),
            Some(_) => Cow::Owned(self.item_11(self.window_s(at_ms))),
        }
    }

    /// Returns an item of `RateLimit-Limit` in draft 03: `50;w=5`, or `20` for requests in flight, with the window like [`draft_11`](Self::draft_11).
    pub fn draft_03(&self, at_ms: u64) -> Cow<'_, str> {
        match self.calendar {
            None => Cow::Borrowed(&self.draft_03),
            Some(_) => Cow::Owned(self.item_03(self.window_s(at_ms))),
        }
    }

    /// Returns the seconds after which an empty bucket is full again at the latest, rounded up.
    pub fn window_max_s(&self) -> u64 {
        self.window_s
    }

    /// Returns the length of the window of a calendar around an instant; of any other band, the time after which an
    /// empty bucket is full again.
    fn window_s(&self, at_ms: u64) -> u64 {
        let starts = self.calendar.and_then(|code| starts_around(code, at_ms));
        starts.map_or(self.window_s, |starts| starts.length_ms() / 1_000)
    }

    fn item_11(&self, window_s: u64) -> String {
        let capacity = integer(self.capacity);
        let Self { name, unit, .. } = self;
        let item = format!("\"{name}\";q={capacity}{unit}");
        if self.concurrent {
            return item;
        }
        format!("{item};w={window_s}")
    }

    fn item_03(&self, window_s: u64) -> String {
        if self.concurrent {
            return self.capacity.to_string();
        }
        format!("{};w={window_s}", self.capacity)
    }

    /// Returns true if it counts requests in flight: there is no time after which it is full again.
    pub fn is_concurrent(&self) -> bool {
        self.concurrent
    }

    /// Returns the whole units per second, at least 1.
    pub fn per_second(&self) -> u64 {
        self.per_second
    }

    pub(crate) fn new(name: String, quota: &Quota, unit: &Unit) -> Self {
        let unit = unit.reported();
        let concurrent = quota.algorithm().is_concurrent();
        let unit = match unit {
            _ if concurrent => ";qu=\"concurrent-requests\"".to_owned(),
            Some(unit) => format!(";qu=\"{unit}\""),
            None => String::new(),
        };
        let mut names = Self {
            unit,
            concurrent,
            draft_11: String::new(),
            draft_03: String::new(),
            name,
            window_s: window_s(quota),
            per_second: per_second(quota),
            capacity: quota.capacity(),
            calendar: quota.calendar(),
        };
        names.draft_11 = names.item_11(names.window_s);
        names.draft_03 = names.item_03(names.window_s);
        names
    }
}

/// The largest integer of structured fields: fifteen digits.
const INTEGER_MAX: u64 = 999_999_999_999_999;

fn integer(number: u64) -> u64 {
    number.min(INTEGER_MAX)
}

/// Returns the seconds after which an empty bucket is full again, rounded up.
fn window_s(quota: &Quota) -> u64 {
    let micros = match quota.algorithm() {
        // Refills evenly: capacity ÷ (amount ÷ period).
        Algorithm::TokenBucket => {
            let all = u128::from(quota.capacity()) * u128::from(quota.period_us());
            all.div_ceil(u128::from(quota.amount()).max(1))
        }
        Algorithm::FixedWindow(_)
        | Algorithm::SlidingWindow
        | Algorithm::SlidingLog
        | Algorithm::BucketedWindow
        | Algorithm::CalendarWindow
        | Algorithm::Concurrent => u128::from(quota.period_us()),
    };
    let seconds = micros.div_ceil(1_000_000).max(1);
    u64::try_from(seconds).map_or(INTEGER_MAX, integer)
}

/// Returns the whole units per second, at least 1.
fn per_second(quota: &Quota) -> u64 {
    let units = u128::from(quota.amount()) * 1_000_000 / u128::from(quota.period_us()).max(1);
    u64::try_from(units).unwrap_or(u64::MAX).max(1)
}

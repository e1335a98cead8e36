//! The periods of the calendar, as rates name them.

/// The period of a calendar window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CalendarPeriod {
    /// An hour of the local clock.
    Hour,
    /// A day.
    Day,
    /// Seven days.
    Week,
    /// A month.
    Month,
    /// Three months.
    Quarter,
    /// A year.
    Year,
}

impl CalendarPeriod {
    /// All of them, the shortest first.
    pub const ALL: [Self; 6] = [
        Self::Hour,
        Self::Day,
        Self::Week,
        Self::Month,
        Self::Quarter,
        Self::Year,
    ];

    /// Returns its word in a rate: `month` in `1000/month`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
        }
    }

    /// Returns the period that a word in a rate names, also in the plural.
    pub fn parse(word: &str) -> Option<Self> {
        let singular = word.strip_suffix('s').unwrap_or(word);
        Self::ALL.into_iter().find(|it| it.word() == singular)
    }

    /// Returns the length of its longest window on a clock that is never changed, in microseconds: the period of its
    /// quotas.
    pub const fn longest_us(self) -> u64 {
        const HOUR_US: u64 = 3_600_000_000;
        match self {
            Self::Hour => HOUR_US,
            Self::Day => 24 * HOUR_US,
            Self::Week => 168 * HOUR_US,
            Self::Month => 31 * 24 * HOUR_US,
            Self::Quarter => 92 * 24 * HOUR_US,
            Self::Year => 366 * 24 * HOUR_US,
        }
    }

    /// Returns true for periods whose length differs even in UTC. A day of the month can be their
    /// [anchor](crate::calendar::CalendarAnchor).
    pub const fn has_months(self) -> bool {
        match self {
            Self::Hour | Self::Day | Self::Week => false,
            Self::Month | Self::Quarter | Self::Year => true,
        }
    }
}

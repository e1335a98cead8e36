//! Starts of windows, found in another way: local dates are stepped one day at a time, and instants are
//! searched by trying them. Only the offset of a zone at an instant is shared with the code under test.

/// A date, and the days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OracleDate {
    year: i64,
    month: i64,
    day: i64,
    number: i64,
}

const EPOCH: OracleDate = OracleDate {
    year: 1970,
    month: 1,
    day: 1,
    number: 0,
};

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl OracleDate {
    fn tomorrow(self) -> Self {
        let number = self.number + 1;
        let (year, month, day) = if self.day < month_length(self.year, self.month) {
            (self.year, self.month, self.day + 1)
        } else if self.month < 12 {
            (self.year, self.month + 1, 1)
        } else {
            (self.year + 1, 1, 1)
        };
        Self {
            year,
            month,
            day,
            number,
        }
    }

    fn yesterday(self) -> Self {
        let number = self.number - 1;
        let (year, month, day) = if self.day > 1 {
            (self.year, self.month, self.day - 1)
        } else if self.month > 1 {
            (
                self.year,
                self.month - 1,
                month_length(self.year, self.month - 1),
            )
        } else {
            (self.year - 1, 12, 31)
        };
        Self {
            year,
            month,
            day,
            number,
        }
    }

    /// Returns the date of a number of days.
    fn of_number(number: i64) -> Self {
        let mut date = EPOCH;
        // Whole years first: ten thousand steps instead of millions.
        loop {
            let days = if is_leap(date.year) { 366 } else { 365 };
            if date.number + days > number {
                break;
            }
            date.year += 1;
            date.number += days;
        }
        while date.number < number {
            date = date.tomorrow();
        }
        while date.number > number {
            date = date.yesterday();
        }
        date
    }

    /// Returns the day of the week: 0 is Monday. 1970-01-01 was a Thursday.
    fn weekday(self) -> i64 {
        (self.number + 3).rem_euclid(7)
    }
}

/// The date and time of an anchor: year, month, day, and the seconds since midnight.
pub(super) type OracleAnchor = (i64, i64, i64, i64);

/// A rule of windows, in the terms of the oracle.
#[derive(Clone, Copy, Debug)]
pub(super) struct OracleRule {
    /// The word of the period.
    pub(super) period: &'static str,
    /// The day with which weeks begin: 0 is Monday.
    pub(super) week_start: i64,
    /// The day of the month with which months, quarters and years begin.
    pub(super) month_day: Option<i64>,
    /// The date and time from which windows are counted.
    pub(super) anchor: Option<OracleAnchor>,
}

impl OracleRule {
    /// Returns the seconds since midnight of the starts on a date.
    fn times_on(&self, date: OracleDate) -> Vec<i64> {
        let (_, anchor_month, anchor_day, time) =
            self.anchor
                .unwrap_or((1970, 1, self.month_day.unwrap_or(1), 0));
        if self.period == "hour" {
            return (0..24).map(|hour| hour * 3_600 + time % 3_600).collect();
        }
        let is_day = date.day == anchor_day.min(month_length(date.year, date.month));
        let begins = match self.period {
            "day" => true,
            "week" => date.weekday() == self.first_weekday(),
            "month" => is_day,
            "quarter" => is_day && (date.month + 12 - anchor_month) % 3 == 0,
            "year" => is_day && date.month == anchor_month,
            other => panic!("no period {other}"),
        };
        if begins { vec![time] } else { Vec::new() }
    }

    fn first_weekday(&self) -> i64 {
        let Some((year, month, day, _)) = self.anchor else {
            return self.week_start;
        };
        let mut date = EPOCH;
        while date.year < year {
            date.number += if is_leap(date.year) { 366 } else { 365 };
            date.year += 1;
        }
        while (date.month, date.day) != (month, day) {
            date = date.tomorrow();
        }
        date.weekday()
    }

    /// Returns the days on each side of a date that have two starts for certain.
    fn reach(&self) -> i64 {
        match self.period {
            "hour" | "day" => 5,
            "week" => 20,
            "month" => 100,
            "quarter" => 300,
            _ => 1_100,
        }
    }

    /// Returns the local starts around a local time, in order.
    fn local_starts(&self, local: i64) -> Vec<i64> {
        let day = local.div_euclid(DAY);
        let mut date = OracleDate::of_number(day - self.reach());
        let mut starts = Vec::new();
        while date.number <= day + self.reach() {
            let midnight = date.number * DAY;
            starts.extend(self.times_on(date).into_iter().map(|time| midnight + time));
            date = date.tomorrow();
        }
        starts
    }

    /// Returns the last start before the window around `at`, its start, its end, and the next start.
    pub(super) fn starts(&self, at: i64, offset: impl Fn(i64) -> i64) -> [i64; 4] {
        let local = at + offset(at);
        let starts = self.local_starts(local);
        // The clock may have shown as much as two days more, and then gone back.
        let shown = starts.partition_point(|start| *start <= local + 2 * DAY + HOUR * 6);
        let mut before: Vec<i64> = Vec::new();
        for start in starts[..shown].iter().rev() {
            let reached = first_showing(*start, &offset);
            if reached <= at && !before.contains(&reached) {
                before.push(reached);
            }
            if before.len() == 2 {
                break;
            }
        }
        let mut after: Vec<i64> = Vec::new();
        let first = starts.partition_point(|start| *start <= local);
        for start in &starts[first..] {
            let reached = first_showing(*start, &offset);
            if reached > at && !after.contains(&reached) {
                after.push(reached);
            }
            if after.len() == 2 {
                break;
            }
        }
        [before[1], before[0], after[0], after[1]]
    }
}

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// Returns the first instant at which the local clock shows a time or a later one.
fn first_showing(local: i64, offset: &impl Fn(i64) -> i64) -> i64 {
    let (first, last) = (local - 26 * HOUR, local + 26 * HOUR);
    let steady = offset(first);
    if (first..=last).step_by(3_600).all(|at| offset(at) == steady) {
        return local - steady;
    }
    let shows = |at: i64| at + offset(at) >= local;
    let minute = (first..=last).step_by(60).find(|at| shows(*at));
    let minute = minute.expect("no clock is behind by more");
    let second = (minute - 60..=minute).find(|at| shows(*at));
    second.expect("the last one does")
}

#[test]
fn stepped_dates_are_those_of_the_calendar() {
    let cases = [
        (0, (1970, 1, 1), 3),
        (59, (1970, 3, 1), 6),
        (11_016, (2000, 2, 29), 1),
        (20_684, (2026, 8, 19), 2),
        (-1, (1969, 12, 31), 2),
        (2_932_896, (9999, 12, 31), 4),
    ];
    for (number, (year, month, day), weekday) in cases {
        let date = OracleDate::of_number(number);
        assert_eq!(
            (date.year, date.month, date.day),
            (year, month, day),
            "{number}"
        );
        assert_eq!((date.number, date.weekday()), (number, weekday), "{number}");
        assert_eq!(date.tomorrow().yesterday(), date);
    }
}

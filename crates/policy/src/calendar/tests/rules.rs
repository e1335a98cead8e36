//! The rules of calendar windows, one by one.

use super::{at, text, windows};
use crate::calendar::{
    CalendarPeriod, CalendarStarts, CalendarWindows, CalendarZone, InstantTooLate, Weekday,
};

fn shown(starts: CalendarStarts) -> [String; 4] {
    [
        starts.previous_ms(),
        starts.start_ms(),
        starts.end_ms(),
        starts.after_end_ms(),
    ]
    .map(text)
}

/// Asserts the four starts around an instant, and that each window is found from its first and last
/// millisecond.
fn assert_starts(windows: &CalendarWindows, instant: &str, expected: [&str; 4]) {
    let around = |at_ms: u64| windows.around(at_ms).expect("a year before 10000");
    assert_eq!(shown(around(at(instant))), expected, "around {instant}");
    let [previous, start, end, _] = expected;
    assert_eq!(shown(around(at(start)))[1..3], [start, end], "at its start");
    assert_eq!(shown(around(at(end) - 1))[1..3], [start, end], "at its end");
    assert_eq!(
        shown(around(at(start) - 1))[1..3],
        [previous, start],
        "before"
    );
    assert_eq!(shown(around(at(end)))[1], end, "after");
}

fn assert_window(windows: &CalendarWindows, instant: &str, start: &str, end: &str) {
    let starts = shown(windows.around(at(instant)).expect("a year before 10000"));
    assert_eq!(starts[1..3], [start, end], "around {instant}");
}

#[test]
fn periods_of_the_calendar_in_utc() {
    for (period, expected) in [
        (
            CalendarPeriod::Hour,
            [
                "2026-08-19T11:00:00Z",
                "2026-08-19T12:00:00Z",
                "2026-08-19T13:00:00Z",
                "2026-08-19T14:00:00Z",
            ],
        ),
        (
            CalendarPeriod::Day,
            [
                "2026-08-18T00:00:00Z",
                "2026-08-19T00:00:00Z",
                "2026-08-20T00:00:00Z",
                "2026-08-21T00:00:00Z",
            ],
        ),
        (
            CalendarPeriod::Week,
            [
                "2026-08-10T00:00:00Z",
                "2026-08-17T00:00:00Z",
                "2026-08-24T00:00:00Z",
                "2026-08-31T00:00:00Z",
            ],
        ),
        (
            CalendarPeriod::Month,
            [
                "2026-07-01T00:00:00Z",
                "2026-08-01T00:00:00Z",
                "2026-09-01T00:00:00Z",
                "2026-10-01T00:00:00Z",
            ],
        ),
        (
            CalendarPeriod::Quarter,
            [
                "2026-04-01T00:00:00Z",
                "2026-07-01T00:00:00Z",
                "2026-10-01T00:00:00Z",
                "2027-01-01T00:00:00Z",
            ],
        ),
        (
            CalendarPeriod::Year,
            [
                "2025-01-01T00:00:00Z",
                "2026-01-01T00:00:00Z",
                "2027-01-01T00:00:00Z",
                "2028-01-01T00:00:00Z",
            ],
        ),
    ] {
        assert_starts(
            &windows(period, "UTC", None),
            "2026-08-19T12:34:56.789Z",
            expected,
        );
    }
}

#[test]
fn a_week_begins_on_any_weekday() {
    // 2026-08-19 is a Wednesday.
    for (week_start, start, end) in [
        (
            Weekday::Monday,
            "2026-08-17T00:00:00Z",
            "2026-08-24T00:00:00Z",
        ),
        (
            Weekday::Wednesday,
            "2026-08-19T00:00:00Z",
            "2026-08-26T00:00:00Z",
        ),
        (
            Weekday::Thursday,
            "2026-08-13T00:00:00Z",
            "2026-08-20T00:00:00Z",
        ),
        (
            Weekday::Sunday,
            "2026-08-16T00:00:00Z",
            "2026-08-23T00:00:00Z",
        ),
    ] {
        let weekly =
            CalendarWindows::new(CalendarPeriod::Week, CalendarZone::utc(), week_start, None);
        assert_window(&weekly, "2026-08-19T12:00Z", start, end);
    }
}

#[test]
fn a_clamped_day_is_restored() {
    let monthly = windows(CalendarPeriod::Month, "UTC", Some("31"));
    assert_starts(
        &monthly,
        "2026-02-14T00:00Z",
        [
            "2025-12-31T00:00:00Z",
            "2026-01-31T00:00:00Z",
            "2026-02-28T00:00:00Z",
            "2026-03-31T00:00:00Z",
        ],
    );
    let leap = windows(CalendarPeriod::Month, "UTC", Some("30"));
    assert_window(
        &leap,
        "2024-02-29T00:00Z",
        "2024-02-29T00:00:00Z",
        "2024-03-30T00:00:00Z",
    );
    let yearly = windows(CalendarPeriod::Year, "UTC", Some("2024-02-29T00:00"));
    assert_starts(
        &yearly,
        "2026-08-01T00:00Z",
        [
            "2025-02-28T00:00:00Z",
            "2026-02-28T00:00:00Z",
            "2027-02-28T00:00:00Z",
            "2028-02-29T00:00:00Z",
        ],
    );
    assert_window(
        &yearly,
        "2100-03-01T00:00Z",
        "2100-02-28T00:00:00Z",
        "2101-02-28T00:00:00Z",
    );
}

#[test]
fn a_day_of_the_month_begins_quarters_and_years_of_the_calendar() {
    let quarterly = windows(CalendarPeriod::Quarter, "UTC", Some("31"));
    assert_starts(
        &quarterly,
        "2026-02-14T00:00Z",
        [
            "2025-10-31T00:00:00Z",
            "2026-01-31T00:00:00Z",
            "2026-04-30T00:00:00Z",
            "2026-07-31T00:00:00Z",
        ],
    );
    let yearly = windows(CalendarPeriod::Year, "UTC", Some("15"));
    assert_window(
        &yearly,
        "2026-01-14T23:00Z",
        "2025-01-15T00:00:00Z",
        "2026-01-15T00:00:00Z",
    );
}

#[test]
fn a_day_of_the_month_leaves_shorter_periods_as_they_are() {
    for period in [
        CalendarPeriod::Hour,
        CalendarPeriod::Day,
        CalendarPeriod::Week,
    ] {
        let anchored = windows(period, "Europe/Berlin", Some("17"));
        assert_eq!(anchored, windows(period, "Europe/Berlin", None));
    }
    let saturday = |anchor: Option<&str>| {
        let anchor =
            anchor.map(|it| crate::calendar::CalendarAnchor::parse(it).expect("an anchor"));
        let zone = CalendarZone::utc();
        CalendarWindows::new(CalendarPeriod::Week, zone, Weekday::Saturday, anchor)
    };
    assert_eq!(saturday(Some("17")), saturday(None));
}

#[test]
fn a_date_and_time_begins_every_period() {
    let anchor = Some("2026-01-31T09:40");
    for (period, start, end) in [
        (
            CalendarPeriod::Hour,
            "2026-08-19T11:40:00Z",
            "2026-08-19T12:40:00Z",
        ),
        (
            CalendarPeriod::Day,
            "2026-08-19T09:40:00Z",
            "2026-08-20T09:40:00Z",
        ),
        // 2026-01-31 is a Saturday.
        (
            CalendarPeriod::Week,
            "2026-08-15T09:40:00Z",
            "2026-08-22T09:40:00Z",
        ),
        (
            CalendarPeriod::Month,
            "2026-07-31T09:40:00Z",
            "2026-08-31T09:40:00Z",
        ),
        (
            CalendarPeriod::Quarter,
            "2026-07-31T09:40:00Z",
            "2026-10-31T09:40:00Z",
        ),
        (
            CalendarPeriod::Year,
            "2026-01-31T09:40:00Z",
            "2027-01-31T09:40:00Z",
        ),
    ] {
        assert_window(
            &windows(period, "UTC", anchor),
            "2026-08-19T12:00Z",
            start,
            end,
        );
    }
    let quarterly = windows(CalendarPeriod::Quarter, "UTC", Some("2025-11-30T18:00"));
    assert_window(
        &quarterly,
        "2026-03-01T00:00Z",
        "2026-02-28T18:00:00Z",
        "2026-05-30T18:00:00Z",
    );
}

#[test]
fn an_anchor_counts_in_both_directions() {
    let before = windows(CalendarPeriod::Month, "UTC", Some("2026-01-31T09:00"));
    assert_window(
        &before,
        "1999-03-01T00:00Z",
        "1999-02-28T09:00:00Z",
        "1999-03-31T09:00:00Z",
    );
    for period in CalendarPeriod::ALL {
        let early = windows(period, "America/New_York", Some("1972-02-29T02:30"));
        let late = windows(period, "America/New_York", Some("2400-02-29T02:30"));
        for instant in [
            "1970-06-01T00:00Z",
            "2026-08-19T12:00Z",
            "2999-01-01T00:00Z",
        ] {
            // 428 years are no whole number of weeks.
            if period != CalendarPeriod::Week {
                assert_eq!(
                    early.around(at(instant)),
                    late.around(at(instant)),
                    "{instant}"
                );
            }
        }
    }
}

#[test]
fn a_start_that_the_clock_skips_is_the_first_instant_after_the_gap() {
    // In Berlin, 02:00 to 03:00 of 31 March 2024 were skipped.
    let monthly = windows(
        CalendarPeriod::Month,
        "Europe/Berlin",
        Some("2024-01-31T02:30"),
    );
    assert_starts(
        &monthly,
        "2024-03-01T12:00Z",
        [
            "2024-01-31T01:30:00Z",
            "2024-02-29T01:30:00Z",
            "2024-03-31T01:00:00Z",
            "2024-04-30T00:30:00Z",
        ],
    );
    // In São Paulo, summer time began at midnight.
    let daily = windows(CalendarPeriod::Day, "America/Sao_Paulo", None);
    assert_window(
        &daily,
        "2018-11-04T12:00Z",
        "2018-11-04T03:00:00Z",
        "2018-11-05T02:00:00Z",
    );
}

#[test]
fn a_start_that_the_clock_shows_twice_is_the_first() {
    // In Berlin, 02:00 to 03:00 of 27 October 2024 came twice, from 00:00Z and from 01:00Z.
    let daily = windows(
        CalendarPeriod::Day,
        "Europe/Berlin",
        Some("2024-01-01T02:30"),
    );
    assert_window(
        &daily,
        "2024-10-27T00:29:59.999Z",
        "2024-10-26T00:30:00Z",
        "2024-10-27T00:30:00Z",
    );
    for repeated in [
        "2024-10-27T00:30Z",
        "2024-10-27T01:00Z",
        "2024-10-27T01:29Z",
        "2024-10-27T01:30Z",
    ] {
        assert_window(
            &daily,
            repeated,
            "2024-10-27T00:30:00Z",
            "2024-10-28T01:30:00Z",
        );
    }
    // In Havana, summer time ends at 01:00: midnight comes twice.
    let daily = windows(CalendarPeriod::Day, "America/Havana", None);
    assert_window(
        &daily,
        "2024-11-03T05:30Z",
        "2024-11-03T04:00:00Z",
        "2024-11-04T05:00:00Z",
    );
}

#[test]
fn starts_in_one_gap_are_one_start() {
    // In Apia, 30 December 2011 was skipped.
    let daily = windows(CalendarPeriod::Day, "Pacific/Apia", None);
    assert_starts(
        &daily,
        "2011-12-30T00:00Z",
        [
            "2011-12-28T10:00:00Z",
            "2011-12-29T10:00:00Z",
            "2011-12-30T10:00:00Z",
            "2011-12-31T10:00:00Z",
        ],
    );
    let from_noon = windows(
        CalendarPeriod::Day,
        "Pacific/Apia",
        Some("2011-01-01T12:00"),
    );
    assert_starts(
        &from_noon,
        "2011-12-30T12:00Z",
        [
            "2011-12-29T22:00:00Z",
            "2011-12-30T10:00:00Z",
            "2011-12-30T22:00:00Z",
            "2011-12-31T22:00:00Z",
        ],
    );
    // Each hour of that day begins at its end.
    let hourly = windows(CalendarPeriod::Hour, "Pacific/Apia", None);
    assert_starts(
        &hourly,
        "2011-12-30T10:30Z",
        [
            "2011-12-30T09:00:00Z",
            "2011-12-30T10:00:00Z",
            "2011-12-30T11:00:00Z",
            "2011-12-30T12:00:00Z",
        ],
    );
}

#[test]
fn an_hour_is_shortened_lengthened_or_skipped() {
    let berlin = windows(CalendarPeriod::Hour, "Europe/Berlin", None);
    assert_window(
        &berlin,
        "2024-10-27T01:30Z",
        "2024-10-27T00:00:00Z",
        "2024-10-27T02:00:00Z",
    );
    assert_starts(
        &berlin,
        "2024-03-31T01:30Z",
        [
            "2024-03-31T00:00:00Z",
            "2024-03-31T01:00:00Z",
            "2024-03-31T02:00:00Z",
            "2024-03-31T03:00:00Z",
        ],
    );
    // Lord Howe changes its clocks by half an hour: from 02:00 to 01:30 in April, to 02:30 in October.
    let lord_howe = windows(CalendarPeriod::Hour, "Australia/Lord_Howe", None);
    assert_window(
        &lord_howe,
        "2024-04-06T15:00Z",
        "2024-04-06T14:00:00Z",
        "2024-04-06T15:30:00Z",
    );
    assert_window(
        &lord_howe,
        "2024-10-05T15:45Z",
        "2024-10-05T15:30:00Z",
        "2024-10-05T16:00:00Z",
    );
    let kathmandu = windows(CalendarPeriod::Hour, "Asia/Kathmandu", None);
    assert_window(
        &kathmandu,
        "2024-06-01T00:00Z",
        "2024-05-31T23:15:00Z",
        "2024-06-01T00:15:00Z",
    );
}

#[test]
fn the_first_and_the_last_year_have_windows() {
    for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Niue", "Europe/Berlin"] {
        for period in CalendarPeriod::ALL {
            let windows = windows(period, zone, None);
            for instant in [0, 1, at("9999-12-30T21:59:59Z"), 253_402_300_799_999] {
                let starts = windows.around(instant).expect("a year before 10000");
                assert!(starts.contains_ms(instant), "{zone} {period:?} {instant}");
                assert!(starts.previous_ms() < starts.start_ms());
                assert!(starts.end_ms() < starts.after_end_ms());
            }
            for instant in [253_402_300_800_000, u64::MAX] {
                assert_eq!(windows.around(instant), Err(InstantTooLate));
            }
        }
    }
    let yearly = windows(CalendarPeriod::Year, "UTC", None);
    let last = yearly.around(253_402_300_799_999).expect("9999");
    assert_eq!(last.end_ms(), 253_402_300_800_000);
    assert_eq!(
        last.after_end_ms() - last.end_ms(),
        366 * 86_400_000,
        "10000 is a leap year"
    );
    let first = windows(CalendarPeriod::Year, "Europe/Berlin", None)
        .around(0)
        .expect("1970");
    assert_eq!(first.start_ms(), -3_600_000);
}

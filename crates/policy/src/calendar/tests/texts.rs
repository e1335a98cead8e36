//! Anchors, zones and words as people write them.

use crate::calendar::{CalendarAnchor, CalendarPeriod, CalendarZone, Weekday};

#[test]
fn an_anchor_reads_as_it_is_shown() {
    for text in [
        "1",
        "31",
        "2026-01-31T09:00",
        "1970-01-01T00:00",
        "2024-02-29T23:59:59",
    ] {
        let anchor = CalendarAnchor::parse(text);
        assert_eq!(anchor.map(|it| it.to_string()).as_deref(), Ok(text));
    }
}

#[test]
fn an_invalid_anchor_has_its_reason() {
    for (text, words) in [
        ("0", "no month has a day `0`"),
        ("32", "no month has a day `32`"),
        ("300", "no month has a day `300`"),
        ("first", "is not an anchor"),
        ("", "is not an anchor"),
        ("2026-01-31", "add the time, such as `2026-01-31T00:00`"),
        ("2026-02-30T09:00", "not in the calendar"),
        ("2023-02-29T09:00", "not in the calendar"),
        ("2026-13-01T09:00", "not in the calendar"),
        ("2026-00-01T09:00", "not in the calendar"),
        ("2026-01-00T09:00", "not in the calendar"),
        ("2026-01-31T24:00", "from 00:00 to 23:59:59"),
        ("2026-01-31T09:60", "from 00:00 to 23:59:59"),
        ("2026-01-31T09:00:60", "from 00:00 to 23:59:59"),
        ("2026-01-31T09:00Z", "`time_zone` names the zone"),
        ("2026-01-31T09:00+01:00", "`time_zone` names the zone"),
        ("1969-12-31T09:00", "from 1970 to 9999"),
        ("2026-1-31T09:00", "such as `31`"),
        ("2026-01-31T9:00", "such as `31`"),
        ("2026-01-31T09", "such as `31`"),
        ("2026-01-31T09:00:00.5", "such as `31`"),
        ("2026-01-31T+9:00", "`time_zone` names the zone"),
        ("-2026-01-31T09:00", "such as `31`"),
        ("2026-01-3１T09:00", "such as `31`"),
    ] {
        let fault = CalendarAnchor::parse(text).expect_err(text);
        let message = format!("{} {}", fault.message, fault.help.unwrap_or_default());
        assert!(message.contains(words), "{text}: {message}");
    }
}

#[test]
fn an_unknown_zone_has_a_suggestion() {
    for (name, help) in [
        ("Europe/Berln", "did you mean `Europe/Berlin`?"),
        ("europe/berlin", "did you mean `Europe/Berlin`?"),
        ("utc", "did you mean `UTC`?"),
        ("Mars/Olympus_Mons", "such as `Europe/Berlin` or `UTC`"),
        ("../../etc/passwd", "such as `Europe/Berlin` or `UTC`"),
        ("", "such as `Europe/Berlin` or `UTC`"),
    ] {
        let fault = CalendarZone::bundled(name).expect_err(name);
        let shown = fault.help.unwrap_or_default();
        assert!(shown.contains(help), "{name}: {shown}");
    }
}

#[test]
fn every_bundled_zone_can_be_read() {
    let mut count = 0;
    for name in CalendarZone::bundled_names() {
        assert_eq!(CalendarZone::bundled(name).expect(name).name(), name);
        count += 1;
    }
    assert!(count > 500, "{count}");
    assert_eq!(CalendarZone::utc().name(), "UTC");
    let version = CalendarZone::bundled_version();
    assert!(version >= "2026e" && version.len() == 5, "{version}");
}

#[test]
fn invalid_data_of_a_zone_is_an_error() {
    let fault = CalendarZone::from_data("Europe/Berlin", b"TZif?").expect_err("no data");
    assert!(
        fault
            .message
            .starts_with("the data of the time zone `Europe/Berlin` is invalid")
    );
}

#[test]
fn words_are_those_of_the_configuration() {
    let words = CalendarPeriod::ALL.map(CalendarPeriod::word);
    assert_eq!(words, ["hour", "day", "week", "month", "quarter", "year"]);
    assert_eq!(Weekday::ALL.map(Weekday::word)[6], "sunday");
    // 1970-01-01 was a Thursday.
    assert_eq!(Weekday::ALL.map(Weekday::first_day), [4, 5, 6, 0, 1, 2, 3]);
}

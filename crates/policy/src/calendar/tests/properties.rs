//! Random zones, periods, anchors and instants, compared with the [`oracle`](super::oracle).

use super::oracle::{OracleAnchor, OracleRule};
use crate::calendar::{
    CalendarAnchor, CalendarPeriod, CalendarStarts, CalendarWindows, CalendarZone, Weekday,
};
use proptest::prelude::*;
use std::sync::LazyLock;
use tidegate_testkit::soak_cases;

/// Every zone of the bundled data, parsed once.
static ZONES: LazyLock<Vec<CalendarZone>> = LazyLock::new(|| {
    let zones = CalendarZone::bundled_names().map(CalendarZone::bundled);
    zones.map(|zone| zone.expect("bundled data")).collect()
});

/// Zones whose changes are unusual, drawn more often than the others: half an hour, a lost day, midnight
/// skipped and repeated, summer time that follows the moon, days of 23 hours, offsets with minutes.
const UNUSUAL: [&str; 16] = [
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "America/Sao_Paulo",
    "America/Havana",
    "Africa/Casablanca",
    "Asia/Tehran",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "America/Caracas",
    "Pacific/Chatham",
    "Antarctica/Troll",
    "Africa/Monrovia",
    "Europe/Dublin",
    "America/Nuuk",
];

#[derive(Clone, Debug)]
enum AnchorCase {
    Calendar,
    DayOfMonth(u8),
    DateTime(OracleAnchor),
}

#[derive(Clone, Debug)]
struct Case {
    zone: CalendarZone,
    period: CalendarPeriod,
    week_start: Weekday,
    anchor: AnchorCase,
    at_ms: u64,
}

fn zones() -> impl Strategy<Value = CalendarZone> {
    let unusual = prop::sample::select(UNUSUAL.to_vec());
    prop_oneof![
        prop::sample::select(&**ZONES),
        unusual.prop_map(|name| CalendarZone::bundled(name).expect("a zone")),
    ]
}

fn anchors() -> impl Strategy<Value = AnchorCase> {
    let times = prop_oneof![
        2 => 0_i64..86_400,
        // Clocks change at night.
        3 => (0_i64..16).prop_map(|quarter| quarter * 900),
    ];
    let months = (1970_i64..2_200, 1_i64..=12);
    let dates = (months, 1_i64..=31, times).prop_filter_map(
        "the month has that day",
        |((year, month), day, time)| {
            let text = format!("{year}-{month:02}-{day:02}T00:00");
            CalendarAnchor::parse(&text).ok()?;
            Some(AnchorCase::DateTime((year, month, day, time)))
        },
    );
    prop_oneof![
        2 => Just(AnchorCase::Calendar),
        1 => (1_u8..=31).prop_map(AnchorCase::DayOfMonth),
        3 => dates,
    ]
}

/// Returns instants of a zone: anywhere, and near a change of its offset.
fn instants(zone: &CalendarZone) -> impl Strategy<Value = u64> + use<> {
    // Two thirds lie before 2100.
    let seconds = prop_oneof![2 => 0_i64..4_102_444_800, 1 => 0_i64..253_402_300_800];
    let zone = zone.clone();
    let spread = prop_oneof![-200_000_i64..200_000, -8_000_i64..8_000, -2_i64..=2];
    (seconds, any::<bool>(), spread, 0_u64..1_000).prop_map(
        move |(seconds, is_near, spread, millis)| {
            let change = zone.next_change(seconds).filter(|_| is_near);
            let at = change.map_or(seconds, |change| change + spread);
            let at = at.clamp(0, 253_402_300_799);
            at.unsigned_abs() * 1_000 + millis
        },
    )
}

fn cases() -> impl Strategy<Value = Case> {
    let rules = (
        prop::sample::select(&CalendarPeriod::ALL),
        prop::sample::select(&Weekday::ALL),
        anchors(),
    );
    (zones(), rules).prop_flat_map(|(zone, (period, week_start, anchor))| {
        instants(&zone).prop_map(move |at_ms| Case {
            zone: zone.clone(),
            period,
            week_start,
            anchor: anchor.clone(),
            at_ms,
        })
    })
}

impl Case {
    fn windows(&self) -> CalendarWindows {
        let anchor = match self.anchor {
            AnchorCase::Calendar => None,
            AnchorCase::DayOfMonth(day) => Some(CalendarAnchor::DayOfMonth(day)),
            AnchorCase::DateTime((year, month, day, time)) => {
                let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
                let date = format!("{year}-{month:02}-{day:02}");
                let text = format!("{date}T{hour:02}:{minute:02}:{second:02}");
                Some(CalendarAnchor::parse(&text).expect("an anchor"))
            }
        };
        CalendarWindows::new(self.period, self.zone.clone(), self.week_start, anchor)
    }

    fn rule(&self) -> OracleRule {
        let (month_day, anchor) = match self.anchor {
            AnchorCase::Calendar => (None, None),
            AnchorCase::DayOfMonth(day) => (Some(i64::from(day)), None),
            AnchorCase::DateTime(anchor) => (None, Some(anchor)),
        };
        let first = Weekday::ALL.iter().position(|it| *it == self.week_start);
        OracleRule {
            period: self.period.word(),
            week_start: i64::try_from(first.expect("a weekday")).expect("below seven"),
            month_day,
            anchor,
        }
    }
}

fn in_seconds(starts: CalendarStarts) -> [i64; 4] {
    [
        starts.previous_ms(),
        starts.start_ms(),
        starts.end_ms(),
        starts.after_end_ms(),
    ]
    .map(|ms| {
        assert_eq!(ms % 1_000, 0, "a start is a whole second");
        ms / 1_000
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(soak_cases(10_000)))]

    #[test]
    fn windows_are_those_of_the_oracle(case in cases()) {
        let windows = case.windows();
        let starts = windows.around(case.at_ms).expect("a year before 10000");
        let at = i64::try_from(case.at_ms / 1_000).expect("an instant");
        let expected = case.rule().starts(at, |at| case.zone.offset(at));
        prop_assert_eq!(in_seconds(starts), expected);
    }

    #[test]
    fn windows_follow_each_other_without_gap_or_overlap(case in cases()) {
        let windows = case.windows();
        let around = |ms: i64| windows.around(u64::try_from(ms).expect("after 1969"));
        let starts = windows.around(case.at_ms).expect("a year before 10000");
        prop_assert!(starts.contains_ms(case.at_ms));
        let first = starts.start_ms().max(0);
        prop_assert_eq!(around(first), Ok(starts), "the first instant of the window");
        // After the year 9999 there are no windows.
        if let Ok(next) = around(starts.end_ms()) {
            prop_assert_eq!(around(starts.end_ms() - 1), Ok(starts), "the last instant");
            let joined = (next.previous_ms(), next.start_ms(), next.end_ms());
            let expected = (starts.start_ms(), starts.end_ms(), starts.after_end_ms());
            prop_assert_eq!(joined, expected, "the next window");
        }
        if first == starts.start_ms() && first > 0 {
            let before = around(first - 1).expect("a year before 10000");
            let joined = (before.start_ms(), before.end_ms(), before.after_end_ms());
            let expected = (starts.previous_ms(), starts.start_ms(), starts.end_ms());
            prop_assert_eq!(joined, expected, "the window before");
        }
    }
}

//! The instants of the calendar vectors: `reset_ms` is the time to the end of the window that the band has
//! charged.

use super::windows;
use crate::calendar::{CalendarPeriod, CalendarWindows, CalendarZone, Weekday};
use serde_json::Value;
use tidegate_testkit::vectors::{self, Vector};

use CalendarPeriod::{Day, Hour, Month, Quarter, Week, Year};

/// A band of a vector's configuration: policy, limit and band, then period, zone and anchor.
type BandRow = (
    &'static str,
    &'static str,
    &'static str,
    CalendarPeriod,
    &'static str,
    Option<&'static str>,
);

const MONTHS: &[BandRow] = &[
    ("plain", "budget", "5/month", Month, "UTC", None),
    (
        "on-31",
        "budget",
        "6/month",
        Month,
        "Europe/Berlin",
        Some("31"),
    ),
    (
        "on-30",
        "budget",
        "4/month",
        Month,
        "America/New_York",
        Some("30"),
    ),
    (
        "on-29",
        "budget",
        "5/month",
        Month,
        "Asia/Kathmandu",
        Some("29"),
    ),
    (
        "nine",
        "budget",
        "7/month",
        Month,
        "Australia/Lord_Howe",
        Some("2026-01-31T09:00"),
    ),
    (
        "skipped",
        "budget",
        "5/month",
        Month,
        "Europe/Berlin",
        Some("2024-03-31T02:30"),
    ),
    (
        "twice",
        "budget",
        "5/month",
        Month,
        "Europe/Berlin",
        Some("2023-08-27T02:30"),
    ),
];

const DAYS: &[BandRow] = &[
    (
        "sao-paulo",
        "budget",
        "6/day",
        Day,
        "America/Sao_Paulo",
        None,
    ),
    ("tehran", "budget", "5/day", Day, "Asia/Tehran", None),
    ("havana", "budget", "5/day", Day, "America/Havana", None),
    (
        "lord-howe",
        "budget",
        "4/day",
        Day,
        "Australia/Lord_Howe",
        None,
    ),
    (
        "berlin-half-past-two",
        "budget",
        "6/day",
        Day,
        "Europe/Berlin",
        Some("2026-01-01T02:30"),
    ),
    (
        "casablanca-quarter-past-two",
        "budget",
        "5/day",
        Day,
        "Africa/Casablanca",
        Some("2024-01-01T02:15"),
    ),
    ("utc", "budget", "4/day", Day, "UTC", None),
];

const HOURS: &[BandRow] = &[
    ("berlin", "budget", "5/hour", Hour, "Europe/Berlin", None),
    (
        "lord-howe",
        "budget",
        "4/hour",
        Hour,
        "Australia/Lord_Howe",
        None,
    ),
    (
        "kathmandu",
        "budget",
        "5/hour",
        Hour,
        "Asia/Kathmandu",
        None,
    ),
    (
        "new-york-at-40",
        "budget",
        "6/hour",
        Hour,
        "America/New_York",
        Some("2024-01-01T00:40"),
    ),
];

/// Its policies `sunday`, `saturday` and `lost-week` begin weeks on other days: see `week_start`.
const WEEKS: &[BandRow] = &[
    ("iso", "budget", "6/week", Week, "Europe/Berlin", None),
    ("sunday", "budget", "5/week", Week, "America/New_York", None),
    ("saturday", "budget", "5/week", Week, "Asia/Tehran", None),
    (
        "anchored",
        "budget",
        "6/week",
        Week,
        "Europe/Berlin",
        Some("2026-01-04T02:30"),
    ),
    ("lost-week", "budget", "6/week", Week, "Pacific/Apia", None),
    ("lost-day", "budget", "5/day", Day, "Pacific/Apia", None),
    (
        "lost-noon",
        "budget",
        "4/day",
        Day,
        "Pacific/Apia",
        Some("2011-01-01T12:00"),
    ),
    (
        "lost-30",
        "budget",
        "5/month",
        Month,
        "Pacific/Apia",
        Some("30"),
    ),
    ("lost-hours", "budget", "5/hour", Hour, "Pacific/Apia", None),
];

const QUARTERS: &[BandRow] = &[
    (
        "quarter",
        "budget",
        "6/quarter",
        Quarter,
        "America/New_York",
        None,
    ),
    (
        "quarter-on-31",
        "budget",
        "5/quarter",
        Quarter,
        "Europe/Berlin",
        Some("31"),
    ),
    (
        "quarter-nov-30",
        "budget",
        "5/quarter",
        Quarter,
        "Asia/Kathmandu",
        Some("2025-11-30T18:00"),
    ),
    (
        "year",
        "budget",
        "6/year",
        Year,
        "Australia/Lord_Howe",
        None,
    ),
    (
        "year-leap",
        "budget",
        "5/year",
        Year,
        "Europe/Berlin",
        Some("2024-02-29T00:00"),
    ),
    (
        "year-leap-noon",
        "budget",
        "6/year",
        Year,
        "America/Sao_Paulo",
        Some("2000-02-29T12:00"),
    ),
    (
        "year-skipped",
        "budget",
        "4/year",
        Year,
        "America/New_York",
        Some("2020-03-08T02:30"),
    ),
];

const TWO_BANDS: &[BandRow] = &[
    ("plain", "budget", "100/day", Day, "America/New_York", None),
    (
        "plain",
        "budget",
        "1000/month",
        Month,
        "America/New_York",
        None,
    ),
    (
        "anchored",
        "budget",
        "300/week",
        Week,
        "Europe/Berlin",
        Some("2026-01-31T09:00"),
    ),
    (
        "anchored",
        "budget",
        "60/day",
        Day,
        "Europe/Berlin",
        Some("2026-01-31T09:00"),
    ),
    (
        "anchored",
        "budget",
        "400/month",
        Month,
        "Europe/Berlin",
        Some("2026-01-31T09:00"),
    ),
];

const BESIDE_A_BUCKET: &[BandRow] = &[
    ("api", "daily", "30/day", Day, "Africa/Casablanca", None),
    (
        "api",
        "ours",
        "140/month",
        Month,
        "Asia/Kathmandu",
        Some("10"),
    ),
];

const MONTHLY_BUDGET: &[BandRow] = &[
    ("llm", "tokens", "2000/day", Day, "America/New_York", None),
    (
        "llm",
        "tokens",
        "5000/month",
        Month,
        "America/New_York",
        None,
    ),
    (
        "llm",
        "spend",
        "70000/month",
        Month,
        "America/New_York",
        Some("3"),
    ),
];

fn week_start(policy: &str) -> Weekday {
    match policy {
        "sunday" => Weekday::Sunday,
        "saturday" => Weekday::Saturday,
        "lost-week" => Weekday::Friday,
        _ => Weekday::Monday,
    }
}

fn of_row(row: &BandRow) -> CalendarWindows {
    let (policy, _, _, period, zone, anchor) = *row;
    match (period, anchor) {
        (Week, None) => {
            let zone = CalendarZone::bundled(zone).expect("a zone");
            CalendarWindows::new(period, zone, week_start(policy), None)
        }
        _ => windows(period, zone, anchor),
    }
}

/// Compares the end of each charged window with the vector. Returns how many were compared.
fn compare(vector: &Vector, rows: &[BandRow]) -> usize {
    let all_windows: Vec<(&BandRow, CalendarWindows)> =
        rows.iter().map(|row| (row, of_row(row))).collect();
    for (row, windows_of) in &all_windows {
        let text = format!("name: {}\n", row.0);
        assert!(vector.config.contains(&text), "{}: {}", vector.name, row.0);
        assert!(vector.config.contains(windows_of.zone().name()) || row.4 == "UTC");
        assert!(
            row.5.is_none_or(|anchor| vector.config.contains(anchor)),
            "{row:?}"
        );
    }
    let (mut latest, mut compared) = (0, 0);
    for (nth, (question, expected)) in vector.trace.iter().zip(&vector.expected).enumerate() {
        let question: Value = serde_json::from_str(question).expect("JSON");
        let expected: Value = serde_json::from_str(expected).expect("JSON");
        // An earlier time than the latest counts as the latest.
        latest = question["at_ms"].as_u64().expect("an instant").max(latest);
        let names = (&question["policy"], &expected["limit"], &expected["band"]);
        let windows_of = all_windows
            .iter()
            .find(|(row, _)| names == (&row.0.into(), &row.1.into(), &row.2.into()));
        let reset_ms = expected["reset_ms"].as_i64().expect("a time");
        let Some((_, windows_of)) = windows_of.filter(|_| reset_ms > 0) else {
            continue;
        };
        let starts = windows_of.around(latest).expect("a year before 10000");
        let end = i64::try_from(latest).expect("an instant") + reset_ms;
        assert_eq!(starts.end_ms(), end, "{}, line {}", vector.name, nth + 1);
        assert!(starts.contains_ms(latest));
        compared += 1;
    }
    compared
}

#[test]
fn windows_end_as_the_vectors_reset() {
    let mut compared = 0;
    for vector in vectors::budgets() {
        let rows = match &*vector.name {
            "calendar-months" => MONTHS,
            "calendar-days" => DAYS,
            "calendar-hours" => HOURS,
            "calendar-weeks-and-a-lost-day" => WEEKS,
            "calendar-quarters-and-years" => QUARTERS,
            "calendar-two-bands" => TWO_BANDS,
            "calendar-beside-a-bucket" => BESIDE_A_BUCKET,
            "units-monthly-budget" => MONTHLY_BUDGET,
            name => {
                assert!(
                    !vector.config.contains("month"),
                    "{name} has calendar windows"
                );
                continue;
            }
        };
        let lines = compare(&vector, rows);
        assert!(lines > 20, "{}: {lines}", vector.name);
        compared += lines;
    }
    assert!(compared > 1_000, "{compared}");
}

//! Plans with rates of several names, and with calendars.

use std::sync::Arc;
use tidegate_config::plans_from_text;
use tidegate_policy::calendar::CalendarSettings;
use tidegate_policy::plan::{PlanRate, PlanShare, PlanTable, PlanTerms, RateName, UnsetShare};

fn terms(rates: &[&str], unset: UnsetShare) -> PlanTerms {
    let names = rates.iter().map(|name| RateName::parse(name).unwrap());
    PlanTerms {
        unset,
        rates: names.collect::<Arc<[_]>>(),
    }
}

fn table(text: &str, terms: PlanTerms) -> PlanTable {
    let document = plans_from_text(text, false);
    let table = document.and_then(|document| document.table(terms));
    table.unwrap_or_else(|errors| panic!("{errors}"))
}

fn wrong(text: &str, terms: PlanTerms) -> String {
    let document = plans_from_text(text, false);
    let table = document.and_then(|document| document.table(terms));
    table.unwrap_err().to_string()
}

/// Returns the rate of a subject, and the calendar that its levels set, as text.
fn rate(table: &PlanTable, subject: &str, name: &str) -> String {
    described(table, table.get(subject), name)
}

fn described(
    table: &PlanTable,
    found: Option<tidegate_policy::plan::SubjectEntry<'_>>,
    name: &str,
) -> String {
    let name = RateName::parse(name).unwrap();
    let Some(found) = found else {
        return "unknown".to_owned();
    };
    let given = found.share(&name).unwrap();
    let text = match given.share {
        PlanShare::Unlimited => "unlimited".to_owned(),
        PlanShare::Nothing => "nothing".to_owned(),
        PlanShare::Rate(number) => {
            let number = usize::try_from(number).unwrap();
            let rate = *table.rates(&name).get(number).unwrap();
            let PlanRate { level, .. } = rate;
            let zone = level.zone.map(|zone| format!(" in {}", zone.name()));
            let anchor = level.anchor.map(|anchor| format!(" from {anchor}"));
            let week = level.week_start.map(|day| format!(" on {}", day.word()));
            let parts = [zone, anchor, week].into_iter().flatten();
            format!("{rate}{}", parts.collect::<String>())
        }
    };
    if given.is_unset {
        format!("unset: {text}")
    } else {
        text
    }
}

#[test]
fn each_rate_is_merged_over_the_levels_on_its_own() {
    let text = "
plans:
  free: { rate: 10/min, rates: { tokens: 100k/h, monthly: 1000/month } }
  pro: { rate: 600/min burst 100, rates: { tokens: 1M/h, monthly: unlimited } }
groups:
  acme: { plan: pro, rates: { tokens: { amount: 5M }, monthly: { period: year } } }
subjects:
  ann: { plan: free }
  web: { group: acme }
  batch: { group: acme, rates: { tokens: { period: day }, monthly: 7/quarter } }
  odd: { group: acme, plan: free, rates: { monthly: { amount: 5, block: 1m } } }
  text: 5/s
";
    let table = table(text, terms(&["tokens", "monthly"], UnsetShare::Refuse));
    for (subject, requests, tokens, monthly) in [
        ("ann", "10/min", "100000/h", "1000/month"),
        ("web", "600/min burst 100", "5000000/h", "unlimited"),
        ("batch", "600/min burst 100", "5000000/d", "7/quarter"),
        ("odd", "10/min", "100000/h", "5/month"),
        ("text", "5/s", "unset: nothing", "unset: nothing"),
    ] {
        assert_eq!(rate(&table, subject, "requests"), requests, "{subject}");
        assert_eq!(rate(&table, subject, "tokens"), tokens, "{subject}");
        assert_eq!(rate(&table, subject, "monthly"), monthly, "{subject}");
    }
    assert_eq!(table.notes().unset, 1);
    assert_eq!(table.rates_count(), 3 + 3 + 3);
    let monthly = RateName::parse("monthly").unwrap();
    assert_eq!(
        table.owner_of_rate(&monthly, 1),
        "line 10: subject `batch`, rate `monthly`"
    );
    // A table that was loaded before its source had the rate knows nothing of it.
    let money = RateName::parse("microusd").unwrap();
    assert!(table.get("ann").unwrap().share(&money).is_none());
}

#[test]
fn quotas_of_groups_have_rates_of_their_own() {
    let text = "
plans: { pro: { quota: { rate: 5000/min, rates: { tokens: 500M/month } }, time_zone: UTC } }
groups:
  acme: { plan: pro, anchor: 31, quota: { rates: { tokens: { amount: 7 } } } }
  plain: { plan: pro, quota: 1/s }
subjects: { web: { group: acme }, other: { group: plain }, lost: { group: gone } }
";
    let table = table(text, terms(&["tokens"], UnsetShare::Refuse));
    let quota = |subject: &str, name| described(&table, table.group_of(subject), name);
    assert_eq!(quota("web", "requests"), "5000/min");
    assert_eq!(quota("web", "tokens"), "7/month in UTC from 31");
    assert_eq!(quota("other", "requests"), "1/s");
    assert_eq!(quota("other", "tokens"), "500000000/month in UTC");
    assert_eq!(quota("lost", "tokens"), "unset: nothing");
}

#[test]
fn the_subject_sets_its_calendar_before_the_group_and_the_plans() {
    let text = "
plans:
  utc: { rate: 10/month, time_zone: UTC, anchor: 3 }
  weekly: { rate: 10/week, week_start: sunday }
groups:
  acme: { plan: utc, time_zone: Europe/Berlin }
subjects:
  a: { group: acme }
  b: { group: acme, plan: weekly }
  c: { group: acme, plan: weekly, time_zone: Asia/Kathmandu, anchor: 2026-01-31T09:00 }
  d: { plan: utc, anchor: 31 }
  e: { plan: utc, rate: 5/min }
";
    let table = table(text, terms(&[], UnsetShare::Refuse));
    for (subject, expected) in [
        ("a", "10/month in Europe/Berlin from 3"),
        ("b", "10/week in Europe/Berlin on sunday"),
        ("c", "10/week in Asia/Kathmandu from 2026-01-31T09:00"),
        ("d", "10/month in UTC from 31"),
        ("e", "5/min"),
    ] {
        assert_eq!(rate(&table, subject, "requests"), expected);
    }
}

#[test]
fn the_rate_for_unset_subjects_has_the_calendar_of_each() {
    let text = "subjects: { a: { time_zone: Asia/Tokyo }, b: {}, c: { rate: 9/month } }";
    let unset = UnsetShare::parse("100/month").unwrap();
    let table = table(text, terms(&[], unset));
    assert_eq!(
        rate(&table, "a", "requests"),
        "unset: 100/month in Asia/Tokyo"
    );
    assert_eq!(rate(&table, "b", "requests"), "unset: 100/month");
    assert_eq!(rate(&table, "c", "requests"), "9/month");
    assert_eq!(table.notes().unset, 2);
}

#[test]
fn subjects_with_the_same_shares_share_a_row() {
    let mut document = tidegate_policy::plan::PlanDocument::default();
    document.plan("free", &[("rate", "1/min"), ("rates.tokens", "5/h")]);
    for nth in 0..100_000 {
        let amount = (nth % 7 + 1).to_string();
        let fields = [("plan", "free"), ("rates.tokens.amount", amount.as_str())];
        document.subject(&format!("{nth:024x}"), &fields);
    }
    let table = document
        .table(terms(&["tokens"], UnsetShare::Refuse))
        .unwrap();
    assert_eq!(table.rates_count(), 8);
    assert!(table.bytes() < 100_000 * 64, "{}", table.bytes());
    assert_eq!(rate(&table, &format!("{:024x}", 99_999), "tokens"), "5/h");
    assert_eq!(rate(&table, &format!("{:024x}", 8), "tokens"), "2/h");
}

#[test]
fn mistakes_in_rates_and_calendars_name_their_line() {
    for (text, expected) in [
        (
            "plans:\n  p:\n    rates: { tokns: 5/h }",
            "line 3: plan `p`: unknown rate `tokns`; did you mean `tokens`?",
        ),
        (
            "subjects: { s: { rates: { money: 5/h } } }",
            "line 1: subject `s`: unknown rate `money`; add it to `rates` of the source of the plans",
        ),
        (
            "groups: { g: { quota: { rates: { toxens: 5/h } } } }",
            "line 1: group `g`: unknown rate `toxens`; did you mean `tokens`?",
        ),
        (
            "subjects: { s: { rates: { requests: 5/h } } }",
            "line 1: subject `s`: `rates.requests`: write the rate of requests as `rate`",
        ),
        (
            "subjects: { s: { rates: 5/h } }",
            "line 1: subject `s`: `rates` is a single value; expected a map from names to rates",
        ),
        (
            "subjects: { s: { rates: { tokens: { amount: 5, rate: 5/h } } } }",
            "line 1: subject `s`: `rates.tokens.rate`: `rate` duplicates another field",
        ),
        (
            "subjects: { s: { rates: { tokens: { unlimited: true, amount: 5 } } } }",
            "line 1: subject `s`: it is unlimited, but also has a rate",
        ),
        (
            "subjects: { s: { rates: { tokens: { rates: { x: 1/h } } } } }",
            "line 1: subject `s`: `rates` is a map; expected a single value",
        ),
        (
            "subjects:\n  s:\n    time_zone: Europe/Berln",
            "line 3: subject `s`: `time_zone`: no time zone is named `Europe/Berln`; did you mean \
             `Europe/Berlin`?",
        ),
        (
            "groups: { g: { anchor: 32 } }",
            "line 1: group `g`: `anchor`: no month has a day `32`; use a day from 1 to 31; shorter \
             months use their last day",
        ),
        (
            "plans: { p: { anchor: 3, week_start: sunday } }",
            "line 1: plan `p`: `week_start`: `anchor` conflicts with `week_start`; remove \
             `week_start`: weeks begin with the weekday of a date in `anchor`",
        ),
        (
            "plans: { p: { week_start: someday } }",
            "line 1: plan `p`: `week_start`: `someday` is not a day of the week; expected `monday` to `sunday`",
        ),
        (
            "plans: { p: { rate: 5/2month } }",
            "line 1: plan `p`: `rate`: `2month` is not a window of the calendar: it has one month, \
             quarter or year; write `5/month`, `5/quarter` or `5/year`, or a length in days",
        ),
        (
            "plans: { p: { quota: { time_zone: UTC } } }",
            "line 1: plan `p`: unknown field `quota.time_zone`; set it beside `quota`",
        ),
    ] {
        assert_eq!(
            wrong(text, terms(&["tokens"], UnsetShare::Refuse)),
            expected
        );
    }
}

#[test]
fn bands_of_a_limit_have_the_calendar_of_the_subject() {
    let text = "
plans:
  - name: tiers
    inline:
      subjects:
        a: 10/month
        b: { rate: 10/month, time_zone: Europe/Berlin }
        c: { rate: 10/day, anchor: 2026-01-31T09:00 }
        d: 10/min
policies:
  - name: api
    time_zone: Asia/Tokyo
    limits:
      - { name: each, key: user, align: calendar, anchor: 15, rate: { plan: tiers, subject: user, default: 5/week } }
";
    let config = tidegate_config::Config::from_yaml(text).unwrap();
    let limit = &config.policies[0].limits[0];
    let table = config.plans[0].inline().unwrap();
    let rates = table.rates(&RateName::default());
    let bands = rates.iter().map(|rate| limit.planned_band(*rate).unwrap());
    let calendars = bands.chain(limit.bands.clone()).map(|band| {
        let (period, settings) = band.quota.calendar().and_then(CalendarSettings::of)?;
        let anchor = settings.anchor.map(|anchor| anchor.to_string());
        Some((
            period.word(),
            settings.zone.name(),
            anchor.unwrap_or_default(),
        ))
    });
    let at = |period, zone, anchor: &str| Some((period, zone, anchor.to_owned()));
    assert_eq!(
        calendars.collect::<Vec<_>>(),
        [
            at("month", "Asia/Tokyo", "15"),
            at("month", "Europe/Berlin", "15"),
            at("day", "Asia/Tokyo", "2026-01-31T09:00"),
            None,
            // A day of the month is no anchor of a week.
            at("week", "Asia/Tokyo", ""),
        ]
    );
}

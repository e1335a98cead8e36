//! `time_zone`, `week_start`, `anchor` and `align: calendar`: windows of the calendar.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::table::FieldReader;
use crate::language::words::{ALGORITHM, ALIGN, WEEK_START};
use tidegate_core::Algorithm;
use tidegate_policy::band::{Band, BandCalendar};
use tidegate_policy::calendar::{
    CalendarAnchor, CalendarLevel, CalendarPeriod, CalendarSettings, ZoneNumber,
};
use tidegate_policy::limit::Limit;
use tidegate_policy::text::ConfigFault;

/// Reads the settings of a policy, for all its limits.
pub(crate) fn of_policy(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> CalendarLevel {
    let zone = reader.setting(fields, "time_zone", ZoneNumber::parse);
    let week_start = reader.setting(fields, "week_start", |word| WEEK_START.parse(word));
    let anchor = reader.setting(fields, "anchor", CalendarAnchor::parse);
    let level = CalendarLevel {
        zone,
        week_start,
        anchor,
    };
    if let (Some(anchor), Err(fault)) = (fields.get("anchor"), level.check()) {
        reader.error(anchor.key_spot(), fault);
    }
    level
}

/// Reads the calendar of a limit. Its own settings win over those of the policy.
pub(crate) fn of_limit(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    policy: CalendarLevel,
) -> BandCalendar {
    let own = of_policy(reader, fields);
    let align = fields.get("align").and_then(|value| value.node.as_text());
    BandCalendar {
        is_aligned: align.is_some_and(|word| ALIGN.get(word) == Some(None)),
        settings: CalendarSettings::default().under(policy).under(own),
    }
}

/// Returns the algorithm of a limit: of its bands that do not follow the calendar, if it has any.
pub(crate) fn algorithm(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    bands: &[Band],
    written: Algorithm,
) -> Algorithm {
    let first = match bands {
        [first, ..] if bands.iter().all(is_calendar) => first,
        _ => {
            refuse_alignment(reader, fields, written);
            return written;
        }
    };
    if let Some(value) = fields.get("algorithm")
        && !matches!(written, Algorithm::FixedWindow(_))
        && value
            .node
            .as_text()
            .and_then(|word| ALGORITHM.get(word))
            .is_some()
    {
        let message = format!("`{}` is always a fixed window", first.text);
        let help = "remove `algorithm`; it applies to bands that do not follow the calendar";
        reader.error(value.spot(), ConfigFault::new(message).help(help));
    }
    if let Some(value) = aligned_otherwise(fields) {
        let message = format!("`{}` always follows the calendar", first.text);
        let fault = ConfigFault::new(message);
        reader.error(value.spot(), fault.help("remove `align`"));
    }
    Algorithm::CalendarWindow
}

/// Reports an alignment of bands that are neither fixed windows nor follow the calendar.
fn refuse_alignment(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>, algorithm: Algorithm) {
    let word = fields.get("algorithm");
    let is_valid = word.is_none_or(|word| {
        let text = word.node.as_text();
        text.and_then(|text| ALGORITHM.get(text)).is_some()
    });
    // If the algorithm is invalid, do not report the alignment as well.
    if let Some(value) = aligned_otherwise(fields)
        && is_valid
        && !matches!(algorithm, Algorithm::FixedWindow(_))
    {
        let fault = ConfigFault::new("only fixed windows can be aligned")
            .help("add `algorithm: fixed-window`, or remove `align`");
        reader.error(value.key_spot(), fault);
    }
}

/// Returns the alignment if it is not the calendar's.
fn aligned_otherwise<'v>(fields: &FieldReader<'v>) -> Option<ConfigValue<'v>> {
    let value = fields.get("align")?;
    let word = value.node.as_text().and_then(|word| ALIGN.get(word))?;
    word.map(|_| value)
}

/// Reports settings of the calendar that no band of a limit uses, and waiting for windows of the calendar.
pub(crate) fn check(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>, limit: &Limit) {
    // Errors in the bands are reported already. Rates of plans may have any period.
    if limit.plan.is_some() || limit.bands.is_empty() {
        return;
    }
    let periods: Vec<CalendarPeriod> = limit.bands.iter().filter_map(period_of).collect();
    if periods.is_empty() {
        refuse_unused(reader, fields);
        return;
    }
    if let (Some(value), false) = (
        fields.get("week_start"),
        periods.contains(&CalendarPeriod::Week),
    ) {
        let fault = ConfigFault::new("`week_start` has no effect: no band is a calendar week");
        let help = "remove it, or add a band per week with `align: calendar`";
        reader.error(value.key_spot(), fault.help(help));
    }
    if let Some(value) = fields.get("anchor")
        && !value.node.as_text().is_some_and(|text| text.contains('-'))
        && !periods.iter().any(|period| period.has_months())
    {
        let fault = ConfigFault::new(
            "a day of the month is no anchor of this limit: it has no band per month, quarter or year",
        );
        let help = "write a local date and time, such as `2026-01-31T09:00`";
        reader.error(value.spot(), fault.help(help));
    }
    if let (Some(value), true) = (fields.get("on_refusal"), limit.waiting.is_some()) {
        let fault = ConfigFault::new("requests cannot wait for a calendar window");
        let help =
            "remove `on_refusal`, or move the band that follows the calendar to another limit";
        reader.error(value.key_spot(), fault.help(help));
    }
}

/// Warns about settings of a policy that no limit uses.
pub(crate) fn warn_in_vain(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    limits: &[Limit],
) {
    let mut bands = limits.iter().flat_map(|limit| &limit.bands);
    let has_plans = limits.iter().any(|limit| limit.plan.is_some());
    if reader.has_errors() || has_plans || bands.any(is_calendar) {
        return;
    }
    for name in CalendarLevel::FIELDS {
        if let Some(value) = fields.get(name) {
            let message = format!("`{name}` has no effect: no limit has a calendar window");
            let help = format!("remove it, or add a band such as `1000/month` ({CALENDAR_BANDS})");
            reader.warn(value.key_spot(), ConfigFault::new(message).help(help));
        }
    }
}

const CALENDAR_BANDS: &str = "hours, days and weeks need `align: calendar`";

fn refuse_unused(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) {
    for name in CalendarLevel::FIELDS {
        if let Some(value) = fields.get(name) {
            let message = format!("`{name}` has no effect: no band is a calendar window");
            let help = format!("write a rate per month, quarter or year; {CALENDAR_BANDS}");
            reader.error(value.key_spot(), ConfigFault::new(message).help(help));
        }
    }
    if let Some(value) = fields.get("align")
        && value
            .node
            .as_text()
            .is_some_and(|word| ALIGN.get(word) == Some(None))
    {
        let fault = ConfigFault::new("`align: calendar` has no effect on periods below an hour");
        let help = "write a rate per hour, day, week, month, quarter or year, or remove `align`";
        reader.error(value.spot(), fault.help(help));
    }
}

fn is_calendar(band: &Band) -> bool {
    band.quota.calendar().is_some()
}

fn period_of(band: &Band) -> Option<CalendarPeriod> {
    let (period, _) = band.quota.calendar().and_then(CalendarSettings::of)?;
    Some(period)
}

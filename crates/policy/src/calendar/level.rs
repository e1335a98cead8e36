//! The settings of a calendar that one level sets, such as a policy, a limit or a subject.

use super::{CalendarAnchor, CalendarSettings, Weekday, ZoneNumber};
use crate::text::ConfigFault;

/// The settings of a calendar at one level, as far as they are set.
///
/// ```
/// use tidegate_policy::calendar::{CalendarLevel, CalendarSettings};
///
/// let mut of_limit = CalendarLevel::default();
/// of_limit.take("time_zone", "Europe/Berlin")?;
/// of_limit.take("anchor", "15")?;
/// let mut of_subject = CalendarLevel::default();
/// of_subject.take("anchor", "31")?;
/// let settings = CalendarSettings::default().under(of_limit).under(of_subject);
/// assert_eq!(settings.zone.name(), "Europe/Berlin");
/// assert_eq!(settings.anchor.unwrap().to_string(), "31");
/// # Ok::<(), tidegate_policy::text::ConfigFault>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CalendarLevel {
    /// The time zone.
    pub zone: Option<ZoneNumber>,
    /// The first day of a week.
    pub week_start: Option<Weekday>,
    /// The point from which windows are counted.
    pub anchor: Option<CalendarAnchor>,
}

impl CalendarLevel {
    /// The names of its settings.
    pub const FIELDS: [&'static str; 3] = ["time_zone", "week_start", "anchor"];

    /// Reads a setting. Returns false if it is none of [`FIELDS`](Self::FIELDS).
    ///
    /// # Errors
    ///
    /// The value is invalid, or conflicts with another setting of the level.
    pub fn take(&mut self, name: &str, text: &str) -> Result<bool, ConfigFault> {
        match name {
            "time_zone" => self.zone = Some(ZoneNumber::parse(text)?),
            "week_start" => self.week_start = Some(Weekday::parse(text)?),
            "anchor" => self.anchor = Some(CalendarAnchor::parse(text)?),
            _ => return Ok(false),
        }
        self.check().map(|()| true)
    }

    /// Checks that its settings do not exclude each other.
    ///
    /// # Errors
    ///
    /// It has an anchor and a first day of the week.
    pub fn check(self) -> Result<(), ConfigFault> {
        if self.week_start.is_some() && self.anchor.is_some() {
            let fault = ConfigFault::new("`anchor` conflicts with `week_start`");
            let help = "remove `week_start`: weeks begin with the weekday of a date in `anchor`";
            return Err(fault.help(help));
        }
        Ok(())
    }

    /// Merges with a more specific level, which wins.
    #[must_use]
    pub fn under(self, above: Self) -> Self {
        let starts = above.starts_or(self);
        Self {
            zone: above.zone.or(self.zone),
            ..starts
        }
    }

    /// Returns itself if it sets where windows start, and otherwise `general`. An anchor and a first day of the
    /// week exclude each other, so that each of them replaces both.
    fn starts_or(self, general: Self) -> Self {
        match (self.week_start, self.anchor) {
            (None, None) => general,
            _ => self,
        }
    }
}

impl CalendarSettings {
    /// Returns the settings with those that a more specific level sets.
    #[must_use]
    pub fn under(self, above: CalendarLevel) -> Self {
        let general = CalendarLevel {
            zone: Some(self.zone),
            week_start: Some(self.week_start),
            anchor: self.anchor,
        };
        let merged = general.under(above);
        Self {
            zone: merged.zone.unwrap_or_default(),
            week_start: merged.week_start.unwrap_or_default(),
            anchor: merged.anchor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(fields: &[(&str, &str)]) -> CalendarLevel {
        let mut level = CalendarLevel::default();
        for (name, text) in fields {
            assert_eq!(level.take(name, text), Ok(true), "{name}: {text}");
        }
        level
    }

    #[test]
    fn an_anchor_and_a_first_day_of_the_week_replace_each_other() {
        let zone = ("time_zone", "Asia/Kathmandu");
        let anchored = level(&[zone, ("anchor", "31")]);
        let sunday = level(&[("week_start", "sunday")]);
        let merged = anchored.under(sunday);
        assert_eq!(merged, level(&[zone, ("week_start", "sunday")]));
        assert_eq!(merged.under(anchored), anchored);
        let settings = CalendarSettings::default().under(sunday).under(anchored);
        assert_eq!(settings.week_start, Weekday::Monday);
        assert_eq!(settings.anchor, anchored.anchor);
        assert_eq!(settings.under(CalendarLevel::default()), settings);
    }

    #[test]
    fn mistakes_are_explained() {
        let wrong = |name, text| {
            let mut level = level(&[("anchor", "1")]);
            level.take(name, text).unwrap_err().into_sentence()
        };
        assert_eq!(
            wrong("time_zone", "Europe/Berln"),
            "no time zone is named `Europe/Berln`; did you mean `Europe/Berlin`?"
        );
        assert!(wrong("anchor", "32").starts_with("no month has a day `32`"));
        assert!(wrong("week_start", "sunday").starts_with("`anchor` conflicts with `week_start`"));
        assert_eq!(
            wrong("week_start", "sundy"),
            "`sundy` is not a day of the week; did you mean `sunday`?"
        );
        assert_eq!(CalendarLevel::default().take("zone", "UTC"), Ok(false));
    }
}

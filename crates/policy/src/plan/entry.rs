//! One entry of a document: a plan, a group or a subject.

use super::RateName;
use super::document::{Field, PlanLevel};
use super::error::PlanLine;
use super::format::PlanFormat;
use super::settings::{FIELDS, LevelSettings, flag};
use crate::calendar::CalendarLevel;
use crate::text::{ConfigFault, closest};

/// One entry, as far as it could be parsed.
#[derive(Default)]
pub(super) struct PlanEntry {
    pub(super) id: String,
    pub(super) line: PlanLine,
    pub(super) plan: Option<Box<str>>,
    /// Line of the field that names the plan.
    pub(super) plan_line: PlanLine,
    pub(super) group: Option<Box<str>>,
    pub(super) own: LevelSettings,
    pub(super) quota: LevelSettings,
    /// Settings that few entries have. Apart, because there are many entries.
    pub(super) more: Option<Box<MoreSettings>>,
    /// True if the entry is disabled and counts as absent.
    pub(super) is_off: bool,
}

/// Settings that few entries have.
#[derive(Default)]
pub(super) struct MoreSettings {
    /// The calendar of its rates.
    pub(super) calendar: CalendarLevel,
    /// The rates besides that of requests.
    pub(super) own: Vec<NamedSettings>,
    /// The same of the quota.
    pub(super) quota: Vec<NamedSettings>,
}

/// The settings of a rate with a name.
pub(super) struct NamedSettings {
    pub(super) name: RateName,
    pub(super) line: PlanLine,
    pub(super) settings: LevelSettings,
}

/// The field with a subject's group.
pub(super) const GROUP: &str = "group";

/// The field that enables or disables an entry.
pub(super) const ENABLED: &str = "enabled";

/// The prefix of a quota's fields.
const QUOTA: &str = "quota.";

/// The prefix of the fields of rates with names.
const RATES: &str = "rates.";

impl PlanEntry {
    /// Returns the calendar of its rates, as far as it is set.
    pub(super) fn calendar(&self) -> CalendarLevel {
        let more = self.more.as_ref();
        more.map_or_else(CalendarLevel::default, |more| more.calendar)
    }

    /// Returns the settings of its rates, or of those of its quota, that have a name.
    pub(super) fn named(&self, is_quota: bool) -> &[NamedSettings] {
        match (&self.more, is_quota) {
            (None, _) => &[],
            (Some(more), true) => &more.quota,
            (Some(more), false) => &more.own,
        }
    }

    /// Returns the settings of all its rates.
    pub(super) fn levels(&self) -> impl Iterator<Item = &LevelSettings> {
        let named = self.named(false).iter().chain(self.named(true));
        [&self.own, &self.quota]
            .into_iter()
            .chain(named.map(|it| &it.settings))
    }

    /// Reads a field of an entry of this kind.
    pub(super) fn take(&mut self, kind: PlanLevel, field: &Field<'_>) -> Result<(), String> {
        let Field { name, text, line } = *field;
        let wrong = |why| format!("`{name}`: {why}");
        let named = || Some(text.trim()).filter(|it| !it.is_empty()).map(Box::from);
        if kind != PlanLevel::Plan && name == "plan" {
            self.plan = named();
            self.plan_line = line;
            return Ok(());
        }
        if kind == PlanLevel::Subject && name == GROUP {
            self.group = named();
            return Ok(());
        }
        if name == ENABLED {
            self.is_off = !flag(text).map_err(wrong)?;
            return Ok(());
        }
        if CalendarLevel::FIELDS.contains(&name) {
            let taken = self.more().calendar.take(name, text.trim());
            return taken
                .map(drop)
                .map_err(|fault| wrong(fault.into_sentence()));
        }
        let (is_quota, rest) = match name.strip_prefix(QUOTA) {
            Some(rest) if kind != PlanLevel::Subject => (true, rest),
            _ => (false, name),
        };
        let (settings, rest) = match rest.strip_prefix(RATES) {
            Some(rest) => {
                let (rate, rest) = rest.split_once('.').unwrap_or((rest, "rate"));
                (self.rate(is_quota, (rate, line)).map_err(wrong)?, rest)
            }
            None if is_quota => (&mut self.quota, rest),
            None => (&mut self.own, rest),
        };
        // The error quotes the value, which is no secret.
        match settings.take(rest, text) {
            Ok(true) => Ok(()),
            Ok(false) => Err(unknown(kind, name)),
            Err(why) => Err(wrong(why)),
        }
    }

    fn more(&mut self) -> &mut MoreSettings {
        self.more.get_or_insert_default()
    }

    /// Returns the settings of the rate with this name, to be read.
    fn rate(
        &mut self,
        is_quota: bool,
        (name, line): (&str, PlanLine),
    ) -> Result<&mut LevelSettings, String> {
        let name = RateName::parse(name).map_err(ConfigFault::into_sentence)?;
        if name.is_requests() {
            return Err("write the rate of requests as `rate`".to_owned());
        }
        let more = self.more();
        let rates = if is_quota {
            &mut more.quota
        } else {
            &mut more.own
        };
        let at = rates.iter().position(|it| it.name == name);
        let at = at.unwrap_or_else(|| {
            rates.push(NamedSettings {
                name,
                line,
                settings: LevelSettings::default(),
            });
            rates.len().saturating_sub(1)
        });
        let found = rates.get_mut(at).map(|it| &mut it.settings);
        found.ok_or_else(|| "it cannot be kept".to_owned())
    }
}

fn unknown(kind: PlanLevel, name: &str) -> String {
    let others = match kind {
        PlanLevel::Plan => ["quota"].as_slice(),
        PlanLevel::Group => &["plan", "quota"],
        PlanLevel::Subject => &["group", "plan"],
    };
    let known = [ENABLED, "rates"].into_iter().chain(others.iter().copied());
    let known = FIELDS.into_iter().chain(CalendarLevel::FIELDS).chain(known);
    let quoted = ConfigFault::quote(name);
    if name.strip_prefix(QUOTA).unwrap_or(name) == "rates" {
        return format!("{quoted} is a single value; expected a map from names to rates");
    }
    let of_quota = name.strip_prefix(QUOTA);
    if of_quota.is_some_and(|name| CalendarLevel::FIELDS.contains(&name)) {
        return format!("unknown field {quoted}; set it beside `quota`");
    }
    if let Some(help) = PlanFormat::elsewhere(name) {
        return format!("unknown field {quoted}; {help}");
    }
    match closest(name, known) {
        Some(meant) => format!("unknown field {quoted}; did you mean `{meant}`?"),
        None => format!("unknown field {quoted}; expected `rate`, or `amount` and `period`"),
    }
}

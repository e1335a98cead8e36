//! The merge of a document's levels into a table with one rate for each subject.

use super::document::{PlanDocument, PlanLevel};
use super::entry::PlanEntry;
use super::settings::{LevelSettings, MergedLevels};
use super::share_rows::{ShareRow, ShareRowsBuilder};
use super::subject_share::PackedShare;
use super::subjects::Subjects;
use super::table::{PlanTable, RateColumn};
use super::{PlanErrors, PlanRate, PlanTerms, RateName, UnsetShare};
use crate::calendar::CalendarLevel;
use crate::text::{ConfigFault, closest};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::iter::repeat_with;

/// The maximum number of distinct rates in a document. Each rate becomes a band, with all its texts, in every
/// limit that uses the source, and is kept as long as requests may use it.
const RATES_MAX: usize = 65_536;

/// The maximum number of plans that a message lists.
const SHOWN_MAX: usize = 5;

impl PlanTable {
    pub(super) fn build(mut document: PlanDocument, terms: &PlanTerms) -> Result<Self, PlanErrors> {
        let mut builder = PlanTableBuilder::new(terms);
        let plans = builder.plans(&mut document);
        let groups = std::mem::take(&mut document.groups);
        for group in &groups {
            builder.group(&mut document, group, &plans);
        }
        let subjects = std::mem::take(&mut document.subjects);
        builder.table.subjects = Subjects::with_room(subjects.len());
        for (number, subject) in subjects.iter().enumerate() {
            builder.subject(&mut document, (number, subject), &plans);
        }
        let PlanTableBuilder {
            mut table,
            rows,
            too_many,
            ..
        } = builder;
        table.groups.shrink();
        table.rows = rows.finish();
        if let Some(whose) = too_many {
            document.refuse(format!(
                "{whose}: more than {RATES_MAX} different rates; let subjects share plans, or \
                 round the amounts"
            ));
        }
        document.errors.or(table)
    }
}

/// The settings of each rate, that of requests first.
type LevelRow = SmallVec<[LevelSettings; 1]>;

/// The settings that a plan has for subjects, and for the quotas of groups.
#[derive(Clone, Default)]
struct PlanLevels {
    own: LevelRow,
    quota: LevelRow,
    calendar: CalendarLevel,
}

/// The settings that subjects inherit from a group.
#[derive(Default)]
struct GroupLevels {
    /// The rates of its plan and its own.
    rates: LevelRow,
    /// The calendar of its plan.
    of_plan: CalendarLevel,
    /// Its own calendar.
    own: CalendarLevel,
}

/// Plans by name.
type PlansByName = HashMap<String, PlanLevels, RandomState>;

const TWICE: &str = "it is a duplicate";

/// Names the owner of the rate for subjects for which no level sets one.
fn of_source() -> String {
    "`unset` of the source".to_owned()
}

/// Returns the settings of the plan that an entry refers to, or none if it refers to none. A plan that does
/// not exist is an error: otherwise its subjects would be unlimited.
fn plan_of(
    document: &mut PlanDocument,
    entry: &PlanEntry,
    plans: &PlansByName,
    shown: impl Fn() -> String,
) -> PlanLevels {
    let Some(name) = entry.plan.as_deref() else {
        return PlanLevels::default();
    };
    if let Some(plan) = plans.get(name) {
        return plan.clone();
    }
    let off = &document.plans_off;
    document.errors.add(entry.plan_line, || {
        let why = if off.iter().any(|id| id == name) {
            format!("plan {} has `enabled: false`", ConfigFault::quote(name))
        } else {
            unknown_plan(name, plans)
        };
        format!("{}: {why}", shown())
    });
    PlanLevels::default()
}

fn unknown_plan(name: &str, plans: &PlansByName) -> String {
    let quoted = ConfigFault::quote(name);
    let mut names: Vec<&str> = plans.keys().map(String::as_str).collect();
    // Sort the names so that the message is deterministic.
    names.sort_unstable();
    match closest(name, names.iter().copied()) {
        Some(meant) => format!(
            "unknown plan {quoted}; did you mean {}?",
            ConfigFault::quote(meant)
        ),
        None if names.is_empty() => format!("unknown plan {quoted}; there are no plans"),
        None => {
            let shown: Vec<String> = names
                .iter()
                .take(SHOWN_MAX)
                .map(|it| ConfigFault::quote(it))
                .collect();
            let more = if names.len() > SHOWN_MAX {
                " and others"
            } else {
                ""
            };
            format!("unknown plan {quoted}; expected {}{more}", shown.join(", "))
        }
    }
}

/// A table under construction.
struct PlanTableBuilder {
    table: PlanTable,
    rows: ShareRowsBuilder,
    unset: UnsetShare,
    numbers: HashMap<(usize, PlanRate), PackedShare, RandomState>,
    levels: Vec<GroupLevels>,
    /// The owner of the first rate beyond the maximum.
    too_many: Option<String>,
}

impl PlanTableBuilder {
    fn new(terms: &PlanTerms) -> Self {
        let names = [RateName::default()].into_iter();
        let names = names.chain(terms.rates.iter().cloned());
        let table = PlanTable {
            columns: names.map(RateColumn::new).collect(),
            ..PlanTable::default()
        };
        let mut builder = Self {
            table,
            rows: ShareRowsBuilder::new(terms.rates.len()),
            unset: terms.unset,
            numbers: HashMap::default(),
            levels: Vec::new(),
            too_many: None,
        };
        if let UnsetShare::Rate(rate) = terms.unset {
            builder.rate((0, rate), of_source);
        }
        builder
    }

    fn plans(&self, document: &mut PlanDocument) -> PlansByName {
        let mut plans = PlansByName::default();
        for plan in std::mem::take(&mut document.plans) {
            let levels = PlanLevels {
                own: self.row(document, PlanLevel::Plan, (&plan, false)),
                quota: self.row(document, PlanLevel::Plan, (&plan, true)),
                calendar: plan.calendar(),
            };
            let PlanEntry { id, line, .. } = plan;
            if plans.insert(id.clone(), levels).is_some() {
                document.refuse_entry(PlanLevel::Plan, (&id, line), TWICE);
            }
        }
        plans
    }

    /// Returns the settings that an entry has for each rate, or for each of its quota.
    fn row(
        &self,
        document: &mut PlanDocument,
        kind: PlanLevel,
        (entry, is_quota): (&PlanEntry, bool),
    ) -> LevelRow {
        let requests = if is_quota { entry.quota } else { entry.own };
        let mut row = SmallVec::from_elem(LevelSettings::default(), self.table.columns.len());
        if let Some(first) = row.first_mut() {
            *first = requests;
        }
        for named in entry.named(is_quota) {
            let column = self.table.column(&named.name);
            match column.and_then(|column| row.get_mut(column)) {
                Some(settings) => *settings = named.settings,
                None => {
                    let why = self.unknown_rate(&named.name);
                    document.refuse_entry(kind, (&entry.id, named.line), &why);
                }
            }
        }
        row
    }

    fn unknown_rate(&self, name: &RateName) -> String {
        let quoted = ConfigFault::quote(name.as_str());
        let known = self.table.columns.iter().skip(1);
        match closest(name.as_str(), known.map(|it| it.name.as_str())) {
            Some(meant) => format!("unknown rate {quoted}; did you mean `{meant}`?"),
            None => format!("unknown rate {quoted}; add it to `rates` of the source of the plans"),
        }
    }

    fn group(&mut self, document: &mut PlanDocument, entry: &PlanEntry, plans: &PlansByName) {
        let Some((_, true)) = self.table.groups.add(&entry.id) else {
            document.refuse_entry(PlanLevel::Group, (&entry.id, entry.line), TWICE);
            return;
        };
        let shown = || format!("group {}", ConfigFault::quote(&entry.id));
        let plan = plan_of(document, entry, plans, shown);
        let own = self.row(document, PlanLevel::Group, (entry, false));
        let quota = self.row(document, PlanLevel::Group, (entry, true));
        let calendar = plan.calendar.under(entry.calendar());
        let name = || format!("{}the quota of {}", entry.line, shown());
        let quota = self.shares(merged(&plan.quota, &quota), calendar, name);
        self.levels.push(GroupLevels {
            rates: merged(&plan.own, &own),
            of_plan: plan.calendar,
            own: entry.calendar(),
        });
        self.add_quota(quota);
    }

    fn subject(
        &mut self,
        document: &mut PlanDocument,
        (number, entry): (usize, &PlanEntry),
        plans: &PlansByName,
    ) {
        let hides = document.hides_subjects;
        let shown = || {
            if hides {
                format!("subject number {}", number.saturating_add(1))
            } else {
                format!("subject {}", ConfigFault::quote(&entry.id))
            }
        };
        let group = entry.group.as_deref().and_then(|id| self.group_number(id));
        let plan = plan_of(document, entry, plans, shown);
        let own = self.row(document, PlanLevel::Subject, (entry, false));
        let general = GroupLevels::default();
        let level = group.and_then(|number| self.levels.get(usize::try_from(number).ok()?));
        let level = level.unwrap_or(&general);
        let rates = merged(&merged(&level.rates, &plan.own), &own);
        let calendar = level.of_plan.under(plan.calendar);
        let calendar = calendar.under(level.own).under(entry.calendar());
        let name = || format!("{}{}", entry.line, shown());
        let has = self.shares(rates, calendar, name);
        let is_unset = has.iter().any(|share| share.given().1);
        let notes = &mut self.table.notes;
        notes.unset = notes.unset.saturating_add(usize::from(is_unset));
        let has = self.rows.number(has).unwrap_or(PackedShare::UNLIMITED.0);
        if !self.table.subjects.add(&entry.id, has, group) {
            document.refuse_line(entry.line, || format!("{}: {TWICE}", shown()));
        }
    }

    /// Returns the number of a group. A group that the document does not define is added without settings.
    fn group_number(&mut self, id: &str) -> Option<u32> {
        let (number, is_new) = self.table.groups.add(id)?;
        if is_new {
            self.levels.push(GroupLevels::default());
            let unset = self.shares(LevelRow::new(), CalendarLevel::default(), of_source);
            self.add_quota(unset);
        }
        let notes = &mut self.table.notes;
        notes.groups_missing = notes.groups_missing.saturating_add(usize::from(is_new));
        Some(number)
    }

    /// Adds the quota of the next group.
    fn add_quota(&mut self, shares: ShareRow) {
        let number = self.rows.number(shares);
        let number = number.unwrap_or(PackedShare::UNLIMITED.0);
        self.table.quotas.push(number);
    }

    /// Returns the share of each rate with these settings. `whose` names their owner.
    fn shares(
        &mut self,
        settings: LevelRow,
        calendar: CalendarLevel,
        whose: impl Fn() -> String,
    ) -> ShareRow {
        let columns = 0..self.table.columns.len();
        let settings = settings
            .into_iter()
            .chain(repeat_with(LevelSettings::default));
        let shares = columns.zip(settings);
        let shares = shares.map(|(column, settings)| match settings.sum(calendar) {
            MergedLevels::Rate(rate) => self.rate((column, rate), &whose),
            MergedLevels::Unlimited => PackedShare::UNLIMITED,
            MergedLevels::Unset => match self.unset {
                UnsetShare::Unlimited => PackedShare::UNSET_UNLIMITED,
                UnsetShare::Refuse => PackedShare::UNSET_REFUSED,
                UnsetShare::Rate(rate) => {
                    let number = self.rate((column, rate.at(calendar)), of_source);
                    number.of_source()
                }
            },
        });
        shares.collect()
    }

    fn rate(
        &mut self,
        (column, rate): (usize, PlanRate),
        whose: impl FnOnce() -> String,
    ) -> PackedShare {
        if let Some(known) = self.numbers.get(&(column, rate)) {
            return *known;
        }
        let is_full = self.numbers.len() == RATES_MAX;
        let Some(rates) = self.table.columns.get_mut(column).filter(|_| !is_full) else {
            self.too_many.get_or_insert_with(whose);
            return PackedShare::UNLIMITED;
        };
        let Ok(number) = u32::try_from(rates.rates.len()) else {
            return PackedShare::UNLIMITED;
        };
        let owner = match column {
            0 => whose(),
            _ => format!("{}, rate `{}`", whose(), rates.name),
        };
        rates.owners.push(owner.into());
        rates.rates.push(rate);
        let number = PackedShare(number);
        self.numbers.insert((column, rate), number);
        number
    }
}

/// Merges the settings of each rate with those of a more specific level.
fn merged(general: &LevelRow, above: &LevelRow) -> LevelRow {
    let rates = general.len().max(above.len());
    let of = |row: &LevelRow, nth| row.get(nth).copied().unwrap_or_default();
    (0..rates)
        .map(|nth| of(general, nth).under(of(above, nth)))
        .collect()
}

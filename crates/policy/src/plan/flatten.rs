//! The merge of a document's levels into a table with one rate for each subject.

use super::document::{PlanDocument, PlanEntry, PlanLevel};
use super::settings::{LevelSettings, MergedLevels};
use super::subject_share::PackedShare;
use super::subjects::Subjects;
use super::table::PlanTable;
use super::{PlanErrors, PlanRate, UnsetShare};
use crate::text::{ConfigFault, closest};
use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// The maximum number of distinct rates in a document. Each rate becomes a band, with all its texts, in every
/// limit that uses the source, and is kept as long as requests may use it.
const RATES_MAX: usize = 65_536;

/// The maximum number of plans that a message lists.
const SHOWN_MAX: usize = 5;

impl PlanTable {
    pub(super) fn build(mut document: PlanDocument, unset: UnsetShare) -> Result<Self, PlanErrors> {
        let mut builder = PlanTableBuilder::new(unset);
        let plans = plans(&mut document);
        let groups = std::mem::take(&mut document.groups);
        for group in &groups {
            builder.group(&mut document, group, &plans);
        }
        let subjects = std::mem::take(&mut document.subjects);
        builder.table.subjects = Subjects::with_room(subjects.len());
        for (number, subject) in subjects.iter().enumerate() {
            builder.subject(&mut document, (number, subject), &plans);
        }
        builder.table.groups.shrink();
        if let Some(whose) = builder.too_many {
            document.refuse(format!(
                "{whose}: more than {RATES_MAX} different rates; let subjects share plans, or \
                 round the amounts"
            ));
        }
        document.errors.or(builder.table)
    }
}

/// The settings that each plan has for subjects, and for the quotas of groups.
type PlanLevels = HashMap<String, (LevelSettings, LevelSettings), RandomState>;

fn plans(document: &mut PlanDocument) -> PlanLevels {
    let mut plans = PlanLevels::default();
    for plan in std::mem::take(&mut document.plans) {
        let PlanEntry {
            id,
            line,
            own,
            quota,
            ..
        } = plan;
        if plans.insert(id.clone(), (own, quota)).is_some() {
            document.refuse_entry(PlanLevel::Plan, (&id, line), TWICE);
        }
    }
    plans
}

const TWICE: &str = "it is a duplicate";

/// Returns the settings of the plan that an entry refers to, or none if it refers to none. A plan that does
/// not exist is an error: otherwise its subjects would be unlimited.
fn plan_of(
    document: &mut PlanDocument,
    entry: &PlanEntry,
    plans: &PlanLevels,
    shown: impl Fn() -> String,
) -> (LevelSettings, LevelSettings) {
    let Some(name) = entry.plan.as_deref() else {
        return <(LevelSettings, LevelSettings)>::default();
    };
    if let Some(plan) = plans.get(name) {
        return *plan;
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
    <(LevelSettings, LevelSettings)>::default()
}

fn unknown_plan(name: &str, plans: &PlanLevels) -> String {
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
    unset: PackedShare,
    numbers: HashMap<PlanRate, PackedShare, RandomState>,
    /// The settings that subjects inherit from each group, by its number.
    levels: Vec<LevelSettings>,
    /// The owner of the first rate beyond the maximum.
    too_many: Option<String>,
}

impl PlanTableBuilder {
    fn new(unset: UnsetShare) -> Self {
        let mut builder = Self {
            table: PlanTable::default(),
            unset: PackedShare::unset(unset),
            numbers: HashMap::default(),
            levels: Vec::new(),
            too_many: None,
        };
        if let UnsetShare::Rate(rate) = unset {
            builder.rate(rate, || "`unset` of the source".to_owned());
        }
        builder
    }

    fn group(&mut self, document: &mut PlanDocument, entry: &PlanEntry, plans: &PlanLevels) {
        let Some((_, true)) = self.table.groups.add(&entry.id) else {
            document.refuse_entry(PlanLevel::Group, (&entry.id, entry.line), TWICE);
            return;
        };
        let shown = || format!("group {}", ConfigFault::quote(&entry.id));
        let (plan, quota) = plan_of(document, entry, plans, shown);
        self.levels.push(plan.under(entry.own));
        let name = || format!("{}the quota of {}", entry.line, shown());
        let has = self.has(quota.under(entry.quota), name);
        self.table.quotas.push(has);
    }

    fn subject(
        &mut self,
        document: &mut PlanDocument,
        (number, entry): (usize, &PlanEntry),
        plans: &PlanLevels,
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
        let level = group.and_then(|number| self.levels.get(usize::try_from(number).ok()?));
        let level = level.copied().unwrap_or_default();
        let (plan, _) = plan_of(document, entry, plans, shown);
        let name = || format!("{}{}", entry.line, shown());
        let has = self.has(level.under(plan).under(entry.own), name);
        let notes = &mut self.table.notes;
        notes.unset = notes.unset.saturating_add(usize::from(has == self.unset));
        if !self.table.subjects.add(&entry.id, has.0, group) {
            document.refuse_line(entry.line, || format!("{}: {TWICE}", shown()));
        }
    }

    /// Returns the number of a group. A group that the document does not define is added without settings.
    fn group_number(&mut self, id: &str) -> Option<u32> {
        let (number, is_new) = self.table.groups.add(id)?;
        if is_new {
            self.levels.push(LevelSettings::default());
            self.table.quotas.push(self.unset);
        }
        let notes = &mut self.table.notes;
        notes.groups_missing = notes.groups_missing.saturating_add(usize::from(is_new));
        Some(number)
    }

    fn has(&mut self, settings: LevelSettings, whose: impl FnOnce() -> String) -> PackedShare {
        match settings.sum() {
            MergedLevels::Rate(rate) => self.rate(rate, whose),
            MergedLevels::Unlimited => PackedShare::UNLIMITED,
            MergedLevels::Unset => self.unset,
        }
    }

    fn rate(&mut self, rate: PlanRate, whose: impl FnOnce() -> String) -> PackedShare {
        if let Some(known) = self.numbers.get(&rate) {
            return *known;
        }
        let number = u32::try_from(self.table.rates.len());
        let Some(number) = number.ok().filter(|_| self.table.rates.len() < RATES_MAX) else {
            self.too_many.get_or_insert_with(whose);
            return PackedShare::UNLIMITED;
        };
        self.table.named.push(whose().into());
        self.table.rates.push(rate);
        self.numbers.insert(rate, PackedShare(number));
        PackedShare(number)
    }
}

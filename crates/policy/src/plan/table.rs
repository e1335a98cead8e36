//! A document flattened: from a subject to its rate and its group, in constant time.

use super::document::{Document, Entry, Kind};
use super::index::Index;
use super::settings::{Settings, Sum};
use super::subjects::{Has, Subjects};
use super::{Of, PlanErrors, Rate, Unset};
use crate::config::Fault;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::fmt;
use std::sync::Arc;

/// All tables of a configuration, by the numbers of their sources. `None` where nothing has been loaded.
pub type Tables = [Option<Arc<Table>>];

/// What each subject has, flattened.
///
/// Never changes; a newer document replaces it whole.
#[derive(Default)]
pub struct Table {
    /// Each distinct rate once.
    rates: Vec<Rate>,
    /// Who has it, of whoever was the first.
    named: Vec<Box<str>>,
    subjects: Subjects,
    groups: Index,
    quotas: Vec<Has>,
    notes: Notes,
}

const NONE: u32 = u32::MAX;
const UNLIMITED: u32 = u32::MAX;
/// No level says anything, and then it is unlimited.
const UNSET_UNLIMITED: u32 = u32::MAX - 1;
/// No level says anything, and then it is refused.
const UNSET_REFUSED: u32 = u32::MAX - 2;
/// No level says anything, and then it has the first rate of the table.
const UNSET_RATE: u32 = u32::MAX - 3;

/// What a subject, or a group, has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The rate of this number; see [`Table::rates`].
    Rate(u32),
    /// Anything.
    Unlimited,
    /// Nothing: no level says how much, and the source says that this is to be refused.
    Nothing,
}

/// What is known of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// What it has.
    pub given: Given,
    /// Whether no level says how much, so that it has what the source says for such.
    pub is_unset: bool,
    /// Its group, if it has one.
    pub group: Option<&'a str>,
}

/// A group of a table, whose id is looked up only by who wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a> {
    table: &'a Table,
    number: u32,
}

/// What is odd about a document, and does no harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Groups and subjects with a plan that is not there.
    pub plans_missing: usize,
    /// Subjects with a group that is not there.
    pub groups_missing: usize,
    /// Subjects of which no level says how much.
    pub unset: usize,
}

// === impl Table ===

impl Table {
    /// What a subject has; `None` where the source does not know it.
    #[inline]
    pub fn get(&self, subject: &str) -> Option<Found<'_>> {
        let has = self.has(subject)?;
        Some(self.found(has, has.group))
    }

    /// What the group of a subject has; `None` where the source does not know the subject, or it
    /// belongs to no group.
    #[inline]
    pub fn group_of(&self, subject: &str) -> Option<Found<'_>> {
        let number = self.has(subject)?.group;
        let quota = *self.quotas.get(usize::try_from(number).ok()?)?;
        Some(self.found(quota, number))
    }

    /// What a group has, by its own id.
    pub fn group(&self, id: &str) -> Option<Found<'_>> {
        let number = self.groups.get(id)?;
        let quota = *self.quotas.get(usize::try_from(number).ok()?)?;
        Some(self.found(quota, number))
    }

    #[inline]
    fn has(&self, subject: &str) -> Option<Has> {
        self.subjects.get(subject)
    }

    /// What a subject has, or its group, and which group that is: for those who ask often, and seldom
    /// for the name of a group.
    #[inline]
    pub(super) fn look(&self, subject: &str, of: Of) -> Option<(Given, bool, Option<Group<'_>>)> {
        let has = self.has(subject)?;
        let of = match of {
            Of::Subject => has,
            Of::Group => *self.quotas.get(usize::try_from(has.group).ok()?)?,
        };
        let (given, is_unset) = given(of);
        let group = Group {
            table: self,
            number: has.group,
        };
        Some((given, is_unset, (has.group != NONE).then_some(group)))
    }

    fn found(&self, has: Has, group: u32) -> Found<'_> {
        let (given, is_unset) = given(has);
        Found {
            given,
            is_unset,
            group: (group != NONE).then(|| self.groups.text(group)),
        }
    }

    /// The rates that subjects and groups have, each once. [`Given::Rate`] counts from 0.
    pub fn rates(&self) -> &[Rate] {
        &self.rates
    }

    /// Who has the rate of this number, for messages: the first entry, by its name unless that is a
    /// secret.
    pub fn whose(&self, rate: usize) -> &str {
        self.named.get(rate).map_or("", |name| name)
    }

    /// How many subjects it knows.
    pub fn subjects(&self) -> usize {
        self.subjects.len()
    }

    /// How many groups it knows.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// What is odd about the document it was made of.
    pub fn notes(&self) -> Notes {
        self.notes
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let entries = self.quotas.capacity().saturating_mul(size_of::<Has>());
        let indexes = self.subjects.bytes().saturating_add(self.groups.bytes());
        indexes.saturating_add(entries)
    }

    pub(super) fn build(mut document: Document, unset: Unset) -> Result<Self, PlanErrors> {
        let mut builder = Builder::new(unset);
        let plans = plans(&mut document);
        let groups = std::mem::take(&mut document.groups);
        for group in &groups {
            builder.group(&mut document, group, &plans);
        }
        let subjects = std::mem::take(&mut document.subjects);
        for (number, subject) in subjects.iter().enumerate() {
            builder.subject(&mut document, (number, subject), &plans);
        }
        builder.table.subjects.shrink();
        builder.table.groups.shrink();
        document.errors.or(builder.table)
    }
}

/// What an entry has, in words, and whether no level says so.
#[inline]
fn given(has: Has) -> (Given, bool) {
    match has.given {
        UNLIMITED => (Given::Unlimited, false),
        UNSET_UNLIMITED => (Given::Unlimited, true),
        UNSET_REFUSED => (Given::Nothing, true),
        UNSET_RATE => (Given::Rate(0), true),
        rate => (Given::Rate(rate), false),
    }
}

// === impl Group ===

impl<'a> Group<'a> {
    /// Its id.
    pub(crate) fn text(self) -> &'a str {
        self.table.groups.text(self.number)
    }
}

// By hand: subjects may be secrets, and there are many.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("subjects", &self.subjects())
            .field("groups", &self.groups())
            .field("rates", &self.rates.len())
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

/// What each plan says of subjects, and of the quotas of groups.
type Plans = HashMap<String, (Settings, Settings), RandomState>;

fn plans(document: &mut Document) -> Plans {
    let mut plans = Plans::default();
    for plan in std::mem::take(&mut document.plans) {
        let Entry { id, own, quota, .. } = plan;
        if plans.insert(id.clone(), (own, quota)).is_some() {
            document.refuse_entry(Kind::Plan, &id, TWICE);
        }
    }
    plans
}

const TWICE: &str = "it is there twice";

/// A table in the making.
struct Builder {
    table: Table,
    unset: u32,
    numbers: HashMap<Rate, u32, RandomState>,
    /// What subjects inherit of each group, by its number.
    levels: Vec<Settings>,
}

impl Builder {
    fn new(unset: Unset) -> Self {
        let mut builder = Self {
            table: Table::default(),
            unset: match unset {
                Unset::Unlimited => UNSET_UNLIMITED,
                Unset::Refuse => UNSET_REFUSED,
                Unset::Rate(_) => UNSET_RATE,
            },
            numbers: HashMap::default(),
            levels: Vec::new(),
        };
        if let Unset::Rate(rate) = unset {
            builder.rate(rate, || "`unset` of the source".to_owned());
        }
        builder
    }

    fn group(&mut self, document: &mut Document, entry: &Entry, plans: &Plans) {
        let Some((_, true)) = self.table.groups.add(&entry.id) else {
            document.refuse_entry(Kind::Group, &entry.id, TWICE);
            return;
        };
        // Whose plan is missing keeps what it says itself.
        let (plan, quota) = self.plan(entry, plans).unwrap_or_default();
        self.levels.push(plan.under(entry.own));
        let name = || format!("the quota of group {}", Fault::quote(&entry.id));
        let given = self.number(quota.under(entry.quota), name);
        let group = NONE;
        self.table.quotas.push(Has { given, group });
    }

    fn subject(
        &mut self,
        document: &mut Document,
        (number, entry): (usize, &Entry),
        plans: &Plans,
    ) {
        let hides = document.hides_subjects;
        let shown = || {
            if hides {
                format!("subject number {}", number.saturating_add(1))
            } else {
                format!("subject {}", Fault::quote(&entry.id))
            }
        };
        let group = entry.group.as_deref().and_then(|id| self.group_number(id));
        let level = group.and_then(|number| self.levels.get(usize::try_from(number).ok()?));
        let level = level.copied().unwrap_or_default();
        let (plan, _) = self.plan(entry, plans).unwrap_or_default();
        let given = self.number(level.under(plan).under(entry.own), shown);
        let notes = &mut self.table.notes;
        notes.unset = notes.unset.saturating_add(usize::from(given == self.unset));
        let group = group.unwrap_or(NONE);
        if !self.table.subjects.add(&entry.id, Has { given, group }) {
            document.refuse(format!("{}: {TWICE}", shown()));
        }
    }

    /// The number of a group. One that is not there is a group all the same, of which nothing is said.
    fn group_number(&mut self, id: &str) -> Option<u32> {
        let (number, is_new) = self.table.groups.add(id)?;
        if is_new {
            self.levels.push(Settings::default());
            let (given, group) = (self.unset, NONE);
            self.table.quotas.push(Has { given, group });
        }
        let notes = &mut self.table.notes;
        notes.groups_missing = notes.groups_missing.saturating_add(usize::from(is_new));
        Some(number)
    }

    /// What the plan of an entry says, if it has one that is there.
    fn plan(&mut self, entry: &Entry, plans: &Plans) -> Option<(Settings, Settings)> {
        let found = plans.get(entry.plan.as_deref()?);
        let notes = &mut self.table.notes;
        notes.plans_missing = notes
            .plans_missing
            .saturating_add(usize::from(found.is_none()));
        found.copied()
    }

    fn number(&mut self, settings: Settings, whose: impl FnOnce() -> String) -> u32 {
        match settings.sum() {
            Sum::Rate(rate) => self.rate(rate, whose),
            Sum::Unlimited => UNLIMITED,
            Sum::Unset => self.unset,
        }
    }

    fn rate(&mut self, rate: Rate, whose: impl FnOnce() -> String) -> u32 {
        let table = &mut self.table;
        *self.numbers.entry(rate).or_insert_with(|| {
            table.named.push(whose().into());
            table.rates.push(rate);
            // There are never as many as would not fit: entries are bounded.
            u32::try_from(table.rates.len().saturating_sub(1)).unwrap_or(UNSET_UNLIMITED)
        })
    }
}

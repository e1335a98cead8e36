//! A document flattened: from a subject to its rate and its group, in constant time.

use super::given::{Has, PlanShare};
use super::index::Index;
use super::subjects::Subjects;
use super::{PlanRate, RateOwner};
use crate::lookup::{DigestSlot, DigestedText};
use std::fmt;
use std::sync::Arc;

/// All tables of a configuration, by the numbers of their sources. `None` where nothing has been loaded.
pub type Tables = [Option<Arc<PlanTable>>];

/// What each subject has, flattened.
///
/// Never changes; a newer document replaces it whole.
#[derive(Default)]
pub struct PlanTable {
    /// Each distinct rate once.
    pub(super) rates: Vec<PlanRate>,
    /// Who has it, of whoever was the first.
    pub(super) named: Vec<Box<str>>,
    pub(super) subjects: Subjects,
    pub(super) groups: Index,
    /// By the numbers of groups.
    pub(super) quotas: Vec<Has>,
    pub(super) notes: PlanNotes,
}

/// What is known of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectEntry<'a> {
    /// What it has.
    pub given: PlanShare,
    /// Whether no level says how much, so that it has what the source says for such.
    pub is_unset: bool,
    /// Its group, if it has one.
    pub group: Option<&'a str>,
}

/// The group of a subject, which is looked up only by who wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanGroup<'a> {
    table: &'a PlanTable,
    /// Where the subject is.
    subject: usize,
}

/// What is odd about a document, and does no harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanNotes {
    /// Subjects with a group that is not there.
    pub groups_missing: usize,
    /// Subjects of which no level says how much.
    pub unset: usize,
}

// === impl Table ===

impl PlanTable {
    /// What a subject has; `None` where the source does not know it.
    #[inline]
    pub fn get(&self, subject: &str) -> Option<SubjectEntry<'_>> {
        let DigestSlot { at, number } = self.subjects.get(subject, None)?;
        Some(self.found(Has(number), self.subjects.group(at)))
    }

    /// What the group of a subject has; `None` where the source does not know the subject, or it
    /// belongs to no group.
    #[inline]
    pub fn group_of(&self, subject: &str) -> Option<SubjectEntry<'_>> {
        let number = self.subjects.group(self.subjects.get(subject, None)?.at)?;
        Some(self.found(self.quota(number)?, Some(number)))
    }

    /// What a group has, by its own id.
    pub fn group(&self, id: &str) -> Option<SubjectEntry<'_>> {
        let number = self.groups.get(id)?;
        Some(self.found(self.quota(number)?, Some(number)))
    }

    /// What a subject has, or its group, and which group that is: for those who ask often, and seldom
    /// for the name of a group.
    #[inline]
    pub(super) fn look(
        &self,
        subject: &str,
        of: RateOwner,
        made: Option<DigestedText<'_>>,
    ) -> Option<(PlanShare, bool, PlanGroup<'_>)> {
        let DigestSlot { at, number } = self.subjects.get(subject, made)?;
        let has = match of {
            RateOwner::Subject => Has(number),
            RateOwner::Group => self.quota(self.subjects.group(at)?)?,
        };
        let (given, is_unset) = has.given();
        let group = PlanGroup {
            table: self,
            subject: at,
        };
        Some((given, is_unset, group))
    }

    /// Begins to fetch what is known of a subject, for whoever asks for it soon.
    #[inline]
    pub(super) fn fetch(&self, subject: DigestedText<'_>) {
        self.subjects.fetch(subject);
    }

    /// What the group of this number has.
    fn quota(&self, group: u32) -> Option<Has> {
        self.quotas.get(usize::try_from(group).ok()?).copied()
    }

    fn found(&self, has: Has, group: Option<u32>) -> SubjectEntry<'_> {
        let (given, is_unset) = has.given();
        SubjectEntry {
            given,
            is_unset,
            group: group.map(|number| self.groups.text(number)),
        }
    }

    /// The rates that subjects and groups have, each once. [`PlanShare::Rate`] counts from 0.
    pub fn rates(&self) -> &[PlanRate] {
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
    pub fn notes(&self) -> PlanNotes {
        self.notes
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let entries = self.quotas.capacity().saturating_mul(size_of::<Has>());
        let indexes = self.subjects.bytes().saturating_add(self.groups.bytes());
        indexes.saturating_add(entries)
    }
}

// === impl Group ===

impl<'a> PlanGroup<'a> {
    /// Its id, if the subject belongs to any.
    pub(crate) fn text(self) -> Option<&'a str> {
        let number = self.table.subjects.group(self.subject)?;
        Some(self.table.groups.text(number))
    }
}

// By hand: subjects may be secrets, and there are many.
impl fmt::Debug for PlanTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("subjects", &self.subjects())
            .field("groups", &self.groups())
            .field("rates", &self.rates.len())
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

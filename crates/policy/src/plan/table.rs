//! A flattened document: from a subject to its rate and its group, in constant time.

use super::index::Index;
use super::subject_share::{PackedShare, PlanShare};
use super::subjects::Subjects;
use super::{PlanRate, RateOwner};
use crate::digest::{DigestSlot, DigestedText};
use std::fmt;
use std::sync::Arc;

/// All tables of a configuration, by the numbers of their sources. `None` where no document has been loaded.
pub type Tables = [Option<Arc<PlanTable>>];

/// The share of each subject, flattened from a document.
///
/// Immutable: a newer document replaces it as a whole.
#[derive(Default)]
pub struct PlanTable {
    /// Each distinct rate once.
    pub(super) rates: Vec<PlanRate>,
    /// The first owner of each rate, as text for messages.
    pub(super) named: Vec<Box<str>>,
    pub(super) subjects: Subjects,
    pub(super) groups: Index,
    /// The quotas, by the numbers of groups.
    pub(super) quotas: Vec<PackedShare>,
    pub(super) notes: PlanNotes,
}

/// The entry of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectEntry<'a> {
    /// Its share.
    pub given: PlanShare,
    /// True if no level sets a rate, so that the source's setting for unset subjects applies.
    pub is_unset: bool,
    /// Its group, if it has one.
    pub group: Option<&'a str>,
}

/// The group of a subject. Its name is looked up only on demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanGroup<'a> {
    table: &'a PlanTable,
    /// The position of the subject.
    subject: usize,
}

/// Harmless oddities in a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanNotes {
    /// Groups that subjects refer to, but the document does not define.
    pub groups_missing: usize,
    /// Subjects for which no level sets a rate.
    pub unset: usize,
}

// === impl PlanTable ===

impl PlanTable {
    /// Returns the entry of a subject, or `None` if the source does not know it.
    #[inline]
    pub fn get(&self, subject: &str) -> Option<SubjectEntry<'_>> {
        let DigestSlot { at, number } = self.subjects.get(subject, None)?;
        Some(self.found(PackedShare(number), self.subjects.group(at)))
    }

    /// Returns the entry of a subject's group. Returns `None` if the source does not know the subject, or if
    /// it belongs to no group.
    #[inline]
    pub fn group_of(&self, subject: &str) -> Option<SubjectEntry<'_>> {
        let number = self.subjects.group(self.subjects.get(subject, None)?.at)?;
        Some(self.found(self.quota(number)?, Some(number)))
    }

    /// Returns the entry of a group by its id.
    pub fn group(&self, id: &str) -> Option<SubjectEntry<'_>> {
        let number = self.groups.get(id)?;
        Some(self.found(self.quota(number)?, Some(number)))
    }

    /// Returns the share of a subject or of its group, and the group. For frequent lookups that rarely need
    /// the name of the group.
    #[inline]
    pub(super) fn look(
        &self,
        subject: &str,
        of: RateOwner,
        made: Option<DigestedText<'_>>,
    ) -> Option<(PlanShare, bool, PlanGroup<'_>)> {
        let DigestSlot { at, number } = self.subjects.get(subject, made)?;
        let has = match of {
            RateOwner::Subject => PackedShare(number),
            RateOwner::Group => self.quota(self.subjects.group(at)?)?,
        };
        let (given, is_unset) = has.given();
        let group = PlanGroup {
            table: self,
            subject: at,
        };
        Some((given, is_unset, group))
    }

    /// Starts to fetch the entry of a subject for a lookup that follows soon.
    #[inline]
    pub(crate) fn fetch(&self, subject: DigestedText<'_>) {
        self.subjects.fetch(subject);
    }

    /// Returns the share of the group with this number.
    fn quota(&self, group: u32) -> Option<PackedShare> {
        self.quotas.get(usize::try_from(group).ok()?).copied()
    }

    fn found(&self, has: PackedShare, group: Option<u32>) -> SubjectEntry<'_> {
        let (given, is_unset) = has.given();
        SubjectEntry {
            given,
            is_unset,
            group: group.map(|number| self.groups.text(number)),
        }
    }

    /// Returns the distinct rates of subjects and groups. [`PlanShare::Rate`] is an index from 0.
    pub fn rates(&self) -> &[PlanRate] {
        &self.rates
    }

    /// Returns the first owner of the rate with this number as text for messages. Its name is not shown if it
    /// is a secret.
    pub fn owner_of_rate(&self, rate: usize) -> &str {
        self.named.get(rate).map_or("", |name| name)
    }

    /// Returns the number of subjects.
    pub fn subjects(&self) -> usize {
        self.subjects.len()
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Returns the oddities of the document it was made of.
    pub fn notes(&self) -> PlanNotes {
        self.notes
    }

    /// Returns its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let entries = self
            .quotas
            .capacity()
            .saturating_mul(size_of::<PackedShare>());
        let indexes = self.subjects.bytes().saturating_add(self.groups.bytes());
        indexes.saturating_add(entries)
    }
}

// === impl PlanGroup ===

impl<'a> PlanGroup<'a> {
    /// Returns the id of the group, if the subject belongs to one.
    pub(crate) fn text(self) -> Option<&'a str> {
        let number = self.table.subjects.group(self.subject)?;
        Some(self.table.groups.text(number))
    }
}

// Written by hand because subjects may be secrets, and there are many.
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

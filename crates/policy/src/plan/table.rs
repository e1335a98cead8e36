//! A flattened document: from a subject to its rate and its group, in constant time.

use super::index::Index;
use super::share_rows::ShareRows;
use super::subject_share::PlanShare;
use super::subjects::Subjects;
use super::{PlanRate, RateName, RateOwner};
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
    /// The rates by name, that of requests first.
    pub(super) columns: Vec<RateColumn>,
    /// The shares of subjects and groups in each of them.
    pub(super) rows: ShareRows,
    pub(super) subjects: Subjects,
    pub(super) groups: Index,
    /// The numbers of the quotas' shares, by the numbers of groups.
    pub(super) quotas: Vec<u32>,
    pub(super) notes: PlanNotes,
}

/// All values of the rate with one name.
pub(super) struct RateColumn {
    pub(super) name: RateName,
    /// Each distinct rate once.
    pub(super) rates: Vec<PlanRate>,
    /// The first owner of each rate, as text for messages.
    pub(super) owners: Vec<Box<str>>,
}

/// The entry of a subject or a group.
#[derive(Clone, Copy)]
pub struct SubjectEntry<'a> {
    /// Its group, if it has one.
    pub group: Option<&'a str>,
    table: &'a PlanTable,
    number: u32,
}

/// A share of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenShare {
    /// The share.
    pub share: PlanShare,
    /// True if no level sets a rate, so that the source's setting for unset subjects applies.
    pub is_unset: bool,
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
    /// Subjects for which no level sets one of the rates.
    pub unset: usize,
}

// === impl PlanTable ===

impl PlanTable {
    /// Returns the entry of a subject, or `None` if the source does not know it.
    #[inline]
    pub fn get(&self, subject: &str) -> Option<SubjectEntry<'_>> {
        let DigestSlot { at, number } = self.subjects.get(subject, None)?;
        Some(self.found(number, self.subjects.group(at)))
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

    /// Returns the number of the rate with this name. `None` if the source of the table had none when it was loaded.
    #[inline]
    pub(super) fn column(&self, name: &RateName) -> Option<usize> {
        if name.is_requests() {
            return Some(0);
        }
        self.columns.iter().position(|it| it.name == *name)
    }

    /// Returns the share of a subject or of its group in a rate, and the group. For frequent lookups that rarely need
    /// the name of the group.
    #[inline]
    pub(super) fn look(
        &self,
        (subject, made): (&str, Option<DigestedText<'_>>),
        column: usize,
        of: RateOwner,
    ) -> Option<(PlanShare, bool, PlanGroup<'_>)> {
        let DigestSlot { at, number } = self.subjects.get(subject, made)?;
        let number = match of {
            RateOwner::Subject => number,
            RateOwner::Group => self.quota(self.subjects.group(at)?)?,
        };
        let (given, is_unset) = self.rows.share(number, column)?.given();
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

    /// Returns the number of the shares of the group with this number.
    fn quota(&self, group: u32) -> Option<u32> {
        self.quotas.get(usize::try_from(group).ok()?).copied()
    }

    fn found(&self, number: u32, group: Option<u32>) -> SubjectEntry<'_> {
        SubjectEntry {
            group: group.map(|number| self.groups.text(number)),
            table: self,
            number,
        }
    }

    /// Returns the distinct values of the rate `name` for subjects and groups. [`PlanShare::Rate`] is an index from 0.
    /// Empty if the source had no such rate when the table was loaded.
    pub fn rates(&self, name: &RateName) -> &[PlanRate] {
        self.named(name).map_or(&[], |column| &column.rates)
    }

    /// Returns the number of distinct values of all rates.
    pub fn rates_count(&self) -> usize {
        self.columns.iter().map(|it| it.rates.len()).sum()
    }

    /// Returns the first owner of a value of the rate `name` as text for messages. Its name is not shown if it
    /// is a secret.
    pub fn owner_of_rate(&self, name: &RateName, rate: usize) -> &str {
        let owner = self.named(name).and_then(|it| it.owners.get(rate));
        owner.map_or("", |owner| owner)
    }

    fn named(&self, name: &RateName) -> Option<&RateColumn> {
        self.columns.get(self.column(name)?)
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
            .saturating_mul(size_of::<u32>())
            .saturating_add(self.rows.bytes());
        let indexes = self.subjects.bytes().saturating_add(self.groups.bytes());
        indexes.saturating_add(entries)
    }
}

// === impl RateColumn ===

impl RateColumn {
    pub(super) fn new(name: RateName) -> Self {
        Self {
            name,
            rates: Vec::new(),
            owners: Vec::new(),
        }
    }
}

// === impl SubjectEntry ===

impl<'a> SubjectEntry<'a> {
    /// Returns its share of the rate `name`, or `None` if the source had no such rate when the table was loaded.
    pub fn share(&self, name: &RateName) -> Option<GivenShare> {
        self.share_of(self.table.column(name)?)
    }

    /// Returns its share of each rate with a name, in the order of the source.
    pub fn named_shares(self) -> impl Iterator<Item = (&'a RateName, GivenShare)> {
        let columns = self.table.columns.iter().enumerate().skip(1);
        columns.filter_map(move |(column, rate)| Some((&rate.name, self.share_of(column)?)))
    }

    fn share_of(&self, column: usize) -> Option<GivenShare> {
        let (share, is_unset) = self.table.rows.share(self.number, column)?.given();
        Some(GivenShare { share, is_unset })
    }
}

// Written by hand because the table is large.
impl fmt::Debug for SubjectEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubjectEntry")
            .field("group", &self.group)
            .field("requests", &self.share(&RateName::default()))
            .finish_non_exhaustive()
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
            .field("rates", &self.rates_count())
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

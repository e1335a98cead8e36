//! The document that a source delivers: plans, groups and subjects.

use super::PlanTerms;
use super::entry::PlanEntry;
use super::error::{PlanErrors, PlanLine};
use super::table::PlanTable;
use crate::text::ConfigFault;
use std::fmt;

/// The maximum length of an id, in bytes.
const ID_MAX: usize = 512;

/// The maximum number of entries in each section.
const ENTRIES_MAX: usize = 10_000_000;

/// The document that a source delivers: plans, groups of subjects, and subjects.
///
/// Fields of entries are text, regardless of their type in the source: numbers of any width are written out.
/// [`table`](Self::table) reports all errors in them together.
///
/// ```
/// use tidegate_policy::plan::{PlanDocument, PlanShare, RateName, UnsetShare};
///
/// let mut document = PlanDocument::default();
/// document.plan("free", &[("rate", "100/min")]);
/// document.group("acme", &[("plan", "free"), ("amount", "500")]);
/// document.subject("p1", &[("group", "acme")]);
/// document.subject("p2", &[("group", "acme"), ("period", "1h")]);
///
/// let table = document.table(UnsetShare::Unlimited)?;
/// let requests = RateName::default();
/// let has = |id| match table.get(id)?.share(&requests)?.share {
///     PlanShare::Rate(number) => Some(table.rates(&requests)[number as usize].to_string()),
///     _ => None,
/// };
/// assert_eq!(has("p1").as_deref(), Some("500/min"));
/// assert_eq!(has("p2").as_deref(), Some("500/h"));
/// assert_eq!(has("p3"), None);
/// # Ok::<(), tidegate_policy::plan::PlanErrors>(())
/// ```
#[derive(Default)]
pub struct PlanDocument {
    pub(super) plans: Vec<PlanEntry>,
    /// Ids of plans with `enabled: false`.
    pub(super) plans_off: Vec<String>,
    pub(super) groups: Vec<PlanEntry>,
    pub(super) subjects: Vec<PlanEntry>,
    /// True if the ids of subjects are secrets, such as API keys.
    pub(super) hides_subjects: bool,
    pub(super) errors: PlanErrors,
    /// The number of subjects that were added, including rejected and disabled ones.
    pub(super) seen: usize,
}

/// A field of an entry, as text.
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) line: PlanLine,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlanLevel {
    /// A plan.
    Plan,
    /// A group of subjects.
    Group,
    /// A subject.
    Subject,
}

// === impl PlanDocument ===

impl PlanDocument {
    /// Marks subjects as secrets, such as API keys: no message shows one.
    #[must_use]
    pub fn hiding_subjects(mut self) -> Self {
        self.hides_subjects = true;
        self
    }

    /// Adds a plan. Its field is `rate`, such as `100/min` or `unlimited`; or `amount` or `period`, to inherit
    /// the other one. With the prefix `rates.NAME.` they apply to the rate of that name, and `rates.NAME` is that
    /// rate. With the prefix `quota.` they apply to a group's quota. `time_zone`, `week_start` and `anchor` set the
    /// calendar of all its rates. An entry with
    /// `enabled` `false` is checked, but counts as absent; this holds for all kinds of entries.
    pub fn plan(&mut self, id: &str, fields: &[(&str, &str)]) {
        self.add_texts(PlanLevel::Plan, id, fields);
    }

    /// Adds a group. It has the fields of a plan, and `plan`.
    pub fn group(&mut self, id: &str, fields: &[(&str, &str)]) {
        self.add_texts(PlanLevel::Group, id, fields);
    }

    /// Adds a subject. It has the fields of a plan, and `group` and `plan`.
    pub fn subject(&mut self, id: &str, fields: &[(&str, &str)]) {
        self.add_texts(PlanLevel::Subject, id, fields);
    }

    /// Returns the number of its subjects.
    pub fn subjects(&self) -> usize {
        self.subjects.len()
    }

    /// Flattens the document into a table, by the terms of its source: the names of rates that it may set, and the
    /// share of subjects without a complete rate.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tidegate_policy::plan::{PlanDocument, PlanTerms, RateName};
    ///
    /// let tokens = RateName::parse("tokens").unwrap();
    /// let terms = PlanTerms { rates: Arc::new([tokens.clone()]), ..PlanTerms::default() };
    /// let mut document = PlanDocument::default();
    /// document.subject("ann", &[("rate", "10/min"), ("rates.tokens", "1M/month")]);
    /// assert_eq!(document.table(terms.clone())?.rates(&tokens)[0].to_string(), "1000000/month");
    ///
    /// let mut document = PlanDocument::default();
    /// document.subject("ann", &[("rates.tokns", "1M/month")]);
    /// let wrong = document.table(terms).unwrap_err().to_string();
    /// assert!(wrong.contains("did you mean `tokens`?"), "{wrong}");
    /// # Ok::<(), tidegate_policy::plan::PlanErrors>(())
    /// ```
    ///
    /// # Errors
    ///
    /// All errors of the document together.
    pub fn table(self, terms: impl Into<PlanTerms>) -> Result<PlanTable, PlanErrors> {
        PlanTable::build(self, &terms.into())
    }

    /// Sets the name of the text that it was read from, such as the path of a file. Errors begin with it.
    #[must_use]
    pub fn named(mut self, text: &str) -> Self {
        self.errors.set_text(text);
        self
    }

    /// Records an error that belongs to no entry.
    pub fn refuse(&mut self, message: impl Into<String>) {
        self.refuse_line(PlanLine::default(), || message.into());
    }

    /// Records an error on a line.
    pub(super) fn refuse_line(&mut self, line: PlanLine, message: impl FnOnce() -> String) {
        self.errors.add(line, message);
    }

    fn add_texts(&mut self, kind: PlanLevel, id: &str, fields: &[(&str, &str)]) {
        let fields: Vec<Field<'_>> = fields
            .iter()
            .map(|(name, text)| Field {
                name,
                text,
                line: PlanLine::default(),
            })
            .collect();
        self.add(kind, (id, PlanLine::default()), &fields);
    }

    pub(super) fn add(
        &mut self,
        kind: PlanLevel,
        (id, line): (&str, PlanLine),
        fields: &[Field<'_>],
    ) {
        let mut entry = PlanEntry {
            id: id.to_owned(),
            line,
            ..PlanEntry::default()
        };
        for field in fields {
            if let Err(why) = entry.take(kind, field) {
                self.refuse_entry(kind, (id, field.line), &why);
            }
        }
        for settings in entry.levels() {
            if let Err(why) = settings.check() {
                self.refuse_entry(kind, (id, line), &why);
            }
        }
        if id.is_empty() || id.len() > ID_MAX {
            let why = format!("an id has 1 to {ID_MAX} bytes; this one has {}", id.len());
            self.refuse_entry(kind, (id, line), &why);
        }
        let list = match kind {
            PlanLevel::Plan => &mut self.plans,
            PlanLevel::Group => &mut self.groups,
            PlanLevel::Subject => &mut self.subjects,
        };
        self.seen = self
            .seen
            .saturating_add(usize::from(kind == PlanLevel::Subject));
        if entry.is_off {
            if kind == PlanLevel::Plan {
                self.plans_off.push(entry.id);
            }
            return;
        }
        if list.len() == ENTRIES_MAX {
            self.refuse(format!("it has more than {ENTRIES_MAX} {}", kind.plural()));
        } else if list.len() < ENTRIES_MAX {
            list.push(entry);
        }
    }

    /// Records an error of an entry, by its id, or by its number if the id is a secret.
    pub(super) fn refuse_entry(
        &mut self,
        kind: PlanLevel,
        (id, line): (&str, PlanLine),
        why: &str,
    ) {
        let (hides, number) = (self.hides_subjects, self.seen.saturating_add(1));
        self.errors.add(line, || {
            if kind == PlanLevel::Subject && hides {
                format!("subject number {number} (hidden because it is a secret): {why}")
            } else {
                format!("{} {}: {why}", kind.noun(), ConfigFault::quote(id))
            }
        });
    }
}

/// A document that could not be read. Its table consists of these errors.
impl From<PlanErrors> for PlanDocument {
    fn from(errors: PlanErrors) -> Self {
        Self {
            errors,
            ..Self::default()
        }
    }
}

// Written by hand because subjects may be secrets, and there are many.
impl fmt::Debug for PlanDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("plans", &self.plans.len())
            .field("groups", &self.groups.len())
            .field("subjects", &self.subjects.len())
            .finish_non_exhaustive()
    }
}

// === impl PlanLevel ===

impl PlanLevel {
    /// All levels, from the most general.
    pub const ALL: [Self; 3] = [Self::Plan, Self::Group, Self::Subject];

    /// Returns the level as a noun.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Group => "group",
            Self::Subject => "subject",
        }
    }

    /// Returns the plural noun, which is also the name of the section in a document.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Plan => "plans",
            Self::Group => "groups",
            Self::Subject => "subjects",
        }
    }
}

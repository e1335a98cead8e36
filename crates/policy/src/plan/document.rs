//! What a source delivers: plans, groups and subjects.

use super::error::{PlanErrors, PlanLine};
use super::settings::{FIELDS, LevelSettings, flag};
use super::table::PlanTable;
use crate::config::{ConfigFault, closest};
use std::fmt;

/// The longest id, in bytes.
const ID_MAX: usize = 512;

/// The most entries of a document.
const ENTRIES_MAX: usize = 10_000_000;

/// What a source delivers: plans, groups of subjects, and subjects.
///
/// Each entry has fields as text, whatever they are in the source: numbers of any width are written
/// out. What is wrong with them is told by [`table`](Self::table), all of it at once.
///
/// ```
/// use tidegate_policy::plan::{Document, Given, Unset};
///
/// let mut document = Document::default();
/// document.plan("free", &[("N", "100"), ("T", "60")]);
/// document.group("acme", &[("plan", "free"), ("N", "500")]);
/// document.subject("p1", &[("group", "acme")]);
/// document.subject("p2", &[("group", "acme"), ("T", "1h")]);
///
/// let table = document.table(Unset::Unlimited)?;
/// let has = |id| match table.get(id)?.given {
///     Given::Rate(number) => Some(table.rates()[number as usize].to_string()),
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
    /// Whether the ids of subjects are secrets, such as API keys.
    pub(super) hides_subjects: bool,
    pub(super) errors: PlanErrors,
    /// How many subjects were added, whatever became of them.
    pub(super) seen: usize,
}

/// One entry, as far as it could be read.
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
    /// Whether it counts as if it were not there.
    is_off: bool,
}

/// A field of an entry, as text.
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) line: PlanLine,
}

/// What kind of entry it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlanLevel {
    /// A plan.
    Plan,
    /// A group of subjects.
    Group,
    /// A subject.
    Subject,
}

/// What the group of a subject is called, here and elsewhere.
pub(super) const GROUP: [&str; 3] = ["group", "workspace", "workspaceId"];

/// Whether an entry counts at all.
pub(super) const ENABLED: &str = "enabled";

/// What stands before a field of a quota.
const QUOTA: &str = "quota.";

// === impl Document ===

impl PlanDocument {
    /// One whose subjects are secrets, such as API keys: no message shows one.
    #[must_use]
    pub fn hiding_subjects(mut self) -> Self {
        self.hides_subjects = true;
        self
    }

    /// Adds a plan. Fields are `N` and `T` (or `amount` and `period`, `limit` and
    /// `window_seconds`), or `rate`, or `unlimited`; with `quota.` before them, of a group's quota.
    /// With `enabled` `false`, it is checked and counts as if it were not there; so do all entries.
    pub fn plan(&mut self, id: &str, fields: &[(&str, &str)]) {
        self.add_texts(PlanLevel::Plan, id, fields);
    }

    /// Adds a group: besides those of a plan, the field `plan`.
    pub fn group(&mut self, id: &str, fields: &[(&str, &str)]) {
        self.add_texts(PlanLevel::Group, id, fields);
    }

    /// Adds a subject: besides those of a plan, the fields `group` and `plan`.
    pub fn subject(&mut self, id: &str, fields: &[(&str, &str)]) {
        self.add_texts(PlanLevel::Subject, id, fields);
    }

    /// How many subjects it has.
    pub fn subjects(&self) -> usize {
        self.subjects.len()
    }

    /// The document flattened; `unset` is what a subject has of which no level says enough.
    pub fn table(self, unset: super::Unset) -> Result<PlanTable, PlanErrors> {
        PlanTable::build(self, unset)
    }

    /// Names the text that it was read from, such as the path of a file: errors begin with it.
    #[must_use]
    pub fn named(mut self, text: &str) -> Self {
        self.errors.set_text(text);
        self
    }

    /// Notes that something is wrong that belongs to no entry.
    pub fn refuse(&mut self, message: impl Into<String>) {
        self.refuse_line(PlanLine::default(), || message.into());
    }

    /// Notes that something is wrong on a line.
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
        for settings in [&entry.own, &entry.quota] {
            if let Err(why) = settings.check() {
                self.refuse_entry(kind, (id, line), &why);
            }
        }
        if id.is_empty() || id.len() > ID_MAX {
            let why = format!(
                "an id has 1 to {ID_MAX} bytes, and this one has {}",
                id.len()
            );
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

    /// Notes what is wrong with an entry, by its name, or by its number where the name is a secret.
    pub(super) fn refuse_entry(
        &mut self,
        kind: PlanLevel,
        (id, line): (&str, PlanLine),
        why: &str,
    ) {
        let (hides, number) = (self.hides_subjects, self.seen.saturating_add(1));
        self.errors.add(line, || {
            if kind == PlanLevel::Subject && hides {
                format!("subject number {number} (not shown, for it is a secret): {why}")
            } else {
                format!("{} {}: {why}", kind.noun(), ConfigFault::quote(id))
            }
        });
    }
}

/// A document of which nothing could be read: its table is these errors.
impl From<PlanErrors> for PlanDocument {
    fn from(errors: PlanErrors) -> Self {
        Self {
            errors,
            ..Self::default()
        }
    }
}

// By hand: subjects may be secrets, and there are many.
impl fmt::Debug for PlanDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("plans", &self.plans.len())
            .field("groups", &self.groups.len())
            .field("subjects", &self.subjects.len())
            .finish_non_exhaustive()
    }
}

// === impl Entry ===

impl PlanEntry {
    fn take(&mut self, kind: PlanLevel, field: &Field<'_>) -> Result<(), String> {
        let Field { name, text, line } = *field;
        let named = || Some(text.trim()).filter(|it| !it.is_empty()).map(Box::from);
        if kind != PlanLevel::Plan && name == "plan" {
            self.plan = named();
            self.plan_line = line;
            return Ok(());
        }
        if kind == PlanLevel::Subject && GROUP.contains(&name) {
            self.group = named();
            return Ok(());
        }
        if name == ENABLED {
            let wrong = |why| format!("`{name}`: {why}");
            self.is_off = !flag(text).map_err(wrong)?;
            return Ok(());
        }
        let (settings, field) = match name.strip_prefix(QUOTA) {
            Some(field) if kind != PlanLevel::Subject => (&mut self.quota, field),
            _ => (&mut self.own, name),
        };
        // What is wrong with a value shows it, and a value is no secret.
        match settings.take(field, text) {
            Ok(true) => Ok(()),
            Ok(false) => Err(unknown(kind, name)),
            Err(why) => Err(format!("`{name}`: {why}")),
        }
    }
}

fn unknown(kind: PlanLevel, name: &str) -> String {
    let known = FIELDS.iter().copied().chain(
        match kind {
            PlanLevel::Plan => [ENABLED, "quota"].as_slice(),
            PlanLevel::Group => &[ENABLED, "plan", "quota"],
            PlanLevel::Subject => &[ENABLED, "group", "plan"],
        }
        .iter()
        .copied(),
    );
    let quoted = ConfigFault::quote(name);
    match closest(name, known) {
        Some(meant) => format!("unknown field {quoted}; did you mean `{meant}`?"),
        None => format!("unknown field {quoted}; expected `N` and `T`, or `rate`"),
    }
}

// === impl Level ===

impl PlanLevel {
    /// All of them, from the most general.
    pub const ALL: [Self; 3] = [Self::Plan, Self::Group, Self::Subject];

    /// It in a word.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Group => "group",
            Self::Subject => "subject",
        }
    }

    /// Several of it, in a word: the section of a document.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Plan => "plans",
            Self::Group => "groups",
            Self::Subject => "subjects",
        }
    }
}

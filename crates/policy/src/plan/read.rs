//! The parser of documents of plans.

use super::document::{ENABLED, Field, GROUP, PlanDocument, PlanLevel};
use super::error::{PlanErrors, PlanLine};
use super::json;
use super::settings::flag;
use crate::config::{self, ConfigFault, MapEntry, YamlNode, closest, read_syntax_up_to};

/// The maximum length of a text, in bytes.
const TEXT_MAX: usize = 256 << 20;

/// The sections of a document, with the names that other systems use.
const SECTIONS: [(&str, PlanLevel); 6] = [
    ("plans", PlanLevel::Plan),
    ("groups", PlanLevel::Group),
    ("workspaces", PlanLevel::Group),
    ("subjects", PlanLevel::Subject),
    ("projects", PlanLevel::Subject),
    ("tokens", PlanLevel::Subject),
];

/// The section whose ids are always secrets.
const TOKENS: &str = "tokens";

/// Maps of settings within an entry: those of its quota, and its own in the format of some databases.
const QUOTA: &str = "quota";
const OWN: [&str; 2] = ["settings", "rateLimitSettings"];

impl PlanDocument {
    /// Parses a document in JSON or YAML. `hides_subjects` is true if the ids of subjects are secrets, such
    /// as API keys; ids under `tokens` always are.
    ///
    /// Fails only if the text cannot be parsed at all; [`table`](Self::table) reports errors in single
    /// entries.
    ///
    /// ```
    /// use tidegate_policy::plan::{PlanDocument, Unset};
    ///
    /// let text = "
    /// plans: { free: 100/min, pro: { N: 1000, T: 60 } }
    /// groups: { acme: { plan: pro, quota: { rate: 1M/d } } }
    /// subjects: { p1: { group: acme }, p2: { group: acme, N: 50 }, p3: { plan: free } }
    /// ";
    /// let table = PlanDocument::read(text, false)?.table(Unset::Unlimited)?;
    /// assert_eq!((table.subjects(), table.groups(), table.rates().len()), (3, 1, 4));
    ///
    /// let text = "{\"tokens\": {\"s3cr3t\": {\"limit\": \"many\", \"window_seconds\": 1}}}";
    /// let wrong = PlanDocument::read(text, false)?.table(Unset::Unlimited).unwrap_err().to_string();
    /// assert!(wrong.contains("`many` is not an amount") && !wrong.contains("s3cr3t"));
    /// # Ok::<(), tidegate_policy::plan::PlanErrors>(())
    /// ```
    pub fn read(text: &str, hides_subjects: bool) -> Result<Self, PlanErrors> {
        if text.len() > TEXT_MAX {
            let most = TEXT_MAX >> 20;
            return Err(PlanErrors::one(format!("it is larger than {most} MiB")));
        }
        let root = match json::read(text) {
            Some(root) => root,
            None => yaml(text, hides_subjects || text.contains(TOKENS))?,
        };
        Self::of_tree(&root, hides_subjects)
    }

    /// Reads a parsed document. Arguments and errors are those of [`read`](Self::read).
    pub(crate) fn of_tree(root: &YamlNode, hides_subjects: bool) -> Result<Self, PlanErrors> {
        let config::NodeKind::Map(sections) = &root.kind else {
            let what = root.noun();
            return Err(PlanErrors::one(format!(
                "it is {what}; expected a map with `plans`, `groups` and `subjects`"
            )));
        };
        let mut document = Self {
            hides_subjects: hides_subjects || sections.iter().any(|it| it.key.text == TOKENS),
            ..Self::default()
        };
        for section in sections {
            document.section(section);
        }
        Ok(document)
    }

    /// Adds an entry from its own text, for stores that keep entries separately: a map in JSON, such as
    /// `{"plan": "pro", "N": 50}`, or a rate, such as `100/min`.
    ///
    /// ```
    /// use tidegate_policy::plan::{PlanDocument, PlanLevel, Unset};
    ///
    /// let mut document = PlanDocument::default();
    /// document.put(PlanLevel::Plan, "pro", "100/min");
    /// document.put(PlanLevel::Subject, "ann", r#"{"plan": "pro"}"#);
    /// document.put(PlanLevel::Subject, "bob", r#"{"plan": "pro", "enabled": false}"#);
    /// let table = document.table(Unset::Unlimited)?;
    /// assert!(table.get("ann").is_some() && table.get("bob").is_none());
    ///
    /// let mut document = PlanDocument::default();
    /// document.put(PlanLevel::Subject, "ann", "{\"plan\": ");
    /// assert!(document.table(Unset::Unlimited).unwrap_err().to_string().contains("subject `ann`"));
    /// # Ok::<(), tidegate_policy::plan::PlanErrors>(())
    /// ```
    pub fn put(&mut self, level: PlanLevel, id: &str, text: &str) {
        let node = match entry(text) {
            Ok(node) => node,
            Err(why) => {
                // If the id is a secret, the text may be one too.
                let is_shown = level != PlanLevel::Subject || !self.hides_subjects;
                let why = if is_shown {
                    format!(": {why}")
                } else {
                    String::new()
                };
                let why = format!("it is not JSON{why}");
                self.refuse_entry(level, (id, PlanLine::default()), &why);
                self.seen = self
                    .seen
                    .saturating_add(usize::from(level == PlanLevel::Subject));
                return;
            }
        };
        self.settings(level, (id, PlanLine::default()), &node);
    }

    fn section(&mut self, section: &MapEntry) {
        let (name, line) = (section.key.text.as_str(), PlanLine::from(section.key.place));
        let known = SECTIONS.iter().find(|(known, _)| *known == name);
        let Some((_, kind)) = known else {
            let names = SECTIONS.iter().map(|(name, _)| *name);
            let help = match closest(name, names) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "expected `plans`, `groups` or `subjects`".to_owned(),
            };
            self.refuse_line(line, || {
                format!("unknown section {}; {help}", ConfigFault::quote(name))
            });
            return;
        };
        match &section.value.kind {
            config::NodeKind::Map(entries) => {
                for MapEntry { key, value } in entries {
                    self.settings(*kind, (&key.text, key.place.into()), value);
                }
            }
            config::NodeKind::Null => {}
            _ => self.refuse_line(line, || {
                let noun = section.value.noun();
                format!("`{name}` is {noun}; expected a map from ids to settings")
            }),
        }
    }

    fn settings(&mut self, kind: PlanLevel, (id, line): (&str, PlanLine), value: &YamlNode) {
        let mut fields: Vec<(String, &str, PlanLine)> = Vec::new();
        match &value.kind {
            config::NodeKind::Null => {}
            config::NodeKind::Text(rate) => fields.push(("rate".to_owned(), rate, line)),
            config::NodeKind::Map(entries) => {
                for field in entries {
                    if let Err(why) = flatten(field, "", &mut fields) {
                        self.refuse_entry(kind, (id, field.key.place.into()), &why);
                    }
                }
            }
            config::NodeKind::List(_) | config::NodeKind::Broken => {
                let why = "it is a list; expected settings, such as `{ N: 100, T: 60 }`";
                self.refuse_entry(kind, (id, line), why);
            }
        }
        let fields: Vec<Field<'_>> = fields
            .iter()
            .map(|(name, text, line)| Field {
                name,
                text,
                line: *line,
            })
            .collect();
        self.add(kind, (id, line), &fields);
    }
}

/// Returns the plan and the group that an entry refers to, as far as its text can be parsed.
///
/// ```
/// use tidegate_policy::plan::{PlanLevel, refers};
///
/// let ann = refers(PlanLevel::Subject, r#"{"plan": "pro", "workspaceId": "acme", "enabled": "no"}"#);
/// assert_eq!((ann.plan.as_deref(), ann.group.as_deref()), (Some("pro"), Some("acme")));
/// assert!(ann.is_off);
/// assert_eq!(refers(PlanLevel::Plan, "100/min"), Default::default());
/// ```
pub fn refers(level: PlanLevel, text: &str) -> Refers {
    let mut refers = Refers::default();
    let Ok(YamlNode {
        kind: config::NodeKind::Map(entries),
        ..
    }) = entry(text)
    else {
        return refers;
    };
    let mut fields = Vec::new();
    for field in &entries {
        // Loading the entry reports its errors.
        flatten(field, "", &mut fields).ok();
    }
    for (name, text, _) in fields {
        let named = || Some(text.trim()).filter(|it| !it.is_empty());
        match name.as_str() {
            "plan" if level != PlanLevel::Plan => refers.plan = named().map(str::to_owned),
            ENABLED => refers.is_off = flag(text) == Ok(false),
            name if level == PlanLevel::Subject && GROUP.contains(&name) => {
                refers.group = named().map(str::to_owned);
            }
            _ => {}
        }
    }
    refers
}

/// The references of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refers {
    /// Its plan.
    pub plan: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// True if the entry is disabled and counts as absent.
    pub is_off: bool,
}

/// Parses an entry that is stored separately: a map in JSON, or a rate.
fn entry(text: &str) -> serde_json::Result<YamlNode> {
    let text = text.trim();
    if text.starts_with(['{', '[', '"']) {
        json::read_any(text)
    } else {
        Ok(json::text(text))
    }
}

/// Collects the fields of an entry as text. Fields of a nested map get its name as a prefix.
fn flatten<'a>(
    field: &'a MapEntry,
    before: &str,
    fields: &mut Vec<(String, &'a str, PlanLine)>,
) -> Result<(), String> {
    let (name, line) = (field.key.text.as_str(), PlanLine::from(field.key.place));
    match &field.value.kind {
        // A null value is unset.
        config::NodeKind::Null => Ok(()),
        config::NodeKind::Text(text) if before.is_empty() && name == QUOTA => {
            fields.push(("quota.rate".to_owned(), text, line));
            Ok(())
        }
        config::NodeKind::Text(text) => {
            fields.push((format!("{before}{name}"), text, line));
            Ok(())
        }
        config::NodeKind::Map(inner)
            if before.is_empty() && (name == QUOTA || OWN.contains(&name)) =>
        {
            let before = if name == QUOTA { "quota." } else { "" };
            let is_map = |it: &&MapEntry| matches!(it.value.kind, config::NodeKind::Map(_));
            if let Some(deeper) = inner.iter().find(is_map) {
                return Err(refuse(&deeper.key.text, &deeper.value));
            }
            inner.iter().try_for_each(|it| flatten(it, before, fields))
        }
        _ => Err(refuse(name, &field.value)),
    }
}

fn refuse(name: &str, value: &YamlNode) -> String {
    format!(
        "{} is {}; expected a single value",
        ConfigFault::quote(name),
        value.noun()
    )
}

/// Parses a text in YAML. If keys may be secrets, errors contain only their line.
fn yaml(text: &str, hides: bool) -> Result<YamlNode, PlanErrors> {
    let nothing =
        ConfigFault::new("it says nothing").help("it needs `plans`, `groups` or `subjects`");
    let (root, faults) = read_syntax_up_to(text, nothing, TEXT_MAX);
    // An empty text contains no secret.
    let hides = hides && !text.trim().is_empty();
    let mut errors = PlanErrors::default();
    for (place, fault) in faults {
        errors.add(place.into(), || {
            if hides {
                "this cannot be read (not shown, for it may be a secret)".to_owned()
            } else {
                fault.into_sentence()
            }
        });
    }
    match root {
        Some(root) => errors.or(root),
        None => Err(errors),
    }
}

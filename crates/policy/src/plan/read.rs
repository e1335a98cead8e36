//! The parser of documents of plans.

use super::document::{Field, PlanDocument, PlanLevel};
use super::entry::{ENABLED, GROUP};
use super::error::{PlanErrors, PlanLine};
use super::format::PlanFormat;
use super::json;
use super::settings::flag;
use crate::text::{ConfigFault, MapEntry, NodeKind, YamlNode, closest};

/// The map with the settings of an entry's quota.
const QUOTA: &str = "quota";

/// The map with the rates of an entry, or of its quota, by name.
const RATES: &str = "rates";

impl PlanDocument {
    /// The maximum length of a text, in bytes.
    pub const TEXT_MAX: usize = 256 << 20;

    /// Parses a document in JSON, in this format. `hides_subjects` is true if the ids of subjects are secrets,
    /// such as API keys; [in some formats](PlanFormat::hides_subjects) they always are. Returns `None` if the
    /// text is not JSON.
    ///
    /// ```
    /// use tidegate_policy::plan::{PlanDocument, PlanFormat, UnsetShare};
    ///
    /// let text = r#"{"plans": {"free": "100/min"}, "subjects": {"ann": {"plan": "free"}}}"#;
    /// let own = PlanFormat::Tidegate;
    /// let document = PlanDocument::from_json(text, own, false).expect("it is JSON")?;
    /// assert_eq!(document.table(UnsetShare::Unlimited)?.subjects(), 1);
    /// assert!(PlanDocument::from_json("subjects: { ann: 100/min }", own, false).is_none());
    /// # Ok::<(), tidegate_policy::plan::PlanErrors>(())
    /// ```
    pub fn from_json(
        text: &str,
        format: PlanFormat,
        hides_subjects: bool,
    ) -> Option<Result<Self, PlanErrors>> {
        let root = json::read(text)?;
        Some(Self::of_tree(&root, format, hides_subjects))
    }

    /// Rejects a text that is longer than [`TEXT_MAX`](Self::TEXT_MAX).
    ///
    /// # Errors
    ///
    /// A single error that names the bound. Check before parsing: the parser allocates in proportion to the text.
    pub fn check_size(text: &str) -> Result<(), PlanErrors> {
        if text.len() > Self::TEXT_MAX {
            let most = Self::TEXT_MAX >> 20;
            return Err(PlanErrors::one(format!("it is larger than {most} MiB")));
        }
        Ok(())
    }

    /// Reads a parsed document of this format.
    ///
    /// # Errors
    ///
    /// It is not a map. [`table`](Self::table) reports errors in its entries.
    pub fn of_tree(
        root: &YamlNode,
        format: PlanFormat,
        hides_subjects: bool,
    ) -> Result<Self, PlanErrors> {
        let NodeKind::Map(sections) = &root.kind else {
            let what = root.noun();
            return Err(PlanErrors::one(format!(
                "it is {what}; expected a map with `plans`, `groups` and `subjects`"
            )));
        };
        let mut document = Self {
            hides_subjects: hides_subjects || format.hides_subjects(),
            ..Self::default()
        };
        for section in sections {
            document.section(format, section);
        }
        Ok(document)
    }

    /// Adds an entry from its own text, for stores that keep entries separately: a map in JSON, such as
    /// `{"plan": "pro", "amount": 50}`, or a rate, such as `100/min`.
    ///
    /// ```
    /// use tidegate_policy::plan::{PlanDocument, PlanLevel, UnsetShare};
    ///
    /// let mut document = PlanDocument::default();
    /// document.put(PlanLevel::Plan, "pro", "100/min");
    /// document.put(PlanLevel::Subject, "ann", r#"{"plan": "pro"}"#);
    /// document.put(PlanLevel::Subject, "bob", r#"{"plan": "pro", "enabled": false}"#);
    /// let table = document.table(UnsetShare::Unlimited)?;
    /// assert!(table.get("ann").is_some() && table.get("bob").is_none());
    ///
    /// let mut document = PlanDocument::default();
    /// document.put(PlanLevel::Subject, "ann", "{\"plan\": ");
    /// assert!(document.table(UnsetShare::Unlimited).unwrap_err().to_string().contains("subject `ann`"));
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
        let own = PlanFormat::Tidegate;
        self.settings((own, level), (id, PlanLine::default()), &node);
    }

    fn section(&mut self, format: PlanFormat, section: &MapEntry) {
        let (name, line) = (section.key.text.as_str(), PlanLine::from(section.key.place));
        let Some(kind) = format.section(name) else {
            let meant = closest(name, format.sections());
            let meant = meant.map(|meant| format!("did you mean `{meant}`?"));
            let help = PlanFormat::elsewhere(name).or(meant);
            let help =
                help.unwrap_or_else(|| "expected `plans`, `groups` or `subjects`".to_owned());
            self.refuse_line(line, || {
                format!("unknown section {}; {help}", ConfigFault::quote(name))
            });
            return;
        };
        match &section.value.kind {
            NodeKind::Map(entries) => {
                for MapEntry { key, value } in entries {
                    self.settings((format, kind), (&key.text, key.place.into()), value);
                }
            }
            NodeKind::Null => {}
            _ => self.refuse_line(line, || {
                let noun = section.value.noun();
                format!("`{name}` is {noun}; expected a map from ids to settings")
            }),
        }
    }

    fn settings(
        &mut self,
        (format, kind): (PlanFormat, PlanLevel),
        (id, line): (&str, PlanLine),
        value: &YamlNode,
    ) {
        let mut fields: Vec<(String, &str, PlanLine)> = Vec::new();
        match &value.kind {
            NodeKind::Null => {}
            NodeKind::Text(rate) => fields.push(("rate".to_owned(), rate, line)),
            NodeKind::Map(entries) => {
                for field in entries {
                    if let Err(why) = flatten(format, field, "", &mut fields) {
                        self.refuse_entry(kind, (id, field.key.place.into()), &why);
                    }
                }
            }
            NodeKind::List(_) | NodeKind::Broken => {
                let why = "it is a list; expected settings, such as `{ rate: 100/min }`";
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
/// let ann = refers(PlanLevel::Subject, r#"{"plan": "pro", "group": "acme", "enabled": "no"}"#);
/// assert_eq!((ann.plan.as_deref(), ann.group.as_deref()), (Some("pro"), Some("acme")));
/// assert!(ann.is_off);
/// assert_eq!(refers(PlanLevel::Plan, "100/min"), Default::default());
/// ```
pub fn refers(level: PlanLevel, text: &str) -> EntryReferences {
    let mut refers = EntryReferences::default();
    let Ok(YamlNode {
        kind: NodeKind::Map(entries),
        ..
    }) = entry(text)
    else {
        return refers;
    };
    let mut fields = Vec::new();
    for field in &entries {
        // Loading the entry reports its errors.
        flatten(PlanFormat::Tidegate, field, "", &mut fields).ok();
    }
    for (name, text, _) in fields {
        let named = || Some(text.trim()).filter(|it| !it.is_empty());
        match name.as_str() {
            "plan" if level != PlanLevel::Plan => refers.plan = named().map(str::to_owned),
            ENABLED => refers.is_off = flag(text) == Ok(false),
            name if level == PlanLevel::Subject && name == GROUP => {
                refers.group = named().map(str::to_owned);
            }
            _ => {}
        }
    }
    refers
}

/// The references of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryReferences {
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
    format: PlanFormat,
    field: &'a MapEntry,
    before: &str,
    fields: &mut Vec<(String, &'a str, PlanLine)>,
) -> Result<(), String> {
    let (name, line) = (field.key.text.as_str(), PlanLine::from(field.key.place));
    match &field.value.kind {
        // A null value is unset.
        NodeKind::Null => Ok(()),
        NodeKind::Text(text) if before.is_empty() && name == QUOTA => {
            fields.push(("quota.rate".to_owned(), text, line));
            Ok(())
        }
        NodeKind::Text(text) => {
            // The names of rates are the same in all formats.
            let own = if before.ends_with("rates.") {
                name
            } else {
                format.field(name)
            };
            fields.push((format!("{before}{own}"), text, line));
            Ok(())
        }
        NodeKind::Map(inner) => {
            let Some(before) = prefix(format, before, name) else {
                return Err(refuse(name, &field.value));
            };
            inner
                .iter()
                .try_for_each(|it| flatten(format, it, &before, fields))
        }
        NodeKind::List(_) | NodeKind::Broken => Err(refuse(name, &field.value)),
    }
}

/// Returns the prefix of the fields of a nested map, which is itself behind the prefix `before`; `None` if the field
/// is no map.
fn prefix(format: PlanFormat, before: &str, name: &str) -> Option<String> {
    match before {
        "" | "quota." if name == RATES => Some(format!("{before}rates.")),
        "" if name == QUOTA => Some("quota.".to_owned()),
        "" if format.is_nested(name) => Some(String::new()),
        "rates." | "quota.rates." => Some(format!("{before}{name}.")),
        _ => None,
    }
}

fn refuse(name: &str, value: &YamlNode) -> String {
    format!(
        "{} is {}; expected a single value",
        ConfigFault::quote(name),
        value.noun()
    )
}

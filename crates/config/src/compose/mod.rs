//! The composition of a file and the texts of its sources into one configuration.

mod document;
mod json;

pub use document::{ConfigDocument, DocumentKind};

use crate::config::Config;
use crate::environment::Environment;
use crate::language::reader::{AppendedText, ConfigReader};
use crate::problem::ConfigErrors;
use crate::sections::listen::read_admin;
use crate::sections::sources::read_from as read_sources;
use crate::source::PolicySource;
use crate::syntax::read as read_syntax;
use crate::tables::POLICIES_MAX;
use std::collections::BTreeMap;
use std::iter;
use tidegate_policy::listen::{Listen, Listener};
use tidegate_policy::text::{ConfigFault, MapEntry, NodeKind, TextSpan, YamlNode};

/// The number of hexadecimal digits of a hash that distinguish versions.
const VERSION_DIGITS: usize = 32;

/// The text of a configuration, and its name in messages.
#[derive(Clone, Copy, Debug)]
pub struct NamedText<'a> {
    /// The name in messages.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

/// The text of a source: `policies`, `guards` and `routes`, or some of them, or none.
#[derive(Clone, Copy, Debug)]
pub struct SourcePart<'a> {
    /// The text, and the name of the source in messages.
    pub named: NamedText<'a>,
    /// True if the text was translated from another format: its other sections are dropped. Otherwise they
    /// are errors.
    pub is_translated: bool,
    /// True if its policies are independent: a policy whose name is taken, or for which there is no room, is
    /// left out with a warning. Otherwise it is an error.
    pub is_separable: bool,
    /// True if it may refer to environment variables. Anyone who can write such a text can read them.
    pub is_trusted: bool,
}

/// A policy of a part that is not served because of the texts before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OmittedPolicy {
    /// The number of the part, counted from 0.
    pub part: usize,
    /// The policy.
    pub policy: String,
    /// The reason, as a sentence without its full stop.
    pub why: String,
}

/// A file and the texts of its sources, parsed as one.
#[derive(Debug)]
pub struct ComposedConfig {
    /// The compiled configuration.
    pub config: Config,
    /// Its policies, guards and routes, each kind in its effective order.
    pub documents: Vec<ConfigDocument>,
    /// The version. It changes with any of the texts, and is the same on every instance with the same texts.
    pub version: String,
    /// Policies of separable parts that were left out.
    pub left_out: Vec<OmittedPolicy>,
}

impl Config {
    /// Parses a configuration like [`parse`](Self::parse), followed by the policies, guards and routes of
    /// `parts`. The configuration itself may have none. Returns all errors together.
    ///
    /// ```
    /// use tidegate_config::NoEnvironment;
    /// use tidegate_config::compose::{NamedText, SourcePart};
    /// use tidegate_config::Config;
    ///
    /// let own = NamedText { name: "tidegate.yaml", text: "store: { max_keys: 1000 }" };
    /// let part = SourcePart {
    ///     named: NamedText {
    ///         name: "redis",
    ///         text: "policies: [{ name: api, limits: [{ name: all, rate: 5/s }] }]",
    ///     },
    ///     is_translated: false,
    ///     is_separable: false,
    ///     is_trusted: false,
    /// };
    /// let composed = Config::compose(own, &[part], &NoEnvironment)?;
    /// assert_eq!(composed.config.policies[0].name, "api");
    /// assert_eq!(composed.documents[0].part, 1);
    ///
    /// let more = NamedText { name: "more", ..part.named };
    /// let twice = [part, SourcePart { named: more, ..part }];
    /// let errors = Config::compose(own, &twice, &NoEnvironment).unwrap_err().to_string();
    /// assert!(errors.contains("more:1:20: duplicate name: two policies are named `api`"));
    /// assert!(errors.contains("the first is on line 1 of redis"));
    /// # Ok::<(), tidegate_config::ConfigErrors>(())
    /// ```
    ///
    /// # Errors
    ///
    /// All errors of all texts, each with the name of its text and its line. In a separable part, a policy whose name
    /// is taken is no error: it is listed in [`ComposedConfig::left_out`].
    pub fn compose(
        own: NamedText<'_>,
        parts: &[SourcePart<'_>],
        environment: &dyn Environment,
    ) -> Result<ComposedConfig, ConfigErrors> {
        let mut reader = ConfigReader::new(own.name, own.text, environment);
        let mut tree = own_tree(&mut reader, own);
        let mut stack = Stack {
            begins: Vec::new(),
            end: after(0, own.text),
            left_out: Vec::new(),
        };
        for part in parts {
            stack.add(&mut reader, tree.as_mut(), part);
        }
        let documents = tree.as_ref().map(|tree| stack.documents(tree));
        let config = Self::from_tree(reader, tree, environment)?;
        Ok(ComposedConfig {
            config,
            documents: documents.unwrap_or_default(),
            version: version(own, parts),
            left_out: stack.left_out,
        })
    }

    /// Parses a configuration like [`parse`](Self::parse), followed by the policies of another text, such as
    /// `tidegate-import` writes. The configuration itself may have
    /// none. Of the other text, only policies, guards and routes are used.
    ///
    /// # Errors
    ///
    /// Those of [`compose`](Self::compose).
    pub fn parse_with_policies(
        own: NamedText<'_>,
        policies: NamedText<'_>,
        environment: &dyn Environment,
    ) -> Result<Self, ConfigErrors> {
        let part = SourcePart {
            named: policies,
            is_translated: true,
            is_separable: false,
            is_trusted: true,
        };
        Self::compose(own, &[part], environment).map(|it| it.config)
    }

    /// Returns the sources of a configuration, before they are read. Parses only the sources and the store
    /// that they may share. Parsing the whole configuration later reports all other errors.
    ///
    /// # Errors
    ///
    /// The errors in the list of sources and in the store. Errors elsewhere are not found here.
    pub fn sources_of(
        own: NamedText<'_>,
        environment: &dyn Environment,
    ) -> Result<Vec<PolicySource>, ConfigErrors> {
        let mut reader = ConfigReader::new(own.name, own.text, environment);
        let Some(tree) = own_tree(&mut reader, own) else {
            return reader.finish().map(|_| Vec::new());
        };
        let sources = read_sources(&mut reader, tree, environment);
        reader.finish()?;
        Ok(sources)
    }

    /// Returns the admin listener of a configuration, without its sources and its other sections. So it is
    /// known even if a source does not respond.
    ///
    /// ```
    /// use tidegate_config::compose::NamedText;
    /// use tidegate_config::{Config, NoEnvironment};
    ///
    /// let own = NamedText { name: "tidegate.yaml", text: "listen: { admin: 'localhost:9090' }" };
    /// let admin = Config::admin_listener_of(own, &NoEnvironment)?;
    /// assert_eq!(admin.address.to_string(), "127.0.0.1:9090");
    /// # Ok::<(), tidegate_config::ConfigErrors>(())
    /// ```
    pub fn admin_listener_of(
        own: NamedText<'_>,
        environment: &dyn Environment,
    ) -> Result<Listener, ConfigErrors> {
        let mut reader = ConfigReader::new(own.name, own.text, environment);
        let tree = own_tree(&mut reader, own);
        let admin = tree.map(|tree| read_admin(&mut reader, tree, environment));
        reader.finish()?;
        Ok(admin.unwrap_or_else(|| Listen::default().admin))
    }
}

/// Returns a digest of these texts in this order.
fn version(own: NamedText<'_>, parts: &[SourcePart<'_>]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in iter::once(own.text).chain(parts.iter().map(|part| part.named.text)) {
        // Hash the length first, so that no text can pass for the end of another.
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        hasher.update(&length.to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher
        .finalize()
        .to_hex()
        .chars()
        .take(VERSION_DIGITS)
        .collect()
}

/// Returns a digest of a text, the same on every instance.
pub fn digest(text: &str) -> String {
    let hash = blake3::hash(text.as_bytes());
    hash.to_hex().chars().take(VERSION_DIGITS).collect()
}

/// Returns a digest of each limit of a policy, in order; empty for other documents.
fn limit_digests(document: &YamlNode) -> Vec<String> {
    let Some(NodeKind::List(limits)) = document.get("limits").map(|it| &it.kind) else {
        return Vec::new();
    };
    let texts = limits.iter().map(json::whole);
    texts.map(|text| digest(&text)).collect()
}

/// Returns true if a text has any policies, guards or routes. A text that cannot be parsed may have some.
///
/// ```
/// use tidegate_config::compose::has_documents;
///
/// assert!(has_documents("policies: [{ name: api, limits: [] }]"));
/// assert!(!has_documents("policies:\nguards: []"));
/// assert!(!has_documents("# nothing"));
/// assert!(has_documents("policies: [{"));
/// ```
pub fn has_documents(text: &str) -> bool {
    let nothing = ConfigFault::new("it is empty");
    let (tree, faults) = read_syntax(text, nothing.clone());
    if faults.iter().any(|(_, fault)| *fault != nothing) {
        return true;
    }
    let Some(tree) = tree else {
        return false;
    };
    if !matches!(tree.kind, NodeKind::Map(_)) {
        return !matches!(tree.kind, NodeKind::Null);
    }
    let sections = DocumentKind::ALL.iter();
    let mut sections = sections.filter_map(|kind| tree.get(kind.section()));
    sections.any(|section| match &section.kind {
        NodeKind::List(items) => !items.is_empty(),
        NodeKind::Null => false,
        // Parsing rejects a section that is not a list.
        NodeKind::Text(_) | NodeKind::Map(_) | NodeKind::Broken => true,
    })
}

fn own_tree(reader: &mut ConfigReader<'_>, own: NamedText<'_>) -> Option<YamlNode> {
    let nothing = ConfigFault::new("the config file is empty");
    let nothing = nothing.help("add at least `policies`, a list of policies");
    let (tree, faults) = read_syntax(own.text, nothing);
    for (place, fault) in faults {
        reader.error((place, String::new()), fault);
    }
    tree
}

/// Texts appended to each other, with the line at which each starts.
struct Stack {
    /// The line before the first of each part.
    begins: Vec<usize>,
    /// The line before the first of the next.
    end: usize,
    left_out: Vec<OmittedPolicy>,
}

impl Stack {
    /// Adds the sections of `part` to `tree`.
    fn add<'a>(
        &mut self,
        reader: &mut ConfigReader<'a>,
        tree: Option<&mut YamlNode>,
        part: &SourcePart<'a>,
    ) {
        let by = self.end;
        self.begins.push(by);
        self.end = after(by, part.named.text);
        reader.go_on_below(AppendedText::new(
            by,
            part.named.name,
            part.named.text,
            part.is_trusted,
        ));
        let nothing = ConfigFault::new("it is empty");
        let (more, faults) = read_syntax(part.named.text, nothing.clone());
        // An empty source is valid: it may have documents later.
        for (place, fault) in faults.into_iter().filter(|(_, fault)| *fault != nothing) {
            reader.error((place.lower(by), String::new()), fault);
        }
        let Some(mut more) = more else {
            return;
        };
        lower(&mut more, by);
        let NodeKind::Map(sections) = more.kind else {
            let found = more.noun();
            let fault = ConfigFault::new(format!("it is {found}; expected a map with `policies`"));
            return reader.error((more.place, String::new()), fault);
        };
        // If the file is not a map, only the errors matter.
        let mut nowhere = Vec::new();
        let own = match tree.map(|tree| &mut tree.kind) {
            Some(NodeKind::Map(own)) => own,
            _ => &mut nowhere,
        };
        for mut section in sections {
            if part.is_separable && section.key.text == DocumentKind::Policy.section() {
                self.leave_out(reader, own, &mut section);
            }
            let is_known = DocumentKind::ALL
                .iter()
                .any(|kind| kind.section() == section.key.text);
            if is_known {
                append(reader, own, section);
            } else if !part.is_translated {
                reader.error(
                    (section.key.place, section.key.text.clone()),
                    foreign(&section),
                );
            }
        }
    }

    /// Removes the policies from `section`, of the part that was added last, that conflict with those in
    /// `own`.
    fn leave_out(
        &mut self,
        reader: &mut ConfigReader<'_>,
        own: &[MapEntry],
        section: &mut MapEntry,
    ) {
        let name = |item: &YamlNode| {
            let name = item.get(DocumentKind::NAME_FIELD);
            let name = name.and_then(YamlNode::as_text);
            name.unwrap_or_default().trim().to_owned()
        };
        let own = own.iter().find(|it| it.key.text == section.key.text);
        let own = match own.map(|it| &it.value.kind) {
            Some(NodeKind::List(items)) => items.as_slice(),
            _ => &[],
        };
        let NodeKind::List(items) = &mut section.value.kind else {
            return;
        };
        let taken: BTreeMap<String, TextSpan> = own.iter().map(|it| (name(it), it.place)).collect();
        let mut room = POLICIES_MAX.saturating_sub(own.len());
        let part = self.begins.len().saturating_sub(1);
        items.retain(|item| {
            let policy = name(item);
            let why = match taken.get(&policy) {
                Some(first) => match reader.line_of(*first) {
                    Some(line) => format!("a policy has the same name, on {line}"),
                    None => "a policy has the same name".to_owned(),
                },
                None if room == 0 => {
                    format!("at most {POLICIES_MAX} policies are supported")
                }
                None => {
                    room = room.saturating_sub(1);
                    return true;
                }
            };
            let message = format!("policy {} is skipped: {why}", ConfigFault::quote(&policy));
            reader.warn((item.place, policy.clone()), ConfigFault::new(message));
            self.left_out.push(OmittedPolicy { part, policy, why });
            false
        });
    }

    /// Returns the documents of `tree`, which is composed of these texts.
    fn documents(&self, tree: &YamlNode) -> Vec<ConfigDocument> {
        let mut documents = Vec::new();
        for kind in DocumentKind::ALL {
            let Some(NodeKind::List(items)) = tree.get(kind.section()).map(|it| &it.kind) else {
                continue;
            };
            for item in items {
                let name = item
                    .get(DocumentKind::NAME_FIELD)
                    .and_then(YamlNode::as_text);
                let mut json = String::new();
                json::write(&mut json, item);
                documents.push(ConfigDocument {
                    kind,
                    name: name.unwrap_or_default().trim().to_owned(),
                    part: self.part(item.place),
                    json,
                    digest: digest(&json::whole(item)),
                    limit_digests: limit_digests(item),
                });
            }
        }
        documents
    }

    /// Returns the number of the text that contains a position.
    fn part(&self, place: TextSpan) -> usize {
        match place {
            TextSpan::File { line, .. } => self.begins.partition_point(|begin| *begin < line),
            TextSpan::Variable(_) => 0,
        }
    }
}

/// Returns the line before the first of a text that follows `text`: no text has more lines than bytes.
fn after(line: usize, text: &str) -> usize {
    line.saturating_add(text.len()).saturating_add(1)
}

/// Returns the error for a section that only the file may have.
fn foreign(section: &MapEntry) -> ConfigFault {
    let name = ConfigFault::quote(&section.key.text);
    let fault = ConfigFault::new(format!("{name} is not allowed in a config source"));
    fault.help(
        "a config source may have `policies`, `guards` and `routes`; move the rest to the \
            config file",
    )
}

/// Appends a list to the existing one.
fn append(reader: &mut ConfigReader<'_>, own: &mut Vec<MapEntry>, section: MapEntry) {
    let MapEntry { key, value } = section;
    let items = match value.kind {
        NodeKind::List(items) => items,
        NodeKind::Null | NodeKind::Broken => return,
        NodeKind::Text(_) | NodeKind::Map(_) => {
            let (name, found) = (ConfigFault::quote(&key.text), value.noun());
            let fault = ConfigFault::new(format!("{name} is {found}; expected a list"));
            let fault = fault.help("write [a, b], or begin each item with `- `");
            return reader.error((value.place, key.text), fault);
        }
    };
    if items.is_empty() {
        return;
    }
    match own.iter_mut().find(|it| it.key.text == key.text) {
        Some(written) => match &mut written.value.kind {
            NodeKind::List(own) => own.extend(items),
            NodeKind::Null => {
                written.value = YamlNode {
                    place: value.place,
                    kind: NodeKind::List(items),
                };
            }
            // Parsing rejects a value that is not a list.
            _ => {}
        },
        None => own.push(MapEntry {
            key,
            value: YamlNode {
                place: value.place,
                kind: NodeKind::List(items),
            },
        }),
    }
}

/// Moves a node and its children down by this many lines.
fn lower(node: &mut YamlNode, by: usize) {
    node.place = node.place.lower(by);
    match &mut node.kind {
        NodeKind::List(items) => items.iter_mut().for_each(|item| lower(item, by)),
        NodeKind::Map(entries) => {
            for MapEntry { key, value } in entries {
                key.place = key.place.lower(by);
                lower(value, by);
            }
        }
        NodeKind::Text(_) | NodeKind::Null | NodeKind::Broken => {}
    }
}

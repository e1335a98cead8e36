//! A file and what its sources say, as one configuration.

use super::document::{Document, DocumentKind};
use super::{PolicySource, json};
use crate::config::{
    Below, Config, ConfigErrors, Entry, Environment, Fault, Kind, Node, POLICIES_MAX, Place,
    Reader, read_sources, read_syntax,
};
use std::collections::BTreeMap;
use std::iter;

/// How much of a hash is enough to tell versions apart.
const VERSION_DIGITS: usize = 32;

/// A configuration as text, and what messages call it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// What messages call it.
    pub name: &'a str,
    /// What it says.
    pub text: &'a str,
}

/// What a source says: `policies`, `guards` and `routes`, or some of them, or nothing.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The text, and what messages call the source.
    pub named: Named<'a>,
    /// Whether the text was translated from another language, so that whatever else it says is left
    /// out. Else it is an error.
    pub is_translated: bool,
    /// Whether its policies stand each for itself: one whose name is taken, or for which there is no room,
    /// is left out with a warning. Else it is an error.
    pub is_separable: bool,
    /// Whether it may refer to variables: whoever can write it can then read them.
    pub is_trusted: bool,
}

/// A policy of a part that is not served, because of what the texts before it say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of the part, counted from 0.
    pub part: usize,
    /// The policy.
    pub policy: String,
    /// Why it is left out, in a sentence without its end.
    pub why: String,
}

/// A file and what its sources say, read as one.
#[derive(Debug)]
pub struct Composed {
    /// What it means.
    pub config: Config,
    /// Its policies, guards and routes, each kind in the order in which it counts.
    pub documents: Vec<Document>,
    /// Differs whenever one of the texts does; the same wherever the same is composed.
    pub version: String,
    /// Policies of separable parts that are not among them.
    pub left_out: Vec<LeftOut>,
}

impl Config {
    /// Reads a configuration as [`parse`](Self::parse) does, with what `parts` say after its own
    /// policies, guards and routes, of which it may have none.
    ///
    /// ```
    /// use tidegate_policy::config::NoEnvironment;
    /// use tidegate_policy::source::{Named, Part};
    /// use tidegate_policy::Config;
    ///
    /// let own = Named { name: "tidegate.yaml", text: "store: { max_keys: 1000 }" };
    /// let part = Part {
    ///     named: Named {
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
    /// let more = Named { name: "more", ..part.named };
    /// let twice = [part, Part { named: more, ..part }];
    /// let errors = Config::compose(own, &twice, &NoEnvironment).unwrap_err().to_string();
    /// assert!(errors.contains("more:1:20: there are two policies with the name `api`"));
    /// assert!(errors.contains("the first is on line 1 of redis"));
    /// # Ok::<(), tidegate_policy::ConfigErrors>(())
    /// ```
    pub fn compose(
        own: Named<'_>,
        parts: &[Part<'_>],
        environment: &dyn Environment,
    ) -> Result<Composed, ConfigErrors> {
        let mut reader = Reader::new(own.name, own.text, environment);
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
        Ok(Composed {
            config,
            documents: documents.unwrap_or_default(),
            version: version(own, parts),
            left_out: stack.left_out,
        })
    }

    /// Reads a configuration as [`parse`](Self::parse) does, with the policies of another after its
    /// own, of which it may have none: `policies`, such as
    /// [`Imported::to_yaml`](crate::import::Imported::to_yaml) writes. Of that text nothing but
    /// policies, guards and routes is taken.
    pub fn parse_with_policies(
        own: Named<'_>,
        policies: Named<'_>,
        environment: &dyn Environment,
    ) -> Result<Self, ConfigErrors> {
        let part = Part {
            named: policies,
            is_translated: true,
            is_separable: false,
            is_trusted: true,
        };
        Self::compose(own, &[part], environment).map(|it| it.config)
    }

    /// What a configuration says of its sources, before anything is known of what they say. Only that is
    /// read, and the store that they may share: whatever else is wrong is told once all of it is read.
    pub fn sources_of(
        own: Named<'_>,
        environment: &dyn Environment,
    ) -> Result<Vec<PolicySource>, ConfigErrors> {
        let mut reader = Reader::new(own.name, own.text, environment);
        let Some(tree) = own_tree(&mut reader, own) else {
            return reader.finish().map(|_| Vec::new());
        };
        let sources = read_sources(&mut reader, tree, environment);
        reader.finish()?;
        Ok(sources)
    }
}

/// A name for these texts in this order.
fn version(own: Named<'_>, parts: &[Part<'_>]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in iter::once(own.text).chain(parts.iter().map(|part| part.named.text)) {
        // With its length before it, no text can pass for the end of another.
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

/// A name for a text: the same wherever the text is.
pub fn digest(text: &str) -> String {
    let hash = blake3::hash(text.as_bytes());
    hash.to_hex().chars().take(VERSION_DIGITS).collect()
}

/// A name for each limit of a policy, in order; none of anything else.
fn limit_digests(document: &Node) -> Vec<String> {
    let Some(Kind::List(limits)) = document.get("limits").map(|it| &it.kind) else {
        return Vec::new();
    };
    let texts = limits.iter().map(json::whole);
    texts.map(|text| digest(&text)).collect()
}

/// Whether a text has any policies, guards or routes. One that cannot be read may have some.
///
/// ```
/// use tidegate_policy::source::has_documents;
///
/// assert!(has_documents("policies: [{ name: api, limits: [] }]"));
/// assert!(!has_documents("policies:\nguards: []"));
/// assert!(!has_documents("# nothing"));
/// assert!(has_documents("policies: [{"));
/// ```
pub fn has_documents(text: &str) -> bool {
    let nothing = Fault::new("it says nothing");
    let (tree, faults) = read_syntax(text, nothing.clone());
    if faults.iter().any(|(_, fault)| *fault != nothing) {
        return true;
    }
    let Some(tree) = tree else {
        return false;
    };
    if !matches!(tree.kind, Kind::Map(_)) {
        return !matches!(tree.kind, Kind::Null);
    }
    let sections = DocumentKind::ALL.iter();
    let mut sections = sections.filter_map(|kind| tree.get(kind.section()));
    sections.any(|section| match &section.kind {
        Kind::List(items) => !items.is_empty(),
        Kind::Null => false,
        // What is no list is refused by whoever reads it.
        Kind::Text(_) | Kind::Map(_) | Kind::Broken => true,
    })
}

fn own_tree(reader: &mut Reader<'_>, own: Named<'_>) -> Option<Node> {
    let nothing = Fault::new("the file says nothing");
    let nothing = nothing.help("it needs at least `policies`, a list of policies");
    let (tree, faults) = read_syntax(own.text, nothing);
    for (place, fault) in faults {
        reader.error((place, String::new()), fault);
    }
    tree
}

/// Texts below each other: where each begins.
struct Stack {
    /// The line before the first of each part.
    begins: Vec<usize>,
    /// The line before the first of the next.
    end: usize,
    left_out: Vec<LeftOut>,
}

impl Stack {
    /// Adds what `part` says to `tree`.
    fn add<'a>(&mut self, reader: &mut Reader<'a>, tree: Option<&mut Node>, part: &Part<'a>) {
        let by = self.end;
        self.begins.push(by);
        self.end = after(by, part.named.text);
        reader.go_on_below(Below::new(
            by,
            part.named.name,
            part.named.text,
            part.is_trusted,
        ));
        let nothing = Fault::new("it says nothing");
        let (more, faults) = read_syntax(part.named.text, nothing.clone());
        // A source that says nothing has nothing to add, and may have some day.
        for (place, fault) in faults.into_iter().filter(|(_, fault)| *fault != nothing) {
            reader.error((place.lower(by), String::new()), fault);
        }
        let Some(mut more) = more else {
            return;
        };
        lower(&mut more, by);
        let Kind::Map(sections) = more.kind else {
            let found = more.noun();
            let fault = Fault::new(format!("it is {found}; expected a map with `policies`"));
            return reader.error((more.place, String::new()), fault);
        };
        // Without a tree of its own, errors are all that is wanted.
        let mut nowhere = Vec::new();
        let own = match tree.map(|tree| &mut tree.kind) {
            Some(Kind::Map(own)) => own,
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

    /// Takes those policies out of `section`, of the part that was added last, that cannot be beside those
    /// in `own`.
    fn leave_out(&mut self, reader: &mut Reader<'_>, own: &[Entry], section: &mut Entry) {
        let name = |item: &Node| {
            let name = item.get(DocumentKind::Policy.name_field());
            let name = name.and_then(Node::as_text);
            name.unwrap_or_default().trim().to_owned()
        };
        let own = own.iter().find(|it| it.key.text == section.key.text);
        let own = match own.map(|it| &it.value.kind) {
            Some(Kind::List(items)) => items.as_slice(),
            _ => &[],
        };
        let Kind::List(items) = &mut section.value.kind else {
            return;
        };
        let taken: BTreeMap<String, Place> = own.iter().map(|it| (name(it), it.place)).collect();
        let mut room = POLICIES_MAX.saturating_sub(own.len());
        let part = self.begins.len().saturating_sub(1);
        items.retain(|item| {
            let policy = name(item);
            let why = match taken.get(&policy) {
                Some(first) => match reader.line_of(*first) {
                    Some(line) => format!("there is a policy of that name already, on {line}"),
                    None => "there is a policy of that name already".to_owned(),
                },
                None if room == 0 => {
                    format!("there are {POLICIES_MAX} policies already, and no more are supported")
                }
                None => {
                    room = room.saturating_sub(1);
                    return true;
                }
            };
            let message = format!("policy {} is left out: {why}", Fault::quote(&policy));
            reader.warn((item.place, policy.clone()), Fault::new(message));
            self.left_out.push(LeftOut { part, policy, why });
            false
        });
    }

    /// The documents of `tree`, which is made of these texts.
    fn documents(&self, tree: &Node) -> Vec<Document> {
        let mut documents = Vec::new();
        for kind in DocumentKind::ALL {
            let Some(Kind::List(items)) = tree.get(kind.section()).map(|it| &it.kind) else {
                continue;
            };
            for item in items {
                let name = item.get(kind.name_field()).and_then(Node::as_text);
                let mut json = String::new();
                json::write(&mut json, item);
                documents.push(Document {
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

    /// The text that a place is in.
    fn part(&self, place: Place) -> usize {
        match place {
            Place::File { line, .. } => self.begins.partition_point(|begin| *begin < line),
            Place::Variable(_) => 0,
        }
    }
}

/// The line before the first of a text that follows `text`: no text has more lines than bytes.
fn after(line: usize, text: &str) -> usize {
    line.saturating_add(text.len()).saturating_add(1)
}

/// What is said of a section that only the file has.
fn foreign(section: &Entry) -> Fault {
    let name = Fault::quote(&section.key.text);
    let fault = Fault::new(format!("{name} is not for a source to say"));
    fault
        .help("a source may have `policies`, `guards` and `routes`; the rest belongs into the file")
}

/// Adds a list to the one that is there already.
fn append(reader: &mut Reader<'_>, own: &mut Vec<Entry>, section: Entry) {
    let Entry { key, value } = section;
    let items = match value.kind {
        Kind::List(items) => items,
        Kind::Null | Kind::Broken => return,
        Kind::Text(_) | Kind::Map(_) => {
            let (name, found) = (Fault::quote(&key.text), value.noun());
            let fault = Fault::new(format!("{name} is {found}; expected a list"));
            let fault = fault.help("write [a, b], or begin each item with `- `");
            return reader.error((value.place, key.text), fault);
        }
    };
    if items.is_empty() {
        return;
    }
    match own.iter_mut().find(|it| it.key.text == key.text) {
        Some(written) => match &mut written.value.kind {
            Kind::List(own) => own.extend(items),
            Kind::Null => {
                written.value = Node {
                    place: value.place,
                    kind: Kind::List(items),
                };
            }
            // What is not a list is refused when it is read.
            _ => {}
        },
        None => own.push(Entry {
            key,
            value: Node {
                place: value.place,
                kind: Kind::List(items),
            },
        }),
    }
}

/// Moves a node and all that it holds down by so many lines.
fn lower(node: &mut Node, by: usize) {
    node.place = node.place.lower(by);
    match &mut node.kind {
        Kind::List(items) => items.iter_mut().for_each(|item| lower(item, by)),
        Kind::Map(entries) => {
            for Entry { key, value } in entries {
                key.place = key.place.lower(by);
                lower(value, by);
            }
        }
        Kind::Text(_) | Kind::Null | Kind::Broken => {}
    }
}

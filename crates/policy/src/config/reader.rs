//! Walks the tree, and collects what is wrong with it.

use super::environment::{Environment, expand};
use super::excerpt::excerpt;
use super::fault::Fault;
use super::problem::{ConfigErrors, Problem, Severity};
use super::syntax::{Key, Kind, Node, Place};
use std::sync::Arc;

/// Problems beyond this many are counted, not kept.
const PROBLEMS_MAX: usize = 100;

/// Values may expand to this many bytes in total.
const EXPANDED_MAX: usize = 16 << 20;

/// Reads values and collects problems. Whoever reads a bad value gets `None` and goes on, so that
/// one pass finds every mistake.
pub(crate) struct Reader<'a> {
    file: Arc<str>,
    text: &'a str,
    below: Option<Below<'a>>,
    environment: &'a dyn Environment,
    errors: Vec<Problem>,
    more_errors: usize,
    warnings: Vec<Problem>,
    expanded: usize,
}

/// Another text, whose lines follow those of the first.
struct Below<'a> {
    /// The line before its first.
    line: usize,
    file: Arc<str>,
    text: &'a str,
}

/// A value, and which setting it is.
#[derive(Clone, Debug)]
pub(crate) struct Value<'a> {
    pub(crate) node: &'a Node,
    /// The key it stands under, if it stands in a map.
    pub(crate) key: Option<&'a Key>,
    /// Such as `policies[0].limits[1].key`.
    pub(crate) path: String,
}

// === impl Value ===

impl<'a> Value<'a> {
    /// The whole configuration.
    pub(crate) fn root(node: &'a Node) -> Self {
        Self {
            node,
            key: None,
            path: String::new(),
        }
    }

    /// Where to point: at the value, or at its key where the value is nothing.
    pub(crate) fn spot(&self) -> (Place, String) {
        let place = match (&self.node.kind, self.key) {
            (Kind::Null, Some(key)) => key.place,
            _ => self.node.place,
        };
        (place, self.path.clone())
    }

    /// The key, where the value itself is fine and its being there is not.
    pub(crate) fn key_spot(&self) -> (Place, String) {
        let place = self.key.map_or(self.node.place, |key| key.place);
        (place, self.path.clone())
    }

    /// The value under a key of this map.
    pub(crate) fn child(&self, key: &'a Key, node: &'a Node) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            node,
            key: Some(key),
            path: format!("{}{dot}{}", self.path, key.text),
        }
    }

    /// The items of this list.
    pub(crate) fn items(&self, items: &'a [Node]) -> Vec<Self> {
        let items = items.iter().enumerate();
        items
            .map(|(index, node)| Self {
                node,
                key: None,
                path: format!("{}[{index}]", self.path),
            })
            .collect()
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(crate) fn new(name: &str, text: &'a str, environment: &'a dyn Environment) -> Self {
        Self {
            file: name.into(),
            text,
            below: None,
            environment,
            errors: Vec::new(),
            more_errors: 0,
            warnings: Vec::new(),
            expanded: 0,
        }
    }

    /// Lets places beyond `line` be those of another text, from its first line on.
    pub(crate) fn go_on_below(&mut self, line: usize, name: &str, text: &'a str) {
        self.below = Some(Below {
            line,
            file: name.into(),
            text,
        });
    }

    /// What messages call the file.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Where variables and files are looked up.
    pub(crate) fn environment(&self) -> &'a dyn Environment {
        self.environment
    }

    /// Whether anything is wrong so far.
    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Notes an error.
    pub(crate) fn error(&mut self, spot: (Place, String), fault: Fault) {
        if self.errors.len() < PROBLEMS_MAX {
            let problem = self.problem(Severity::Error, spot, fault);
            self.errors.push(problem);
        } else {
            self.more_errors = self.more_errors.saturating_add(1);
        }
    }

    /// Notes a warning.
    pub(crate) fn warn(&mut self, spot: (Place, String), fault: Fault) {
        if self.warnings.len() < PROBLEMS_MAX {
            let problem = self.problem(Severity::Warning, spot, fault);
            self.warnings.push(problem);
        }
    }

    fn problem(&self, severity: Severity, spot: (Place, String), fault: Fault) -> Problem {
        let (file, text, place) = self.source(spot.0);
        let excerpt = excerpt(text, place);
        Problem::new(Arc::clone(file), severity, (place, spot.1), fault, excerpt)
    }

    /// The text that a place is in, what it is called, and where the place is in it.
    fn source(&self, place: Place) -> (&Arc<str>, &'a str, Place) {
        if let (Some(below), Place::File { line, .. }) = (&self.below, place)
            && line > below.line
        {
            return (&below.file, below.text, place.higher(below.line));
        }
        (&self.file, self.text, place)
    }

    /// The warnings, or the errors if there are any.
    pub(crate) fn finish(mut self) -> Result<Vec<Problem>, ConfigErrors> {
        if self.errors.is_empty() {
            self.warnings
                .sort_by_key(|it| (it.file() != &*self.file, it.place()));
            return Ok(self.warnings);
        }
        self.errors
            .sort_by_key(|it| (it.file() != &*self.file, it.place()));
        Err(ConfigErrors::new(self.file, self.errors, self.more_errors))
    }

    /// The text of a scalar, with its variables replaced.
    pub(crate) fn text(&mut self, value: &Value<'_>) -> Option<String> {
        let Kind::Text(text) = &value.node.kind else {
            self.refuse_kind(value, "a single value");
            return None;
        };
        // What a variable holds is not expanded again.
        if matches!(value.node.place, Place::Variable(_)) {
            return Some(text.clone());
        }
        let expanded = expand(text, self.environment).and_then(|text| {
            self.expanded = self.expanded.saturating_add(text.len());
            if self.expanded > EXPANDED_MAX {
                return Err(Fault::new(
                    "the configuration is too large once its variables are replaced",
                ));
            }
            Ok(text)
        });
        self.accept(value, expanded)
    }

    /// The text of a scalar, as `parse` understands it.
    pub(crate) fn parse<T>(
        &mut self,
        value: &Value<'_>,
        parse: impl FnOnce(&str) -> Result<T, Fault>,
    ) -> Option<T> {
        let text = self.text(value)?;
        self.accept(value, parse(text.trim()))
    }

    /// What was read, or a note of why it was not.
    pub(crate) fn accept<T>(&mut self, value: &Value<'_>, read: Result<T, Fault>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(fault) => {
                self.error(value.spot(), fault);
                None
            }
        }
    }

    /// The items of a list that must have some.
    pub(crate) fn list<'v>(&mut self, value: &Value<'v>) -> Vec<Value<'v>> {
        self.items(value, "it needs at least one item")
    }

    /// The items of a list, or the one value that stands in its place.
    pub(crate) fn one_or_many<'v>(&mut self, value: &Value<'v>) -> Vec<Value<'v>> {
        match value.node.kind {
            Kind::Text(_) | Kind::Map(_) | Kind::Broken => vec![value.clone()],
            _ => self.items(value, "leave the field out, or put something into the list"),
        }
    }

    fn items<'v>(&mut self, value: &Value<'v>, help_if_empty: &str) -> Vec<Value<'v>> {
        match &value.node.kind {
            Kind::List(items) if items.is_empty() => {
                let fault = Fault::new(format!("{} is an empty list", value.name()));
                self.error(value.spot(), fault.help(help_if_empty));
            }
            Kind::List(items) => return value.items(items),
            Kind::Text(_) | Kind::Map(_) => {
                let (what, found) = (value.name(), value.node.noun());
                let fault = Fault::new(format!("{what} is {found}; expected a list"));
                self.error(
                    value.spot(),
                    fault.help("write [a, b], or begin each item with `- `"),
                );
            }
            Kind::Null | Kind::Broken => self.refuse_kind(value, "a list"),
        }
        Vec::new()
    }

    /// Says that a value is not what was `expected`, unless it has been reported already.
    pub(crate) fn refuse_kind(&mut self, value: &Value<'_>, expected: &str) {
        let what = value.name();
        let fault = match value.node.kind {
            Kind::Broken => return,
            Kind::Null => Fault::new(format!("{what} has no value"))
                .help("give it a value, or leave the field out"),
            _ => {
                let found = value.node.noun();
                Fault::new(format!("{what} is {found}; expected {expected}"))
            }
        };
        self.error(value.spot(), fault);
    }
}

impl Value<'_> {
    /// What to call it in a message.
    pub(crate) fn name(&self) -> String {
        match self.key {
            Some(key) => Fault::quote(&key.text),
            None if self.path.is_empty() => "the configuration".to_owned(),
            None => "this item".to_owned(),
        }
    }
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("file", &self.file)
            .field("errors", &self.errors)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

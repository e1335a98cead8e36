//! Walks the tree and collects its errors.

use crate::environment::{self, Environment, expand};
use crate::excerpt::excerpt;
use crate::problem::{ConfigErrors, ConfigProblem, Severity};
use crate::syntax::{MapKey, NodeKind, TextSpan, YamlNode};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use tidegate_policy::redact;
use tidegate_policy::text::ConfigFault;

/// The maximum number of problems that are kept. Further ones are only counted.
const PROBLEMS_MAX: usize = 100;

/// The maximum total size of all values after expansion, in bytes.
const EXPANDED_MAX: usize = 16 << 20;

/// A reader of values that collects problems. A caller that reads a bad value gets `None` and continues,
/// so that one pass finds every error.
pub struct ConfigReader<'a> {
    file: Arc<str>,
    text: &'a str,
    /// The appended texts, in the order of their lines.
    below: Vec<AppendedText<'a>>,
    environment: &'a dyn Environment,
    errors: Vec<ConfigProblem>,
    more_errors: usize,
    warnings: Vec<ConfigProblem>,
    expanded: usize,
    /// The variables that values refer to, by the position of the value.
    variables: BTreeMap<TextSpan, Vec<String>>,
}

/// A further text, whose lines are numbered after those of the texts before it.
pub struct AppendedText<'a> {
    /// The number of the line before its first.
    line: usize,
    file: Arc<str>,
    text: &'a str,
    /// True if it may refer to variables.
    is_trusted: bool,
}

impl<'a> AppendedText<'a> {
    /// Returns a text that begins after `line`. Messages call it `name`.
    pub fn new(line: usize, name: &str, text: &'a str, is_trusted: bool) -> Self {
        Self {
            line,
            file: name.into(),
            text,
            is_trusted,
        }
    }
}

/// The environment of an untrusted text. Its author must not learn anything about this process.
struct UntrustedEnvironment;

impl Environment for UntrustedEnvironment {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn file(&self, _path: &str) -> Result<String, String> {
        Err("a config source cannot refer to files".to_owned())
    }

    fn looks_up(&self) -> bool {
        false
    }
}

/// A value and the path of its setting.
#[derive(Clone, Debug)]
pub struct ConfigValue<'a> {
    /// The node.
    pub node: &'a YamlNode,
    /// The key of the value, if it is in a map.
    pub key: Option<&'a MapKey>,
    /// The path, such as `policies[0].limits[1].key`.
    pub path: String,
}

// === impl ConfigValue ===

impl<'a> ConfigValue<'a> {
    /// Returns the value of the whole configuration.
    pub fn root(node: &'a YamlNode) -> Self {
        Self {
            node,
            key: None,
            path: String::new(),
        }
    }

    /// Returns the position for messages: the value's, or its key's if the value is empty.
    pub fn spot(&self) -> (TextSpan, String) {
        let place = match (&self.node.kind, self.key) {
            (NodeKind::Null, Some(key)) => key.place,
            _ => self.node.place,
        };
        (place, self.path.clone())
    }

    /// Returns the position of the key, for values that are valid but must not be there.
    pub fn key_spot(&self) -> (TextSpan, String) {
        let place = self.key.map_or(self.node.place, |key| key.place);
        (place, self.path.clone())
    }

    /// Returns the value of a field of this map.
    #[must_use]
    pub fn child(&self, key: &'a MapKey, node: &'a YamlNode) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            node,
            key: Some(key),
            path: format!("{}{dot}{}", self.path, key.text),
        }
    }

    /// Returns the items of this list.
    pub fn items(&self, items: &'a [YamlNode]) -> Vec<Self> {
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

// === impl ConfigReader ===

impl<'a> ConfigReader<'a> {
    /// Creates a reader of `text`. Messages call the file `name`.
    pub fn new(name: &str, text: &'a str, environment: &'a dyn Environment) -> Self {
        Self {
            file: name.into(),
            text,
            below: Vec::new(),
            environment,
            errors: Vec::new(),
            more_errors: 0,
            warnings: Vec::new(),
            expanded: 0,
            variables: BTreeMap::new(),
        }
    }

    /// Appends a text. Lines beyond its first belong to it. Texts must be appended in the order of
    /// their lines.
    pub fn go_on_below(&mut self, below: AppendedText<'a>) {
        self.below.push(below);
    }

    /// Returns "line N" for a position, with the name of the text if there are several; `None` if it is
    /// not on a line.
    pub fn line_of(&self, place: TextSpan) -> Option<String> {
        let (file, _, place) = self.source(place);
        match place {
            TextSpan::File { line, .. } if self.below.is_empty() => Some(format!("line {line}")),
            TextSpan::File { line, .. } => Some(format!("line {line} of {file}")),
            TextSpan::Variable(_) => None,
        }
    }

    /// Returns the name of the file in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the environment for variables and files that the file refers to.
    pub fn environment(&self) -> &'a dyn Environment {
        self.environment
    }

    /// Returns the environment for a value at `place`.
    pub fn environment_at(&self, place: TextSpan) -> &'a dyn Environment {
        if self.is_trusted(place) {
            self.environment
        } else {
            &UntrustedEnvironment
        }
    }

    fn is_trusted(&self, place: TextSpan) -> bool {
        self.below_at(place).is_none_or(|below| below.is_trusted)
    }

    /// Returns true if there are errors so far.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Records an error.
    pub fn error(&mut self, spot: (TextSpan, String), fault: ConfigFault) {
        self.note(Severity::Error, spot, fault);
    }

    /// Records a warning.
    pub fn warn(&mut self, spot: (TextSpan, String), fault: ConfigFault) {
        self.note(Severity::Warning, spot, fault);
    }

    fn note(&mut self, severity: Severity, spot: (TextSpan, String), fault: ConfigFault) {
        let variables = self.variables.get(&spot.0.written());
        let variables = variables.cloned().unwrap_or_default();
        let (file, text, place) = self.source(spot.0);
        // Excerpts hide secrets by the keys on their lines. An alias separates the value from its key.
        let is_hidden = place.alias().is_some() && redact::is_secret_path(&spot.1);
        let problem = ConfigProblem::new(
            Arc::clone(file),
            severity,
            (place, spot.1),
            fault,
            variables,
        );
        let noted = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if noted.iter_mut().any(|it| it.covers(&problem)) {
            return;
        }
        if noted.len() < PROBLEMS_MAX {
            let excerpt = excerpt(text, place).filter(|_| !is_hidden);
            noted.push(problem.with_excerpt(excerpt));
        } else if severity == Severity::Error {
            self.more_errors = self.more_errors.saturating_add(1);
        }
    }

    /// Returns the name of the text that a position is in, the text, and the position within it.
    fn source(&self, place: TextSpan) -> (&Arc<str>, &'a str, TextSpan) {
        match self.below_at(place) {
            Some(below) => (&below.file, below.text, place.higher(below.line)),
            None => (&self.file, self.text, place),
        }
    }

    /// Returns the appended text that a position is in, if any.
    fn below_at(&self, place: TextSpan) -> Option<&AppendedText<'a>> {
        let TextSpan::File { line, .. } = place else {
            return None;
        };
        self.below.iter().rev().find(|below| line > below.line)
    }

    /// Returns the sort key of a problem: first the text, then the position.
    fn rank(&self, problem: &ConfigProblem) -> (usize, TextSpan) {
        let file = problem.file();
        let below = self.below.iter().position(|it| *it.file == *file);
        let text = match below {
            Some(below) if file != &*self.file => below.saturating_add(1),
            _ => 0,
        };
        (text, problem.place())
    }

    /// Returns the warnings, or the errors if there are any.
    pub fn finish(mut self) -> Result<Vec<ConfigProblem>, ConfigErrors> {
        if self.errors.is_empty() {
            let mut warnings = mem::take(&mut self.warnings);
            warnings.sort_by_key(|it| self.rank(it));
            return Ok(warnings);
        }
        let mut errors = mem::take(&mut self.errors);
        errors.sort_by_key(|it| self.rank(it));
        Err(ConfigErrors::new(self.file, errors, self.more_errors))
    }

    /// Returns the text of a scalar, with its variables replaced.
    pub fn text(&mut self, value: &ConfigValue<'_>) -> Option<String> {
        let NodeKind::Text(text) = &value.node.kind else {
            self.refuse_kind(value, "a single value");
            return None;
        };
        // The value of a variable is not expanded again.
        if matches!(value.node.place, TextSpan::Variable(_)) {
            return Some(text.clone());
        }
        let variables = environment::variables(text);
        if !variables.is_empty() {
            self.variables.insert(value.node.place.written(), variables);
        }
        let environment = self.environment_at(value.node.place);
        let expanded = expand(text, environment).and_then(|text| {
            self.expanded = self.expanded.saturating_add(text.len());
            if self.expanded > EXPANDED_MAX {
                return Err(ConfigFault::new(
                    "the configuration is too large once its variables are replaced",
                ));
            }
            Ok(text)
        });
        let expanded = expanded.map_err(|fault| {
            if self.is_trusted(value.node.place) {
                return fault;
            }
            fault.help(
                "a config source cannot use variables; write the value, or $${ for a literal ${",
            )
        });
        self.accept(value, expanded)
    }

    /// Parses the text of a scalar with `parse`.
    pub fn parse<T>(
        &mut self,
        value: &ConfigValue<'_>,
        parse: impl FnOnce(&str) -> Result<T, ConfigFault>,
    ) -> Option<T> {
        let text = self.text(value)?;
        self.accept(value, parse(text.trim()))
    }

    /// Returns the result, or records its fault.
    pub fn accept<T>(
        &mut self,
        value: &ConfigValue<'_>,
        read: Result<T, ConfigFault>,
    ) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(fault) => {
                self.error(value.spot(), fault);
                None
            }
        }
    }

    /// Returns the items of a list. An empty list is an error.
    pub fn list<'v>(&mut self, value: &ConfigValue<'v>) -> Vec<ConfigValue<'v>> {
        self.items(value, "it needs at least one item")
    }

    /// Returns the items of a list, or the single value written instead of one.
    pub fn one_or_many<'v>(&mut self, value: &ConfigValue<'v>) -> Vec<ConfigValue<'v>> {
        match value.node.kind {
            NodeKind::Text(_) | NodeKind::Map(_) | NodeKind::Broken => vec![value.clone()],
            _ => self.items(value, "remove the field, or add an item"),
        }
    }

    fn items<'v>(&mut self, value: &ConfigValue<'v>, help_if_empty: &str) -> Vec<ConfigValue<'v>> {
        match &value.node.kind {
            NodeKind::List(items) if items.is_empty() => {
                let fault = ConfigFault::new(format!("{} is an empty list", value.name()));
                self.error(value.spot(), fault.help(help_if_empty));
            }
            NodeKind::List(items) => return value.items(items),
            NodeKind::Text(_) | NodeKind::Map(_) => {
                let (what, found) = (value.name(), value.node.noun());
                let fault = ConfigFault::new(format!("{what} is {found}; expected a list"));
                self.error(
                    value.spot(),
                    fault.help("write [a, b], or begin each item with `- `"),
                );
            }
            NodeKind::Null | NodeKind::Broken => self.refuse_kind(value, "a list"),
        }
        Vec::new()
    }

    /// Reports that a value is not of the `expected` kind, unless it is already reported.
    pub fn refuse_kind(&mut self, value: &ConfigValue<'_>, expected: &str) {
        let what = value.name();
        let fault = match value.node.kind {
            NodeKind::Broken => return,
            NodeKind::Null => ConfigFault::new(format!("{what} has no value"))
                .help("add a value, or remove the field"),
            _ => {
                let found = value.node.noun();
                ConfigFault::new(format!("{what} is {found}; expected {expected}"))
            }
        };
        self.error(value.spot(), fault);
    }
}

impl ConfigValue<'_> {
    /// Returns the name of the value in messages.
    pub fn name(&self) -> String {
        match self.key {
            Some(key) => ConfigFault::quote(&key.text),
            None if self.path.is_empty() => "the configuration".to_owned(),
            None => "this item".to_owned(),
        }
    }
}

// Written by hand because the text may contain secrets.
impl std::fmt::Debug for AppendedText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppendedText")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ConfigReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("file", &self.file)
            .field("errors", &self.errors)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

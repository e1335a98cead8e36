//! A configuration as a tree of nodes, each with its position.

use std::num::NonZeroUsize;

/// The position of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextSpan {
    /// In the file. Line and column count from 1, in characters.
    File {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// The number of characters to underline; at least 1.
        width: usize,
        /// The line of the alias that repeats the value here, if one does.
        alias: Option<NonZeroUsize>,
    },
    /// In this environment variable, which overrides the file.
    Variable(&'static str),
}

/// A value.
#[derive(Clone, Debug)]
pub struct YamlNode {
    /// The position.
    pub place: TextSpan,
    /// The kind, with its contents.
    pub kind: NodeKind,
}

/// The kind of a value.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// A scalar. All scalars are text until a field needs a number.
    Text(String),
    /// An empty plain scalar: `key:`, `key: ~`, `key: null`.
    Null,
    /// A list.
    List(Vec<YamlNode>),
    /// A map, in the order written, without duplicate keys.
    Map(Vec<MapEntry>),
    /// A value that is already reported. Readers do not report it again.
    Broken,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct MapEntry {
    /// The key.
    pub key: MapKey,
    /// The value.
    pub value: YamlNode,
}

/// A key of a map.
#[derive(Clone, Debug)]
pub struct MapKey {
    /// The text.
    pub text: String,
    /// The position.
    pub place: TextSpan,
}

// === impl TextSpan ===

impl TextSpan {
    /// Returns a position in the file.
    pub const fn at(line: usize, column: usize, width: usize) -> Self {
        Self::File {
            line,
            column,
            width,
            alias: None,
        }
    }

    /// Returns the same position, repeated by an alias at `alias`.
    #[must_use]
    pub fn repeated_at(mut self, alias: Self) -> Self {
        if let (Self::File { alias: from, .. }, Self::File { line, .. }) = (&mut self, alias) {
            *from = NonZeroUsize::new(line);
        }
        self
    }

    /// Returns the position without the alias.
    #[must_use]
    pub fn written(mut self) -> Self {
        if let Self::File { alias, .. } = &mut self {
            *alias = None;
        }
        self
    }

    /// Returns the line of the alias that repeats the value here, if one does.
    pub fn alias(self) -> Option<usize> {
        match self {
            Self::File { alias, .. } => alias.map(NonZeroUsize::get),
            Self::Variable(_) => None,
        }
    }

    /// Returns the position moved down by `by` lines.
    #[must_use]
    pub fn lower(self, by: usize) -> Self {
        self.with_line(|line| line.saturating_add(by))
    }

    /// Returns the position moved up by `by` lines.
    #[must_use]
    pub fn higher(self, by: usize) -> Self {
        self.with_line(|line| line.saturating_sub(by))
    }

    fn with_line(self, moved: impl Fn(usize) -> usize) -> Self {
        match self {
            Self::File {
                line,
                column,
                width,
                alias,
            } => Self::File {
                line: moved(line),
                column,
                width,
                alias: alias.and_then(|line| NonZeroUsize::new(moved(line.get()))),
            },
            Self::Variable(_) => self,
        }
    }
}

// === impl YamlNode ===

impl YamlNode {
    /// Returns the kind of the value in words.
    pub fn noun(&self) -> &'static str {
        match self.kind {
            NodeKind::Text(_) | NodeKind::Broken => "a single value",
            NodeKind::Null => "nothing",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a map",
        }
    }

    /// Returns the value of `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&YamlNode> {
        match &self.kind {
            NodeKind::Map(entries) => entries
                .iter()
                .find(|entry| entry.key.text == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// Returns the text, if this is a scalar.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Text(text) => Some(text),
            _ => None,
        }
    }
}

//! Writes the sections of a configuration other than its policies.

use super::text::{escaped, line, quote};
use std::fmt::Display;

/// The text of the sections so far, and the current indentation.
#[derive(Debug, Default)]
pub(super) struct SectionWriter {
    text: String,
    indent: usize,
}

impl SectionWriter {
    /// Begins a section. The fields that follow belong to it.
    pub(super) fn section(&mut self, name: &str) -> &mut Self {
        line(&mut self.text, 0, &format!("{name}:"));
        self.indent = 2;
        self
    }

    /// Begins an item of a list within the section, with its first field.
    pub(super) fn item(&mut self, field: &str, value: impl Display) -> &mut Self {
        line(&mut self.text, 2, &format!("- {field}: {value}"));
        self.indent = 4;
        self
    }

    /// Begins an item of a list that is a map under a single word. The fields that follow belong to
    /// that map.
    pub(super) fn item_of(&mut self, word: &str) -> &mut Self {
        line(&mut self.text, 2, &format!("- {word}:"));
        self.indent = 6;
        self
    }

    /// Returns to the item of [`item_of`](Self::item_of). The fields that follow belong to the item.
    pub(super) fn end_of_map(&mut self) -> &mut Self {
        self.indent = 4;
        self
    }

    /// Begins a map within the section. The fields that follow belong to it.
    pub(super) fn map(&mut self, name: &str) -> &mut Self {
        line(&mut self.text, 2, &format!("{name}:"));
        self.indent = 4;
        self
    }

    /// Begins a map within the current one. All fields that follow belong to it.
    pub(super) fn deeper(&mut self, name: &str) -> &mut Self {
        line(&mut self.text, self.indent, &format!("{name}:"));
        self.indent = self.indent.saturating_add(2);
        self
    }

    /// Writes a field whose value is a map with names of another system, one entry per line.
    pub(super) fn entries<'n>(
        &mut self,
        name: &str,
        entries: impl IntoIterator<Item = (&'n str, String)>,
    ) -> &mut Self {
        line(&mut self.text, self.indent, &format!("{name}:"));
        let indent = self.indent.saturating_add(2);
        for (key, value) in entries {
            line(&mut self.text, indent, &format!("{}: {value}", quote(key)));
        }
        self
    }

    /// Writes a field with a value of several lines.
    pub(super) fn block(&mut self, name: &str, lines: &[String]) -> &mut Self {
        self.field(name, '|');
        let indent = self.indent.saturating_add(2);
        for it in lines {
            line(&mut self.text, indent, it);
        }
        self
    }

    /// Writes a field whose value is already in the syntax of the configuration.
    pub(super) fn field(&mut self, name: &str, value: impl Display) -> &mut Self {
        line(&mut self.text, self.indent, &format!("{name}: {value}"));
        self
    }

    /// Writes a field whose value is a name of another system. Variables in it are escaped.
    pub(super) fn named(&mut self, name: &str, value: &str) -> &mut Self {
        self.field(name, quote(&escaped(value)))
    }

    /// Writes a field that is a map with one field, whose value is a name of another system.
    pub(super) fn within(&mut self, name: &str, field: &str, value: &str) -> &mut Self {
        self.field(name, format!("{{ {field}: {} }}", quote(&escaped(value))))
    }

    /// Writes a field whose value may contain Tidegate's variables.
    pub(super) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        self.field(name, quote(value))
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Formats milliseconds in the syntax of the configuration.
pub(super) fn milliseconds(number: u64) -> String {
    match (number / 1_000, number % 1_000) {
        (seconds, 0) => format!("{seconds}s"),
        _ => format!("{number}ms"),
    }
}

//! Notes on settings without a counterpart, and on differences.

use std::fmt;
use tidegate_policy::text::counted;

/// A note on a translation, which is valid all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    file: String,
    line: usize,
    is_warning: bool,
    text: String,
    /// The number of further places for the same note.
    more: usize,
}

/// Notes without duplicates.
#[derive(Debug, Default)]
pub(super) struct ImportNotes(Vec<ImportNote>);

// === impl ImportNote ===

impl ImportNote {
    /// Returns the text of the note.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the file contains an ignorable mistake or a setting without effect: its author
    /// intended something else. All other notes only describe how Tidegate behaves.
    pub fn is_warning(&self) -> bool {
        self.is_warning
    }

    /// Returns the line of the first occurrence, from 1.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for ImportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_warning { "warning" } else { "note" };
        write!(f, "{}:{}: {word}: {}", self.file, self.line, self.text)?;
        match self.more {
            0 => Ok(()),
            1 => f.write_str(" (and in one more place)"),
            more => write!(
                f,
                " (and in {})",
                counted(more, "more place", "more places")
            ),
        }
    }
}

// === impl ImportNotes ===

impl ImportNotes {
    /// Adds a note, or counts a further place if the same note exists.
    pub(super) fn add(&mut self, place: (&str, usize), text: impl Into<String>) {
        self.tell(place, text.into(), false);
    }

    /// Adds a warning, which a person should act on.
    pub(super) fn warn(&mut self, place: (&str, usize), text: impl Into<String>) {
        self.tell(place, text.into(), true);
    }

    fn tell(&mut self, (file, line): (&str, usize), text: String, is_warning: bool) {
        match self.0.iter_mut().find(|note| note.text == text) {
            Some(note) => note.more = note.more.saturating_add(1),
            None => self.0.push(ImportNote {
                file: file.to_owned(),
                line,
                is_warning,
                text,
                more: 0,
            }),
        }
    }

    /// Returns all notes, ordered by file name and line.
    pub(super) fn into_notes(mut self) -> Vec<ImportNote> {
        self.0
            .sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        self.0
    }
}

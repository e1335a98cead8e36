//! What has no counterpart, and what is otherwise here.

use std::fmt;

/// Something to know about a translation that is right all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    file: String,
    line: usize,
    is_warning: bool,
    text: String,
    /// In how many further places the same holds.
    more: usize,
}

/// Notes, each told once.
#[derive(Debug, Default)]
pub(super) struct ImportNotes(Vec<ImportNote>);

// === impl Note ===

impl ImportNote {
    /// What there is to know.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether something that is written is wrong in a way that can be passed over, or says nothing:
    /// whoever wrote it meant something else. All others only tell how things are here.
    pub fn is_warning(&self) -> bool {
        self.is_warning
    }

    /// The line where it is first so, from 1.
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
            more => write!(f, " (and in {more} more places)"),
        }
    }
}

// === impl Notes ===

impl ImportNotes {
    /// Notes `text`; where it has been noted already, that it holds here as well.
    pub(super) fn add(&mut self, place: (&str, usize), text: impl Into<String>) {
        self.tell(place, text.into(), false);
    }

    /// Warns of `text`, which somebody should put right.
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

    /// All of them, in the order of files that are read by name.
    pub(super) fn into_notes(mut self) -> Vec<ImportNote> {
        self.0
            .sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        self.0
    }
}

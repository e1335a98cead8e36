//! The errors and notes of all files.

use super::syntax::NginxDirective;
use crate::SourceFile;
use crate::document::{ImportErrors, ImportedFile};
use crate::note::ImportNotes;
use tidegate_policy::text::ConfigFault;

/// The files, and everything to report about them.
#[derive(Debug, Default)]
pub(super) struct NginxReport {
    pub(super) files: Vec<SourceFile>,
    pub(super) notes: ImportNotes,
    pub(super) wrong: ImportErrors,
}

impl NginxReport {
    /// Returns the name of a file.
    pub(super) fn file(&self, number: usize) -> &str {
        self.files.get(number).map_or("", |file| &file.name)
    }

    /// Records an error.
    pub(super) fn error(&mut self, at: &NginxDirective, message: impl AsRef<str>, help: &str) {
        if let Some(file) = self.files.get(at.file) {
            let fault = ConfigFault::new(message).help(help);
            ImportedFile::add_error_at(file, at.place(), fault, &mut self.wrong);
        }
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, at: &NginxDirective, text: impl Into<String>) {
        let file = self.files.get(at.file).map_or("", |file| &file.name);
        self.notes.warn((file, at.line), text);
    }

    /// Adds a note.
    pub(super) fn note(&mut self, at: &NginxDirective, text: impl Into<String>) {
        let file = self.files.get(at.file).map_or("", |file| &file.name);
        self.notes.add((file, at.line), text);
    }
}

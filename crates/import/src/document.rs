//! A foreign file, read with positions. No variable in it is looked up, and none of its directives is
//! executed.

use super::SourceFile;
use super::json::{self, JsonScan};
use super::note::ImportNotes;
use tidegate_config::reading::{ConfigReader, ConfigValue, FieldReader, FieldTable, read_syntax};
use tidegate_config::{ConfigErrors, ConfigProblem, NoEnvironment};
use tidegate_policy::text::{ConfigFault, NodeKind, TextSpan, YamlNode};

/// The longest key of an entry, in bytes.
const KEY_BYTES_MAX: usize = 256;

/// The longest value of an entry, in bytes.
const VALUE_BYTES_MAX: usize = 1024;

/// A file that is being read, with the errors so far.
#[derive(Debug)]
pub(super) struct ImportedFile<'a> {
    reader: ConfigReader<'a>,
    file: &'a str,
    /// The prefix of messages about its form.
    trouble: &'static str,
    /// The results of the JSON scan, if it is JSON.
    scan: JsonScan,
    pub(super) notes: &'a mut ImportNotes,
}

/// The errors of several files.
#[derive(Debug, Default)]
pub(super) struct ImportErrors {
    problems: Vec<ConfigProblem>,
    more: usize,
}

// === impl ImportedFile ===

impl<'a> ImportedFile<'a> {
    /// Opens a file. Returns its contents if they can be parsed. `nothing` is the fault of an empty
    /// file.
    pub(super) fn open(
        file: &'a SourceFile,
        trouble: &'static str,
        nothing: ConfigFault,
        notes: &'a mut ImportNotes,
    ) -> (Self, Option<YamlNode>) {
        let text = json::without_surrogates(&file.text);
        let mut document = Self {
            reader: ConfigReader::new(&file.name, &file.text, &NoEnvironment),
            file: &file.name,
            trouble,
            scan: json::scan(&text),
            notes,
        };
        let says_nothing = nothing.message.clone();
        let (tree, faults) = read_syntax(&text, nothing);
        for (place, fault) in faults {
            let prefix = if fault.message == says_nothing {
                ""
            } else {
                trouble
            };
            let message = format!("{prefix}{}", fault.message);
            let fault = ConfigFault::new(message).maybe_help(fault.help);
            document.reader.error((place, String::new()), fault);
        }
        (document, tree)
    }

    /// Returns the name of the file.
    pub(super) fn file(&self) -> &'a str {
        self.file
    }

    /// Records an error.
    pub(super) fn error(&mut self, spot: (TextSpan, String), fault: ConfigFault) {
        self.reader.error(spot, fault);
    }

    /// Notes every comma before a closing bracket, which JSON does not allow.
    pub(super) fn note_loose_commas(&mut self) {
        for line in std::mem::take(&mut self.scan.loose_commas) {
            let text = "trailing comma before a closing bracket is ignored; it is not valid JSON";
            self.notes.warn((self.file, line), text);
        }
    }

    /// Returns true if a value is in quotes, in JSON, where that matters.
    pub(super) fn is_quoted(&self, value: &ConfigValue<'_>) -> bool {
        match value.node.place {
            TextSpan::File { line, column, .. } => self.scan.is_quoted(line, column),
            TextSpan::Variable(_) => false,
        }
    }

    /// Adds a note.
    pub(super) fn note(&mut self, place: TextSpan, text: impl Into<String>) {
        self.notes.add((self.file, line(place)), text);
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, place: TextSpan, text: impl Into<String>) {
        self.notes.warn((self.file, line(place)), text);
    }

    /// Returns the text of a scalar, unchanged; `None` if it is empty or not a scalar.
    pub(super) fn text<'v>(&mut self, value: &ConfigValue<'v>) -> Option<&'v str> {
        match &value.node.kind {
            NodeKind::Text(text) if text.is_empty() => None,
            NodeKind::Text(text) => Some(text),
            NodeKind::Null => None,
            _ => {
                self.refuse(value, "a single value");
                None
            }
        }
    }

    /// Returns the fields of a map. Reports fields that `table` does not have.
    pub(super) fn fields<'v>(
        &mut self,
        value: &ConfigValue<'v>,
        table: &'static FieldTable,
    ) -> Option<FieldReader<'v>> {
        self.reader.fields(value, table)
    }

    /// Returns the items of a list; none if it is empty or not a list.
    pub(super) fn items<'v>(&mut self, value: &ConfigValue<'v>) -> Vec<ConfigValue<'v>> {
        match &value.node.kind {
            NodeKind::List(items) => value.items(items),
            NodeKind::Null => Vec::new(),
            _ => {
                self.refuse(value, "a list");
                Vec::new()
            }
        }
    }

    /// Reads a flag in any of YAML's spellings; `false` if it is empty.
    pub(super) fn flag(&mut self, value: &ConfigValue<'_>) -> bool {
        let Some(text) = self.text(value) else {
            return false;
        };
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "y" => true,
            "false" | "no" | "off" | "n" => false,
            _ => {
                let found = ConfigFault::quote(text);
                self.form(value, &format!("{found}; expected true or false"));
                false
            }
        }
    }

    /// Reads a whole number up to `most`.
    pub(super) fn number(&mut self, value: &ConfigValue<'_>, most: u64) -> Option<u64> {
        let text = self.text(value)?;
        let starts_well = text.starts_with(|c: char| c.is_ascii_digit());
        let digits = text.replace('_', "");
        // Some parsers read a number with a leading zero as octal.
        let is_decimal = starts_well && (digits.len() == 1 || !digits.starts_with('0'));
        let number = digits.parse().ok().filter(|number| *number <= most);
        if number.is_none() || !is_decimal {
            let found = ConfigFault::quote(text);
            self.form(
                value,
                &format!("{found}; expected a whole number from 0 to {most}"),
            );
            return None;
        }
        number
    }

    /// Reports that a value is not of the `expected` kind.
    pub(super) fn refuse(&mut self, value: &ConfigValue<'_>, expected: &str) {
        if !matches!(value.node.kind, NodeKind::Broken) {
            let found = value.node.noun();
            self.form(value, &format!("{found}; expected {expected}"));
        }
    }

    fn form(&mut self, value: &ConfigValue<'_>, found: &str) {
        let message = format!("{}{} is {found}", self.trouble, value.name());
        self.error(value.spot(), ConfigFault::new(message));
    }

    /// Adds an error in this line of a file to `wrong`.
    pub(super) fn add_error(
        file: &SourceFile,
        line: usize,
        fault: ConfigFault,
        wrong: &mut ImportErrors,
    ) {
        Self::add_error_at(file, TextSpan::at(line, 1, 1), fault, wrong);
    }

    /// Adds an error at this position of a file to `wrong`.
    pub(super) fn add_error_at(
        file: &SourceFile,
        place: TextSpan,
        fault: ConfigFault,
        wrong: &mut ImportErrors,
    ) {
        let mut reader = ConfigReader::new(&file.name, &file.text, &NoEnvironment);
        reader.error((place, String::new()), fault);
        wrong.add(reader);
    }

    /// Adds the errors of the file to `wrong`.
    pub(super) fn close(self, wrong: &mut ImportErrors) {
        wrong.add(self.reader);
    }
}

// === impl ImportErrors ===

impl ImportErrors {
    fn add(&mut self, reader: ConfigReader<'_>) {
        if let Err(errors) = reader.finish() {
            self.problems.extend_from_slice(errors.problems());
            let untold = errors.count().saturating_sub(errors.problems().len());
            self.more = self.more.saturating_add(untold);
        }
    }

    /// Returns all errors, file by file, if there are any. `name` names the whole import.
    pub(super) fn finish(mut self, name: &str) -> Result<(), ConfigErrors> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let mut files: Vec<String> = Vec::new();
        for problem in &self.problems {
            if !files.iter().any(|file| file == problem.file()) {
                files.push(problem.file().to_owned());
            }
        }
        self.problems.sort_by_key(|it| {
            let file = files.iter().position(|file| file == it.file());
            (file, it.line(), it.column())
        });
        Err(ConfigErrors::new(name.into(), self.problems, self.more))
    }
}

/// Returns a fault if the configuration does not allow this text as the key of an entry.
pub(super) fn bad_key(key: &str) -> Option<ConfigFault> {
    let is_plain = !key.chars().any(char::is_control) && key.trim() == key;
    if is_plain && !key.is_empty() && key.len() <= KEY_BYTES_MAX {
        return None;
    }
    let fault = ConfigFault::new(format!(
        "{} cannot be the key of an entry",
        ConfigFault::quote(key)
    ));
    Some(fault.help("use 1 to 256 printable characters, without surrounding spaces"))
}

/// Returns a fault if the configuration does not allow this text as the value of an entry.
pub(super) fn bad_value(value: &str) -> Option<ConfigFault> {
    if !value.chars().any(char::is_control) && value.len() <= VALUE_BYTES_MAX {
        return None;
    }
    let fault = ConfigFault::new(format!("{} cannot be a value", ConfigFault::quote(value)));
    Some(fault.help("use up to 1024 printable characters"))
}

/// Returns the line of a position, from 1.
pub(super) fn line(place: TextSpan) -> usize {
    match place {
        TextSpan::File { line, .. } => line,
        TextSpan::Variable(_) => 1,
    }
}

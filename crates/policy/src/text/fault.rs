//! An error in a value, independent of its position.

/// A message and, if known, a suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    /// The mistake.
    pub message: String,
    /// The way to fix it.
    pub help: Option<String>,
}

/// The maximum length of a quoted value, in characters. Longer values are cut.
const QUOTE_MAX: usize = 60;

/// The maximum length of a message, in characters. Messages may quote external text.
const MESSAGE_MAX: usize = 400;

/// The maximum length of a suggestion, in characters. It may list all fields of a section.
const HELP_MAX: usize = 1_000;

impl ConfigFault {
    /// Returns a fault without a suggestion.
    pub fn new(message: impl AsRef<str>) -> Self {
        Self {
            message: presentable(message.as_ref(), MESSAGE_MAX),
            help: None,
        }
    }

    /// Adds a suggestion.
    #[must_use]
    pub fn help(self, help: impl AsRef<str>) -> Self {
        Self {
            help: Some(presentable(help.as_ref(), HELP_MAX)),
            ..self
        }
    }

    /// Sets or clears the suggestion.
    #[must_use]
    pub fn maybe_help(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }

    /// Joins message and suggestion in one line, for callers that have no file to point into.
    pub fn into_sentence(self) -> String {
        match self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message,
        }
    }

    /// Returns a name with its article: a limit, the configuration, `store`.
    pub fn article(what: &str) -> String {
        if what.starts_with('`') || what.starts_with("the ") {
            what.to_owned()
        } else {
            format!("a {what}")
        }
    }

    /// Returns a value in backticks, made safe to show.
    pub fn quote(text: &str) -> String {
        format!("`{}`", presentable(text, QUOTE_MAX))
    }
}

/// Escapes control characters, which could move a terminal's cursor, and cuts long text.
fn presentable(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for character in text.chars().take(most) {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

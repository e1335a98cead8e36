//! What is wrong with a value, wherever it stands.

/// What is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigFault {
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Longer values are cut in messages.
const QUOTE_MAX: usize = 60;

/// Longer messages are cut: they may quote what others say.
const MESSAGE_MAX: usize = 400;

/// Longer help is cut. It may list all fields of a section.
const HELP_MAX: usize = 1_000;

impl ConfigFault {
    /// A fault that speaks for itself.
    pub(crate) fn new(message: impl AsRef<str>) -> Self {
        Self {
            message: presentable(message.as_ref(), MESSAGE_MAX),
            help: None,
        }
    }

    /// Adds what to do about it.
    pub(crate) fn help(self, help: impl AsRef<str>) -> Self {
        Self {
            help: Some(presentable(help.as_ref(), HELP_MAX)),
            ..self
        }
    }

    /// Adds what to do about it, if anything is known.
    pub(crate) fn maybe_help(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }

    /// Both in one line, for callers that have no file to point into.
    pub(crate) fn into_sentence(self) -> String {
        match self.help {
            Some(help) => format!("{}; {help}", self.message),
            None => self.message,
        }
    }

    /// The name of a thing with its article: a limit, the configuration, `store`.
    pub(crate) fn article(what: &str) -> String {
        if what.starts_with('`') || what.starts_with("the ") {
            what.to_owned()
        } else {
            format!("a {what}")
        }
    }

    /// A value in backticks, fit to be shown.
    pub(crate) fn quote(text: &str) -> String {
        format!("`{}`", presentable(text, QUOTE_MAX))
    }
}

/// Text with nothing in it that could move a terminal's cursor, cut if it is long.
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

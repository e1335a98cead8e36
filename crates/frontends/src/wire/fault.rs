//! Errors in text from outside, shown to people.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// The number of characters of a client's text that a message repeats.
const QUOTED_MAX: usize = 64;

/// One error in a line or a body, with its position and field.
///
/// It displays as `headers.X-Tier: expected a string, found a number`. Values are not repeated, because they
/// may be secrets, except for those that never are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireFault {
    at: usize,
    field: String,
    message: Cow<'static, str>,
}

impl WireFault {
    /// Creates a fault with this message at byte `at`.
    pub fn new(at: usize, message: impl Into<Cow<'static, str>>) -> Box<Self> {
        Box::new(Self {
            at,
            field: String::new(),
            message: message.into(),
        })
    }

    /// Returns the fault with its field placed inside the member `name` of an object.
    #[must_use]
    pub fn within(mut self: Box<Self>, name: &str) -> Box<Self> {
        let mut field: String = excerpt(name).collect();
        if !self.field.is_empty() && !self.field.starts_with('[') {
            field.push('.');
        }
        field.push_str(&self.field);
        self.field = field;
        self
    }

    /// Returns the fault with its field placed inside the item `nth` of a list, from 0.
    #[must_use]
    pub fn within_item(self: Box<Self>, nth: usize) -> Box<Self> {
        self.within(&format!("[{nth}]"))
    }

    /// Returns the byte position, from 0.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the position as a character of `text`, from 1. Text that is not UTF-8 counts by byte.
    pub fn column(&self, text: &[u8]) -> usize {
        let before = text.get(..self.at).unwrap_or(text);
        let characters = std::str::from_utf8(before).map_or(before.len(), |s| s.chars().count());
        characters.saturating_add(1)
    }

    /// Returns the field, such as `headers.X-Tier`; empty for the whole text.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for WireFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for WireFault {}

/// Quotes a client's text for a message: in back quotes, shortened, without characters that a terminal would
/// obey.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from('`');
    quoted.extend(excerpt(text));
    let _ = write!(quoted, "`");
    quoted
}

fn excerpt(text: &str) -> impl Iterator<Item = char> {
    let is_longer = text.chars().nth(QUOTED_MAX).is_some();
    text.chars()
        .take(QUOTED_MAX)
        .flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default());
            let plain = (!c.is_control()).then_some(c);
            escaped.into_iter().flatten().chain(plain)
        })
        .chain(is_longer.then_some('…'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_path_is_shown_in_common_notation() {
        let fault = WireFault::new(7, "expected a string");
        assert_eq!(fault.to_string(), "expected a string");
        let fault = fault.within_item(2).within("X-Tier").within("headers");
        assert_eq!(fault.to_string(), "headers.X-Tier[2]: expected a string");
        assert_eq!(fault.within_item(9).field(), "[9].headers.X-Tier[2]");
    }

    #[test]
    fn columns_count_characters() {
        let text = "{\"ü\": 1";
        let fault = WireFault::new(text.len(), "not closed");
        assert_eq!(fault.column(text.as_bytes()), 8);
        assert_eq!(fault.column(b"{\xff\"a\": 1x"), 9);
        assert_eq!(fault.column(b""), 1);
    }

    #[test]
    fn client_text_is_truncated_and_escaped() {
        assert_eq!(quote("\u{1b}[2J\n"), "`\\u{1b}[2J\\n`");
        assert_eq!(quote(&"x".repeat(65)), format!("`{}…`", "x".repeat(64)));
    }
}

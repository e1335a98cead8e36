//! A document as text: JSON, in the order written.

use crate::config::{Kind, Node, is_telltale};
use std::fmt::Write;

/// What a hidden value is replaced by.
const HIDDEN: &str = "\"***\"";

/// The longest number that is written as one: beyond that, readers of JSON disagree.
const DIGITS_MAX: usize = 15;

/// Writes `node` to `text`.
pub(super) fn write(text: &mut String, node: &Node) {
    write_below(text, node, Below::Plain);
}

/// Where a value stands, as far as that says whether it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Below {
    Plain,
    /// Below `request_headers` or `response_headers`, whose values may hold anything.
    Headers,
    Secret,
}

impl Below {
    fn key(self, key: &str) -> Self {
        match self {
            Self::Headers if matches!(key, "set" | "add") => Self::Secret,
            Self::Secret => Self::Secret,
            _ if is_telltale(key) => Self::Secret,
            _ if key.ends_with("_headers") => Self::Headers,
            _ => Self::Plain,
        }
    }
}

fn write_below(text: &mut String, node: &Node, below: Below) {
    match &node.kind {
        Kind::Null | Kind::Broken => text.push_str("null"),
        Kind::Text(_) if below == Below::Secret => text.push_str(HIDDEN),
        Kind::Text(value) if is_bare(value) => text.push_str(value),
        Kind::Text(value) => string(text, value),
        Kind::List(items) => {
            text.push('[');
            for (nth, item) in items.iter().enumerate() {
                text.push_str(if nth > 0 { ", " } else { "" });
                write_below(text, item, below);
            }
            text.push(']');
        }
        Kind::Map(entries) => {
            text.push('{');
            for (nth, entry) in entries.iter().enumerate() {
                text.push_str(if nth > 0 { ", " } else { "" });
                string(text, &entry.key.text);
                text.push_str(": ");
                write_below(text, &entry.value, below.key(&entry.key.text));
            }
            text.push('}');
        }
    }
}

/// Whether a scalar means the same without quotes. All are text until somebody wants a number, so
/// nothing depends on this but how it looks.
fn is_bare(value: &str) -> bool {
    if matches!(value, "true" | "false" | "0") {
        return true;
    }
    let is_number = value.bytes().all(|it| it.is_ascii_digit());
    is_number && !value.starts_with('0') && (1..=DIGITS_MAX).contains(&value.len())
}

fn string(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            character if character.is_control() => {
                // Writing to a string cannot fail; all of these have four digits.
                write!(text, "\\u{:04x}", u32::from(character)).ok();
            }
            character => text.push(character),
        }
    }
    text.push('"');
}

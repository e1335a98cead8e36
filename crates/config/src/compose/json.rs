//! A document as text: JSON, in the order written.

use std::fmt::Write;
use tidegate_policy::redact::{self, MaskScope};
use tidegate_policy::text::{NodeKind, YamlNode};

/// The maximum number of digits of a number in JSON. JSON parsers disagree beyond that.
const DIGITS_MAX: usize = 15;

/// Writes `node` to `text` with its secrets hidden.
pub(super) fn write(text: &mut String, node: &YamlNode) {
    write_below(text, node, MaskScope::Plain);
}

/// Returns all of `node`, including secrets. Only for comparisons: it must never be shown.
pub(super) fn whole(node: &YamlNode) -> String {
    let mut text = String::new();
    write_below(&mut text, node, MaskScope::Open);
    text
}

fn write_below(text: &mut String, node: &YamlNode, below: MaskScope) {
    match &node.kind {
        NodeKind::Null | NodeKind::Broken => text.push_str("null"),
        NodeKind::Text(_) if below == MaskScope::Secret => string(text, redact::HIDDEN),
        NodeKind::Text(value) if is_bare(value) => text.push_str(value),
        NodeKind::Text(value) => {
            match redact::without_user(value).filter(|_| below != MaskScope::Open) {
                Some(without) => string(text, &without),
                None => string(text, value),
            }
        }
        NodeKind::List(items) => {
            text.push('[');
            for (nth, item) in items.iter().enumerate() {
                text.push_str(if nth > 0 { ", " } else { "" });
                write_below(text, item, below);
            }
            text.push(']');
        }
        NodeKind::Map(entries) => {
            text.push('{');
            let lists_secrets = redact::lists_secrets(|field| node.get(field)?.as_text());
            for (nth, entry) in entries.iter().enumerate() {
                text.push_str(if nth > 0 { ", " } else { "" });
                string(text, &entry.key.text);
                text.push_str(": ");
                write_below(
                    text,
                    &entry.value,
                    below.key(&entry.key.text, lists_secrets),
                );
            }
            text.push('}');
        }
    }
}

/// Returns true if a scalar may be written without quotes. All values are text until a number is needed, so
/// this affects only the appearance.
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

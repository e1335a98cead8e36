//! Bodies: wordings with the values in their places, escaped for the content type.

use super::facts::{FactValue, RefusalFacts};
use crate::text::{write_json, write_json_string, write_markup, write_plain};
use tidegate_policy::respond::{Escaping, Placeholder, Wording, WordingPiece};

/// Returns the body of an answer.
pub(super) fn body(facts: &RefusalFacts<'_>) -> Vec<u8> {
    let wording = &facts.refusal.body;
    let escaping = facts.refusal.escaping();
    let mut out = Vec::with_capacity(wording.as_str().len().saturating_add(128));
    for piece in wording.pieces() {
        match piece {
            WordingPiece::Text(text) => out.extend_from_slice(text.as_bytes()),
            WordingPiece::Value(placeholder) => {
                write(&facts.value(*placeholder), escaping, &mut out);
            }
        }
    }
    out
}

/// Returns a template as plain text, without escaping.
pub(super) fn plain(wording: &Wording, facts: &RefusalFacts<'_>) -> String {
    let mut out = Vec::new();
    for piece in wording.pieces() {
        match piece {
            WordingPiece::Text(text) => out.extend_from_slice(text.as_bytes()),
            // A message within itself would have no end.
            WordingPiece::Value(Placeholder::Message | Placeholder::Detail) => {}
            WordingPiece::Value(placeholder) => {
                write(&facts.value(*placeholder), Escaping::Plain, &mut out);
            }
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

/// Writes a value into a body.
fn write(value: &FactValue<'_>, escaping: Escaping, out: &mut Vec<u8>) {
    match value {
        FactValue::Text(text) => write_text(text, escaping, out),
        FactValue::Number(Some(number)) => {
            out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        }
        FactValue::Number(None) if escaping == Escaping::Json => out.extend_from_slice(b"null"),
        FactValue::Number(None) => {}
        FactValue::Names(names) if escaping == Escaping::Json => {
            let mut before = b'[';
            for name in names {
                out.push(before);
                write_json_string(name, out);
                before = b',';
            }
            out.extend_from_slice(if names.is_empty() { b"[]" } else { b"]" });
        }
        FactValue::Names(names) => write_text(&names.join(", "), escaping, out),
    }
}

/// Writes text with the escaping of the body's format.
fn write_text(text: &str, escaping: Escaping, out: &mut Vec<u8>) {
    match escaping {
        Escaping::Json => write_json(text, out),
        Escaping::Markup => write_markup(text, out),
        _ => write_plain(text, out),
    }
}

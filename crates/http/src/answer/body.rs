//! Bodies: wordings with the values in their places, escaped for the content type.

use super::facts::{Facts, Value};
use crate::text::{write_json, write_json_string, write_markup, write_plain};
use tidegate_policy::respond::{Escaping, Piece, Placeholder, Wording};

/// The body of an answer.
pub(super) fn body(facts: &Facts<'_>) -> Vec<u8> {
    let wording = &facts.refusal.body;
    let escaping = facts.refusal.escaping();
    let mut out = Vec::with_capacity(wording.as_str().len().saturating_add(128));
    for piece in wording.pieces() {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            Piece::Value(placeholder) => write(&facts.value(*placeholder), escaping, &mut out),
        }
    }
    out
}

/// A wording as text, not yet escaped for anything.
pub(super) fn plain(wording: &Wording, facts: &Facts<'_>) -> String {
    let mut out = Vec::new();
    for piece in wording.pieces() {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
            // A message within itself would have no end.
            Piece::Value(Placeholder::Message | Placeholder::Detail) => {}
            Piece::Value(placeholder) => {
                write(&facts.value(*placeholder), Escaping::Plain, &mut out);
            }
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

fn write(value: &Value<'_>, escaping: Escaping, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) => write_text(text, escaping, out),
        Value::Number(Some(number)) => {
            out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
        }
        Value::Number(None) if escaping == Escaping::Json => out.extend_from_slice(b"null"),
        Value::Number(None) => {}
        Value::Names(names) if escaping == Escaping::Json => {
            let mut before = b'[';
            for name in names {
                out.push(before);
                write_json_string(name, out);
                before = b',';
            }
            out.extend_from_slice(if names.is_empty() { b"[]" } else { b"]" });
        }
        Value::Names(names) => write_text(&names.join(", "), escaping, out),
    }
}

fn write_text(text: &str, escaping: Escaping, out: &mut Vec<u8>) {
    match escaping {
        Escaping::Json => write_json(text, out),
        Escaping::Markup => write_markup(text, out),
        _ => write_plain(text, out),
    }
}

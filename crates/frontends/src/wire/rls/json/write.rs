//! Conversion from a message, written by Tidegate, to JSON.
//!
//! A malformed message would end at the error; Tidegate writes none.

use super::schema::{FieldType, MessageField, MessageSchema};
use crate::wire::json::write_string;
use crate::wire::protobuf::read::{WireFields, WireValue};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Converts `bytes`, which are a `message`, to JSON.
pub(super) fn message(bytes: &[u8], message: &'static MessageSchema) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().saturating_mul(3));
    object(bytes, message, &mut out);
    out
}

fn object(bytes: &[u8], message: &'static MessageSchema, out: &mut Vec<u8>) {
    out.push(b'{');
    let begin = out.len();
    for field in message.fields {
        let mut values = values(bytes, field.number).peekable();
        if values.peek().is_none() {
            continue;
        }
        if out.len() > begin {
            out.push(b',');
        }
        write_string(field.name, out);
        out.push(b':');
        if field.is_list {
            let mut before = b'[';
            for each in values {
                out.push(before);
                value(each, field, out);
                before = b',';
            }
            out.push(b']');
        } else if let Some(last) = values.last() {
            value(last, field, out);
        }
    }
    out.push(b'}');
}

/// Returns the values of the field `number`.
fn values(bytes: &[u8], number: u32) -> impl Iterator<Item = WireValue<'_>> {
    let mut fields = WireFields::of(bytes);
    let all = std::iter::from_fn(move || fields.next_field().ok().flatten());
    all.filter_map(move |(found, value)| (found == number).then_some(value))
}

fn value(value: WireValue<'_>, field: &MessageField, out: &mut Vec<u8>) {
    let (number, bytes) = match value {
        WireValue::Varint(number) => (number, &[][..]),
        WireValue::Bytes(bytes) => (0, bytes),
        WireValue::Other => (0, &[][..]),
    };
    match field.kind {
        FieldType::Text => write_string(&String::from_utf8_lossy(bytes), out),
        FieldType::Bytes => write_string(&BASE64_STANDARD.encode(bytes), out),
        FieldType::U32 => push_number(number, out),
        // Written as text, because it may exceed the range of a `double`.
        FieldType::WrappedU64 => {
            out.push(b'"');
            push_number(first(bytes), out);
            out.push(b'"');
        }
        FieldType::Bool => out.extend_from_slice(if number == 0 { b"false" } else { b"true" }),
        FieldType::Enum(names) => match names.iter().find(|(known, _)| u64::from(*known) == number)
        {
            Some((_, name)) => write_string(name, out),
            None => push_number(number, out),
        },
        FieldType::Duration => {
            out.push(b'"');
            push_number(first(bytes), out);
            out.extend_from_slice(b"s\"");
        }
        FieldType::Message(message) => object(bytes, message, out),
    }
}

/// Returns the number in the first field of a message.
fn first(bytes: &[u8]) -> u64 {
    let number = values(bytes, 1).last().map(WireValue::varint);
    number.and_then(Result::ok).unwrap_or_default()
}

fn push_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

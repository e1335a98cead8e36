//! Converts JSON to BSON, so that people can read and change it in a shell, and back.
//!
//! The conversion must be lossless: keys in their order, and numbers to the digit. A text that BSON
//! cannot represent exactly is stored as text.

use mongodb::bson::{Bson, Document as Fields};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt::{self, Write};

/// The maximum depth of a document: less than `MongoDB` allows, because it is nested in another.
const DEPTH_MAX: usize = 64;

/// Up to here every whole number is exact as a floating-point number.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Converts a text to a document; `None` if it is not one, or if the conversion would be lossy.
pub(super) fn to_document(text: &str) -> Option<Fields> {
    let OrderedBson(value) = serde_json::from_str(text).ok()?;
    let mut found = Vec::new();
    let is_shallow = numbers_below(&value, 0, &mut found);
    match value {
        Bson::Document(fields) if is_shallow && found == numbers(text) => Some(fields),
        _ => None,
    }
}

/// Converts a document to text.
pub(super) fn to_text(fields: &Fields) -> String {
    let mut text = String::new();
    write_fields(&mut text, fields);
    text
}

/// A value with its keys in order, all of which a shell can name.
struct OrderedBson(Bson);

impl<'de> Deserialize<'de> for OrderedBson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrderedBsonVisitor).map(Self)
    }
}

struct OrderedBsonVisitor;

impl<'de> Visitor<'de> for OrderedBsonVisitor {
    type Value = Bson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what BSON can keep")
    }

    fn visit_unit<E: Error>(self) -> Result<Bson, E> {
        Ok(Bson::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Bson, E> {
        Ok(Bson::Boolean(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Bson, E> {
        // A shell shows 32-bit numbers as plain numbers.
        Ok(i32::try_from(number).map_or(Bson::Int64(number), Bson::Int32))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Bson, E> {
        let number = i64::try_from(number).map_err(|_| E::custom("too large"))?;
        self.visit_i64(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Bson, E> {
        Ok(Bson::Double(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bson, E> {
        Ok(Bson::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Bson, A::Error> {
        let mut list = Vec::new();
        while let Some(OrderedBson(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Bson::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Bson, A::Error> {
        let mut fields = Fields::new();
        while let Some((key, OrderedBson(value))) = entries.next_entry::<String, _>()? {
            let is_plain = !key.is_empty() && !key.starts_with('$') && !key.contains(['.', '\0']);
            if !is_plain || fields.insert(key, value).is_some() {
                return Err(A::Error::custom("a key that cannot be kept"));
            }
        }
        Ok(Bson::Document(fields))
    }
}

/// Adds the numbers of a value in their order. Returns false if the value is too deep.
fn numbers_below(value: &Bson, depth: usize, said: &mut Vec<String>) -> bool {
    match value {
        Bson::Array(items) => {
            depth < DEPTH_MAX && items.iter().all(|it| numbers_below(it, depth + 1, said))
        }
        Bson::Document(fields) => {
            let mut values = fields.values();
            depth < DEPTH_MAX && values.all(|it| numbers_below(it, depth + 1, said))
        }
        value => {
            said.extend(number(value));
            true
        }
    }
}

/// Returns the numbers in a JSON text, as written.
fn numbers(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                while let Some(byte) = bytes.next().filter(|byte| *byte != b'"') {
                    if byte == b'\\' {
                        bytes.next();
                    }
                }
            }
            b'-' | b'0'..=b'9' => {
                let mut number = String::from(char::from(byte));
                let goes_on = |byte: &u8| {
                    matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E') || byte.is_ascii_digit()
                };
                while let Some(byte) = bytes.next_if(goes_on) {
                    number.push(char::from(byte));
                }
                found.push(number);
            }
            _ => {}
        }
    }
    found
}

/// Returns a number in digits. Shells sometimes write whole numbers as floating-point ones.
fn number(value: &Bson) -> Option<String> {
    match value {
        Bson::Int32(number) => Some(number.to_string()),
        Bson::Int64(number) => Some(number.to_string()),
        Bson::Double(number) if number.fract() == 0.0 && number.abs() <= WHOLE_MAX => {
            Some(format!("{number:.0}"))
        }
        Bson::Double(number) if number.is_finite() => Some(number.to_string()),
        _ => None,
    }
}

fn write_fields(text: &mut String, fields: &Fields) {
    text.push('{');
    for (nth, (key, value)) in fields.iter().enumerate() {
        text.push_str(if nth > 0 { ", " } else { "" });
        write_string(text, key);
        text.push_str(": ");
        write_value(text, value);
    }
    text.push('}');
}

fn write_value(text: &mut String, value: &Bson) {
    match value {
        Bson::Null | Bson::Undefined => text.push_str("null"),
        Bson::Boolean(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Bson::String(value) | Bson::Symbol(value) => write_string(text, value),
        Bson::Array(items) => {
            text.push('[');
            for (nth, item) in items.iter().enumerate() {
                text.push_str(if nth > 0 { ", " } else { "" });
                write_value(text, item);
            }
            text.push(']');
        }
        Bson::Document(fields) => write_fields(text, fields),
        Bson::ObjectId(id) => write_string(text, &id.to_hex()),
        value => match number(value) {
            Some(number) => text.push_str(&number),
            // A type that JSON lacks: the parser of the text reports the error.
            None => write_string(text, &value.to_string()),
        },
    }
}

fn write_string(text: &mut String, value: &str) {
    // Writing to a string cannot fail.
    write!(text, "{}", Value::from(value)).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::{doc, oid::ObjectId};
    use proptest::prelude::*;

    #[test]
    fn a_document_keeps_key_order_and_exact_numbers() {
        let text = r#"{"name": "api", "z": 1, "a": [0.5, -3, 9007199254740993, true, null], "m": {"é\n": "1e3"}}"#;
        let fields = to_document(text).unwrap();
        assert_eq!(fields.get("z"), Some(&Bson::Int32(1)));
        assert_eq!(to_text(&fields), text);
    }

    #[test]
    fn documents_that_would_change_are_stored_as_text() {
        for text in [
            "100/min",
            "7",
            "[1]",
            r#"{"a": 1.0}"#,
            r#"{"a": 1e3}"#,
            r#"{"a": 0.50}"#,
            r#"{"a": 18446744073709551615}"#,
            r#"{"a": 12345678901234567890123}"#,
            r#"{"a": 1, "a": 2}"#,
            r#"{"a.b": 1}"#,
            r#"{"a": {"$oid": "507f1f77bcf86cd799439011"}}"#,
            r#"{"": 1}"#,
            r#"{"a\u0000": 1}"#,
            r#"{"a": 1}, {"#,
            &format!(r#"{{"a": {}1{}}}"#, "[".repeat(80), "]".repeat(80)),
        ] {
            assert_eq!(to_document(text), None, "{text}");
        }
    }

    #[test]
    fn extended_json_of_a_shell_is_read_as_plain_values() {
        let id = ObjectId::parse_str("507f1f77bcf86cd799439011").unwrap();
        let fields = doc! { "whole": 5.0, "long": 5_i64, "half": 0.5, "id": id, "not": f64::NAN };
        assert_eq!(
            to_text(&fields),
            r#"{"whole": 5, "long": 5, "half": 0.5, "id": "507f1f77bcf86cd799439011", "not": "NaN"}"#
        );
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from);
            let map = prop::collection::btree_map("[a-z.$\"]{0,4}", inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<Value>());
            prop_oneof![list, map]
        })
    }

    proptest! {
        #[test]
        fn any_text_stored_as_a_document_keeps_its_meaning(value in json()) {
            let text = value.to_string();
            if let Some(fields) = to_document(&text) {
                let back = to_text(&fields);
                prop_assert_eq!(numbers(&back), numbers(&text));
                prop_assert_eq!(serde_json::from_str::<Value>(&back).unwrap(), value);
            }
        }
    }
}

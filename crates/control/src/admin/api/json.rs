//! JSON from callers, with bounded depth and without duplicate members.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The maximum nesting depth.
pub(super) const DEPTH_MAX: usize = 32;

/// Parses one value.
pub(super) fn read(text: &[u8]) -> Result<Value, String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = NestedValue { left: DEPTH_MAX }.deserialize(&mut reader);
    let value = value.map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// A value with this many levels of nesting left.
#[derive(Clone, Copy)]
struct NestedValue {
    left: usize,
}

impl NestedValue {
    fn within<E: Error>(self) -> Result<Self, E> {
        let left = self.left.checked_sub(1);
        let left = left.ok_or_else(|| E::custom(format!("nested deeper than {DEPTH_MAX}")))?;
        Ok(Self { left })
    }
}

impl<'de> DeserializeSeed<'de> for NestedValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NestedValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let within = self.within()?;
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(within)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let within = self.within()?;
        let mut values = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if values.contains_key(&key) {
                let key = tidegate_frontends::wire::fault::quote(&key);
                return Err(Error::custom(format!("{key} is there twice")));
            }
            let value = map.next_value_seed(within)?;
            values.insert(key, value);
        }
        Ok(Value::Object(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_values_are_parsed_unchanged() {
        let text = br#" {"a": [1, -2, 0.5, "x", true, null], "b": {}} "#;
        let expected = json!({ "a": [1, -2, 0.5, "x", true, null], "b": {} });
        assert_eq!(read(text), Ok(expected));
    }

    #[test]
    fn json_with_duplicate_members_or_deep_nesting_is_rejected() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(deep(DEPTH_MAX).as_bytes()).is_ok());
        let refused = read(deep(DEPTH_MAX + 1).as_bytes()).unwrap_err();
        assert!(refused.contains("nested deeper than 32"), "{refused}");
        // Too deep to be read completely.
        assert!(read(deep(100_000).as_bytes()).is_err());
        let refused = read(br#"{"a": {"b": 1, "b": 2}}"#).unwrap_err();
        assert!(refused.contains("`b` is there twice"), "{refused}");
        for bad in [&b""[..], b"{", b"{} {}", b"\xff", b"nul", b"1e999"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}

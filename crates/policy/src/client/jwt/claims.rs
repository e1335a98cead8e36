//! The claims of a token.

use super::token::object;
use crate::client::text::is_identity;
use serde_json::{Map, Value};

/// The claims of a token.
pub(in crate::client) struct Claims(Map<String, Value>);

impl Claims {
    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        object(payload).map(Self)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Returns the claim `name` as text if it is a string, a whole number or a boolean; otherwise `None`.
    pub(in crate::client) fn text(&self, name: &str) -> Option<String> {
        match self.find(name)? {
            Value::String(text) => {
                let text = text.trim_ascii();
                is_identity(text).then(|| text.to_owned())
            }
            Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            _ => None,
        }
    }

    /// Returns the claim with exactly this name. Otherwise dots select nested members, as in `realm.role`.
    fn find(&self, name: &str) -> Option<&Value> {
        if let Some(value) = self.get(name) {
            return Some(value);
        }
        let mut steps = name.split('.');
        let first = self.get(steps.next()?)?;
        steps.try_fold(first, |value, step| value.get(step))
    }
}

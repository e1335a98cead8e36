//! Keys that other systems share with us and may have filled with something else: scripts that look
//! before they write, and errors that name the key.

use std::time::Duration;
use tidegate_redis_client::protocol::{self, Value};
use tidegate_redis_client::{CallEffect, CallError, CallErrorKind, Script};

/// `want`, `increase`, `milliseconds` and `whole`.
const COMMON: &str = include_str!("common.lua");

/// The error code for a key that holds another type.
pub(crate) const WRONG_TYPE: &str = "WRONGTYPE";

/// Longer than this nothing lasts, a thousand years, so that Lua's numbers hold every instant.
const MILLIS_MAX: u64 = 1_000 * 366 * 86_400_000;

/// A script behind the functions that all of them use.
pub(crate) fn script(name: &'static str, body: &str) -> Script {
    Script::new(name, format!("{COMMON}{body}"))
}

/// The error of a command on `key`, which should hold a `kind`. Scripts say it themselves.
pub(crate) fn named(error: CallError, key: &[u8], kind: &str) -> CallError {
    if error.code() != Some(WRONG_TYPE) {
        return error;
    }
    let detail = format!("the key {} does not hold a {kind}", shown(key));
    CallError::new(
        CallEffect::Executed,
        CallErrorKind::Server(WRONG_TYPE.to_owned()),
        detail,
    )
}

/// A key for people.
pub(crate) fn shown(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

/// A length for a script, rounded up: what lasts for a moment does not last for none.
pub(crate) fn millis(length: Duration) -> String {
    let millis = length.as_nanos().div_ceil(1_000_000);
    let millis = u64::try_from(millis).unwrap_or(MILLIS_MAX);
    millis.min(MILLIS_MAX).to_string()
}

/// A reply that is a list of strings.
pub(crate) fn strings(reply: Value) -> Result<Vec<Vec<u8>>, CallError> {
    protocol::from_redis_value(reply).map_err(|error| CallError::malformed(error.to_string()))
}

/// A number in text.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_whole_milliseconds_never_too_short_and_never_too_large() {
        for (length, text) in [
            (Duration::ZERO, "0"),
            (Duration::from_nanos(1), "1"),
            (Duration::from_secs(15), "15000"),
            (Duration::from_micros(1_001), "2"),
            (Duration::MAX, "31622400000000"),
        ] {
            assert_eq!(millis(length), text, "{length:?}");
        }
    }

    #[test]
    fn only_a_wrong_type_error_names_the_key() {
        let wrong = CallError::new(
            CallEffect::Executed,
            CallErrorKind::Server("WRONGTYPE".to_owned()),
            "",
        );
        let named_so = named(wrong, b"a\nb", "set").to_string();
        assert_eq!(
            named_so,
            "Redis answered WRONGTYPE: the key a\\nb does not hold a set"
        );
        let other = CallError::new(CallEffect::Ambiguous, CallErrorKind::Timeout, "");
        assert_eq!(named(other.clone(), b"a", "set"), other);
    }
}

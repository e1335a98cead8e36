//! The id by which a request can be found again, in the client's log and in ours.

use http::{HeaderMap, HeaderValue};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_policy::Respond;

/// Longer ids are not taken from clients.
const LENGTH_MAX: usize = 128;

/// Correlation id of a request: the client's, if it sent a valid one, else a generated one.
///
/// A valid id has 1 to 128 harmless characters, so that it cannot break a log line or a body.
///
/// ```
/// use http::{HeaderMap, HeaderValue};
/// use tidegate_http::answer::Correlation;
/// use tidegate_policy::Respond;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("x-correlation-id", HeaderValue::from_static("abc-123-def"));
/// let respond = Respond::default();
/// assert_eq!(Correlation::of(&headers, &respond).as_str(), "abc-123-def");
///
/// headers.insert("x-correlation-id", HeaderValue::from_static("\"},{\""));
/// assert_eq!(Correlation::of(&headers, &respond).as_str().len(), 32);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Correlation(String);

impl Correlation {
    /// Returns the id of the request with these headers. It is the client's if the header that
    /// `respond` names is there once, with 1 to 128 letters, digits and `._~:/+=@-`.
    pub fn of(headers: &HeaderMap, respond: &Respond) -> Self {
        let mut values = headers.get_all(respond.correlation.as_str()).iter();
        let (Some(only), None) = (values.next(), values.next()) else {
            return Self::made();
        };
        proper(only).map_or_else(Self::made, |id| Self(id.to_owned()))
    }

    /// Returns a new id: 32 hexadecimal digits, never the same twice.
    pub fn made() -> Self {
        static SEEDS: LazyLock<(RandomState, u64)> = LazyLock::new(|| {
            let state = RandomState::new();
            let start = state.hash_one("start");
            (state, start)
        });
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (state, start) = &*SEEDS;
        // Relaxed: the only requirement is that no two requests get the same number.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // The first half differs between processes, and cannot be foreseen; the second differs
        // between the ids of this one, for `scatter` maps no two numbers to one.
        let (first, second) = (state.hash_one(number), scatter(start.wrapping_add(number)));
        Self(format!("{first:016x}{second:016x}"))
    }

    /// Returns the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the id in a header, if it is one that can be repeated anywhere.
fn proper(value: &HeaderValue) -> Option<&str> {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"._~:/+=@-".contains(&byte);
    let text = value.to_str().ok()?;
    let is_proper = (1..=LENGTH_MAX).contains(&text.len()) && text.bytes().all(belongs);
    is_proper.then_some(text)
}

/// Spreads neighbouring numbers over all 64 bits. Each step can be undone (odd factors, shifts of
/// half the width or more), so that no two numbers become one.
fn scatter(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(values: &[&[u8]]) -> Correlation {
        let mut headers = HeaderMap::new();
        for value in values {
            let value = HeaderValue::from_bytes(value).expect("a header value");
            headers.append("x-correlation-id", value);
        }
        Correlation::of(&headers, Respond::standard())
    }

    #[test]
    fn a_valid_correlation_id_is_kept() {
        let long = "x".repeat(LENGTH_MAX);
        for id in ["a", "abc-123-def", "01HX:req/7+8=9@host~._-", &long] {
            assert_eq!(of(&[id.as_bytes()]).as_str(), id);
        }
    }

    #[test]
    fn an_invalid_correlation_id_is_replaced() {
        let long = vec![b'x'; LENGTH_MAX + 1];
        let cases: [&[&[u8]]; 10] = [
            &[],
            &[b""],
            &[b"a b"],
            &[b"a\",\"admin\":true"],
            &[b"<script>"],
            &[b"a\tb"],
            &[b"%0d%0a"],
            &["ä".as_bytes()],
            &[&long],
            &[b"a", b"a"],
        ];
        for values in cases {
            let id = of(values);
            assert_eq!(id.as_str().len(), 32, "{values:?}");
            assert!(id.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn generated_correlation_ids_are_unique() {
        let ids: BTreeSet<String> = (0..10_000).map(|_| Correlation::made().0).collect();
        assert_eq!(ids.len(), 10_000);
        let second_halves: BTreeSet<&str> = ids.iter().map(|id| &id[16..]).collect();
        assert_eq!(second_halves.len(), 10_000);
    }
}

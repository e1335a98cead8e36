//! Query parameters in the format of forms.

use super::text::only;
use crate::patterns::escape::unhex;
use std::borrow::Cow;

/// Returns the value of the parameter `name` in the query of `target`. Returns `None` if it is repeated or
/// has an invalid escape.
pub(super) fn value<'a>(target: &'a str, name: &str) -> Option<Cow<'a, str>> {
    decoded(only(written(target, name))?)
}

/// Returns all its values in the order sent, without those that have invalid escapes.
pub(super) fn values<'a>(target: &'a str, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
    written(target, name).filter_map(decoded)
}

/// Returns all its values, still escaped.
fn written<'a>(target: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let before_fragment = target.split('#').next().unwrap_or_default();
    let (_, query) = before_fragment.split_once('?').unwrap_or_default();
    query.split('&').filter_map(move |pair| {
        let (sent, value) = pair.split_once('=').unwrap_or((pair, ""));
        // A name may be escaped too.
        let is_meant = sent == name || decoded(sent).is_some_and(|sent| sent == name);
        is_meant.then_some(value)
    })
}

/// Decodes escapes in `text`; `+` is a space. Returns `None` for an invalid escape, or if the result is not
/// UTF-8.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => unhex(bytes.next()?)? << 4 | unhex(bytes.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn a_parameter_is_found_by_name() {
        for (target, found) in [
            ("/?plan=gold", "gold"),
            ("/a?b=1&plan=gold&c=2", "gold"),
            ("?plan=gold", "gold"),
            ("/?plan=gold#top", "gold"),
            ("/?pl%61n=gold", "gold"),
            ("/?plan=g%6Fld", "gold"),
            ("/?plan=a+b%20c", "a b c"),
            ("/?plan=a=b", "a=b"),
            ("/?plan=j%C3%B6rg", "jörg"),
            ("/?plan=a?b", "a?b"),
            ("/?plan", ""),
        ] {
            assert_eq!(value(target, "plan").as_deref(), Some(found), "{target}");
        }
    }

    #[test]
    fn ambiguous_parameters_are_absent() {
        for target in [
            "",
            "/plan=gold",
            "/?Plan=gold",
            "/?plan=gold&plan=gold",
            "/?plan=gold&pl%61n=free",
            "/?plan=%",
            "/?plan=%4",
            "/?plan=%zz",
            "/?plan=%ff",
            "/#?plan=gold",
        ] {
            assert_eq!(value(target, "plan"), None, "{target}");
        }
    }
}

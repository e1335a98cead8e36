//! Segments of a path.

use crate::patterns::normalise;
use std::borrow::Cow;

/// Returns segment `nth` of the path in `target`, counted from 1. The path is normalised first, so the way it
/// is written does not change the result.
pub(super) fn value(target: &str, nth: usize) -> Option<Cow<'_, str>> {
    let target = target.split(['?', '#']).next().unwrap_or_default();
    let mut buffer = String::new();
    let path = normalise(target, &mut buffer)?;
    // The text before the first slash is empty.
    if std::ptr::eq(path, target) {
        return target.split('/').nth(nth).map(Cow::Borrowed);
    }
    let segment = path.split('/').nth(nth)?;
    Some(Cow::Owned(segment.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::value;
    use std::borrow::Cow;

    #[test]
    fn segments_are_counted_from_one() {
        let path = "/projects/apollo/events";
        for (nth, segment) in [
            (1, Some("projects")),
            (2, Some("apollo")),
            (3, Some("events")),
            (4, None),
        ] {
            assert_eq!(value(path, nth).as_deref(), segment);
        }
        assert_eq!(value("/", 1).as_deref(), Some(""));
        assert_eq!(value("", 1), None);
    }

    #[test]
    fn no_path_notation_shifts_a_segment() {
        for target in [
            "//projects//apollo/",
            "/./projects/x/../apollo",
            "/%70rojects/a%70ollo?x=/y/z",
            "http://example.com/projects/apollo",
            "/projects/%2e/apollo#f",
        ] {
            assert_eq!(value(target, 2).as_deref(), Some("apollo"), "{target}");
        }
        assert_eq!(value("/a/b%2fc", 2).as_deref(), Some("b%2Fc"));
    }

    #[test]
    fn a_plain_path_is_not_copied() {
        let found = value("/projects/apollo?page=2", 2);
        assert!(matches!(found, Some(Cow::Borrowed("apollo"))));
    }
}

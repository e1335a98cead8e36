//! What policies and limits are called: names of ours are plainer than those of others.

use std::collections::BTreeSet;

/// Names are at most this long, as the language has it.
const NAME_MAX: usize = 64;

/// Names that are taken. One that is asked for twice gets a number.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    /// Names of which these are not to be had.
    pub(super) fn without(reserved: &[&str]) -> Self {
        Self {
            taken: reserved.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// The name for `text`: as it is, if it can be; else as near as may be.
    pub(super) fn take(&mut self, text: &str) -> String {
        let plain = slug(text);
        let mut name = plain.clone();
        let mut number: usize = 2;
        while self.taken.contains(&name) {
            let suffix = format!("-{number}");
            let room = NAME_MAX.saturating_sub(suffix.len());
            let stem = plain.get(..room).unwrap_or(&plain);
            name = format!("{}{suffix}", stem.trim_end_matches(['-', '.', '_']));
            number = number.saturating_add(1);
        }
        self.taken.insert(name.clone());
        name
    }
}

/// A name for these keys and values, such as `message_type-marketing.to_number`, before it is made to
/// fit. A value that is all pattern is any.
pub(super) fn made_up<'a>(entries: impl Iterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let parts = entries.map(|(key, value)| {
        let is_any = |value: &str| value.chars().all(|c| c == '*');
        match value {
            None => letters(key),
            Some(value) if is_any(value) => format!("{}-any", letters(key)),
            Some(value) => format!("{}-{}", letters(key), letters(value)),
        }
    });
    parts.collect::<Vec<_>>().join(".")
}

/// `text` as a name.
fn slug(text: &str) -> String {
    let letters = letters(text);
    let cut = match letters.get(..NAME_MAX) {
        Some(cut) if cut.len() < letters.len() => cut.trim_end_matches(ENDS),
        _ => &letters,
    };
    if cut.is_empty() {
        return "limit".to_owned();
    }
    cut.to_owned()
}

/// What a name neither begins with nor, unless it is given so, ends with.
const ENDS: [char; 3] = ['-', '.', '_'];

/// `text` in the letters of a name: what does not belong becomes a dash, and dashes do not pile up.
fn letters(text: &str) -> String {
    let mut letters = String::new();
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || ENDS.contains(&letter) {
            letters.push(letter);
        } else if !letters.ends_with(['-', '.']) {
            letters.push('-');
        }
    }
    let starts = letters.trim_start_matches(ENDS);
    if text.ends_with(ENDS) {
        starts.to_owned()
    } else {
        starts.trim_end_matches(ENDS).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, made_up};
    use crate::config::parse_name;

    #[test]
    fn a_name_that_can_be_stays_as_it_is() {
        let mut names = Names::default();
        for name in ["bkthomps", "per_client.v2", "A-1", "0", "trailing-"] {
            assert_eq!(names.take(name), name);
        }
    }

    #[test]
    fn what_does_not_belong_becomes_a_dash() {
        for (text, name) in [
            ("default/eg/http", "default-eg-http"),
            ("files/*", "files"),
            ("/api/v1*end", "api-v1-end"),
            ("a  b", "a-b"),
            (":path", "path"),
            ("_x", "x"),
            ("日本", "limit"),
            ("", "limit"),
            ("--", "limit"),
        ] {
            assert_eq!(Names::default().take(text), name, "{text}");
        }
    }

    #[test]
    fn a_path_is_a_name_that_can_be_read() {
        for (path, name) in [
            (vec![("kind", Some("sms")), ("to", None)], "kind-sms.to"),
            (
                vec![("route", Some("api/*")), ("method", None)],
                "route-api.method",
            ),
            (vec![("path", Some("*"))], "path-any"),
            (vec![("path", Some("*.png"))], "path-png"),
        ] {
            assert_eq!(made_up(path.into_iter()), name);
        }
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let mut names = Names::without(&["override"]);
        assert_eq!(names.take("a"), "a");
        assert_eq!(names.take("a"), "a-2");
        assert_eq!(names.take("a"), "a-3");
        assert_eq!(names.take("override"), "override-2");
        let long = "x".repeat(100);
        for _ in 0..12 {
            let name = names.take(&long);
            assert!(parse_name(&name).is_ok(), "{name}");
        }
    }
}

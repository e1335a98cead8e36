//! Differences between JSON and YAML.
//!
//! JSON is parsed as YAML, of which it is a subset. YAML does not distinguish `10` from `"10"`, allows
//! a comma before a closing bracket, and has no surrogate pairs. So the text is scanned for these
//! first.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// The results of a scan.
#[derive(Debug, Default)]
pub(super) struct JsonScan {
    /// The lines with a trailing comma.
    pub(super) loose_commas: Vec<usize>,
    /// The line and column of each quoted text.
    quoted: BTreeSet<(usize, usize)>,
}

/// Returns true if a text looks like JSON.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with(['{', '['])
}

/// Scans a text. The result is empty if it is not JSON.
pub(super) fn scan(text: &str) -> JsonScan {
    let mut scan = JsonScan::default();
    if !is_json(text) {
        return scan;
    }
    let (mut line, mut column) = (1_usize, 0_usize);
    let (mut in_text, mut is_escaped) = (false, false);
    let mut comma = None;
    let mut before = '\0';
    for letter in text.chars() {
        column = column.saturating_add(1);
        if letter == '\n' || before == '\r' {
            // `\r\n` is a single line break.
            line = line.saturating_add(1);
            column = usize::from(letter != '\n');
        }
        before = letter;
        if in_text {
            in_text = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
            continue;
        }
        match letter {
            ' ' | '\t' | '\r' | '\n' => {}
            ']' | '}' => {
                scan.loose_commas.extend(comma.take());
            }
            _ => comma = (letter == ',').then_some(line),
        }
        if letter == '"' {
            in_text = true;
            scan.quoted.insert((line, column));
        }
    }
    scan
}

impl JsonScan {
    /// Returns true if the value at this line and column is a quoted text.
    pub(super) fn is_quoted(&self, line: usize, column: usize) -> bool {
        self.quoted.contains(&(line, column))
    }
}

/// Replaces surrogate pairs by characters.
pub(super) fn without_surrogates(text: &str) -> Cow<'_, str> {
    if !is_json(text) || !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, after) = rest.split_at(at);
        whole.push_str(before);
        let Some(pair) = surrogates(after) else {
            // Skip the escaped character too, so that `\\u` is not read as an escape.
            let taken = after.char_indices().nth(2).map_or(after.len(), |it| it.0);
            let (taken, after) = after.split_at(taken);
            whole.push_str(taken);
            rest = after;
            continue;
        };
        whole.push(pair);
        rest = after.get(12..).unwrap_or_default();
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// Returns the first character of a text, if it is a surrogate pair.
fn surrogates(text: &str) -> Option<char> {
    let unit = |at: usize| {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let pair = [unit(0)?, unit(6)?];
    let mut found = char::decode_utf16(pair);
    let first = found.next()?.ok()?;
    (first.len_utf16() == 2).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::{scan, without_surrogates};

    #[test]
    fn trailing_commas_are_found_outside_of_strings() {
        let text = "{\n  \"a\": [1, 2,\n ],\r\n \"b\": \",]\", \"c\": \"\\\",}\",\n}";
        assert_eq!(scan(text).loose_commas, [2, 4]);
        assert!(scan("[1, 2]").loose_commas.is_empty());
        // Not JSON: YAML allows the comma.
        assert!(scan("a: [1, 2,]").loose_commas.is_empty());
    }

    #[test]
    fn quoted_texts_are_found_by_position() {
        let scan = scan("{\"a\": \"10\",\r\n \"b\": 10}");
        assert!(scan.is_quoted(1, 7));
        assert!(scan.is_quoted(2, 2));
        assert!(!scan.is_quoted(2, 7));
    }

    #[test]
    fn pairs_of_surrogates_are_characters() {
        for (text, read) in [
            ("{\"a\": \"\\ud83d\\ude00!\"}", "{\"a\": \"😀!\"}"),
            ("{\"a\": \"\\u00e9\"}", "{\"a\": \"\\u00e9\"}"),
            (
                "{\"a\": \"\\\\ud83d\\ude00\"}",
                "{\"a\": \"\\\\ud83d\\ude00\"}",
            ),
            ("{\"a\": \"\\ud83d\"}", "{\"a\": \"\\ud83d\"}"),
            ("{\"a\": \"\\", "{\"a\": \"\\"),
            ("a: \\ud83d\\ude00", "a: \\ud83d\\ude00"),
        ] {
            assert_eq!(without_surrogates(text), read);
        }
    }
}

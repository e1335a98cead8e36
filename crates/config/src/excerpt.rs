//! The line that a problem points at, made safe to show: without secrets and without characters that
//! move a terminal's cursor. Long lines are cut.

use super::syntax::TextSpan;
use std::ops::Range;
use tidegate_policy::redact::{HIDDEN, TELLTALE};

/// A line and its underline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) line: String,
    pub(crate) underline: String,
}

/// The maximum number of characters shown of a line.
const WIDTH_MAX: usize = 120;

/// The last column that is shown. No person reads a longer line.
const COLUMN_MAX: usize = 10_000;

/// The number of characters after the shown column that are searched for secrets.
const SEARCHED_MAX: usize = 16 << 10;

/// The suffix of the keys that set headers.
const HEADERS: &str = "_headers";

/// The keys of header changes whose values may be secret.
const HEADERS_SET: [&str; 2] = ["set", "add"];

/// Returns the line of `text` at `place`; `None` if there is none to show.
pub(crate) fn excerpt(text: &str, place: TextSpan) -> Option<Excerpt> {
    let TextSpan::File {
        line,
        column,
        width,
        ..
    } = place
    else {
        return None;
    };
    let index = line.checked_sub(1)?;
    let from = column.checked_sub(1).filter(|from| *from < COLUMN_MAX)?;
    let written = text.lines().nth(index)?.trim_end();
    // A password is recognized by the `@` after it, which may be beyond the part that is shown.
    let written = beginning(written, from.saturating_add(SEARCHED_MAX));
    let around = around(text, index);
    let mut hidden = hidden_in(written, around == ExcerptScope::Headers);
    if around == ExcerptScope::Secret {
        hidden.insert(0, 0..written.len());
    }
    let shown = window(hide(written, &hidden), from);
    Some(Excerpt {
        underline: underline(&shown, from..from.saturating_add(width)),
        line: shown.into_iter().map(|(c, _)| c).collect(),
    })
}

/// A character to show, and the column, from 0, of the text that it replaces.
type ShownChar = (char, usize);

/// Returns the first `most` characters.
fn beginning(line: &str, most: usize) -> &str {
    let end = line.char_indices().nth(most).map(|(byte, _)| byte);
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}

/// Returns the part of a long line around a column.
fn window(shown: Vec<ShownChar>, column: usize) -> Vec<ShownChar> {
    if shown.len() <= WIDTH_MAX {
        return shown;
    }
    let before = shown.iter().take_while(|(_, at)| *at < column).count();
    let skipped = before.saturating_sub(WIDTH_MAX / 2);
    let end = shown.len() > skipped.saturating_add(WIDTH_MAX);
    let ellipsis = |is_cut: bool, at: usize| is_cut.then_some(('…', at));
    let kept = shown.into_iter().skip(skipped).take(WIDTH_MAX);
    ellipsis(skipped > 0, 0)
        .into_iter()
        .chain(kept)
        .chain(ellipsis(end, usize::MAX))
        .collect()
}

/// Returns carets below the shown part of `columns`; at least one.
fn underline(shown: &[ShownChar], columns: Range<usize>) -> String {
    let before = shown.iter().take_while(|(_, at)| *at < columns.start);
    let indent: String = before
        .map(|(c, _)| if *c == '\t' { '\t' } else { ' ' })
        .collect();
    let below = shown.iter().filter(|(_, at)| columns.contains(at));
    let below: String = below.map(|(c, _)| *c).collect();
    let carets = below.trim_end().chars().count().max(1);
    format!("{indent}{}", "^".repeat(carets))
}

/// Replaces the `hidden` ranges of the line, and the characters that move a cursor.
fn hide(line: &str, hidden: &[Range<usize>]) -> Vec<ShownChar> {
    let mut shown = Vec::new();
    for (column, (byte, character)) in line.char_indices().enumerate() {
        match hidden.iter().find(|range| range.contains(&byte)) {
            Some(range) if range.start == byte => shown.extend(HIDDEN.chars().map(|c| (c, column))),
            Some(_) => {}
            None if character.is_control() && character != '\t' => shown.push(('\u{fffd}', column)),
            None => shown.push((character, column)),
        }
    }
    shown
}

/// Returns the ranges of bytes in a line that must not be shown.
fn hidden_in(line: &str, is_below_headers: bool) -> Vec<Range<usize>> {
    let secret = secret_value(line, is_below_headers).filter(|range| !range.is_empty());
    passwords(line).into_iter().chain(secret).collect()
}

/// Returns the range of the value of a secret key in `line`. It extends to the end of the line, because
/// the end of a secret cannot be determined. Below `request_headers`, the values of headers are secret
/// as well.
fn secret_value(line: &str, is_below_headers: bool) -> Option<Range<usize>> {
    let lower = line.to_ascii_lowercase();
    // In most sections, `cookie` is the name of a cookie, which is no secret.
    let words = TELLTALE.iter().filter(|word| **word != "cookie");
    let words = words.flat_map(|word| lower.match_indices(word));
    let headers = if is_below_headers {
        Some(0)
    } else {
        lower.find(HEADERS)
    };
    let set = HEADERS_SET
        .iter()
        .flat_map(|word| lower.match_indices(word));
    let set = set.filter(|(at, _)| {
        let before = lower.get(..*at).and_then(|it| it.chars().next_back());
        let is_key = !before.is_some_and(|it| it.is_ascii_alphanumeric() || "-_".contains(it));
        is_key && headers.is_some_and(|headers| headers <= *at)
    });
    let starts = words.chain(set).filter_map(|(word, _)| {
        let after = value_after(lower.get(word..)?)?;
        lower.len().checked_sub(after.len())
    });
    Some(starts.min()?..line.len())
}

/// Returns the text after the colon, if `text` begins within a key that does not name a file.
fn value_after(text: &str) -> Option<&str> {
    let (key, value) = text.split_once(':')?;
    let key = key.trim_end_matches([' ', '"', '\'']);
    let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    // `token_file: /run/secrets/x` names the file of the secret, which is not secret itself.
    let is_secret = key.chars().all(belongs) && !key.ends_with("file");
    is_secret.then(|| value.trim_start_matches([' ', '\t']))
}

/// The enclosing section of a line, if it begins on a line above.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExcerptScope {
    Nothing,
    /// `request_headers:` or `response_headers:`.
    Headers,
    /// A secret, such as `token: |`.
    Secret,
}

/// Returns the enclosing section of the line.
fn around(text: &str, index: usize) -> ExcerptScope {
    let mut secret_indent = None;
    let mut headers_indent = None;
    let mut around = ExcerptScope::Nothing;
    for line in text.lines().take(index.saturating_add(1)) {
        let indent = line.len().saturating_sub(line.trim_start().len());
        let is_in = |outer: Option<usize>| {
            outer.is_some_and(|outer| indent > outer || line.trim().is_empty())
        };
        if is_in(secret_indent) {
            around = ExcerptScope::Secret;
            continue;
        }
        let is_below_headers = is_in(headers_indent);
        around = if is_below_headers {
            ExcerptScope::Headers
        } else {
            headers_indent = is_headers(line).then_some(indent);
            ExcerptScope::Nothing
        };
        let goes_on = |range: &Range<usize>| {
            let value = line.get(range.clone()).unwrap_or_default();
            value.is_empty() || value.starts_with(['|', '>', '"', '\'', '{', '['])
        };
        let secret = secret_value(line, is_below_headers).filter(goes_on);
        secret_indent = secret.map(|_| indent);
    }
    around
}

/// Returns true if a line begins the headers of a route.
fn is_headers(line: &str) -> bool {
    let key = line.split(':').next().unwrap_or_default();
    let key = key.trim_end_matches([' ', '"', '\'']);
    key.to_ascii_lowercase().ends_with(HEADERS)
}

/// Removes the password from every `scheme://user:password@host` in a text.
pub(crate) fn hide_passwords(text: &str) -> String {
    let shown = hide(text, &passwords(text));
    shown.into_iter().map(|(c, _)| c).collect()
}

/// Returns the ranges of bytes that may be a password in a URL. Without a user, everything before the
/// `@` counts as one.
///
/// This errs on the safe side. A password that should have been escaped may contain anything, `@`,
/// commas and blanks included: it ends at the last `@` before the next URL. A port that is not a number
/// may be a password whose host was forgotten.
fn passwords(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let marks: Vec<usize> = text.match_indices("://").map(|(at, _)| at).collect();
    let first = marks.first().copied().unwrap_or(text.len());
    found.extend(without_scheme(text.get(..first).unwrap_or_default()));
    for (i, mark) in marks.iter().enumerate() {
        let start = mark.saturating_add("://".len());
        let end = marks.get(i.saturating_add(1)).copied();
        let rest = text.get(start..end.unwrap_or(text.len()));
        let hidden = in_authority(rest.unwrap_or_default());
        found.extend(hidden.map(|range| shift(&range, start)));
    }
    found
}

fn shift(range: &Range<usize>, by: usize) -> Range<usize> {
    range.start.saturating_add(by)..range.end.saturating_add(by)
}

/// Returns the range that may be a password in the text after `://`.
fn in_authority(rest: &str) -> Option<Range<usize>> {
    if let Some((who, _)) = rest.rsplit_once('@') {
        let start = who.find(':').map_or(0, |colon| colon.saturating_add(1));
        return Some(start..who.len());
    }
    let colon = if rest.starts_with('[') {
        rest.find(']')?.saturating_add(1)
    } else {
        rest.find([':', '/', ',', ' ', '"', '\''])?
    };
    let port = rest.get(colon..)?.strip_prefix(':')?;
    let after = port.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_port = after.len() < port.len() && !after.starts_with(char::is_alphanumeric);
    let end = rest.trim_end_matches(['"', '\'', ' ', '}', ']']).len();
    let start = colon.saturating_add(1);
    (!is_port && start < end).then_some(start..end)
}

/// Returns the ranges that may be passwords in a text without a scheme, such as `ann:hunter2@db` in a
/// list.
fn without_scheme(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    for word in text.split_inclusive([' ', '"', '\'', '[', '{']) {
        if word.contains('@') {
            found.extend(in_authority(word).map(|range| shift(&range, from)));
        }
        from = from.saturating_add(word.len());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{excerpt, hide_passwords};
    use crate::syntax::TextSpan;

    fn line(text: &str, line: usize) -> String {
        let place = TextSpan::at(line, 1, 1);
        excerpt(text, place).unwrap().line
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(line("  key_secret: hunter2", 1), "  key_secret: ***");
        assert_eq!(
            line("{\"token\": \"hunter2\", \"x\": 1}", 1),
            "{\"token\": ***"
        );
        assert_eq!(line("  Key_Secert: hunter2", 1), "  Key_Secert: ***");
        assert_eq!(line("  token: |\n    hunter2\n    hunter3", 3), "***");
        assert_eq!(
            line("  token: |\n    hunter2\n  address: x", 3),
            "  address: x"
        );
        assert_eq!(
            line("  webhook: https://example.com/hunter2", 1),
            "  webhook: ***"
        );
        let innocent = "{ algorithm: token-bucket, key: ip }";
        assert_eq!(line(innocent, 1), innocent);
        assert_eq!(
            line("  token_file: /run/token", 1),
            "  token_file: /run/token"
        );
    }

    #[test]
    fn headers_set_by_a_route_were_shown() {
        let text = "  request_headers:\n    remove: [X-A]\n    set:\n      X-B: hunter2\n  id: x";
        assert_eq!(line(text, 2), "    remove: [X-A]");
        assert_eq!(line(text, 3), "    set:");
        assert_eq!(line(text, 4), "***");
        assert_eq!(line(text, 5), "  id: x");
        let text = "- request_headers:\n    set: { X-B: hunter2 }\n  id: x";
        assert_eq!(line(text, 2), "    set: ***");
        assert_eq!(line(text, 3), "  id: x");
        let text = r#"{"name": "x","request_headers":{"set":{"X-B":"hunter2"}}}"#;
        assert_eq!(
            line(text, 1),
            r#"{"name": "x","request_headers":{"set":***"#
        );
        let text = "redis: { set: Banned }";
        assert_eq!(line(text, 1), text);
    }

    #[test]
    fn an_excerpt_of_a_long_line_shows_the_faulty_part() {
        let text = format!("{}HERE{}", "a".repeat(200), "b".repeat(200));
        let place = TextSpan::at(1, 201, 4);
        let shown = excerpt(&text, place).unwrap();
        let line = format!("…{}HERE{}…", "a".repeat(60), "b".repeat(56));
        assert_eq!(shown.line, line);
        assert_eq!(shown.underline, format!("{}^^^^", " ".repeat(61)));
    }

    #[test]
    fn passwords_in_urls_are_not_shown() {
        for (text, shown) in [
            (
                "url: redis://ann:hunter2@a:6379/0",
                "url: redis://ann:***@a:6379/0",
            ),
            (
                "redis://:pw@a,redis://:pw@b",
                "redis://:***@a,redis://:***@b",
            ),
            ("redis://pw@a", "redis://***@a"),
            ("redis://a:p@ss@host", "redis://a:***@host"),
            ("redis://a:6379", "redis://a:6379"),
            ("redis://a:%40%2F@host", "redis://a:***@host"),
            // Passwords that should have been escaped.
            ("redis://a:p/w,x y\"z#@host/0", "redis://a:***@host/0"),
            ("redis://a:pw,redis://:pw@b", "redis://a:***://:***@b"),
            // URLs without a host.
            ("url: redis://:pw", "url: redis://:***"),
            (
                "{ url: \"redis://ann:pw\" }",
                "{ url: \"redis://ann:***\" }",
            ),
            // Lists.
            ("redis://u:p1@a,u:p2@b", "redis://u:***@b"),
            (
                "redis+sentinel://u:pw@s1:26379,s2:26379/mymaster/0",
                "redis+sentinel://u:***@s1:26379,s2:26379/mymaster/0",
            ),
            ("rediss://u:pw@[::1]:6379", "rediss://u:***@[::1]:6379"),
            ("redis://[::1]:6379,b", "redis://[::1]:6379,b"),
            ("  - u:pw@b", "  - u:***@b"),
            ("url: [redis://a, u:pw@b]", "url: [redis://a, u:***@b]"),
            ("url: [:pw@b]", "url: [:***@b]"),
        ] {
            assert_eq!(hide_passwords(text), shown);
        }
    }
}

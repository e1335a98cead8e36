//! Conditions and variables, as far as they only compare entries of the first descriptor.

/// A token of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ExpressionToken {
    /// A name, which may contain dots.
    Name(String),
    /// Quoted text.
    Text(String),
    /// A whole number.
    Number(String),
    /// `==`, `&&`, `[`, `]`, `.`.
    Mark(&'static str),
}

/// Returns the entries that a condition requires, each with its value; `None` if Tidegate cannot
/// express it.
pub(super) fn condition(text: &str) -> Option<Vec<(String, String)>> {
    let tokens = tokens(text)?;
    let parts = tokens.split(|token| *token == ExpressionToken::Mark("&&"));
    parts.map(comparison).collect()
}

/// Returns the entry that a variable refers to; `None` if it is anything else.
pub(super) fn variable(text: &str) -> Option<String> {
    entry(&tokens(text)?)
}

/// Reads `ENTRY == 'text'`, in either order.
fn comparison(tokens: &[ExpressionToken]) -> Option<(String, String)> {
    let at = tokens
        .iter()
        .position(|token| *token == ExpressionToken::Mark("=="))?;
    let (left, right) = (tokens.get(..at)?, tokens.get(at.checked_add(1)?..)?);
    match (left, right) {
        (entry_tokens, [ExpressionToken::Text(text)])
        | ([ExpressionToken::Text(text)], entry_tokens) => {
            Some((entry(entry_tokens)?, text.clone()))
        }
        _ => None,
    }
}

/// Reads `descriptors[0].NAME`, `descriptors[0]['NAME']`, or the old form, `NAME` alone.
fn entry(tokens: &[ExpressionToken]) -> Option<String> {
    match tokens {
        [ExpressionToken::Name(name)] => {
            // These words are not entries.
            let root = name.split('.').next().unwrap_or_default();
            let is_known = matches!(
                root,
                "descriptors" | "limit" | "true" | "false" | "null" | "in"
            );
            (!is_known).then(|| name.clone())
        }
        [
            ExpressionToken::Name(list),
            ExpressionToken::Mark("["),
            ExpressionToken::Number(number),
            ExpressionToken::Mark("]"),
            rest @ ..,
        ] if list == "descriptors" && number == "0" => {
            match rest {
                // Further dots would select a part of the text.
                [ExpressionToken::Mark("."), ExpressionToken::Name(name)] => {
                    (!name.contains('.')).then(|| name.clone())
                }
                [
                    ExpressionToken::Mark("["),
                    ExpressionToken::Text(name),
                    ExpressionToken::Mark("]"),
                ] => Some(name.clone()),
                _ => None,
            }
        }
        _ => None,
    }
    .filter(|name| !name.is_empty())
}

/// Splits an expression into tokens; `None` if it contains anything else.
fn tokens(text: &str) -> Option<Vec<ExpressionToken>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '\'' | '"' => quoted(rest, first)?,
            '0'..='9' => {
                let (digits, after) = split(rest, |c| c.is_ascii_digit());
                (ExpressionToken::Number(digits.to_owned()), after)
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let (name, after) = split(rest, |c| {
                    c.is_ascii_alphanumeric() || matches!(c, '_' | '.')
                });
                (ExpressionToken::Name(name.to_owned()), after)
            }
            _ => mark(rest)?,
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Some(tokens)
}

fn mark(text: &str) -> Option<(ExpressionToken, &str)> {
    let marks = ["==", "&&", "[", "]", "."];
    let found = marks
        .into_iter()
        .find_map(|mark| Some((mark, text.strip_prefix(mark)?)));
    found.map(|(mark, rest)| (ExpressionToken::Mark(mark), rest))
}

/// Reads quoted text; `None` if it contains escapes, which are not supported.
fn quoted(text: &str, quote: char) -> Option<(ExpressionToken, &str)> {
    let inner = text.strip_prefix(quote)?;
    let (inside, after) = inner.split_once(quote)?;
    // Three quotes begin a longer text.
    let is_plain = !inside.contains('\\') && !after.starts_with(quote);
    is_plain.then(|| (ExpressionToken::Text(inside.to_owned()), after))
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c: char| !belongs(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::{condition, variable};

    #[test]
    fn comparisons_of_entries_are_understood() {
        for text in [
            "descriptors[0].method == 'POST'",
            "descriptors[0]['method'] == \"POST\"",
            "'POST' == descriptors[0]['method']",
            " descriptors [ 0 ] . method=='POST' ",
            "method == 'POST'",
        ] {
            let expected = vec![("method".to_owned(), "POST".to_owned())];
            assert_eq!(condition(text), Some(expected), "{text}");
        }
        let both = condition("descriptors[0].a == 'x && y' && req.path == '/'").unwrap();
        assert_eq!(both[0], ("a".to_owned(), "x && y".to_owned()));
        assert_eq!(both[1], ("req.path".to_owned(), "/".to_owned()));
    }

    #[test]
    fn inexpressible_conditions_are_not_guessed() {
        for text in [
            "",
            "true",
            "descriptors[0].a != 'x'",
            "descriptors[1].a == 'x'",
            "descriptors[0].a.b == 'x'",
            "descriptors[0].a.startsWith('x') == 'y'",
            "descriptors[0].a == 'x' || descriptors[0].b == 'y'",
            "descriptors[0].a == descriptors[0].b",
            "'x' == 'x'",
            "descriptors[0].a == 'x' &&",
            "descriptors[0].a == 'it\\'s'",
            "descriptors[0].a == '''x'''",
            "descriptors[0].a == r'x'",
            "descriptors[0].a == 1",
            "descriptors[0].a in ['x']",
            "limit.name == 'x'",
            "descriptors[0]['a' == 'x'",
            "foo == bar",
            "a == 'x' == 'y'",
            "!(a == 'x')",
            "descriptors[0] == 'x'",
            "descriptors[0][''] == 'x'",
        ] {
            assert_eq!(condition(text), None, "{text}");
        }
    }

    #[test]
    fn a_variable_is_a_single_entry() {
        assert_eq!(variable("descriptors[0].user").as_deref(), Some("user"));
        assert_eq!(variable("descriptors[0]['a b']").as_deref(), Some("a b"));
        assert_eq!(variable("user_id").as_deref(), Some("user_id"));
        for text in [
            "'x'",
            "descriptors[0]",
            "size(user)",
            "a + b",
            "a == 'x'",
            "descriptors",
        ] {
            assert_eq!(variable(text), None, "{text}");
        }
    }
}

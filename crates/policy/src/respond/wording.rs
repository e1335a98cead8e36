//! Text with placeholders: `{name}` stands for a value; every other brace is literal.

/// Text with placeholders.
///
/// `{name}` is a placeholder if the name consists of lower-case letters and `_`. Every other brace is
/// literal, so JSON needs no escapes.
///
/// ```
/// use tidegate_policy::respond::{WordingPiece, Placeholder, Wording};
///
/// let wording = Wording::parse(r#"{"error":"{title}"}"#).expect("a placeholder that exists");
/// let [WordingPiece::Text(before), WordingPiece::Value(Placeholder::Title), WordingPiece::Text(after)] = wording.pieces()
/// else {
///     panic!("text, a value, and text")
/// };
/// assert_eq!((before.as_str(), after.as_str()), (r#"{"error":""#, r#""}"#));
/// assert_eq!(Wording::parse("{titel}"), Err("titel"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wording {
    text: String,
    pieces: Vec<WordingPiece>,
}

/// A piece of a wording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordingPiece {
    /// Literal text.
    Text(String),
    /// A placeholder for a value.
    Value(Placeholder),
}

/// The value that a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placeholder {
    /// The URI of the problem's type.
    Type,
    /// The phrase of the status.
    Title,
    /// The status.
    Status,
    /// The message of the refusal, else a sentence with the seconds to wait.
    Detail,
    /// The message of the refusal, else a phrase.
    Message,
    /// The policy.
    Policy,
    /// The limit that is reported.
    Limit,
    /// Its band.
    Band,
    /// The unit that the limit counts, such as `requests`.
    Unit,
    /// The capacity of the bucket.
    Capacity,
    /// The amount that is left.
    Remaining,
    /// Seconds to wait, rounded up; absent where waiting does not help.
    RetryAfter,
    /// Milliseconds to wait; absent where waiting does not help.
    RetryAfterMs,
    /// Seconds until the bucket is full again, rounded up.
    Reset,
    /// The time at which it is full, in seconds since the Unix epoch, rounded up.
    ResetEpoch,
    /// The same time, such as `2023-11-14T22:13:20Z`.
    ResetRfc3339,
    /// The present time in the same format.
    NowRfc3339,
    /// The correlation id.
    CorrelationId,
    /// The exceeded limits, by the names in header fields.
    ViolatedPolicies,
}

impl Placeholder {
    /// Every placeholder with its name.
    pub const ALL: [(&'static str, Self); 19] = [
        ("type", Self::Type),
        ("title", Self::Title),
        ("status", Self::Status),
        ("detail", Self::Detail),
        ("message", Self::Message),
        ("policy", Self::Policy),
        ("limit", Self::Limit),
        ("band", Self::Band),
        ("unit", Self::Unit),
        ("capacity", Self::Capacity),
        ("remaining", Self::Remaining),
        ("retry_after", Self::RetryAfter),
        ("retry_after_ms", Self::RetryAfterMs),
        ("reset", Self::Reset),
        ("reset_epoch", Self::ResetEpoch),
        ("reset_rfc3339", Self::ResetRfc3339),
        ("now_rfc3339", Self::NowRfc3339),
        ("correlation_id", Self::CorrelationId),
        ("violated_policies", Self::ViolatedPolicies),
    ];

    /// Returns true if it is a number, which may be absent.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Self::Status
                | Self::Capacity
                | Self::Remaining
                | Self::RetryAfter
                | Self::RetryAfterMs
                | Self::Reset
                | Self::ResetEpoch
        )
    }

    fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name)?;
        Some(found.1)
    }
}

// === impl Wording ===

impl Wording {
    /// Parses a wording. The error is the first placeholder that does not exist.
    pub fn parse(text: &str) -> Result<Self, &str> {
        let mut pieces = Vec::new();
        let mut rest = text;
        let mut plain = String::new();
        while let Some((before, after)) = rest.split_once('{') {
            plain.push_str(before);
            let Some((name, behind)) = placeholder(after) else {
                plain.push('{');
                rest = after;
                continue;
            };
            let value = Placeholder::named(name).ok_or(name)?;
            if !plain.is_empty() {
                pieces.push(WordingPiece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(WordingPiece::Value(value));
            rest = behind;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(WordingPiece::Text(plain));
        }
        Ok(Self {
            text: text.to_owned(),
            pieces,
        })
    }

    /// Returns the text as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text and the values, in order.
    pub fn pieces(&self) -> &[WordingPiece] {
        &self.pieces
    }

    /// Returns true if it contains any of these values.
    pub fn has(&self, any: &[Placeholder]) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| matches!(piece, WordingPiece::Value(value) if any.contains(value)))
    }
}

/// Returns the name in `name}…`, and the text after the brace.
fn placeholder(text: &str) -> Option<(&str, &str)> {
    let (name, behind) = text.split_once('}')?;
    let belongs = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(belongs);
    is_name.then_some((name, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> String {
        let wording = Wording::parse(text).expect("placeholders that exist");
        assert_eq!(wording.as_str(), text);
        let pieces = wording.pieces().iter();
        pieces
            .map(|piece| match piece {
                WordingPiece::Text(text) => format!("<{text}>"),
                WordingPiece::Value(value) => format!("{value:?}"),
            })
            .collect()
    }

    #[test]
    fn braces_without_a_name_are_literal() {
        for (text, expected) in [
            ("", ""),
            ("{title}", "Title"),
            ("a{title}{status}b", "<a>TitleStatus<b>"),
            ("{", "<{>"),
            ("{title", "<{title>"),
            ("{}", "<{}>"),
            ("{{title}}", "<{>Title<}>"),
            (r#"{"a":{"b":{status}}}"#, r#"<{"a":{"b":>Status<}}>"#),
            (
                "p {color:red} {Title} {a-b} {1}",
                "<p {color:red} {Title} {a-b} {1}>",
            ),
            ("{now_rfc3339}", "NowRfc3339"),
        ] {
            assert_eq!(shape(text), expected, "{text}");
        }
        assert_eq!(Wording::parse("{title} {nobody} {none}"), Err("nobody"));
    }

    #[test]
    fn every_placeholder_has_a_name() {
        for (name, value) in Placeholder::ALL {
            let wording = Wording::parse(&format!("{{{name}}}")).expect("a placeholder");
            assert_eq!(wording.pieces(), [WordingPiece::Value(value)]);
            assert!(wording.has(&[value]));
        }
    }
}

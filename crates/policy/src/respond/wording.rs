//! Text with placeholders: `{name}` stands for a value, and every other brace for itself.

/// Text with placeholders.
///
/// `{name}` is a placeholder if the name is made of lower-case letters and `_`. Every other brace
/// stands for itself, so that JSON can be written as it is.
///
/// ```
/// use tidegate_policy::respond::{Piece, Placeholder, Wording};
///
/// let wording = Wording::parse(r#"{"error":"{title}"}"#).expect("a placeholder that exists");
/// let [Piece::Text(before), Piece::Value(Placeholder::Title), Piece::Text(after)] = wording.pieces()
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
    /// What stands there as it is.
    Text(String),
    /// What a value takes the place of.
    Value(Placeholder),
}

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placeholder {
    /// The URI that tells what kind of problem it is.
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
    /// The most that can be there at once.
    Capacity,
    /// What is left of it.
    Remaining,
    /// Seconds to wait, rounded up; nothing where waiting is of no use.
    RetryAfter,
    /// The same in milliseconds.
    RetryAfterMs,
    /// Seconds until the bucket is as good as new, rounded up.
    Reset,
    /// The instant of that, in seconds since the Unix epoch, rounded up.
    ResetEpoch,
    /// The same instant, such as `2023-11-14T22:13:20Z`.
    ResetRfc3339,
    /// The present instant in the same form.
    NowRfc3339,
    /// The correlation id.
    CorrelationId,
    /// What was exceeded, by the names that the headers use.
    ViolatedPolicies,
}

impl Placeholder {
    /// Every placeholder and its name.
    pub const ALL: [(&'static str, Self); 18] = [
        ("type", Self::Type),
        ("title", Self::Title),
        ("status", Self::Status),
        ("detail", Self::Detail),
        ("message", Self::Message),
        ("policy", Self::Policy),
        ("limit", Self::Limit),
        ("band", Self::Band),
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

    /// Whether it is a number, which may be absent.
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
    /// Reads a wording. The error is the first placeholder that does not exist.
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

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text and the values, in order.
    pub fn pieces(&self) -> &[WordingPiece] {
        &self.pieces
    }

    /// Whether any of these values appears in it.
    pub fn has(&self, any: &[Placeholder]) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| matches!(piece, WordingPiece::Value(value) if any.contains(value)))
    }
}

/// The name in `name}…`, and what follows the brace.
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
    fn braces_that_hold_no_name_stand_for_themselves() {
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

//! Text with `*`, which stands for any text, including none.

/// Text with `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard {
    text: String,
    /// The text before the first `*`.
    prefix: String,
    /// The texts between two `*`, without empty ones.
    middle: Vec<String>,
    /// The text after the last `*`.
    suffix: String,
}

impl Wildcard {
    /// Prepares a text. Callers pass a text with `*`; without any it would match every value with this
    /// prefix.
    pub(crate) fn new(text: &str) -> Self {
        let (prefix, rest) = text.split_once('*').unwrap_or((text, ""));
        let (middle, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
        Self {
            text: text.to_owned(),
            prefix: prefix.to_owned(),
            middle: middle
                .split('*')
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect(),
            suffix: suffix.to_owned(),
        }
    }

    /// Returns the text as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if `value` matches. Prefix and suffix may not overlap: `a*a` does not match `a`.
    pub fn matches(&self, value: &str) -> bool {
        let inside = value.strip_prefix(self.prefix.as_str());
        let Some(mut rest) = inside.and_then(|rest| rest.strip_suffix(self.suffix.as_str())) else {
            return false;
        };
        // The first occurrence of each part leaves the most text for the following parts.
        self.middle.iter().all(|part| {
            rest.split_once(part.as_str()).is_some_and(|(_, after)| {
                rest = after;
                true
            })
        })
    }
}

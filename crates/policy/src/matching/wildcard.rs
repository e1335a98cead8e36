//! Text with `*` in it, which stands for anything, nothing included.

/// Text with `*` in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard {
    text: String,
    /// What stands before the first `*`.
    prefix: String,
    /// What stands between two; those with nothing between them are one.
    middle: Vec<String>,
    /// What stands after the last.
    suffix: String,
}

impl Wildcard {
    /// Prepares a text. Without any `*` it matches what begins with it, which nobody asks for.
    pub(super) fn new(text: &str) -> Self {
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

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether `value` looks like this. What stands before and after may not overlap: `a*a` is not `a`.
    pub fn matches(&self, value: &str) -> bool {
        let inside = value.strip_prefix(self.prefix.as_str());
        let Some(mut rest) = inside.and_then(|rest| rest.strip_suffix(self.suffix.as_str())) else {
            return false;
        };
        // The first place for each leaves the most for those that follow.
        self.middle.iter().all(|part| {
            rest.split_once(part.as_str()).is_some_and(|(_, after)| {
                rest = after;
                true
            })
        })
    }
}

//! Content types, and the escaping of values in them.

/// The escaping of values in a body, by its content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Escaping {
    /// Escapes for a JSON string.
    Json,
    /// Escapes for the text or an attribute of HTML and XML.
    Markup,
    /// No escapes; control characters are removed.
    Plain,
}

impl Escaping {
    /// Returns the escaping for `content_type`. Ignores parameters and case.
    ///
    /// ```
    /// use tidegate_policy::respond::Escaping;
    ///
    /// assert_eq!(Escaping::of("application/problem+json"), Escaping::Json);
    /// assert_eq!(Escaping::of("text/html; charset=utf-8"), Escaping::Markup);
    /// assert_eq!(Escaping::of("text/plain"), Escaping::Plain);
    /// ```
    pub fn of(content_type: &str) -> Self {
        let media = content_type.split(';').next().unwrap_or_default().trim();
        let subtype = media.split_once('/').map_or("", |(_, subtype)| subtype);
        let suffix = subtype.rsplit('+').next().unwrap_or_default();
        let is = |word: &str| suffix.eq_ignore_ascii_case(word);
        if is("json") {
            Self::Json
        } else if is("html") || is("xml") {
            Self::Markup
        } else {
            Self::Plain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_selects_the_escaping() {
        for (content_type, expected) in [
            ("application/json", Escaping::Json),
            ("Application/JSON ; charset=utf-8", Escaping::Json),
            ("application/vnd.api+json", Escaping::Json),
            ("application/ld+problem+json", Escaping::Json),
            ("text/html", Escaping::Markup),
            ("application/xhtml+xml", Escaping::Markup),
            ("text/xml", Escaping::Markup),
            ("text/plain", Escaping::Plain),
            ("text/plain; format=json", Escaping::Plain),
            ("application/jsonp", Escaping::Plain),
            ("json", Escaping::Plain),
            ("", Escaping::Plain),
        ] {
            assert_eq!(Escaping::of(content_type), expected, "{content_type}");
        }
    }
}

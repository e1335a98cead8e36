//! Locations: the paths that they match, and which of several applies.

use tidegate_policy::patterns::PathPattern;

/// A location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NginxLocation {
    /// All requests of a server.
    Server,
    /// The text before the first matching character, `^~` or none.
    Prefix {
        path: String,
        is_final: bool,
    },
    Exact(String),
    Regex(String),
}

/// The patterns of a location, and how they differ from it.
#[derive(Debug, Default)]
pub(super) struct LocationPatterns {
    /// The patterns, of which one must match; every path if there are none.
    pub(super) patterns: Vec<String>,
    pub(super) difference: Option<String>,
}

impl NginxLocation {
    /// Reads the words of a `location`; `None` for a named one, which no request reaches directly.
    pub(super) fn read(words: &[String]) -> Option<Self> {
        match words {
            [path] if path.starts_with('@') => None,
            [path] => {
                // The modifier may be written without a blank.
                for modifier in ["=", "^~", "~*", "~"] {
                    if let Some(path) = path.strip_prefix(modifier) {
                        return Self::read(&[modifier.to_owned(), path.to_owned()]);
                    }
                }
                Some(Self::Prefix {
                    path: path.clone(),
                    is_final: false,
                })
            }
            [modifier, path] => match modifier.as_str() {
                "=" => Some(Self::Exact(path.clone())),
                "^~" => Some(Self::Prefix {
                    path: path.clone(),
                    is_final: true,
                }),
                "~" => Some(Self::Regex(path.clone())),
                "~*" => Some(Self::Regex(format!("(?i){path}"))),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns this location as one of the server; `None` for a regular expression inside another location,
    /// because nginx compares it only with requests of that location.
    pub(super) fn inside(self, outer: Option<&Self>) -> Option<Self> {
        match (self, outer) {
            (Self::Regex(_), Some(_)) | (_, Some(Self::Regex(_) | Self::Server)) => None,
            // The outer `^~` decides whether regular expressions of the server come first.
            (Self::Prefix { path, .. }, Some(Self::Prefix { is_final, .. })) => {
                let is_final = *is_final;
                Some(Self::Prefix { path, is_final })
            }
            (it, _) => Some(it),
        }
    }

    /// Returns true if this location applies instead of `other`, a location of the same server, to a
    /// request that both match. `earlier` is true if this one comes first in the file.
    pub(super) fn beats(&self, other: &Self, earlier: bool) -> bool {
        use NginxLocation::{Exact, Prefix, Regex, Server};
        match (self, other) {
            (Server, _) | (_, Exact(_)) => false,
            (_, Server) | (Exact(_), _) => true,
            (Regex(_), Regex(_)) => earlier,
            (Prefix { is_final, .. }, Regex(_)) => *is_final,
            (Regex(_), Prefix { is_final, .. }) => !is_final,
            (Prefix { path, .. }, Prefix { path: other, .. }) => path.len() > other.len(),
        }
    }

    /// Returns the patterns of the location; `None` if a regular expression cannot be expressed.
    pub(super) fn patterns(&self) -> Option<LocationPatterns> {
        let found = match self {
            Self::Server => LocationPatterns::default(),
            Self::Exact(path) => LocationPatterns {
                patterns: vec![format!("{}$", path.trim_end_matches('$'))],
                difference: None,
            },
            Self::Prefix { path, .. } if path == "/" => LocationPatterns::default(),
            Self::Prefix { path, .. } => LocationPatterns {
                patterns: vec![path.clone()],
                difference: by_segment(path),
            },
            Self::Regex(regex) => regex_patterns(regex)?,
        };
        let is_valid = |pattern: &String| PathPattern::parse(pattern).is_ok();
        found.patterns.iter().all(is_valid).then_some(found)
    }

    /// Returns a text for the name of a limit.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Server => "server".to_owned(),
            Self::Prefix { path, .. } | Self::Exact(path) if path == "/" => "root".to_owned(),
            Self::Prefix { path, .. } | Self::Exact(path) | Self::Regex(path) => {
                let path = path.strip_prefix("(?i)").unwrap_or(path);
                path.trim_matches(['/', '^', '$']).to_owned()
            }
        }
    }
}

/// Returns the difference for a prefix that does not end with a whole segment.
fn by_segment(path: &str) -> Option<String> {
    (!path.ends_with('/')).then(|| {
        format!(
            "`{path}` is compared by whole segments: nginx also matches `{path}x` and `{path}-x`, Tidegate does not"
        )
    })
}

/// Translates a regular expression of whole segments.
fn regex_patterns(regex: &str) -> Option<LocationPatterns> {
    let (regex, folds) = match regex.strip_prefix("(?i)") {
        Some(regex) => (regex, true),
        None => (regex, false),
    };
    let (text, is_anchored) = match regex.strip_prefix('^') {
        Some(text) => (text, true),
        None => (regex, false),
    };
    let (text, is_whole) = match text.strip_suffix('$') {
        Some(text) if !text.ends_with('\\') => (text, true),
        _ => (text, false),
    };
    let text = text.strip_prefix('/')?;
    let mut patterns = vec![if is_anchored {
        String::new()
    } else {
        "/**".to_owned()
    }];
    let mut last_is_literal = false;
    for segment in segments(text) {
        let alternatives = alternatives(segment)?;
        last_is_literal = alternatives.iter().all(|it| !it.contains('*'));
        patterns = patterns
            .iter()
            .flat_map(|start| alternatives.iter().map(move |it| format!("{start}/{it}")))
            .collect();
        if patterns.len() > 64 {
            return None;
        }
    }
    let ends_open = !is_whole && !text.is_empty() && !text.ends_with('/') && last_is_literal;
    if is_whole {
        for pattern in &mut patterns {
            pattern.push('$');
        }
    }
    let difference = if folds && regex.chars().any(|c| c.is_ascii_alphabetic()) {
        Some(format!(
            "`~* {regex}` ignores case, Tidegate's paths do not"
        ))
    } else if ends_open {
        by_segment(text)
    } else {
        None
    };
    // `**` alone matches every path.
    patterns.retain(|pattern| pattern != "/**");
    Some(LocationPatterns {
        patterns,
        difference,
    })
}

/// Splits a regular expression at slashes that are not part of a class or a group.
fn segments(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut depth, mut is_class, mut is_escaped) = (0, 0_usize, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '(' if !is_class => depth += 1,
            ')' if !is_class => depth = depth.saturating_sub(1),
            '/' if !is_class && depth == 0 => {
                found.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text.get(start..).unwrap_or_default());
    // A slash at the end adds nothing: patterns are compared without it.
    if found.last().is_some_and(|last| last.is_empty()) {
        found.pop();
    }
    found
}

/// Returns the segments that a part of a regular expression stands for; `None` if they cannot be listed.
fn alternatives(segment: &str) -> Option<Vec<String>> {
    match segment {
        "[^/]+" | "([^/]+)" => return Some(vec!["*".to_owned()]),
        ".*" | "(.*)" | ".+" | "(.+)" => return Some(vec!["**".to_owned()]),
        _ => {}
    }
    let group = segment
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix(')'));
    let group = group.map(|it| it.strip_prefix("?:").unwrap_or(it));
    let parts: Vec<&str> = group.map_or_else(|| vec![segment], |group| group.split('|').collect());
    parts.into_iter().map(literal).collect()
}

/// Returns the text that a regular expression stands for, if it is a single one.
fn literal(regex: &str) -> Option<String> {
    let mut text = String::new();
    let mut letters = regex.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.push(letters.next().filter(|it| !it.is_ascii_alphanumeric())?),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '~' | '%' | '@' | ':' | '=' => {
                text.push(letter);
            }
            _ => return None,
        }
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::NginxLocation;

    fn patterns(words: &[&str]) -> Option<Vec<String>> {
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        Some(NginxLocation::read(&words)?.patterns()?.patterns)
    }

    #[test]
    fn simple_locations_have_patterns() {
        for (words, expected) in [
            (&["/"][..], &[][..]),
            (&["/api/"], &["/api/"]),
            (&["=", "/login"], &["/login$"]),
            (&["=/login"], &["/login$"]),
            (&["^~", "/static/"], &["/static/"]),
            (&["~", "^/api/"], &["/api"]),
            (&["~", "^/api/v1$"], &["/api/v1$"]),
            (&["~", "^/(login|signup)$"], &["/login$", "/signup$"]),
            (&["~", "^/users/[^/]+/posts"], &["/users/*/posts"]),
            (&["~", "/upload$"], &["/**/upload$"]),
            (&["~", r"^/wp-login\.php$"], &["/wp-login.php$"]),
        ] {
            assert_eq!(
                patterns(words).as_deref(),
                Some(
                    &expected
                        .iter()
                        .map(|it| (*it).to_owned())
                        .collect::<Vec<_>>()[..]
                ),
                "{words:?}"
            );
        }
    }

    #[test]
    fn other_expressions_are_rejected() {
        for regex in [
            r"\.php$",
            "^/v[0-9]+/",
            "^/a(b/c|d)/",
            "^/a.c$",
            "^/x?$",
            "api",
        ] {
            assert_eq!(patterns(&["~", regex]), None, "{regex}");
        }
        assert_eq!(patterns(&["@named"]), None);
    }
}

//! Paths written for another router: regular expressions, and parameters such as `:id`.

use tidegate_policy::text::ConfigFault;

/// The syntax of patterns, for help texts.
const HELP: &str =
    "`*` is one segment, `**` any number, and `$` at the end makes it the whole path";

/// Returns a suggestion for a path that is written as a regular expression or with parameters. As a
/// pattern, such a path matches only its literal characters.
pub(crate) fn instead_of(text: &str) -> Option<String> {
    let path = text.strip_prefix('^').unwrap_or(text);
    // Replace the one character class that contains a slash before splitting the path at slashes.
    let path = path.replace("[^/]+", "*").replace("[^/]*", "*");
    let (path, end) = match path.strip_suffix('$') {
        Some(path) => (path, "$"),
        None => (path.as_str(), ""),
    };
    let mut segments: Vec<&str> = path.split('/').map(segment).collect();
    if segments.join("/") == path && text.starts_with(path) {
        return None;
    }
    // At the end of a prefix, `**` adds nothing.
    if end.is_empty() && segments.last() == Some(&"**") {
        segments.pop();
    }
    let written = format!("{}{end}", segments.join("/"));
    let is_pattern = path.starts_with('/') && !written.contains(['?', '(', ')']);
    Some(match written.as_str() {
        _ if !is_pattern => HELP.to_owned(),
        "" => format!("write `/`; {HELP}"),
        written => format!("write {}; {HELP}", ConfigFault::quote(written)),
    })
}

/// Translates a segment into the syntax of patterns.
fn segment(text: &str) -> &str {
    let inside = |open, close| {
        let inside = text.strip_prefix(open)?;
        inside.strip_suffix(close)
    };
    let named = inside('{', '}').or_else(|| inside('<', '>'));
    match text {
        ".*" | ".+" | "(.*)" | "(.+)" => "**",
        _ if named.is_some_and(|name| name.contains('*')) => "**",
        _ if named.is_some() || (text.starts_with(':') && text.len() > 1) => "*",
        _ if text.contains(['\\', '[', ']', '{', '}', '^', '|']) => "*",
        _ if text.contains(".*") || text.contains(".+") => "*",
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{HELP, instead_of};

    #[test]
    fn paths_of_other_routers_are_recognised() {
        for (text, expected) in [
            ("/users/:id", "/users/*"),
            ("/users/{id}/posts$", "/users/*/posts$"),
            ("/users/{id:[0-9]+}", "/users/*"),
            ("/users/<int:id>", "/users/*"),
            ("/files/{*rest}", "/files"),
            ("^/api", "/api"),
            ("^/api$", "/api$"),
            ("^/api/.*", "/api"),
            ("^/api/.*$", "/api/**$"),
            ("/.*", "/"),
            (r"/v\d+/users", "/*/users"),
            ("/v[0-9]+/users", "/*/users"),
            ("/users/[^/]+/posts", "/users/*/posts"),
            ("/(?:a|b)/c", "/*/c"),
            ("/a|/b", "/*/b"),
            (r".*\.php$", ""),
        ] {
            let help = instead_of(text).expect(text);
            match expected {
                "" => assert_eq!(help, HELP, "{text}"),
                _ => assert_eq!(help, format!("write `{expected}`; {HELP}"), "{text}"),
            }
        }
    }

    #[test]
    fn native_path_patterns_are_accepted() {
        for text in [
            "/",
            "$",
            "/$",
            "/api",
            "/api/*/users$",
            "/files/**/raw$",
            "/a.b/c+d",
            "/v1/x:predict",
            "/Products(1)",
            "/~ann/%7B",
            "/:",
            "/a/b=c;d",
            "/.well-known",
        ] {
            assert_eq!(instead_of(text), None, "{text}");
        }
    }
}

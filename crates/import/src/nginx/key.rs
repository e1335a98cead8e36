//! The key of a zone: text with variables.

use std::collections::BTreeMap;

/// A key in the syntax of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NginxKey {
    /// The parts; one bucket for all requests if there are none.
    pub(super) parts: Vec<String>,
    /// Attributes that the parts need, with their sources.
    pub(super) attributes: BTreeMap<String, String>,
    /// True if all parts may be absent, so that nginx does not count the request.
    pub(super) may_be_empty: bool,
    /// Differences from nginx.
    pub(super) notes: Vec<&'static str>,
}

/// The names of the variables in a text; `None` if it has an unterminated `${`.
pub(super) fn variables(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('$') {
        let (name, after) = match after.strip_prefix('{') {
            Some(inner) => inner.split_once('}')?,
            None => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
                after.split_at_checked(end)?
            }
        };
        if !name.is_empty() {
            found.push(name.to_owned());
        }
        rest = after;
    }
    Some(found)
}

/// Reads a key. The error is the variable that has no counterpart.
pub(super) fn read(text: &str) -> Result<NginxKey, String> {
    let names = variables(text).ok_or_else(|| text.to_owned())?;
    let mut key = NginxKey {
        may_be_empty: !names.is_empty(),
        ..NginxKey::default()
    };
    for name in &names {
        key.add(name).ok_or_else(|| format!("${name}"))?;
    }
    // Text between the variables is the same for all requests, but makes the key non-empty.
    let letters: usize = names.iter().map(|name| name.len() + 1).sum();
    let plain = text.replace(['{', '}'], "");
    if plain.len() > letters || key.parts.is_empty() {
        key.may_be_empty = false;
    }
    Ok(key)
}

impl NginxKey {
    /// Adds the part for a variable; `None` if it has no counterpart.
    fn add(&mut self, name: &str) -> Option<()> {
        let part = match name {
            "binary_remote_addr" | "remote_addr" => "ip".to_owned(),
            "host" | "http_host" => "host".to_owned(),
            "server_name" => {
                self.notes.push("`$server_name` is the first name of a server: in Tidegate, requests to its other names have separate buckets");
                "host".to_owned()
            }
            "uri" | "document_uri" => "path".to_owned(),
            "request_uri" => {
                self.notes
                    .push("`$request_uri` contains the query: in Tidegate, `key: path` ignores it");
                "path".to_owned()
            }
            "request_method" => "method".to_owned(),
            // The same for all requests of a listener.
            "scheme" | "server_port" | "server_addr" | "https" | "server_protocol" => {
                self.notes.push("variables such as `$scheme` and `$server_port` are left out of the key: Tidegate does not know the listener of the proxy");
                self.may_be_empty = false;
                return Some(());
            }
            _ => return self.add_named(name),
        };
        if matches!(part.as_str(), "ip" | "host" | "path" | "method") {
            self.may_be_empty = false;
        }
        self.push(part);
        Some(())
    }

    /// Adds the part for a variable that contains a name.
    fn add_named(&mut self, name: &str) -> Option<()> {
        if let Some(header) = name.strip_prefix("http_") {
            self.push(format!("header:{}", header_name(header)));
            return Some(());
        }
        let (kind, of) = [("arg_", "query"), ("cookie_", "cookie")]
            .into_iter()
            .find_map(|(prefix, kind)| Some((kind, name.strip_prefix(prefix)?)))?;
        if of.is_empty() {
            return None;
        }
        self.attributes
            .insert(name.to_owned(), format!("{kind}: {of}"));
        self.push(format!("attr:{name}"));
        Some(())
    }

    fn push(&mut self, part: String) {
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }

    /// Returns true if the key has an address.
    pub(super) fn has_address(&self) -> bool {
        self.parts.iter().any(|part| part == "ip")
    }

    /// Returns true if a part of the key may be absent.
    pub(super) fn has_optional(&self) -> bool {
        self.parts.iter().any(|part| part.contains(':'))
    }
}

/// Returns the name of the header that a variable such as `$http_x_api_key` contains, in lower case.
pub(super) fn header_name(variable: &str) -> String {
    variable.to_ascii_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn variables_become_parts() {
        for (text, parts, may_be_empty) in [
            ("$binary_remote_addr", vec!["ip"], false),
            ("${remote_addr}", vec!["ip"], false),
            ("$binary_remote_addr$uri", vec!["ip", "path"], false),
            ("$http_x_api_key", vec!["header:x-api-key"], true),
            ("$arg_token", vec!["attr:arg_token"], true),
            ("$server_name", vec!["host"], false),
            ("all", vec![], false),
            ("a-$http_x_api_key", vec!["header:x-api-key"], false),
        ] {
            let key = read(text).expect("it is known");
            assert_eq!(key.parts, parts, "{text}");
            assert_eq!(key.may_be_empty, may_be_empty, "{text}");
        }
        assert_eq!(read("$jwt_claim_sub"), Err("$jwt_claim_sub".to_owned()));
    }
}

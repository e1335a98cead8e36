//! Hosts: their normalised form, and the patterns of conditions.

/// A host, or every host under a domain: `api.example.com`, `*.example.com`.
///
/// Case-insensitive; a port or a final dot in the request's host is ignored. `*` stands for one or more
/// labels, so `*.example.com` does not match `example.com` itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    text: String,
    /// The name in lower case; with a wildcard, from its dot on.
    name: String,
    is_wildcard: bool,
}

// === impl HostPattern ===

impl HostPattern {
    /// Parses a pattern. The error describes the mistake.
    ///
    /// ```
    /// use tidegate_policy::patterns::HostPattern;
    ///
    /// assert!(HostPattern::parse("*.example.com").is_ok());
    /// assert!(HostPattern::parse("api.*.com").is_err(), "`*` is only the first label");
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, is_wildcard) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        check_name(name).map_err(|why| format!("host pattern `{text}` {why}"))?;
        let name = bare_host(name).to_ascii_lowercase();
        Ok(Self {
            text: text.to_owned(),
            name: if is_wildcard {
                format!(".{name}")
            } else {
                name
            },
            is_wildcard,
        })
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the name in lower case; with a wildcard, from its dot on.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if it stands for every host under its name.
    pub(crate) fn is_wildcard(&self) -> bool {
        self.is_wildcard
    }

    /// Returns true if it matches a host in the form of [`canonical_host`].
    pub(crate) fn matches(&self, host: &str) -> bool {
        if self.is_wildcard {
            host.len() > self.name.len() && host.ends_with(&self.name)
        } else {
            host == self.name
        }
    }
}

/// Rejects text that no client can send as a host.
fn check_name(name: &str) -> Result<(), &'static str> {
    let is_foreign = |c: char| !c.is_ascii_alphanumeric() && !"-._~[]:".contains(c);
    let bare = bare_host(name);
    if name.contains('*') {
        Err("may use `*` only for the labels before a domain, as in `*.example.com`")
    } else if !name.is_ascii() {
        Err("must be in its ASCII form, as clients send it (`xn--...`)")
    } else if name.contains(is_foreign) {
        Err("must be a bare host, without scheme, path or spaces")
    } else if bare.is_empty() || bare.starts_with('.') {
        Err("names no host")
    } else if bare != name.trim_end_matches('.') {
        Err("must not have a port: ports are not compared")
    } else {
        Ok(())
    }
}

/// Returns the normalised form of `host`: lower case, without port and final dot. Returns `None` if nothing
/// is left. `buffer` is used only if the text must change.
pub(crate) fn canonical_host<'a>(host: &'a str, buffer: &'a mut String) -> Option<&'a str> {
    let bare = bare_host(host);
    if bare.is_empty() {
        return None;
    }
    if !bare.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some(bare);
    }
    buffer.clear();
    buffer.push_str(bare);
    buffer.make_ascii_lowercase();
    Some(buffer)
}

/// Returns the host without port and final dots.
fn bare_host(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        // Colons within brackets, or several without, belong to an IPv6 address.
        Some((name, port))
            if !port.contains(']') && (name.ends_with(']') || !name.contains(':')) =>
        {
            name
        }
        _ => host,
    };
    name.trim_end_matches('.')
}

//! Hosts and ports in URLs.

use std::net::Ipv6Addr;

/// The longest host, in bytes.
pub(crate) const HOST_MAX: usize = 253;

/// The error for an IPv6 address without brackets.
pub(crate) const TOO_MANY_COLONS: &str = "has too many colons in its host";

/// Reads `host`, `host:port` or `[::1]:port`. The host is returned in lower case and without brackets.
///
/// # Errors
///
/// Returns a predicate whose subject is the URL, such as "names no host".
pub(crate) fn host_and_port(text: &str) -> Result<(String, Option<u16>), &'static str> {
    let (host, port) = if let Some(after) = text.strip_prefix('[') {
        bracketed(after)?
    } else {
        match text.split_once(':') {
            Some((_, port)) if port.contains(':') => return Err(TOO_MANY_COLONS),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() {
        return Err("names no host");
    }
    if host.len() > HOST_MAX || !host.chars().all(belongs) {
        return Err("has an invalid host");
    }
    let port = port.map(port_of).transpose()?;
    Ok((host.to_ascii_lowercase(), port))
}

/// Returns the text between the brackets, and the port after them.
fn bracketed(after: &str) -> Result<(&str, Option<&str>), &'static str> {
    let (host, after) = after.split_once(']').ok_or("has a `[` without its `]`")?;
    if host.parse::<Ipv6Addr>().is_err() {
        return Err("has no IPv6 address between its brackets");
    }
    match after.strip_prefix(':') {
        None if !after.is_empty() => Err("has something other than a port after its `]`"),
        port => Ok((host, port)),
    }
}

fn port_of(text: &str) -> Result<u16, &'static str> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| *port > 0 && digits);
    port.ok_or("has a port that is not a number from 1 to 65535")
}

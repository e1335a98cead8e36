//! The URLs of upstreams: `http://host[:port][/path]`, `https://…` and `h2c://…`.

use crate::excerpt::hide_passwords;
use crate::language::host::{TOO_MANY_COLONS, host_and_port};
use tidegate_policy::matching::normalise;
use tidegate_policy::route::{Http2Use, Upstream, UpstreamScheme};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::closest;

const SCHEMES: [(&str, UpstreamScheme); 3] = [
    ("http", UpstreamScheme::Http),
    ("https", UpstreamScheme::Https),
    ("h2c", UpstreamScheme::H2c),
];

const EXAMPLE: &str = "expected a URL, for example `http://127.0.0.1:9001`";

/// The longest path prefix of an upstream, in bytes.
const PREFIX_MAX: usize = 1_024;

/// Reads a URL and returns an upstream of weight 1.
pub(crate) fn parse(text: &str) -> Result<Upstream, ConfigFault> {
    let shown = ConfigFault::quote(&hide_passwords(text));
    let wrong = |what: &str, help: &str| ConfigFault::new(format!("{shown} {what}")).help(help);
    let Some((scheme, rest)) = text.split_once("://") else {
        // Do not quote the text: it may contain a password.
        return Err(ConfigFault::new("this is not the URL of an upstream").help(EXAMPLE));
    };
    let scheme = scheme_of(scheme).map_err(|help| wrong("is not the URL of an upstream", &help))?;
    if rest.contains('@') {
        let help = "use `request_headers` for credentials";
        return Err(wrong("contains a user or password", help));
    }
    if rest.contains(['?', '#']) {
        let help = "remove it: the query comes from each request";
        return Err(wrong("has a `?` or `#`", help));
    }
    let path_at = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(path_at).unwrap_or((rest, ""));
    let (host, port) = host_and_port(authority).map_err(|what| match what {
        TOO_MANY_COLONS => wrong(
            what,
            "write an IPv6 address in brackets, for example `http://[::1]:9001`",
        ),
        what => wrong(what, EXAMPLE),
    })?;
    Ok(Upstream {
        scheme,
        host,
        port: port.unwrap_or(scheme.port()),
        prefix: prefix(path).map_err(|help| wrong("has an invalid path", &help))?,
        weight: 1,
        http2: Http2Use::Auto,
    })
}

/// Returns the scheme, or a suggestion.
fn scheme_of(name: &str) -> Result<UpstreamScheme, String> {
    let found = SCHEMES
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known));
    found.map(|(_, scheme)| *scheme).ok_or_else(|| {
        let known = SCHEMES.iter().map(|(known, _)| *known);
        match name {
            "ws" | "wss" => {
                let meant = name.replace("ws", "http");
                return format!("write `{meant}://`: WebSockets begin as HTTP");
            }
            "grpc" | "http2" => return "write `h2c://` for HTTP/2 without TLS".to_owned(),
            "grpcs" | "h2" => return "write `https://` and `http2: true`".to_owned(),
            _ => {}
        }
        match closest(name, known) {
            Some(meant) => format!("did you mean `{meant}://`?"),
            None => "expected `http://`, `https://`, or `h2c://` for HTTP/2 without TLS".to_owned(),
        }
    })
}

/// Returns a path without its trailing slash, or a suggestion if it is not in its normalized form.
pub(super) fn prefix(path: &str) -> Result<String, String> {
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return Ok(String::new());
    }
    if path.len() > PREFIX_MAX {
        return Err(format!("write at most {PREFIX_MAX} characters"));
    }
    let mut buffer = String::new();
    match normalise(path, &mut buffer) {
        Some(normal) if normal == path => Ok(path.to_owned()),
        Some(normal) => Err(format!("did you mean `{normal}`?")),
        None => Err("start it with `/`".to_owned()),
    }
}

//! The source of an identity, or a list of sources.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::{header_name, token, whole};
use crate::language::table::FieldReader;
use crate::language::words::TRUST;
use crate::syntax::{NodeKind, TextSpan};
use crate::tables::client::{SEGMENTS_MAX, SOURCE, SOURCES_MAX};
use tidegate_policy::client::{IdentitySource, Trust};
use tidegate_policy::matching::is_secret_name;
use tidegate_policy::text::ConfigFault;

/// Words in the names of headers, cookies and parameters that carry credentials. The list is narrower
/// than that of names hidden as a precaution: `X-Auth-Request-User` carries a name.
const CREDENTIALS: [&str; 8] = [
    "token", "api-key", "api_key", "apikey", "secret", "passw", "session", "jwt",
];

/// A reader of sources, which collects those that need a token.
#[derive(Debug, Default)]
pub(super) struct IdentitySources {
    /// The positions of the claims.
    pub(super) claims: Vec<(TextSpan, String)>,
}

impl IdentitySources {
    /// Reads the sources of the field `name`. `trust` applies to headers that set none themselves.
    pub(super) fn of(
        &mut self,
        reader: &mut ConfigReader<'_>,
        fields: &FieldReader<'_>,
        name: &str,
        trust: Trust,
    ) -> Vec<IdentitySource> {
        match fields.get(name) {
            Some(value) => self.all(reader, &value, name, trust),
            None => Vec::new(),
        }
    }

    /// Reads a source or a list of sources for the identity `name`.
    pub(super) fn all(
        &mut self,
        reader: &mut ConfigReader<'_>,
        value: &ConfigValue<'_>,
        name: &str,
        trust: Trust,
    ) -> Vec<IdentitySource> {
        let items = reader.one_or_many(value);
        if items.len() > SOURCES_MAX {
            let fault =
                ConfigFault::new(format!("there are at most {SOURCES_MAX} sources in a list"));
            reader.error(value.key_spot(), fault);
            return Vec::new();
        }
        let mut sources = Vec::new();
        for item in &items {
            let Some(source) = one(reader, item, trust) else {
                continue;
            };
            if let IdentitySource::Claim(_) = source {
                self.claims.push(item.spot());
            }
            warn_if_seen(reader, item, name, &source);
            sources.push(source);
        }
        sources
    }
}

/// Reads one source.
fn one(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    trust: Trust,
) -> Option<IdentitySource> {
    if let NodeKind::Text(text) = &value.node.kind {
        let fault = ConfigFault::new(format!("{} is not a source", ConfigFault::quote(text)));
        let help = format!(
            "write {{ header: {text} }}, or use cookie, query, segment or claim instead of header"
        );
        reader.error(value.spot(), fault.help(help));
        return None;
    }
    let fields = reader.fields(value, &SOURCE)?;
    let written = reader.setting(&fields, "trust", |word| TRUST.parse(word));
    if let (Some(value), None) = (fields.get("trust"), fields.get("header")) {
        let fault = ConfigFault::new("`trust` is only for `header`");
        reader.error(value.key_spot(), fault.help("remove it"));
    }
    let header = reader.setting(&fields, "header", header_name);
    let cookie = reader.setting(&fields, "cookie", cookie_name);
    let query = reader.setting(&fields, "query", |text| named("a query parameter", text));
    let claim = reader.setting(&fields, "claim", |text| named("a claim", text));
    let segment = reader.setting(&fields, "segment", |text| whole(text, &(1..=SEGMENTS_MAX)));
    let segment = segment.and_then(|nth| usize::try_from(nth).ok());
    let header = header.map(|name| IdentitySource::Header {
        name,
        trust: written.unwrap_or(trust),
    });
    header
        .or(cookie.map(IdentitySource::Cookie))
        .or(query.map(IdentitySource::Query))
        .or(segment.map(IdentitySource::Segment))
        .or(claim.map(IdentitySource::Claim))
}

/// Reads the name of a cookie. Cookie names are case-sensitive.
pub(super) fn cookie_name(text: &str) -> Result<String, ConfigFault> {
    token(text).ok_or_else(|| {
        let message = format!(
            "{} cannot be the name of a cookie",
            ConfigFault::quote(text)
        );
        ConfigFault::new(message).help("for example `sid`")
    })
}

/// Reads a name of 1 to 256 bytes without control characters.
fn named(what: &str, text: &str) -> Result<String, ConfigFault> {
    let is_name = !text.is_empty() && text.len() <= 256 && !text.chars().any(char::is_control);
    if is_name {
        Ok(text.to_owned())
    } else {
        let message = format!("{} cannot be the name of {what}", ConfigFault::quote(text));
        Err(ConfigFault::new(message).help("use 1 to 256 visible characters"))
    }
}

/// Warns if a credential would be visible. Identities whose name does not mark them as secret appear
/// unhashed in keys and logs.
fn warn_if_seen(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    name: &str,
    source: &IdentitySource,
) {
    let (IdentitySource::Header { name: from, .. }
    | IdentitySource::Cookie(from)
    | IdentitySource::Query(from)) = source
    else {
        return;
    };
    let lower = from.to_ascii_lowercase();
    let is_credential = matches!(
        lower.as_str(),
        "authorization" | "proxy-authorization" | "cookie"
    ) || CREDENTIALS.iter().any(|word| lower.contains(word));
    if !is_credential || is_secret_name(name) {
        return;
    }
    let fault = ConfigFault::new(format!(
        "{source} carries a secret, and {} would expose it in keys and logs",
        ConfigFault::quote(name)
    ));
    let help = "use `api_key`, `token`, or an attribute with `token` in its name: their values \
        are hashed";
    reader.warn(value.spot(), fault.help(help));
}

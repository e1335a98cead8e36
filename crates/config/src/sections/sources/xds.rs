//! An xDS server that sends the configuration of envoyproxy/ratelimit.

use super::origin::{SourceEndpoint, timed};
use super::shelf::tls;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar;
use crate::language::table::FieldReader;
use crate::language::words::{CHARGE, EVALUATE, FLAG};
use crate::sections::condition::pairs;
use crate::source::{PolicyOrigin, PolicySource, XdsServer, XdsTranslation};
use crate::tables::sources::XDS;
use tidegate_policy::text::{ConfigFault, Secret};
use tidegate_policy::{ChargeTime, Evaluate};

/// The maximum number of headers, and of metadata.
const PAIRS_MAX: usize = 16;

/// The longest text of a node, and of a header, in bytes.
const TEXT_MAX: usize = 8 << 10;

/// The node id that envoyproxy/ratelimit has by default.
const NODE_ID: &str = "default";

/// Headers of the call itself.
const RESERVED: [&str; 6] = [
    "host",
    "te",
    "content-type",
    "content-length",
    "connection",
    "transfer-encoding",
];

/// Reads an xDS server.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
) -> Option<SourceEndpoint> {
    let fields = reader.fields(value, &XDS)?;
    let url = reader.setting(&fields, "url", url);
    let node_id = reader.setting(&fields, "node_id", |text| node_text(text, "a node id"));
    let node_cluster = reader.setting(&fields, "node_cluster", |text| node_text(text, "a cluster"));
    let metadata = pairs(
        reader,
        &fields,
        "node_metadata",
        |name| node_text(name, "a name"),
        |_, text| node_text(text, "a text"),
    );
    let headers = pairs(reader, &fields, "headers", header_name, header);
    for (name, count) in [
        ("node_metadata", metadata.len()),
        ("headers", headers.len()),
    ] {
        if let (true, Some(value)) = (count > PAIRS_MAX, fields.get(name)) {
            let fault = ConfigFault::new(format!("`{name}` has at most {PAIRS_MAX} entries"));
            reader.error(value.key_spot(), fault);
        }
    }
    let translation = translation(reader, &fields);
    let tls = tls(reader, &fields, url.as_slice());
    let headers = headers.into_iter();
    let server = url.map(|url| XdsServer {
        url,
        node_id: node_id.unwrap_or_else(|| NODE_ID.to_owned()),
        node_cluster: node_cluster.unwrap_or_default(),
        node_metadata: metadata,
        headers: headers
            .map(|(name, text)| (name, Secret::new(text)))
            .collect(),
        tls,
        translation,
    });
    let usual = (PolicySource::REFRESH, PolicySource::TIMEOUT);
    timed(server.map(|it| PolicyOrigin::Xds(Box::new(it))), usual)
}

fn translation(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> XdsTranslation {
    let each = reader.setting(fields, "evaluate", |word| match EVALUATE.parse(word)? {
        Evaluate::All => Ok(false),
        Evaluate::Each => Ok(true),
        Evaluate::First => Err(
            ConfigFault::new("limits of envoyproxy/ratelimit have no order")
                .help("use `all` or `each`"),
        ),
    });
    let charge = reader.setting(fields, "charge", |word| match CHARGE.parse(word)? {
        ChargeTime::Always => Err(ConfigFault::new(
            "`always` does not apply to envoyproxy/ratelimit",
        )
        .help("use `even-if-refused` or `if-fits`")),
        charge => Ok(charge),
    });
    let merge_domains = reader.setting(fields, "merge_domains", |word| FLAG.parse(word));
    let quota = reader.setting(fields, "quota_mode", |word| FLAG.parse(word));
    XdsTranslation {
        merge_domains: merge_domains.unwrap_or(false),
        each: each.unwrap_or(false),
        charge: charge.unwrap_or(ChargeTime::EvenIfRefused),
        quota: quota.unwrap_or(false),
    }
}

/// Reads `host:port`, or a URL without a path.
fn url(text: &str) -> Result<String, ConfigFault> {
    let schemes = ["https://", "http://"];
    let scheme = schemes.into_iter().find(|it| text.starts_with(it));
    let rest = scheme.map_or(text, |scheme| text.get(scheme.len()..).unwrap_or_default());
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains('@') {
        let fault = ConfigFault::new("the URL contains a password, which would appear in logs");
        return Err(fault.help("use `headers`"));
    }
    let is_name = !authority.is_empty()
        && authority.bytes().all(|byte| byte.is_ascii_graphic())
        && !authority.contains(['/', '?', '#', '"', '<', '>', '\\']);
    // The port belongs to the address: no port is usual for xDS.
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    let has_port = port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port != 0));
    if !is_name || !has_port {
        let quoted = ConfigFault::quote(text);
        let fault = ConfigFault::new(format!("{quoted} is not the address of an xDS server"));
        return Err(
            fault.help("for example `envoy-gateway:18001`, with `https://` before it for TLS")
        );
    }
    Ok(format!("{}{authority}", scheme.unwrap_or("http://")))
}

fn node_text(text: &str, what: &str) -> Result<String, ConfigFault> {
    if (1..=TEXT_MAX).contains(&text.len()) && !text.chars().any(char::is_control) {
        return Ok(text.to_owned());
    }
    let fault = ConfigFault::new(format!("{} cannot be {what}", ConfigFault::quote(text)));
    Err(fault.help(format!("write 1 to {TEXT_MAX} printable characters")))
}

fn header_name(text: &str) -> Result<String, ConfigFault> {
    let name = scalar::header_name(text)?;
    let is_reserved = RESERVED.iter().any(|it| name.eq_ignore_ascii_case(it));
    if is_reserved || name.to_ascii_lowercase().starts_with("grpc-") {
        let fault = ConfigFault::new(format!(
            "{} is a header of the call itself",
            ConfigFault::quote(text)
        ));
        return Err(fault.help("remove it"));
    }
    Ok(name)
}

/// Reads the value of a header. Messages do not show it: it may be a secret.
fn header(name: &str, text: &str) -> Result<String, ConfigFault> {
    let is_visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if text.len() <= TEXT_MAX && text.bytes().all(is_visible) {
        return Ok(text.to_owned());
    }
    let fault = ConfigFault::new(format!(
        "the value of {} cannot be a header",
        ConfigFault::quote(name)
    ));
    Err(fault.help(format!("write up to {TEXT_MAX} visible ASCII characters")))
}

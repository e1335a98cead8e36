//! `request_headers`, `response_headers` and `pass_headers`: changes to the headers of a message.

use crate::language::reader::ConfigReader;
use crate::language::scalar;
use crate::language::table::FieldReader;
use crate::language::words::one_of;
use crate::sections::condition::{each, pairs};
use crate::tables::route::{HEADERS_MAX, REWRITE};
use tidegate_policy::route::{CLIENT_CLAIMS, Rewrite};
use tidegate_policy::text::ConfigFault;

/// Headers that concern a single connection or the end of a message. The gateway writes them itself. If
/// a route could change them, two servers could parse two different requests (request smuggling).
const OURS: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
];

/// The longest value of a header, in bytes.
const VALUE_MAX: usize = 8 << 10;

/// Reads the changes to the headers of requests or of responses.
pub(super) fn read(reader: &mut ConfigReader<'_>, route: &FieldReader<'_>, name: &str) -> Rewrite {
    let Some(value) = route.get(name) else {
        return Rewrite::default();
    };
    let Some(fields) = reader.fields(&value, &REWRITE) else {
        return Rewrite::default();
    };
    let rewrite = Rewrite {
        set: pairs(reader, &fields, "set", header_name, header_value),
        add: pairs(reader, &fields, "add", header_name, header_value),
        remove: each(reader, &fields, "remove", header_name),
    };
    let most = [rewrite.set.len(), rewrite.add.len(), rewrite.remove.len()];
    if most.into_iter().any(|count| count > HEADERS_MAX) {
        let fault = ConfigFault::new(format!("at most {HEADERS_MAX} headers are supported here"));
        reader.error(value.key_spot(), fault);
    }
    let is_kept = |name: &&String| {
        let named = |pairs: &[(String, String)]| pairs.iter().any(|(other, _)| other == *name);
        named(&rewrite.set) || named(&rewrite.add)
    };
    if let (Some(name), Some(value)) = (rewrite.remove.iter().find(is_kept), fields.get("remove")) {
        let fault = ConfigFault::new(format!("`{name}` is both removed and set or added"));
        let help = "`set` already replaces the header; remove one of them";
        reader.error(value.spot(), fault.help(help));
    }
    rewrite
}

/// Reads the headers that the gateway would otherwise remove from requests of untrusted clients.
pub(super) fn pass_headers(reader: &mut ConfigReader<'_>, route: &FieldReader<'_>) -> Vec<String> {
    each(reader, route, "pass_headers", |text| {
        let name = scalar::header_name(text)?;
        if CLIENT_CLAIMS.contains(&name.as_str()) {
            return Ok(name);
        }
        let fault = ConfigFault::new(format!("`{name}` is not a header that the gateway removes"));
        Err(fault.help(format!("expected {}", one_of(&CLIENT_CLAIMS))))
    })
}

fn header_name(text: &str) -> Result<String, ConfigFault> {
    let name = scalar::header_name(text)?;
    let help = match name.as_str() {
        "host" => "use `host: keep` or `host: upstream`",
        name if OURS.contains(&name) => "the gateway sets connection and framing headers itself",
        _ => return Ok(name),
    };
    Err(ConfigFault::new(format!("`{name}` cannot be changed here")).help(help))
}

/// Reads the value of a header. Messages do not show it: it may be a secret of the upstream.
fn header_value(name: &str, text: &str) -> Result<String, ConfigFault> {
    let belongs = |byte: u8| byte == b'\t' || byte == b' ' || byte.is_ascii_graphic();
    if text.len() <= VALUE_MAX && text.bytes().all(belongs) && text.trim() == text {
        return Ok(text.to_owned());
    }
    let message = format!("the value of `{name}` is not a valid header value");
    Err(ConfigFault::new(message).help(
        "use up to 8 KiB of visible ASCII characters, with spaces between them and none around them",
    ))
}

//! `upstreams` and `tls`: the upstreams of a route.

use super::{number, url};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::table::FieldReader;
use crate::language::words::HTTP2;
use crate::sections::tls::client_tls;
use crate::syntax::NodeKind;
use crate::tables::route::{UPSTREAM, UPSTREAMS_MAX, WEIGHT_MAX};
use tidegate_policy::route::{Http2Use, Upstream, UpstreamScheme};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::tls::ClientTls;

/// Reads `upstreams`: an upstream, or a list.
pub(super) fn read_all(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Vec<Upstream> {
    let items = match value.node.kind {
        NodeKind::List(_) => reader.list(value),
        _ => reader.one_or_many(value),
    };
    if items.len() > UPSTREAMS_MAX {
        let fault = ConfigFault::new(format!("a route has at most {UPSTREAMS_MAX} upstreams"));
        reader.error(value.key_spot(), fault);
    }
    let mut upstreams: Vec<Upstream> = Vec::new();
    for item in items.iter().take(UPSTREAMS_MAX) {
        let Some(upstream) = upstream(reader, item) else {
            continue;
        };
        let is_same = |other: &Upstream| {
            let same_place = other.host == upstream.host && other.port == upstream.port;
            same_place && other.scheme == upstream.scheme && other.prefix == upstream.prefix
        };
        if upstreams.iter().any(is_same) {
            let fault = ConfigFault::new(format!("duplicate upstream `{upstream}`"));
            let help = format!(
                "for a larger share of the traffic, write {{ url: {upstream}, weight: 2 \
                    }}"
            );
            reader.error(item.spot(), fault.help(help));
        }
        upstreams.push(upstream);
    }
    upstreams
}

fn upstream(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Upstream> {
    if !matches!(value.node.kind, NodeKind::Map(_)) {
        return reader.parse(value, url::parse);
    }
    let fields = reader.fields(value, &UPSTREAM)?;
    let weight = number(reader, &fields, "weight", 1..=WEIGHT_MAX);
    let http2 = reader.setting(&fields, "http2", |word| HTTP2.parse(word));
    let upstream = reader.setting(&fields, "url", url::parse)?;
    if let (Some(value), Some(http2)) = (fields.get("http2"), http2) {
        refuse_without_tls(reader, &value, http2, upstream.scheme);
    }
    Some(Upstream {
        weight: weight.unwrap_or(upstream.weight),
        http2: http2.unwrap_or_default(),
        ..upstream
    })
}

/// Reports `http2` for an upstream without TLS, whose scheme alone selects the protocol.
fn refuse_without_tls(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    http2: Http2Use,
    scheme: UpstreamScheme,
) {
    let help = match (scheme, http2) {
        (UpstreamScheme::Https, _) => return,
        (UpstreamScheme::Http, Http2Use::Always) => {
            "start the URL with `h2c://`, and remove `http2`"
        }
        (UpstreamScheme::Http, _) => "remove it: `http://` is HTTP/1.1, and `h2c://` is HTTP/2",
        (UpstreamScheme::H2c, _) => "remove it: `h2c://` is HTTP/2, and `http://` is HTTP/1.1",
    };
    let fault = ConfigFault::new("`http2` is only for `https://`");
    reader.error(value.key_spot(), fault.help(help));
}

/// Reads `tls`.
pub(super) fn tls(
    reader: &mut ConfigReader<'_>,
    route: &FieldReader<'_>,
    upstreams: &[Upstream],
) -> ClientTls {
    let Some(value) = route.get("tls") else {
        return ClientTls::default();
    };
    if !upstreams.is_empty()
        && upstreams
            .iter()
            .all(|it| it.scheme != UpstreamScheme::Https)
    {
        let fault = ConfigFault::new("`tls` has no effect: no upstream of the route uses it");
        let help = "start a URL with `https://`, or remove `tls`";
        reader.error(value.key_spot(), fault.help(help));
    }
    client_tls(reader, &value)
}

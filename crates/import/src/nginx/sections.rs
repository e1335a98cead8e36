//! The sections before the policies.

use super::http::NginxHttp;
use super::key::NginxKey;
use super::report::NginxReport;
use super::zone::NginxZone;
use crate::base::SectionWriter;
use crate::text::{escaped, quote};
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Returns the sections before the policies.
pub(super) fn base(
    http: &NginxHttp<'_>,
    zones: &BTreeMap<String, NginxZone>,
    report: &mut NginxReport,
) -> String {
    let mut base = SectionWriter::default();
    base.section("listen").field("http", "127.0.0.1:8080");
    let keys = || zones.values().map(|zone| &zone.selection.key);
    let mut client: Vec<(&str, String)> = Vec::new();
    if keys().any(NginxKey::has_address) {
        // nginx counts every IPv6 address separately.
        client.push(("ipv6_prefix", "128".to_owned()));
    }
    let proxies = trusted(http, report);
    let has_proxies = proxies.is_some();
    client.extend(proxies.map(|it| ("trusted_proxies", it)));
    match http.real_ip_header {
        Some(header) => match header.first().to_ascii_lowercase().as_str() {
            name @ ("x-forwarded-for" | "x-real-ip") => client.push(("address", name.to_owned())),
            _ => report.warn(header, format!("`{}` is not translated: Tidegate reads the client address from `X-Forwarded-For`, `Forwarded` or `X-Real-IP`", header.written())),
        },
        // The default of nginx. Tidegate's would trust `X-Forwarded-For`, which clients may send.
        None if has_proxies => client.push(("address", "x-real-ip".to_owned())),
        None => {}
    }
    let attributes: BTreeMap<&String, &String> = keys().flat_map(|key| &key.attributes).collect();
    if !client.is_empty() || !attributes.is_empty() {
        base.section("client");
        for (field, value) in client {
            base.field(field, value);
        }
        if !attributes.is_empty() {
            base.deeper("attributes");
            for (name, source) in attributes {
                base.field(&quote(name), format!("{{ {} }}", escaped(source)));
            }
        }
    }
    base.section("respond")
        .field("status", http.common_status());
    base.finish()
}

/// Returns the trusted proxies in the syntax of the configuration.
fn trusted(http: &NginxHttp<'_>, report: &mut NginxReport) -> Option<String> {
    let mut proxies: Vec<String> = Vec::new();
    for it in &http.real_ip_from {
        let text = it.first();
        if text.parse::<IpNet>().is_ok() || text.parse::<IpAddr>().is_ok() {
            if !proxies.iter().any(|known| known == text) {
                proxies.push(text.to_owned());
            }
        } else {
            report.warn(
                it,
                format!(
                    "`{}` is not translated: expected an address or a network",
                    it.written()
                ),
            );
        }
    }
    if proxies.is_empty() {
        return None;
    }
    let own = ["127.0.0.0/8", "::1"].into_iter().map(str::to_owned);
    let own = own.filter(|it| !proxies.contains(it));
    let all: Vec<String> = own
        .chain(proxies.iter().cloned())
        .map(|it| quote(&it))
        .collect();
    Some(format!("[{}]", all.join(", ")))
}

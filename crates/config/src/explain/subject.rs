//! Describes the requests that a limit applies to, and its bucket key.

use super::words::list;
use tidegate_core::LimitMode;
use tidegate_policy::limit::{Condition, KeyPart, Limit, MissingIdentity};
use tidegate_policy::matching::{
    DescriptorPattern, EntryPattern, HostPattern, PathPattern, ValuePattern, is_secret_name,
};

/// Returns "Applies to …".
pub(super) fn applies_to(limit: &Limit) -> String {
    if limit.conditions.is_empty() {
        return "Applies to every request.".to_owned();
    }
    let conditions: Vec<String> = limit.conditions.iter().map(condition).collect();
    format!("Applies to requests {}.", conditions.join("; or "))
}

pub(super) fn condition(condition: &Condition) -> String {
    let mut parts = Vec::new();
    parts.extend(condition.path.as_ref().map(path));
    if !condition.methods.is_empty() {
        parts.push(format!(
            "whose method is {}",
            list(&condition.methods, "or")
        ));
    }
    if !condition.hosts.is_empty() {
        let hosts: Vec<&str> = condition.hosts.iter().map(HostPattern::as_str).collect();
        parts.push(format!("whose host is {}", list(&hosts, "or")));
    }
    for (name, value) in &condition.headers {
        parts.push(match value.as_str() {
            "" => format!("that have a header `{name}`"),
            value => format!("whose header `{name}` is `{value}` (ignoring case)"),
        });
    }
    if !condition.clients.is_empty() {
        let clients: Vec<String> = condition.clients.iter().map(ToString::to_string).collect();
        parts.push(format!(
            "whose client address is in {}",
            list(&clients, "or")
        ));
    }
    for (name, value) in &condition.attributes {
        parts.push(format!("whose attribute `{name}` is `{value}`"));
    }
    parts.extend(condition.descriptor.as_ref().map(descriptor));
    list(&parts, "and")
}

fn descriptor(pattern: &DescriptorPattern) -> String {
    let entries: Vec<String> = pattern.entries().iter().map(entry).collect();
    match pattern {
        DescriptorPattern::Exactly(_) => format!(
            "once for each descriptor whose entries are {}",
            entries.join(", then ")
        ),
        DescriptorPattern::Holds(_) => {
            format!("that have a descriptor with {}", list(&entries, "and"))
        }
    }
}

fn entry(entry: &EntryPattern) -> String {
    let name = &entry.name;
    match &entry.value {
        ValuePattern::Any => format!("`{name}` (any value)"),
        ValuePattern::Is(_) if is_secret_name(name) => format!("`{name}` = ***"),
        ValuePattern::Is(value) => format!("`{name}` = `{value}`"),
        ValuePattern::Like(wildcard) => format!("`{name}` matching `{}`", wildcard.as_str()),
    }
}

fn path(pattern: &PathPattern) -> String {
    let text = pattern.as_str();
    if pattern.matches_only_empty() {
        return "that have no path".to_owned();
    }
    match text {
        "/" => "with any path".to_owned(),
        "/$" => "whose path is exactly /".to_owned(),
        _ if pattern.is_exact() => {
            format!("whose path is exactly {}", text.trim_end_matches('$'))
        }
        _ => format!("whose path is {text} or anything below it"),
    }
}

/// Returns "Each … has its own bucket."
pub(super) fn bucket(limit: &Limit, ipv6_prefix: u8) -> String {
    let parts: Vec<String> = limit
        .key
        .iter()
        .map(|part| noun(part, ipv6_prefix))
        .collect();
    match limit.key.as_slice() {
        [] | [KeyPart::Global] => "All of them share one bucket.".to_owned(),
        [_] => format!("Each {} has its own bucket.", list(&parts, "and")),
        _ => format!(
            "Each combination of {} has its own bucket.",
            list(&parts, "and")
        ),
    }
}

/// Returns a noun for a part of a key.
pub(super) fn noun(part: &KeyPart, ipv6_prefix: u8) -> String {
    match part {
        KeyPart::Ip if ipv6_prefix == 128 => "client address".to_owned(),
        KeyPart::Ip => format!("client address (IPv6 by /{ipv6_prefix})"),
        KeyPart::User => "user".to_owned(),
        KeyPart::ApiKey => "API key".to_owned(),
        KeyPart::Header(name) => format!("value of the header `{name}`"),
        KeyPart::Attr(name) if name == "consumer" || name == "token" => name.clone(),
        KeyPart::Attr(name) => format!("value of the attribute `{name}`"),
        KeyPart::Route => "route".to_owned(),
        KeyPart::Host => "host".to_owned(),
        KeyPart::Method => "method".to_owned(),
        KeyPart::Path => "path".to_owned(),
        KeyPart::Descriptor => "descriptor".to_owned(),
        KeyPart::DescriptorEntry { name, nth } => match nth {
            None | Some(1) => format!("value of the entry `{name}`"),
            Some(nth) => format!("value of entry {nth} named `{name}`"),
        },
        KeyPart::Group => "group".to_owned(),
        KeyPart::Global => "request".to_owned(),
    }
}

/// Returns "Where … is absent, …", if a part of the key can be absent.
pub(super) fn absent(limit: &Limit) -> Option<String> {
    let all = matches!(limit.key.as_slice(), [] | [KeyPart::Global]);
    let address_alone = matches!(limit.key.as_slice(), [KeyPart::Ip]);
    let what = if limit.key.len() > 1 {
        "any of these is missing"
    } else {
        "it is missing"
    };
    let then = match limit.missing {
        _ if all || is_whole(limit) => return None,
        MissingIdentity::Address if address_alone => "requests share one bucket",
        MissingIdentity::Address => "the client address is used instead, in separate buckets",
        MissingIdentity::Skip => "the limit does not apply",
        MissingIdentity::Refuse if limit.mode == LimitMode::Shadow => {
            "the request would be refused"
        }
        MissingIdentity::Refuse => "the request is refused",
    };
    Some(format!("If {what}, {then}."))
}

/// Returns true if the limit counts by the whole descriptor. A request that the limit applies to always
/// has one.
fn is_whole(limit: &Limit) -> bool {
    matches!(limit.key.as_slice(), [KeyPart::Descriptor])
}

//! Describes a route, for `validate --explain`.
//!
//! The text names defaults as well as settings, because the behaviour of a route follows from both: which
//! upstream it chooses, which failures it repeats, which headers it changes. It is read from the [`Route`]
//! that the gateway uses, never from the text of the configuration, so it cannot describe anything else.

use super::subject;
use super::words::{self, list};
use std::time::Duration;
use tidegate_core::LimitMode;
use tidegate_policy::route::{
    Balance, HostHeader, Http2Use, RefundRule, Rewrite, Route, RoutePolicy, Upstream,
    UpstreamScheme,
};
use tidegate_policy::text::counted;

/// Describes a route.
pub(super) fn explain(route: &Route) -> String {
    let state = match (route.enabled, route.mode) {
        (false, _) => " (off)",
        (true, LimitMode::Shadow) => " (shadow: its limits are decided and counted, never refuse)",
        (true, LimitMode::Enforce) => "",
    };
    let mut lines = vec![format!("Route `{}`{state}:", route.name), taken_by(route)];
    lines.push(goes_to(route));
    lines.extend(tls(route));
    lines.push(limits(route));
    lines.extend(changes(route));
    lines.push(waits(route));
    lines.extend(health(route));
    lines.push(eject(route));
    lines.push(bounds(route));
    lines.push(upgrades(route));
    lines.join("\n  ")
}

fn taken_by(route: &Route) -> String {
    if route.conditions.is_empty() {
        return "Matches every request that no earlier route matches.".to_owned();
    }
    let conditions: Vec<String> = route.conditions.iter().map(subject::condition).collect();
    format!("Matches requests {}.", conditions.join("; or "))
}

fn goes_to(route: &Route) -> String {
    let upstreams: Vec<String> = route.upstreams.iter().map(upstream).collect();
    let balance = match (route.upstreams.len(), route.balance) {
        (1, _) => "",
        (_, Balance::RoundRobin) => ", in turn",
        (_, Balance::LeastRequests) => ", to the one with the fewest requests in flight",
    };
    let host = match route.host {
        HostHeader::Keep => "the client's Host",
        HostHeader::Upstream => "its own Host",
    };
    format!("Goes to {}{balance}, with {host}.", list(&upstreams, "or"))
}

fn upstream(upstream: &Upstream) -> String {
    let mut notes = Vec::new();
    if upstream.weight != 1 {
        notes.push(format!("weight {}", upstream.weight));
    }
    match (upstream.scheme, upstream.http2) {
        (UpstreamScheme::Http, _) => {}
        (UpstreamScheme::H2c, _) => notes.push("HTTP/2 without TLS".to_owned()),
        (UpstreamScheme::Https, Http2Use::Auto) => {
            notes.push("HTTP/2 or HTTP/1.1, negotiated".to_owned());
        }
        (UpstreamScheme::Https, Http2Use::Always) => notes.push("HTTP/2".to_owned()),
        (UpstreamScheme::Https, Http2Use::Never) => notes.push("HTTP/1.1".to_owned()),
    }
    match notes.as_slice() {
        [] => upstream.to_string(),
        notes => format!("{upstream} ({})", notes.join("; ")),
    }
}

fn tls(route: &Route) -> Option<String> {
    if route
        .upstreams
        .iter()
        .all(|it| it.scheme != UpstreamScheme::Https)
    {
        return None;
    }
    let signed = match route.tls.ca {
        Some(_) => "a certificate authority in `tls.ca`",
        None => "a certificate authority trusted by the system",
    };
    let name = match &route.tls.server_name {
        Some(name) => format!("for {name}"),
        None => "for its host".to_owned(),
    };
    let shown = match route.tls.identity {
        Some(_) => " Tidegate presents a client certificate.",
        None => "",
    };
    Some(format!(
        "Over TLS, its certificate must be signed by {signed}, {name}.{shown}"
    ))
}

fn limits(route: &Route) -> String {
    let Some(policy) = &route.policy else {
        return "Is not limited.".to_owned();
    };
    let refund = match route.refund {
        RefundRule::Never => "",
        RefundRule::Unreached => {
            " The cost of a request that never reaches an upstream is refunded."
        }
    };
    format!("Must pass policy {}.{refund}", name(policy))
}

fn name(policy: &RoutePolicy) -> String {
    format!("`{}`", policy.name)
}

/// Describes the changes to paths and headers.
fn changes(route: &Route) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(prefix) = &route.strip_prefix {
        lines.push(format!("{prefix} is stripped from the start of paths."));
    }
    let heads = [
        ("requests", &route.request_headers),
        ("responses", &route.response_headers),
    ];
    let rewrites = heads.iter().filter(|(_, rewrite)| !rewrite.is_empty());
    lines.extend(rewrites.map(|(of, changes)| rewrite(of, changes)));
    if !route.pass_headers.is_empty() {
        let names = route.pass_headers.iter().map(|name| format!("`{name}`"));
        let names = list(&names.collect::<Vec<_>>(), "and");
        lines.push(format!("Untrusted clients may send {names} to it."));
    }
    lines
}

/// Lists the names of changed headers. Their values may be secret.
fn rewrite(of: &str, rewrite: &Rewrite) -> String {
    let named = |names: Vec<&String>, verb: &str| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let is = if names.len() == 1 { "is" } else { "are" };
        (!names.is_empty()).then(|| format!("{} {is} {verb}", list(&names, "and")))
    };
    let of_pairs = |pairs: &[(String, String)], verb: &str| {
        named(pairs.iter().map(|(name, _)| name).collect(), verb)
    };
    let parts = [
        named(rewrite.remove.iter().collect(), "removed"),
        of_pairs(&rewrite.set, "set"),
        of_pairs(&rewrite.add, "added"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("In {of}, {}.", parts.join(", "))
}

fn waits(route: &Route) -> String {
    let timeouts = route.timeouts;
    let retries = match route.retries {
        0 => "Requests are not retried.".to_owned(),
        1 => "Requests are retried once if that is safe.".to_owned(),
        often => format!("Requests are retried up to {often} times if that is safe."),
    };
    let connections = route.connections;
    format!(
        "Each upstream has up to {}; up to {} for one. Timeouts: {} \
         for a connection, {} for the response headers, {} between parts of a body. {retries}",
        counted(connections.max, "connection", "connections"),
        counted(connections.max_waiting, "request waits", "requests wait"),
        period(timeouts.connect),
        period(timeouts.response),
        period(timeouts.idle)
    )
}

fn health(route: &Route) -> Option<String> {
    let health = route.health.as_ref()?;
    Some(format!(
        "Health check: every {}, each upstream gets a request for {} with a timeout of {} and \
         must respond with 200 to 399. {} it; {} it.",
        period(health.interval),
        health.path,
        period(health.timeout),
        counted(
            health.unhealthy,
            "failure removes",
            "consecutive failures remove"
        ),
        counted(
            health.healthy,
            "success restores",
            "consecutive successes restore"
        )
    ))
}

fn eject(route: &Route) -> String {
    match route.eject {
        None => "Upstreams that fail requests are not ejected.".to_owned(),
        Some(eject) => format!(
            "After {} an upstream is ejected for {}.",
            counted(eject.failures, "failure", "consecutive failures"),
            period(eject.lasts)
        ),
    }
}

fn bounds(route: &Route) -> String {
    let size = match route.body_bytes {
        None => "The body of a request may be of any size".to_owned(),
        Some(bytes) => format!("The body of a request may have up to {bytes} bytes"),
    };
    let grace = period(route.timeouts.upload_grace);
    match route.min_upload_rate {
        None => format!("{size}, at any speed."),
        Some(rate) => format!("{size}, and must arrive at {rate} a second after {grace}."),
    }
}

fn upgrades(route: &Route) -> String {
    let upgrades = match route.upgrades.as_slice() {
        [] => return "No connection can be upgraded.".to_owned(),
        upgrades => list(upgrades, "or"),
    };
    let policy = route.messages.as_ref();
    let messages = match policy.and_then(|messages| messages.policy.as_ref()) {
        Some(policy) => format!(", where each message must pass policy {}", name(policy)),
        None => String::new(),
    };
    format!("A connection can be upgraded to {upgrades}{messages}.")
}

fn period(time: Duration) -> String {
    words::time(time)
}

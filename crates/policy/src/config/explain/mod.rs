//! Describes a configuration in plain words.

mod addresses;
mod band;
mod client;
mod guard;
mod limit;
mod plan;
mod redis;
mod respond;
mod route;
mod source;
mod subject;
mod traces;
mod words;

use super::{Config, Listener};
use crate::limit::{Evaluate, Policy};
use crate::route::Paths;
pub use redis::costs;
use tidegate_core::LimitMode;
use words::list;

/// Describes a configuration in plain words, with one paragraph for each limit and each route.
///
/// ```
/// let words = tidegate_policy::config::explain(&tidegate_policy::Config::built_in());
/// assert!(words.contains("1 a second on average, up to 5 at once"));
/// ```
pub fn explain(config: &Config) -> String {
    let mut paragraphs = Vec::from_iter(shadow(config));
    paragraphs.extend([
        doors(config),
        store(config),
        client::explain(&config.client),
    ]);
    let ipv6_prefix = config.client.ipv6_prefix();
    let guards = config.guards.iter();
    paragraphs.extend(guards.map(|it| guard::explain(it, ipv6_prefix)));
    let counted = config.addresses.iter();
    paragraphs.extend(counted.map(|it| addresses::counting(it, &config.guards, ipv6_prefix)));
    paragraphs.extend(config.alerts.iter().map(addresses::alerts));
    paragraphs.extend(config.traces.iter().map(traces::traces));
    paragraphs.extend(config.statsd.iter().map(traces::statsd));
    let logs = Some(&config.logs).filter(|logs| !logs.refusals.is_none());
    paragraphs.extend(logs.map(traces::logs));
    paragraphs.extend(config.plans.iter().map(plan::source));
    paragraphs.extend(source::explain(&config.sources));
    for policy in &config.policies {
        paragraphs.push(heading(config, policy));
        // The limits of a joined policy are already described.
        for limit in policy.limits.iter().filter(|_| !policy.is_joined()) {
            paragraphs.push(limit::explain(config, policy, limit));
        }
    }
    paragraphs.extend(config.routes.iter().map(|route| route::explain(route)));
    paragraphs.join("\n\n") + "\n"
}

/// Describes the shadow mode of the whole configuration; `None` if it is enforced.
pub fn shadow(config: &Config) -> Option<String> {
    let words = "Shadow mode: limits, guards, blocks and bans are decided and counted, and every request passes; none waits.";
    (config.mode == LimitMode::Shadow).then(|| words.to_owned())
}

fn doors(config: &Config) -> String {
    let listen = &config.listen;
    let doors: Vec<String> = [
        ("http", listen.http.as_ref()),
        ("grpc", listen.grpc.as_ref()),
        ("gateway", listen.gateway.as_ref()),
        ("resp", listen.resp.as_ref()),
        ("admin", Some(&listen.admin)),
    ]
    .into_iter()
    .filter_map(|(name, door)| Some(format!("{name} on {}", address(door?))))
    .collect();
    let paths = match config.routes.paths() {
        Paths::Strict => "",
        Paths::Lenient => {
            " The gateway passes on paths that programs read in different ways (`paths: lenient`)."
        }
    };
    format!("Listens for {}.{paths}", list(&doors, "and"))
}

fn address(door: &Listener) -> String {
    match &door.tls {
        None => door.address.to_string(),
        Some(tls) if tls.client_ca.is_none() => format!("{} (TLS)", door.address),
        Some(_) => format!("{} (TLS, with client certificates)", door.address),
    }
}

fn store(config: &Config) -> String {
    match config.store.target.redis() {
        Some(redis) => redis::store(config, redis),
        None => format!(
            "Buckets live in this process, up to {}: nothing to install, and nothing is shared with other instances.",
            config.store.max_keys
        ),
    }
}

fn heading(config: &Config, policy: &Policy) -> String {
    let how = match policy.evaluate {
        _ if policy.is_joined() => "the limits of all of these, decided in one step for routes",
        Evaluate::All => "every limit that matches must allow",
        Evaluate::First => "the first limit that matches decides alone",
        Evaluate::Each => "every limit that matches must allow, and each counts by itself",
    };
    let mut lines = vec![format!("Policy `{}`: {how}.", policy.name)];
    if policy.domain() != policy.name && !policy.is_joined() {
        let domain = policy.domain();
        lines.push(format!("Envoy's rate limit service calls it `{domain}`."));
    }
    if let Some(reserving) = policy.reserving() {
        lines.push(format!(
            "It takes reservations, which live for {} unless they say so, and for {} at most.",
            words::time(reserving.default_ttl),
            words::time(reserving.max_ttl)
        ));
    }
    lines.push(respond::answers(policy));
    if config.listen.grpc.is_some() && !policy.is_joined() {
        lines.push(respond::to_envoy(policy));
    }
    if let Some(redis) = config.store.target.redis() {
        lines.push(format!("In Redis, {}", redis::cost(redis, policy)));
    }
    lines.join("\n  ")
}

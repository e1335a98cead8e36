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

use crate::config::Config;
pub use redis::costs;
use tidegate_core::LimitMode;
use tidegate_policy::listen::Listener;
use tidegate_policy::policy::{Evaluate, Policy};
use tidegate_policy::route::Paths;
use tidegate_policy::store::SnapshotSettings;
use words::list;

/// Describes a configuration in plain words, with one paragraph for each limit and each route.
///
/// ```
/// let words = tidegate_config::explain(&tidegate_config::Config::built_in());
/// assert!(words.contains("1 a second on average, up to 5 at once"));
/// ```
pub fn explain(config: &Config) -> String {
    let mut paragraphs = Vec::from_iter(shadow(config));
    paragraphs.extend([
        listeners(config),
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
    let words = "Shadow mode: limits, guards, blocks and bans are evaluated and counted; every \
        request passes and none is queued.";
    (config.mode == LimitMode::Shadow).then(|| words.to_owned())
}

fn listeners(config: &Config) -> String {
    let listen = &config.listen;
    let listening: Vec<String> = [
        ("http", listen.http.as_ref()),
        ("grpc", listen.grpc.as_ref()),
        ("gateway", listen.gateway.as_ref()),
        ("resp", listen.resp.as_ref()),
        ("admin", Some(&listen.admin)),
    ]
    .into_iter()
    .filter_map(|(name, listener)| Some(format!("{name} on {}", address(listener?))))
    .collect();
    let paths = match config.routes.paths() {
        Paths::Strict => "",
        Paths::Lenient => " The gateway forwards ambiguous paths (`paths: lenient`).",
    };
    format!("Listens for {}.{paths}", list(&listening, "and"))
}

fn address(listener: &Listener) -> String {
    match &listener.tls {
        None => listener.address.to_string(),
        Some(tls) if tls.client_ca.is_none() => format!("{} (TLS)", listener.address),
        Some(_) => format!("{} (TLS, with client certificates)", listener.address),
    }
}

fn store(config: &Config) -> String {
    match config.store.target.redis() {
        Some(redis) => redis::store(config, redis),
        None => {
            let count = config.store.max_keys;
            let snapshot = config.store.snapshot.as_ref().map(snapshot);
            format!(
                "Buckets are in memory, up to {count}, and are not shared with other instances.{}",
                snapshot.unwrap_or_default()
            )
        }
    }
}

fn snapshot(snapshot: &SnapshotSettings) -> String {
    let file = snapshot.file.display();
    let every = words::time(snapshot.every);
    format!(
        " They survive a restart in the file `{file}`. A crash loses the charges of up to {every}."
    )
}

fn heading(config: &Config, policy: &Policy) -> String {
    let how = match policy.evaluate {
        _ if policy.is_shadow() => "the same limits in shadow mode, for routes in shadow mode",
        _ if policy.is_joined() => "the limits of all of these, decided atomically for routes",
        Evaluate::All => "every limit that matches must allow",
        Evaluate::First => "the first limit that matches decides alone",
        Evaluate::Each => "every limit that matches must allow, and each counts separately",
    };
    let mut lines = vec![format!("Policy `{}`: {how}.", policy.name)];
    if policy.domain() != policy.name && !policy.is_joined() {
        let domain = policy.domain();
        lines.push(format!("Envoy's rate limit service calls it `{domain}`."));
    }
    if let Some(reserving) = policy.reserving() {
        lines.push(format!(
            "It accepts reservations. Their default lifetime is {}, the maximum is {}.",
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

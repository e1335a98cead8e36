//! What a configuration means, in plain words.

mod band;
mod limit;
mod subject;
mod words;

use super::{Config, Listener};
use crate::limit::{Evaluate, Policy};
use words::list;

/// What a configuration means, in plain words: one paragraph for each limit.
///
/// ```
/// let words = tidegate_policy::config::explain(&tidegate_policy::Config::built_in());
/// assert!(words.contains("1 a second on average, up to 5 at once"));
/// ```
pub fn explain(config: &Config) -> String {
    let mut paragraphs = vec![doors(config), store(config)];
    for policy in &config.policies {
        paragraphs.push(heading(policy));
        for limit in &policy.limits {
            paragraphs.push(limit::explain(config, policy, limit));
        }
    }
    paragraphs.join("\n\n") + "\n"
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
    format!("Listens for {}.", list(&doors, "and"))
}

fn address(door: &Listener) -> String {
    match &door.tls {
        None => door.address.to_string(),
        Some(tls) if tls.client_ca.is_none() => format!("{} (TLS)", door.address),
        Some(_) => format!("{} (TLS, with client certificates)", door.address),
    }
}

fn store(config: &Config) -> String {
    let store = &config.store;
    if store.url.is_memory() {
        return format!(
            "Buckets live in this process, up to {}: nothing to install, and nothing is shared with other instances.",
            store.max_keys
        );
    }
    let timeout = u64::try_from(store.timeout.as_micros()).unwrap_or(u64::MAX);
    format!(
        "Buckets live in {}, which has {} to answer.",
        store.url,
        words::period(timeout)
    )
}

fn heading(policy: &Policy) -> String {
    let how = match policy.evaluate {
        Evaluate::All => "every limit that matches must allow",
        Evaluate::First => "the first limit that matches decides alone",
    };
    format!("Policy `{}`: {how}.", policy.name)
}

//! The log messages at startup: the configuration, its origin, and the listeners.

use crate::bounds::Bounds;
use crate::environment::FlagEnvironment;
use crate::server::{BoundDoor, Listeners};
use tidegate_policy::Config;
use tidegate_policy::config::{Listen, Listener};
use tracing::{info, warn};

/// Logs the configuration, the variables that took effect, and warnings.
pub(in crate::commands) fn configuration(
    config: &Config,
    name: &str,
    environment: &FlagEnvironment,
) {
    started(config, name);
    variables(&environment.taken());
    warnings(config);
}

/// Logs the configuration.
pub(super) fn started(config: &Config, name: &str) {
    let sources: Vec<&str> = config.sources.iter().map(|it| it.name.as_str()).collect();
    info!(
        version = env!("CARGO_PKG_VERSION"),
        configuration = name,
        sources = (!sources.is_empty()).then(|| sources.join(", ")),
        policies = config.written().count(),
        store = %config.store.target,
        "tidegate"
    );
    if let Some(statsd) = config.statsd.as_ref().filter(|it| it.enabled) {
        info!(
            address = statsd.address,
            protocol = ?statsd.protocol,
            prefix = statsd.prefix,
            "sending statistics to statsd; `enabled: false` in `statsd` turns this off"
        );
    }
}

/// Logs the variables that took effect.
pub(super) fn variables(variables: &[String]) {
    if !variables.is_empty() {
        info!(
            variables = variables.join(", "),
            "environment variables took effect"
        );
    }
}

/// Logs that keys in Redis have secrets in their names, if they do.
pub(super) fn key_names(config: &Config) {
    if config.has_literal_keys() {
        info!(
            key_names = "literal",
            "names of keys in Redis contain API keys as they are sent, so that counters of FluxGate \
             continue; write `store.key_names: hashed` to have hashes instead"
        );
    }
}

/// Logs the warnings of a configuration.
pub(super) fn warnings(config: &Config) {
    for warning in config.warnings() {
        warn!("{}", warning.to_string().trim_end());
    }
}

/// A maximum number of connections below this is worth a warning.
const FEW: usize = 1_000;

/// Logs the maximum number of connections of each listener.
pub(super) fn bounds(descriptors: Option<u64>, bounds: &Bounds, listen: &Listen) {
    let plain = |door: &Option<Listener>| door.as_ref().map(|_| bounds.connections);
    let gateway = listen.gateway.as_ref();
    let (http, grpc, resp) = (
        plain(&listen.http),
        plain(&listen.grpc),
        plain(&listen.resp),
    );
    let upstreams = gateway.map(|_| bounds.upstream_connections);
    let gateway = gateway.map(|_| bounds.gateway_connections);
    let admin = bounds.admin_connections;
    let all = [http, grpc, resp, gateway];
    if all.iter().flatten().all(|most| *most >= FEW) {
        info!(
            descriptors,
            http, grpc, resp, gateway, admin, upstreams, "connections per listener"
        );
    } else {
        warn!(
            descriptors,
            http,
            grpc,
            resp,
            gateway,
            admin,
            upstreams,
            "the limit on open files allows few connections; raise it with `ulimit -n` or \
             `LimitNOFILE=`"
        );
    }
}

/// Logs the addresses of the listeners.
pub(super) fn listening(listeners: &Listeners) {
    for (name, bound) in listeners.each() {
        door(name, bound);
    }
}

fn door(name: &str, door: &BoundDoor) {
    info!(
        door = name,
        address = %door.address,
        tls = door.has_tls(),
        certificate_expires = door.expiry(),
        token = door.has_token(),
        "listening"
    );
}

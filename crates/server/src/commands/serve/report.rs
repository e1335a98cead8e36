//! The log messages at startup: the configuration, its origin, and the listeners.

use tidegate_config::Config;
use tidegate_control::environment::FlagEnvironment;
use tidegate_net::bounds::Bounds;
use tidegate_net::{BoundListener, Listeners};
use tidegate_policy::listen::{Listen, Listener};
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
        event = "server_starting",
        version = env!("CARGO_PKG_VERSION"),
        configuration = name,
        sources = (!sources.is_empty()).then(|| sources.join(", ")),
        policies = config.written().count(),
        store = %config.store.target,
        "starting tidegate"
    );
    if let Some(statsd) = config.statsd.as_ref().filter(|it| it.enabled) {
        info!(
            event = "statsd_enabled",
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
            event = "environment_applied",
            variables = variables.join(", "),
            "environment variables applied"
        );
    }
}

/// Logs that keys in Redis have secrets in their names, if they do.
pub(super) fn key_names(config: &Config) {
    if config.has_literal_keys() {
        info!(
            event = "key_names_literal",
            key_names = "literal",
            "Redis keys contain API keys in plain text, so that FluxGate counters continue; set `store.redis.key_names: hashed` to hash them"
        );
    }
}

/// Logs the warnings of a configuration.
pub(super) fn warnings(config: &Config) {
    for warning in config.warnings() {
        warn!(
            event = "config_warning",
            "{}",
            warning.to_string().trim_end()
        );
    }
}

/// A maximum number of connections below this is worth a warning.
const FEW: usize = 1_000;

/// Logs the maximum number of connections of each listener.
pub(super) fn bounds(descriptors: Option<u64>, bounds: &Bounds, listen: &Listen) {
    let plain = |listener: &Option<Listener>| listener.as_ref().map(|_| bounds.connections);
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
            event = "connection_limits",
            descriptors, http, grpc, resp, gateway, admin, upstreams, "connections per listener"
        );
    } else {
        warn!(
            event = "open_files_low",
            descriptors,
            http,
            grpc,
            resp,
            gateway,
            admin,
            upstreams,
            "the open file limit allows few connections; raise it with `ulimit -n` or `LimitNOFILE=`"
        );
    }
}

/// Logs the addresses of the listeners.
pub(super) fn listening(listeners: &Listeners) {
    for (name, bound) in listeners.each() {
        log_listening(name, bound);
    }
}

fn log_listening(name: &str, listener: &BoundListener) {
    info!(
        event = "listening",
        listener = name,
        address = %listener.address,
        tls = listener.has_tls(),
        certificate_expires = listener.expiry(),
        token = listener.has_token(),
        "listening"
    );
}

//! What the log says when the server starts: what it serves, where, and on whose word.

use crate::environment::ProcessEnvironment;
use crate::server::{BoundDoor, Listeners};
use tidegate_policy::Config;
use tracing::{info, warn};

/// Tells what is served, on whose word, and what is odd about it.
pub(in crate::commands) fn configuration(
    config: &Config,
    name: &str,
    environment: &ProcessEnvironment,
) {
    started(config, name);
    variables(&environment.taken());
    warnings(config);
}

/// Tells what is served.
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
}

/// Tells on whose word a configuration is as it is.
pub(super) fn variables(variables: &[String]) {
    if !variables.is_empty() {
        info!(
            variables = variables.join(", "),
            "environment variables took effect"
        );
    }
}

/// Tells what is odd about a configuration.
pub(super) fn warnings(config: &Config) {
    for warning in config.warnings() {
        warn!("{}", warning.to_string().trim_end());
    }
}

/// Tells where the doors are.
pub(super) fn listening(listeners: &Listeners) {
    if let Some(http) = &listeners.http {
        door("http", http);
    }
    if let Some(grpc) = &listeners.grpc {
        door("grpc", grpc);
    }
    if let Some(resp) = &listeners.resp {
        door("resp", resp);
    }
    if let Some(gateway) = &listeners.gateway {
        door("gateway", gateway);
    }
    door("admin", &listeners.admin);
}

fn door(name: &str, door: &BoundDoor) {
    info!(
        door = name,
        address = %door.address,
        tls = door.has_tls(),
        token = door.has_token(),
        "listening"
    );
}

//! What the log says when the server starts: what it serves, where, and on whose word.

use crate::environment::ProcessEnvironment;
use crate::server::{BoundDoor, Listeners};
use tidegate_policy::Config;
use tracing::{info, warn};

/// Tells what is served, and what is odd about it.
pub(in crate::commands) fn configuration(
    config: &Config,
    name: &str,
    environment: &ProcessEnvironment,
) {
    info!(
        version = env!("CARGO_PKG_VERSION"),
        configuration = name,
        policies = config.written().count(),
        store = %config.store.target,
        "tidegate"
    );
    oddities(config, environment);
}

/// Tells on whose word a configuration is as it is, and what is odd about it.
pub(super) fn oddities(config: &Config, environment: &ProcessEnvironment) {
    let variables = environment.taken();
    if !variables.is_empty() {
        info!(
            variables = variables.join(", "),
            "environment variables took effect"
        );
    }
    for warning in config.warnings() {
        warn!("{}", warning.to_string().trim_end());
    }
}

/// Tells what there is to know about a translation.
pub(super) fn notes(notes: &[String]) {
    for note in notes {
        info!("{note}");
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

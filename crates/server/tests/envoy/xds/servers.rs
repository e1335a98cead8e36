//! Servers that are down, restart, require certificates, or serve other nodes.

use super::kit::{ControlPlane, LimitedServer, by_user};
use super::{NODE, limited};
use std::net::SocketAddr;
use tidegate_testkit::redis::{Certificates, Port, until};

/// Returns the address of a future server.
fn at(port: &Port) -> SocketAddr {
    ([127, 0, 0, 1], port.number()).into()
}

/// The environment of envoyproxy/ratelimit for a server at this address.
fn environment(address: &str) -> Vec<(&'static str, &str)> {
    vec![
        ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
        ("CONFIG_GRPC_XDS_SERVER_URL", address),
        ("CONFIG_GRPC_XDS_NODE_ID", NODE),
        ("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", "100ms"),
    ]
}

#[test]
fn a_restarted_server_is_reconnected_with_any_version() {
    let port = Port::lease();
    let Some(mut server) = ControlPlane::start_at(at(&port), &[]) else {
        return;
    };
    server.set(NODE, "1", &[by_user("shop", 2)]);
    let mut tidegate = limited(&server, &[], &[]);
    assert_eq!(tidegate.passing("shop", "ann"), 2);
    drop(server);
    tidegate.await_event("source_unavailable");
    assert_eq!(
        tidegate.metric("tidegate_source_stale"),
        Some("1".to_owned())
    );
    assert_eq!(tidegate.passing("shop", "bob"), 2, "the last version");
    // It counts from 1 again, with other limits.
    let mut server = ControlPlane::start_at(at(&port), &[]).unwrap();
    server.set(NODE, "1", &[by_user("shop", 3)]);
    server.await_answer("1", true);
    assert_eq!(tidegate.passing("shop", "cyd"), 3);
    tidegate.await_event("source_recovered");
    until("it is well again", || {
        tidegate.metric("tidegate_source_stale").as_deref() == Some("0")
    });
}

#[test]
fn a_start_waits_for_the_server() {
    let port = Port::lease();
    let address = at(&port).to_string();
    if ControlPlane::start(&[]).is_none() {
        return;
    }
    // The variables of the `--envoy-config` folder select a server.
    let mut tidegate = LimitedServer::start(&["--envoy-config"], &environment(&address));
    tidegate.await_event("xds_unavailable");
    assert!(tidegate.waits());
    let mut server = ControlPlane::start_at(at(&port), &[]).unwrap();
    // No resources for this node yet.
    server.set("another", "1", &[by_user("shop", 1)]);
    until("it asks", || !server.requests().is_empty());
    until("it says so", || {
        let lines = tidegate.events("xds_unavailable");
        let mut errors = lines.iter().map(|line| line["error"].as_str().unwrap());
        errors.any(|it| it.ends_with("has sent no configuration for the node `edge`"))
    });
    assert!(tidegate.waits());
    server.set(NODE, "1", &[by_user("shop", 2)]);
    assert_eq!(tidegate.passing("shop", "ann"), 2);
}

#[test]
fn a_forced_start_serves_without_limits_until_they_arrive() {
    let port = Port::lease();
    let address = at(&port).to_string();
    if ControlPlane::start(&[]).is_none() {
        return;
    }
    let mut variables = environment(&address);
    variables.push(("FORCE_START_WITHOUT_INITIAL_CONFIG", "true"));
    let mut tidegate = LimitedServer::start(&["--envoy-xds"], &variables);
    assert_eq!(tidegate.passing("shop", "ann"), 20);
    let warning = tidegate.await_event("source_unavailable");
    assert_eq!(
        warning["message"],
        "config source unavailable; starting without it"
    );
    let mut server = ControlPlane::start_at(at(&port), &[]).unwrap();
    server.set(NODE, "1", &[by_user("shop", 2)]);
    server.await_answer("1", true);
    assert_eq!(tidegate.passing("shop", "ann"), 2);
}

#[test]
fn each_node_has_its_own_limits() {
    let Some(mut server) = ControlPlane::start(&[]) else {
        return;
    };
    server.set(NODE, "1", &[by_user("shop", 1)]);
    server.set("west", "7", &[by_user("shop", 4)]);
    let mut east = limited(&server, &[], &[]);
    let address = server.address.to_string();
    let variables = [("CONFIG_GRPC_XDS_NODE_ID", "west")];
    let mut west = LimitedServer::start(&["--envoy-xds", &address], &variables);
    assert_eq!(
        (east.passing("shop", "ann"), west.passing("shop", "ann")),
        (1, 4)
    );
    server.set(NODE, "2", &[by_user("shop", 2)]);
    server.await_answer("2", true);
    assert_eq!(
        (east.passing("shop", "bob"), west.passing("shop", "bob")),
        (2, 4)
    );
}

#[test]
fn tls_verifies_the_server_and_shows_a_certificate() {
    let certificates = Certificates::make();
    let path = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let authority = path(certificates.authority());
    // Any certificate of the authority works.
    let cert = path(certificates.client_certificate());
    let key = path(certificates.client_key());
    let port = Port::lease();
    let arguments = ["-cert", &cert, "-key", &key, "-ca", &authority];
    let Some(mut server) = ControlPlane::start_at(at(&port), &arguments) else {
        return;
    };
    server.set(NODE, "1", &[by_user("shop", 2)]);
    let address = server.address.to_string();
    let mut variables = environment(&address);
    variables.push(("CONFIG_GRPC_XDS_SERVER_USE_TLS", "true"));
    variables.push(("CONFIG_GRPC_XDS_SERVER_TLS_SAN", "localhost"));
    variables.push(("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", &authority));
    // Without a client certificate it is rejected.
    let mut without = LimitedServer::start(&["--envoy-xds"], &variables);
    let mut with = variables.clone();
    with.push(("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", &cert));
    with.push(("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", &key));
    let mut tidegate = LimitedServer::start(&["--envoy-xds"], &with);
    assert_eq!(tidegate.passing("shop", "ann"), 2);
    server.await_answer("1", true);
    without.await_event("xds_unavailable");
    assert!(without.waits());
    // A server certificate of another authority is rejected.
    let other = Certificates::make();
    let other = path(other.authority());
    with.retain(|(name, _)| *name != "CONFIG_GRPC_XDS_SERVER_TLS_CACERT");
    with.push(("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", &other));
    let mut misled = LimitedServer::start(&["--envoy-xds"], &with);
    let line = misled.await_event("xds_unavailable");
    assert!(
        line["error"].as_str().unwrap().contains("certificate"),
        "{line}"
    );
    assert!(misled.waits());
    // A server with TLS is not called without TLS.
    let mut plain = limited(&server, &[], &[]);
    plain.await_event("xds_unavailable");
    assert!(plain.waits());
}

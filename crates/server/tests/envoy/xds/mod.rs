//! Limits received over xDS.

mod kit;

/// The resources of envoyproxy/ratelimit's tests, and their effect there.
mod facts;
/// Through a real Envoy.
mod real;
/// Servers that are down, restart, or require certificates.
mod servers;

use kit::{ControlPlane, LimitedServer, by_user};
use serde_json::{Value, json};
use std::fs;
use tidegate_testkit::redis::output;

const NODE: &str = "edge";

/// Starts the program with the limits of this server.
fn limited(server: &ControlPlane, arguments: &[&str], variables: &[(&str, &str)]) -> LimitedServer {
    let address = server.address.to_string();
    let own = ["--envoy-xds", &address, "--envoy-xds-node", NODE];
    LimitedServer::start(&[&own[..], arguments].concat(), variables)
}

/// Returns an invalid limit, without a unit.
fn invalid(domain: &str) -> Value {
    let limit = json!({ "requestsPerUnit": 1 });
    let descriptors = json!([{ "key": "user", "rateLimit": limit }]);
    json!({ "name": domain, "domain": domain, "descriptors": descriptors })
}

#[test]
fn versions_are_accepted_served_and_rejected() {
    let Some(mut server) = ControlPlane::start(&[]) else {
        return;
    };
    server.set(NODE, "1", &[by_user("shop", 2)]);
    let variables = [
        ("CONFIG_GRPC_XDS_NODE_METADATA", "zone=a"),
        ("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "x-test:hello"),
    ];
    let mut tidegate = limited(&server, &[], &variables);
    assert_eq!(tidegate.passing("shop", "ann"), 2);
    assert!(server.has_logged("open hello"));
    let first = &server.requests()[0];
    assert_eq!(first["node"]["id"], NODE);
    assert_eq!(first["node"]["metadata"], json!({ "zone": "a" }));
    assert_eq!(first.get("versionInfo"), None);
    let type_url = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";
    assert_eq!(first["typeUrl"], type_url);
    server.await_answer("1", true);

    // A new version applies at once, and used units stay used.
    server.set(NODE, "2", &[by_user("shop", 3)]);
    server.await_answer("2", true);
    assert_eq!(tidegate.passing("shop", "ann"), 1);
    assert_eq!(
        tidegate.metric("tidegate_source_rejected"),
        Some("0".to_owned())
    );

    // An invalid version changes nothing, and the server receives the error.
    server.set(NODE, "3", &[by_user("shop", 9), invalid("bad")]);
    let answer = server.await_answer("3", false);
    assert_eq!(answer["versionInfo"], "2", "the last accepted version");
    assert_eq!(answer["errorDetail"]["code"], 3);
    let detail = answer["errorDetail"]["message"].as_str().unwrap();
    assert!(
        detail.starts_with("xds/bad: descriptors[0].rate_limit.unit: invalid rate limit unit"),
        "{detail}"
    );
    assert_eq!(tidegate.passing("shop", "bob"), 3);
    assert_eq!(
        tidegate.metric("tidegate_source_rejected"),
        Some("1".to_owned())
    );
    let status = tidegate.get("admin", "/status");
    assert!(
        status.contains("xds/bad") && status.contains("\"xds\""),
        "{status}"
    );
    let rejected = tidegate.await_event("config_error");
    assert!(rejected["message"].as_str().unwrap().contains("xds/bad"));

    // It is fixed.
    server.set(NODE, "4", &[by_user("shop", 4)]);
    server.await_answer("4", true);
    assert_eq!(tidegate.passing("shop", "cyd"), 4);
    assert_eq!(
        tidegate.metric("tidegate_source_rejected"),
        Some("0".to_owned())
    );

    // No resources mean no limits, as in the original.
    server.set(NODE, "5", &[]);
    server.await_answer("5", true);
    assert_eq!(tidegate.passing("shop", "ann"), 20);
    assert_eq!(tidegate.limits(), [""; 0]);
    // Each error was logged once: a server that repeats a rejected version is not logged again.
    assert_eq!(tidegate.events("config_reload_failed").len(), 1);
}

#[test]
fn a_version_conflicting_with_the_file_is_accepted_once_it_is_resolved() {
    let Some(mut server) = ControlPlane::start(&[]) else {
        return;
    };
    let folder = crate::kit::Folder::make();
    let policy =
        |name| format!("policies: [{{ name: {name}, limits: [{{ name: all, rate: 1/day }}] }}]");
    folder.write("tidegate.yaml", &policy("shop"));
    let file = folder.path().join("tidegate.yaml");
    server.set(NODE, "1", &[by_user("other", 2)]);
    let address = server.address.to_string();
    let own = ["--config", file.to_str().unwrap(), "--envoy-xds", &address];
    let own = [&own[..], &["--envoy-xds-node", NODE]].concat();
    let mut tidegate = LimitedServer::start_in(folder, &own, &[]);
    tidegate.await_limits(&[
        "other.user: unit=DAY requests_per_unit=2, shadow_mode: false, quota_mode: false",
        "shop.all: unit=DAY requests_per_unit=1 burst=1, shadow_mode: false, quota_mode: false",
    ]);
    server.set(NODE, "2", &[by_user("shop", 2)]);
    let answer = server.await_answer("2", false);
    let detail = answer["errorDetail"]["message"].as_str().unwrap();
    assert!(detail.contains("two policies are named `shop`"), "{detail}");
    assert_eq!(tidegate.passing("other", "ann"), 2);
    // The rejected version is kept for later.
    fs::write(tidegate.path().join("tidegate.yaml"), policy("mine")).unwrap();
    tidegate.await_limits(&[
        "mine.all: unit=DAY requests_per_unit=1 burst=1, shadow_mode: false, quota_mode: false",
        "shop.user: unit=DAY requests_per_unit=2, shadow_mode: false, quota_mode: false",
    ]);
    assert_eq!(tidegate.passing("shop", "ann"), 2);
}

#[test]
fn a_source_of_the_file_is_explained_and_served() {
    let Some(mut server) = ControlPlane::start(&[]) else {
        return;
    };
    let mut twice = by_user("shop", 1);
    twice["name"] = "shop-2".into();
    server.set("a", "1", &[by_user("shop", 2), twice]);
    let url = server.address;
    let folder = crate::kit::Folder::make();
    let text = format!(
        "sources:\n  - xds: {{ url: '{url}', node_id: a, merge_domains: true, evaluate: each }}\n"
    );
    folder.write("tidegate.yaml", &text);
    let file = folder.path().join("tidegate.yaml");
    let file = file.to_str().unwrap();
    let validate = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let output = output(command.arg("validate").args(arguments).env_clear());
        (
            output.status.code(),
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap(),
        )
    };
    // The same key twice in one domain.
    let (code, text) = validate(&[file]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("duplicate descriptor composite key 'shop.user'"),
        "{text}"
    );
    server.set("a", "2", &[by_user("shop", 2)]);
    let (code, text) = validate(&[file, "--explain"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("`xds`, an xDS server: changes arrive at once"),
        "{text}"
    );
    let address = url.to_string();
    let (code, text) = validate(&["--envoy-xds", &address, "--envoy-xds-node", "a"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 policy, 1 limit"), "{text}");
    let mut tidegate = LimitedServer::start(&["--config", file], &[]);
    assert_eq!(tidegate.passing("shop", "ann"), 2);
    server.await_answer("2", true);
}

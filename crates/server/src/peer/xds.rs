//! The xDS server of envoyproxy/ratelimit's environment, as a config source.

use super::values::Variables;
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;
use tidegate::ProcessEnvironment;
use tidegate_config::Environment;
use tidegate_control::failure::Failure;
use tidegate_import::EnvoyOptions;
use tidegate_policy::ChargeTime;

/// Stands for the server that the environment names, if `--envoy-xds` has no value.
pub(crate) const SERVER: &str = "${CONFIG_GRPC_XDS_SERVER_URL}";

/// The value of `CONFIG_TYPE` for limits over xDS.
pub(super) const CONFIG_TYPE: &str = "GRPC_XDS_SOTW";

/// The variables that have an effect over xDS only.
pub(super) const VARIABLES: [&str; 11] = [
    "CONFIG_GRPC_XDS_NODE_ID",
    "CONFIG_GRPC_XDS_NODE_METADATA",
    "CONFIG_GRPC_XDS_SERVER_URL",
    "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL",
    "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS",
    "CONFIG_GRPC_XDS_SERVER_USE_TLS",
    "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
    "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
    "CONFIG_GRPC_XDS_SERVER_TLS_CACERT",
    "CONFIG_GRPC_XDS_SERVER_TLS_SAN",
    "FORCE_START_WITHOUT_INITIAL_CONFIG",
];

/// The address that the other program has by default.
const ADDRESS: &str = "localhost:18000";

/// The delays between two attempts to connect, in microseconds.
const PAUSES: RangeInclusive<u64> = 100_000..=86_400_000_000;

/// The files of TLS, each with its field.
const TLS: [(&str, &str); 4] = [
    ("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", "ca"),
    ("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "cert"),
    ("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", "key"),
    ("CONFIG_GRPC_XDS_SERVER_TLS_SAN", "server_name"),
];

/// Returns true if the environment has limits come over xDS.
pub(crate) fn is_wanted() -> bool {
    let environment = ProcessEnvironment::new();
    Variables::new(&environment).get("CONFIG_TYPE").as_deref() == Some(CONFIG_TYPE)
}

/// Returns the text of the source. `server` and `node` are those of flags. `waits` is true for a server,
/// which waits for its first configuration.
pub(crate) fn source(
    (server, node): (&str, Option<&str>),
    options: EnvoyOptions,
    waits: bool,
) -> Result<String, Failure> {
    text(&ProcessEnvironment::new(), (server, node), options, waits)
}

pub(super) fn text(
    environment: &dyn Environment,
    (server, node): (&str, Option<&str>),
    options: EnvoyOptions,
    waits: bool,
) -> Result<String, Failure> {
    let mut variables = Variables::new(environment);
    let mut xds = connection(&mut variables, server);
    let node = node.map(|node| json!(literal(node)));
    let node = node.or_else(|| variable(&variables, "CONFIG_GRPC_XDS_NODE_ID"));
    xds.extend(node.map(|node| ("node_id".to_owned(), node)));
    for (name, between, field) in [
        ("CONFIG_GRPC_XDS_NODE_METADATA", '=', "node_metadata"),
        ("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", ':', "headers"),
    ] {
        let pairs = variables.pairs(name, between).into_iter();
        let pairs: Map<String, Value> = pairs
            .map(|(key, value)| (key, json!(literal(&value))))
            .collect();
        if !pairs.is_empty() {
            xds.insert(field.to_owned(), pairs.into());
        }
    }
    let EnvoyOptions {
        merge_domains,
        each,
        charge,
        quota,
    } = options;
    for (name, is_set) in [("merge_domains", merge_domains), ("quota_mode", quota)] {
        xds.extend(is_set.then(|| (name.to_owned(), true.into())));
    }
    if each {
        xds.insert("evaluate".to_owned(), "each".into());
    }
    if charge == ChargeTime::IfFits {
        xds.insert("charge".to_owned(), "if-fits".into());
    }
    let mut source = Map::from_iter([("xds".to_owned(), xds.into())]);
    if let Some(pause) = pause(&mut variables) {
        source.insert("refresh".to_owned(), format!("{pause}us").into());
    }
    // The other program waits for its first configuration, unless it is forced; and if it is, it is not
    // healthy until then.
    let is_forced = variables.is_true("FORCE_START_WITHOUT_INITIAL_CONFIG");
    if is_forced && !variables.is_true("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED") {
        source.insert("required".to_owned(), false.into());
    } else if waits {
        source.insert("timeout".to_owned(), "10min".into());
    }
    if variables.errors.is_empty() {
        return Ok(json!({ "sources": [source] }).to_string());
    }
    Err(Failure::input(variables.errors.join("\n")))
}

/// Returns the address of the server, and the files of TLS if the connection uses it.
fn connection(variables: &mut Variables<'_>, server: &str) -> Map<String, Value> {
    let has_tls = variables.is_true("CONFIG_GRPC_XDS_SERVER_USE_TLS");
    let url = url(variables, server, has_tls);
    let mut xds = Map::new();
    if url.starts_with("https://") {
        let tls = TLS.into_iter();
        let tls = tls.filter_map(|(name, field)| Some((field, variable(variables, name)?)));
        let tls: Map<String, Value> = tls
            .map(|(field, value)| (field.to_owned(), value))
            .collect();
        if !tls.is_empty() {
            xds.insert("tls".to_owned(), tls.into());
        }
    }
    xds.insert("url".to_owned(), url.into());
    xds
}

/// Returns the URL. An address without a scheme uses TLS if the environment does.
fn url(variables: &Variables<'_>, server: &str, has_tls: bool) -> String {
    let server = if server == SERVER {
        let address = variables.get("CONFIG_GRPC_XDS_SERVER_URL");
        literal(address.as_deref().unwrap_or(ADDRESS))
    } else {
        literal(server)
    };
    // The names of gRPC, with the resolver before the host.
    let server = server.strip_prefix("dns:///").unwrap_or(&server);
    match (server.contains("://"), has_tls) {
        (true, _) => server.to_owned(),
        (false, true) => format!("https://{server}"),
        (false, false) => format!("http://{server}"),
    }
}

/// Returns the maximum delay between two attempts to connect.
fn pause(variables: &mut Variables<'_>) -> Option<u64> {
    let name = "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL";
    let pause = variables.micros(name)?;
    if !PAUSES.contains(&pause) {
        let help = "write a time from 100ms to 24h, for example 3s";
        variables.refuse(name, "is too short or too long", help);
    }
    Some(pause)
}

/// Returns a reference to a variable that is set, so that messages name it.
fn variable(variables: &Variables<'_>, name: &str) -> Option<Value> {
    variables.get(name)?;
    Some(format!("${{{name}}}").into())
}

/// Writes a text that is no reference.
fn literal(text: &str) -> String {
    text.trim().replace("${", "$${")
}

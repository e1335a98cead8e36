//! The configuration that `tidegate init` writes.

use super::choices::{ChosenKey, ChosenProxy, DeploymentKind, SetupChoices};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

const REFERENCE: &str =
    "https://github.com/tidegate/tidegate/blob/main/docs/reference/config/README.md";

/// Returns the text of the configuration, which becomes the file at `path`.
pub(super) fn configuration(choices: &SetupChoices, path: &Path) -> String {
    let mut text = String::new();
    let sections = [
        heading(choices, path),
        listen(choices),
        store(choices),
        client(choices),
        routes(choices),
        policies(choices),
    ];
    for section in sections {
        text.push_str(&section);
    }
    text
}

fn heading(choices: &SetupChoices, path: &Path) -> String {
    let path = path.display();
    let reload = if choices.run == DeploymentKind::Library {
        ""
    } else {
        "# `serve` applies changes of this file within two seconds.\n"
    };
    format!(
        "\
# Configuration of Tidegate. Reference: {REFERENCE}
# After a change: tidegate validate {path}
{reload}
"
    )
}

fn listen(choices: &SetupChoices) -> String {
    let ip = match choices.run {
        DeploymentKind::Library => return String::new(),
        DeploymentKind::Kubernetes => "0.0.0.0",
        DeploymentKind::Service | DeploymentKind::Gateway => "127.0.0.1",
    };
    let mut text = String::from("listen:\n");
    if choices.run == DeploymentKind::Gateway {
        let _ = writeln!(text, "  # Clients connect here.\n  gateway: {ip}:8000");
    } else {
        let _ = write!(
            text,
            "  # Programs send checks here. Callers can claim any client address: expose it to your own\n  \
             # programs only.\n  http: {ip}:8080\n"
        );
        if choices.proxy == ChosenProxy::Envoy {
            let _ = writeln!(text, "  # Envoy's rate limit service.\n  grpc: {ip}:8081");
        }
    }
    let _ = writeln!(text, "  # Health and metrics.\n  admin: {ip}:8090\n");
    text
}

fn store(choices: &SetupChoices) -> String {
    let store = scalar(&choices.store);
    if choices.store == "memory" {
        return format!(
            "\
# Each instance counts on its own. To share the limits: redis://127.0.0.1:6379
store: {store}

"
        );
    }
    let shared = "# All instances with this store share the limits.\n";
    if choices.proxy == ChosenProxy::Envoy {
        return format!(
            "\
{shared}store:
  url: {store}
  # Envoy waits 20 ms by default.
  timeout: 10ms

"
        );
    }
    format!("{shared}store: {store}\n\n")
}

fn client(choices: &SetupChoices) -> String {
    let mut text = String::new();
    let asks = !matches!(choices.proxy, ChosenProxy::None | ChosenProxy::Envoy);
    if asks {
        let title = choices.proxy.title();
        let (what, proxies) = match choices.run {
            DeploymentKind::Kubernetes => ("Network of the pods", "[10.0.0.0/8]"),
            _ => ("Addresses", "[127.0.0.1, \"::1\"]"),
        };
        let _ = write!(
            text,
            "  # {what} of {title}. Only these may send checks and set the client address.\n  \
             trusted_proxies: {proxies}\n"
        );
    }
    if choices.key == ChosenKey::User && (asks || choices.run == DeploymentKind::Gateway) {
        text.push_str(
            "  # Header with the user. It counts only from trusted proxies, which must set or remove it.\n  \
             user: { header: X-User-Id }\n",
        );
    }
    if text.is_empty() {
        return text;
    }
    format!("client:\n{text}\n")
}

fn routes(choices: &SetupChoices) -> String {
    if choices.run != DeploymentKind::Gateway {
        return String::new();
    }
    let upstream = scalar(&choices.upstream);
    format!(
        "\
routes:
  - name: all
    # Several upstreams share the load.
    upstreams: [{upstream}]
    policy: api

"
    )
}

fn policies(choices: &SetupChoices) -> String {
    let is_envoy = choices.proxy == ChosenProxy::Envoy;
    let limit = if is_envoy {
        envoy_limit(choices.key)
    } else {
        api_limit(choices.key)
    };
    let rate = scalar(choices.limit.trim());
    let mut text = format!(
        "policies:
{limit}        rate: {rate}
        # To count without refusing, for a first look:
        # mode: shadow
"
    );
    if !is_envoy {
        text.push_str(
            "      # More limits apply to the same request, all or nothing:
      # - { name: login, match: { path: /login$ }, key: ip, rate: 5/min }
",
        );
    }
    text
}

/// Returns the name of the limit of a key.
fn limit_name(key: ChosenKey) -> &'static str {
    match key {
        ChosenKey::Ip => "per-client",
        ChosenKey::User => "per-user",
        ChosenKey::ApiKey => "per-key",
    }
}

/// Returns the policy that Envoy's filter asks, up to the rate of its limit.
fn envoy_limit(key: ChosenKey) -> String {
    let name = limit_name(key);
    let entry = descriptor(key);
    let missing = match key {
        ChosenKey::Ip => "",
        ChosenKey::User | ChosenKey::ApiKey => {
            "      # Calls without it have no limit: add one with the descriptor remote_address.\n"
        }
    };
    format!(
        "  - name: edge
    # The domain of Envoy's filter.
    domain: edge
    limits:
      # Each value of this descriptor entry, which Envoy sends.
{missing}      - name: {name}
        match: {{ descriptor: [{entry}] }}
        key: descriptor:{entry}
"
    )
}

/// Returns the policy of all other frontends, up to the rate of its limit.
fn api_limit(key: ChosenKey) -> String {
    let name = limit_name(key);
    let (clients, key) = match key {
        ChosenKey::Ip => ("Each client address, IPv6 by /64.", "ip"),
        ChosenKey::User => ("Each user. Requests without one count by address.", "user"),
        ChosenKey::ApiKey => (
            "Each API key. Requests without one count by address.",
            "api-key",
        ),
    };
    format!(
        "  - name: api
    limits:
      # {clients}
      - name: {name}
        key: {key}
"
    )
}

/// Returns the descriptor entry of a key.
pub(super) fn descriptor(key: ChosenKey) -> &'static str {
    match key {
        ChosenKey::Ip => "remote_address",
        ChosenKey::User => "user",
        ChosenKey::ApiKey => "api_key",
    }
}

/// Returns a text as a YAML scalar: plain if it is simple, else quoted as JSON, which is also YAML.
fn scalar(text: &str) -> String {
    let is_simple = |it: char| it.is_ascii_alphanumeric() || "/:. _-".contains(it);
    if text.chars().all(is_simple) {
        text.to_owned()
    } else {
        json!(text).to_string()
    }
}

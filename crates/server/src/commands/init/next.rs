//! Next steps after `tidegate init`: commands, and the settings of the proxy.

use super::choices::{ChosenKey, ChosenProxy, DeploymentKind, SetupChoices};
use super::text::descriptor;
use crate::styles::{GOOD, HEAD, paint};
use std::fmt::Write;
use std::path::Path;

const REPOSITORY: &str = "https://github.com/tidegate/tidegate/tree/main";

/// Returns the next steps. `path` is the configuration.
pub(super) fn steps(choices: &SetupChoices, path: &Path) -> String {
    let file = path.display();
    let mut text = format!(
        "{}\n\n{}\n",
        paint(GOOD, &format!("wrote {file}")),
        paint(HEAD, "Next:")
    );
    match choices.run {
        DeploymentKind::Service | DeploymentKind::Gateway => {
            let _ = writeln!(text, "  tidegate validate {file}\n  tidegate serve {file}");
            text.push_str(trial(choices));
        }
        DeploymentKind::Library => {
            let _ = write!(
                text,
                "  cargo add tidegate\n  let limiter = tidegate::Limiter::from_file(\"{file}\")?;\n\
                 Guide: {REPOSITORY}/docs/how-to/rust.md\n"
            );
        }
        DeploymentKind::Kubernetes => {
            let grpc = if choices.proxy == ChosenProxy::Envoy {
                " \\\n    --set listeners.grpc.enabled=true --set listeners.grpc.service.headless=true"
            } else {
                ""
            };
            let _ = write!(
                text,
                "  kubectl create configmap tidegate --from-file=tidegate.yaml={file}\n  \
                 helm upgrade --install tidegate deploy/helm/tidegate \\\n    \
                 --set existingConfigMap.name=tidegate{grpc}\n\
                 Chart: {REPOSITORY}/deploy/helm/tidegate\n"
            );
        }
    }
    text.push_str(&proxy(choices));
    text
}

/// Returns the command that tries the limit.
fn trial(choices: &SetupChoices) -> &'static str {
    match (choices.run, choices.proxy, choices.key) {
        (DeploymentKind::Gateway, ..) => "  curl -i http://127.0.0.1:8000/\n",
        (_, ChosenProxy::Envoy, _) => "",
        (_, _, ChosenKey::Ip) => "  tidegate check --ip 192.0.2.1\n",
        (_, _, ChosenKey::User) => "  tidegate check --user ann\n",
        (_, _, ChosenKey::ApiKey) => "  API_KEY=any tidegate check --api-key-env API_KEY\n",
    }
}

/// Returns the settings of the proxy.
fn proxy(choices: &SetupChoices) -> String {
    let is_cluster = choices.run == DeploymentKind::Kubernetes;
    let (snippet, example) = match (choices.proxy, is_cluster) {
        (ChosenProxy::None, _) => return String::new(),
        (ChosenProxy::Nginx, false) => (include_str!("snippets/nginx.conf"), "examples/nginx"),
        (ChosenProxy::Nginx, true) => (
            include_str!("snippets/ingress-nginx.yaml"),
            "deploy/kubernetes",
        ),
        (ChosenProxy::Traefik, false) => (
            include_str!("snippets/traefik.yml"),
            "examples/traefik-forward-auth",
        ),
        (ChosenProxy::Traefik, true) => (
            include_str!("snippets/traefik-kubernetes.yaml"),
            "deploy/kubernetes",
        ),
        (ChosenProxy::Caddy, _) => (include_str!("snippets/Caddyfile"), "examples/caddy"),
        (ChosenProxy::Haproxy, _) => (include_str!("snippets/haproxy.cfg"), "examples/haproxy"),
        (ChosenProxy::Envoy, false) => (include_str!("snippets/envoy.yaml"), "examples/envoy"),
        (ChosenProxy::Envoy, true) => ("", "deploy/kubernetes"),
    };
    let title = choices.proxy.title();
    let mut text = format!(
        "\n{}\n{snippet}",
        paint(HEAD, &format!("Settings of {title}:"))
    );
    if is_cluster && snippet.contains("127.0.0.1:8080") {
        text.push_str("In a cluster, write tidegate-http:8080 for 127.0.0.1:8080.\n");
    }
    text.push_str(&identity(choices));
    let _ = writeln!(text, "Complete and tested: {REPOSITORY}/{example}");
    text
}

/// Returns what the proxy must send for the key to work.
fn identity(choices: &SetupChoices) -> String {
    let header = match choices.key {
        ChosenKey::Ip => return String::new(),
        ChosenKey::User => "X-User-Id",
        ChosenKey::ApiKey => "X-API-Key",
    };
    let entry = descriptor(choices.key);
    match (choices.proxy, choices.key) {
        (ChosenProxy::Envoy, _) => format!(
            "The limit needs another action:\n  \
             request_headers: {{ header_name: {}, descriptor_key: {entry} }}\n",
            header.to_ascii_lowercase()
        ),
        (_, ChosenKey::User) => format!(
            "Let the proxy pass {header} to Tidegate, and set or remove it: clients must not choose it.\n"
        ),
        _ => String::new(),
    }
}

//! The ways to run Tidegate with a proxy, each with a folder in `examples/`.

use super::folder::Folder;
use super::programs::Program;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A proxy and its integration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setup {
    Nginx,
    Haproxy,
    Caddy,
    CaddyShort,
    TraefikForwardAuth,
    TraefikPlugin,
}

/// The operator's setting for an unreachable Tidegate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureMode {
    Open,
    Closed,
}

/// The addresses of all programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) proxy: SocketAddr,
    pub(crate) tidegate: SocketAddr,
    pub(crate) application: SocketAddr,
}

impl Setup {
    pub(crate) fn program(self) -> Program {
        match self {
            Self::Nginx => Program::Nginx,
            Self::Haproxy => Program::Haproxy,
            Self::Caddy | Self::CaddyShort => Program::Caddy,
            Self::TraefikForwardAuth | Self::TraefikPlugin => Program::Traefik,
        }
    }

    /// Returns true if allowed clients get rate limit headers.
    pub(crate) fn informs(self) -> bool {
        !matches!(self, Self::CaddyShort | Self::TraefikForwardAuth)
    }

    /// Returns the status of refusals while Tidegate is unreachable.
    pub(crate) fn status_when_closed(self) -> u16 {
        match self {
            Self::CaddyShort => 502,
            Self::TraefikForwardAuth => 500,
            _ => 503,
        }
    }

    /// Returns the folder of the example.
    pub(crate) fn folder(self) -> PathBuf {
        let name = match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Caddy | Self::CaddyShort => "caddy",
            Self::TraefikForwardAuth => "traefik-forward-auth",
            Self::TraefikPlugin => "traefik-plugin",
        };
        root().join("examples").join(name)
    }

    /// Returns the proxy's command, with the example's configuration and other addresses.
    pub(crate) fn command(
        self,
        program: &Path,
        folder: &Folder,
        addresses: Addresses,
        away: FailureMode,
    ) -> Command {
        let mut command = Command::new(program);
        let here = folder.path();
        command.current_dir(here).env_clear();
        match self {
            Self::Nginx => {
                let choice = ("default open;", nginx_choice(away));
                self.copy("nginx.conf", folder, addresses, choice);
                // In one process, so that killing it ends everything.
                command.args(["-p", ".", "-c", "nginx.conf", "-e", "stderr"]);
                command.args(["-g", "daemon off; master_process off;"]);
            }
            Self::Haproxy => {
                command
                    .current_dir(self.folder())
                    .args(["-f", "haproxy.cfg"]);
                command.env("PROXY", addresses.proxy.to_string());
                environment(&mut command, addresses, away);
            }
            Self::Caddy | Self::CaddyShort => {
                let file = if self == Self::Caddy {
                    "Caddyfile"
                } else {
                    "Caddyfile.short"
                };
                command.args(["run", "--adapter", "caddyfile", "--config"]);
                command.arg(self.folder().join(file)).env("HOME", here);
                command.env("PROXY_PORT", addresses.proxy.port().to_string());
                environment(&mut command, addresses, away);
            }
            Self::TraefikForwardAuth | Self::TraefikPlugin => {
                let choice = ("onFailure: allow", traefik_choice(away));
                self.copy("traefik.yml", folder, addresses, choice);
                self.copy("dynamic.yml", folder, addresses, choice);
                if self == Self::TraefikPlugin {
                    copy_plugin(here);
                }
                command.arg("--configFile=traefik.yml");
            }
        }
        command
    }

    /// Copies Tidegate's configuration; returns its path.
    pub(crate) fn copy_tidegate(self, folder: &Folder) -> PathBuf {
        let name = "tidegate.yaml";
        let text = fs::read_to_string(self.folder().join(name)).unwrap();
        folder.write(name, &text);
        folder.path().join(name)
    }

    /// Copies a file of the example.
    fn copy(self, name: &str, folder: &Folder, addresses: Addresses, choice: (&str, &str)) {
        let text = fs::read_to_string(self.folder().join(name)).unwrap();
        folder.write(name, &changed(&text, addresses, choice));
    }
}

/// Returns a file of an example with other addresses and another setting.
fn changed(text: &str, addresses: Addresses, choice: (&str, &str)) -> String {
    text.replace("127.0.0.1:8000", &addresses.proxy.to_string())
        .replace("127.0.0.1:8080", &addresses.tidegate.to_string())
        .replace("127.0.0.1:9000", &addresses.application.to_string())
        .replace(choice.0, choice.1)
}

fn nginx_choice(away: FailureMode) -> &'static str {
    match away {
        FailureMode::Open => "default open;",
        FailureMode::Closed => "default closed;",
    }
}

fn traefik_choice(away: FailureMode) -> &'static str {
    match away {
        FailureMode::Open => "onFailure: allow",
        FailureMode::Closed => "onFailure: deny",
    }
}

/// Sets the variables of proxies that read addresses from the environment.
fn environment(command: &mut Command, addresses: Addresses, away: FailureMode) {
    let away = match away {
        FailureMode::Open => "open",
        FailureMode::Closed => "closed",
    };
    command
        .env("TIDEGATE", addresses.tidegate.to_string())
        .env("APPLICATION", addresses.application.to_string())
        .env("TIDEGATE_AWAY", away);
}

/// Copies the plugin to the folder where Traefik looks for it.
fn copy_plugin(folder: &Path) {
    let to = folder.join("plugins-local/src/github.com/tidegate/tidegate/plugins/traefik");
    fs::create_dir_all(&to).unwrap();
    for file in fs::read_dir(root().join("plugins/traefik")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .canonicalize()
        .unwrap()
}

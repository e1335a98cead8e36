//! Options of servers: the same for one server, a cluster and a Sentinel group.

use super::access::{Access, Acl, Certificates, TestLogin};
use super::flavour::ServerProgram;
use super::server::Server;

/// Options of servers. Default: Redis 7.0, plain TCP, no users, nothing on disk.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub(super) flavour: ServerProgram,
    tls: Option<Certificates>,
    ask_clients: bool,
    acl: Option<Acl>,
    settings: Vec<String>,
    pub(super) failover_ms: u32,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            flavour: ServerProgram::Redis7,
            tls: None,
            ask_clients: false,
            acl: None,
            settings: Vec::new(),
            failover_ms: 500,
        }
    }
}

impl ServerOptions {
    /// Sets the program.
    #[must_use]
    pub fn flavour(mut self, flavour: ServerProgram) -> Self {
        self.flavour = flavour;
        self
    }

    /// Another line of the configuration: `.setting("maxmemory", "2mb")`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name} {value}"));
        self
    }

    /// TLS and nothing else, also among the servers. Only [`ServerProgram::Redis7`] has it.
    #[must_use]
    pub fn tls(mut self, certificates: &Certificates) -> Self {
        self.tls = Some(certificates.clone());
        self
    }

    /// With TLS: rejects clients without a certificate of the authority.
    #[must_use]
    pub fn ask_clients(mut self) -> Self {
        self.ask_clients = true;
        self
    }

    /// Users.
    #[must_use]
    pub fn acl(mut self, acl: Acl) -> Self {
        self.acl = Some(acl);
        self
    }

    /// Sets the milliseconds of silence after which a server counts as dead, in a cluster and for
    /// sentinels. Default: 500.
    #[must_use]
    pub fn failover_after_millis(mut self, millis: u32) -> Self {
        self.failover_ms = millis;
        self
    }

    /// Starts one server.
    pub fn start(self) -> Server {
        Server::launch(&self, &[])
    }

    /// Returns the access of the tests: as `admin`, if there are users.
    pub(super) fn admin(&self) -> Access {
        self.access(TestLogin::admin())
    }

    /// Returns the access of the limiter: as `limiter`, if there are users.
    pub(super) fn limiter(&self) -> Access {
        self.access(TestLogin::limiter())
    }

    fn access(&self, login: TestLogin) -> Access {
        let login = self.acl.is_some().then_some(login);
        Access::new(self.tls.clone(), login)
    }

    /// Returns the lines with the addresses to listen at.
    pub(super) fn net_lines(&self, port: u16) -> Vec<String> {
        match &self.tls {
            None => vec![format!("port {port}")],
            Some(tls) => tls.lines(port, self.ask_clients),
        }
    }

    /// Returns the lines of a server that holds data.
    pub(super) fn data_lines(&self) -> Vec<String> {
        let mut lines = vec![
            "save \"\"".to_owned(),
            "appendonly no".to_owned(),
            "repl-diskless-sync-delay 0".to_owned(),
        ];
        lines.extend(self.acl.iter().flat_map(Acl::lines));
        lines.extend(self.settings.iter().cloned());
        lines
    }

    /// Returns the lines of a sentinel, besides those that name the master.
    pub(super) fn sentinel_lines(&self, master: &str) -> Vec<String> {
        match &self.acl {
            None => Vec::new(),
            Some(_) => Acl::sentinel_lines(master),
        }
    }

    pub(super) fn has_tls(&self) -> bool {
        self.tls.is_some()
    }
}

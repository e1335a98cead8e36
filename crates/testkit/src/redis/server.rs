//! One server process.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use parking_lot::Mutex;

use super::access::Access;
use super::client::BlockingClient;
use super::options::ServerOptions;
use super::port::Port;
use super::process::Process;
use super::reaper::{UNDERTAKER, remove};
use super::reply::RespReply;
use super::wait::{PATIENCE, within};

/// Attempts to start a server that dies at start: another program may take its port in between.
const ATTEMPTS: usize = 5;

/// A separate server on its own port, with nothing on disk. It is killed when dropped.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    sentinel: bool,
    port: Port,
    folder: PathBuf,
    process: Mutex<Option<Process>>,
}

impl Server {
    /// Redis 7.0 without TLS and users. Panics if it is not installed.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Starts the options of a server.
    ///
    /// ```no_run
    /// use tidegate_testkit::redis::{Acl, Certificates, Server};
    ///
    /// let certificates = Certificates::make();
    /// let server = Server::builder()
    ///     .tls(&certificates)
    ///     .acl(Acl::limiter("~rl:* -@all +@scripting +@read +@write +time"))
    ///     .setting("maxmemory", "10mb")
    ///     .start();
    /// assert!(server.url().starts_with("rediss://limiter:"));
    /// ```
    pub fn builder() -> ServerOptions {
        ServerOptions::default()
    }

    /// Starts a server that holds data, with these lines in its configuration too.
    pub(super) fn launch(options: &ServerOptions, lines: &[String]) -> Self {
        let mut all = options.data_lines();
        all.extend_from_slice(lines);
        Self::try_ports(options, false, &all)
    }

    /// Starts a sentinel with these lines in its configuration.
    pub(super) fn launch_sentinel(options: &ServerOptions, lines: &[String]) -> Self {
        Self::try_ports(options, true, lines)
    }

    fn try_ports(options: &ServerOptions, sentinel: bool, lines: &[String]) -> Self {
        for _ in 0..ATTEMPTS {
            let server = Self {
                options: options.clone(),
                sentinel,
                port: Port::lease(),
                folder: UNDERTAKER.folder(),
                process: Mutex::new(None),
            };
            server.configure(lines);
            server.spawn();
            if server.await_ready() {
                return server;
            }
            assert!(server.port_was_taken(), "{}", server.exit_reason());
        }
        panic!("{ATTEMPTS} ports that were free were taken at once")
    }

    fn configure(&self, lines: &[String]) {
        let folder = self.folder.display();
        let mut all = vec![
            "bind 127.0.0.1".to_owned(),
            "daemonize no".to_owned(),
            format!("dir {folder}"),
            format!("logfile {folder}/log"),
        ];
        all.extend(self.options.net_lines(self.port()));
        all.extend_from_slice(lines);
        let text = all.join("\n") + "\n";
        fs::write(self.folder.join("conf"), text).expect("the folder is ours");
    }

    /// Starts the process with the existing configuration: sentinels and nodes of a cluster record
    /// their state in it, and next to it.
    fn spawn(&self) {
        let mut command = Command::new(self.options.flavour.program());
        command.arg(self.folder.join("conf"));
        if self.sentinel {
            command.arg("--sentinel");
        }
        *self.process.lock() = Some(Process::spawn(&mut command));
    }

    /// Waits until the server answers. False if it ended instead.
    fn await_ready(&self) -> bool {
        let answers = within(PATIENCE, || {
            let mut process = self.process.lock();
            let process = process.as_mut().expect("just started");
            if process.has_ended() {
                return Some(false);
            }
            // Another server may have the port, and answer in its place.
            let mut client = self.try_client().ok()?;
            let info = client.try_command(&["INFO", "server"]).ok()?;
            let id = format!("process_id:{}\r", process.id());
            (info.error().is_none() && info.text().contains(&id)).then_some(true)
        });
        answers.unwrap_or_else(|| panic!("the server gives no answer; its log: {}", self.log()))
    }

    fn port_was_taken(&self) -> bool {
        self.log().contains("Address already in use")
    }

    fn exit_reason(&self) -> String {
        let program = self.options.flavour.program();
        format!("{} ended at start: {}", program.display(), self.log())
    }

    /// Returns the server's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Returns the port it listens at.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// Returns the URL for the limiter, with its login if there are users.
    pub fn url(&self) -> String {
        self.url_at(self.port())
    }

    /// Returns the URL for a limiter that comes another way, such as through a
    /// [`FaultProxy`](super::FaultProxy) at this port.
    pub fn url_at(&self, port: u16) -> String {
        let start = self.limiter().url_start("redis", "rediss");
        format!("{start}127.0.0.1:{port}")
    }

    /// Returns the access of the limiter: as `limiter`, if there are users.
    pub fn limiter(&self) -> Access {
        self.options.limiter()
    }

    /// Returns a connection with all permissions. Panics if there is none.
    pub fn client(&self) -> BlockingClient {
        self.try_client()
            .unwrap_or_else(|error| panic!("no connection to {}: {error}", self.address()))
    }

    /// Returns a connection with all permissions, or the error.
    pub fn try_client(&self) -> io::Result<BlockingClient> {
        BlockingClient::connect(self.port(), &self.options.admin())
    }

    /// Runs one command on a new connection, with all permissions.
    pub fn command<W: AsRef<[u8]>>(&self, words: &[W]) -> RespReply {
        self.client().command(words)
    }

    /// Returns the reply to a command, if it is no error.
    pub(super) fn ask<W: AsRef<[u8]>>(&self, words: &[W]) -> Option<RespReply> {
        let reply = self.try_client().ok()?.try_command(words).ok()?;
        reply.error().is_none().then_some(reply)
    }

    /// Returns true if the process exists, even if it is stopped.
    pub fn is_running(&self) -> bool {
        let mut process = self.process.lock();
        process.as_mut().is_some_and(|process| !process.has_ended())
    }

    /// Kills the process immediately; its data is lost. No effect if it is dead already.
    pub fn kill9(&self) {
        drop(self.process.lock().take());
    }

    /// Starts the server again at the same port, killing it first if it runs.
    pub fn restart(&self) {
        self.kill9();
        for _ in 0..ATTEMPTS {
            self.spawn();
            if self.await_ready() {
                return;
            }
        }
        panic!("{}", self.exit_reason())
    }

    /// Halts the process (`SIGSTOP`): connections stay open, replies do not arrive.
    pub fn stop(&self) {
        self.with_process(|process| {
            process.signal("STOP");
            process.await_stopped();
        });
    }

    /// Continues a stopped process (`SIGCONT`).
    pub fn cont(&self) {
        self.with_process(|process| process.signal("CONT"));
    }

    fn with_process(&self, act: impl FnOnce(&Process)) {
        act(self.process.lock().as_ref().expect("the server runs"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill9();
        remove(&self.folder);
    }
}

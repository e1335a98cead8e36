//! A master, its replicas, and the sentinels that watch over them.

use super::options::ServerOptions;
use super::reply::RespReply;
use super::server::Server;
use super::wait::{until, until_some};

const REPLICAS: usize = 2;
const SENTINELS: usize = 3;

/// A master, two replicas and three sentinels. Everything ends when this is dropped.
#[derive(Debug)]
pub struct SentinelGroup {
    options: ServerOptions,
    name: String,
    servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl ServerOptions {
    /// Starts a Sentinel group whose master has this name.
    pub fn start_sentinels(self, name: &str) -> SentinelGroup {
        let master = Server::launch(&self, &[]);
        let follow = [format!("replicaof 127.0.0.1 {}", master.port())];
        let mut servers = vec![master];
        servers.extend((0..REPLICAS).map(|_| Server::launch(&self, &follow)));
        let mut group = SentinelGroup {
            options: self,
            name: name.to_owned(),
            servers,
            sentinels: Vec::new(),
        };
        // A sentinel asks the master for its replicas when it starts, then ten seconds later.
        until("the replicas have joined", || {
            group.replicas_online() == REPLICAS
        });
        group.start_sentinels();
        group
    }
}

impl SentinelGroup {
    /// Redis 7.0 without TLS and users; the master's name is `mymaster`.
    ///
    /// ```no_run
    /// use tidegate_testkit::redis::SentinelGroup;
    ///
    /// let group = SentinelGroup::start();
    /// let dead = group.kill_master();
    /// let heir = group.await_master_other_than(dead);
    /// heir.command(&["SET", "a", "1"]).done();
    /// ```
    pub fn start() -> Self {
        ServerOptions::default().start_sentinels("mymaster")
    }

    /// Starts the options of the servers; ends with [`ServerOptions::start_sentinels`].
    pub fn builder() -> ServerOptions {
        ServerOptions::default()
    }

    /// Returns the name that the sentinels know the master by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the servers that hold data, dead ones too: first the one that began as master.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Returns the sentinels.
    pub fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// Returns the URL for the limiter: all sentinels, then the name of the master.
    pub fn url(&self) -> String {
        let start = self
            .options
            .limiter()
            .url_start("redis+sentinel", "rediss+sentinel");
        let addresses: Vec<_> = self.sentinels.iter().map(Server::address).collect();
        format!("{start}{}/{}", addresses.join(","), self.name)
    }

    /// Returns the master that all running sentinels name. Waits until they agree; a master that
    /// has just died is still named for a while.
    pub fn master(&self) -> &Server {
        until_some("the sentinels agree on a master", || self.named_master())
    }

    /// Kills the master, and returns it.
    pub fn kill_master(&self) -> &Server {
        let master = self.master();
        master.kill9();
        master
    }

    /// Waits until the sentinels name a master that is not `old`, it accepts writes, and the other
    /// running servers follow it.
    pub fn await_master_other_than(&self, old: &Server) -> &Server {
        until_some("there is another master, and the others follow it", || {
            let master = self.named_master()?;
            let followers = self
                .servers
                .iter()
                .filter(|server| server.is_running() && server.port() != master.port());
            let port = format!("master_port:{}\r", master.port());
            let follows = |server: &Server| {
                info(server).is_some_and(|info| {
                    info.contains(&port) && info.contains("master_link_status:up")
                })
            };
            let is_new = master.port() != old.port() && info(master)?.contains("role:master");
            (is_new && followers.into_iter().all(follows)).then_some(master)
        })
    }

    fn start_sentinels(&mut self) {
        let (name, port) = (&self.name, self.master_at_start().port());
        let down = self.options.failover_ms;
        let mut lines = vec![
            format!("sentinel monitor {name} 127.0.0.1 {port} 2"),
            format!("sentinel down-after-milliseconds {name} {down}"),
            format!("sentinel failover-timeout {name} 3000"),
            format!("sentinel parallel-syncs {name} {REPLICAS}"),
        ];
        lines.extend(self.options.sentinel_lines(name));
        let start = |_| Server::launch_sentinel(&self.options, &lines);
        self.sentinels = (0..SENTINELS).map(start).collect();
        until("the sentinels see each other and the replicas", || {
            self.sentinels
                .iter()
                .all(|sentinel| self.sees_all(sentinel))
        });
    }

    fn master_at_start(&self) -> &Server {
        self.servers.first().expect("there is one")
    }

    fn replicas_online(&self) -> usize {
        info(self.master_at_start()).map_or(0, |info| info.matches("state=online").count())
    }

    fn sees_all(&self, sentinel: &Server) -> bool {
        let Some(fields) = sentinel.ask(&["SENTINEL", "MASTER", &self.name]) else {
            return false;
        };
        let fields = fields.texts();
        let is = |name: &str, value: &str| {
            let mut pairs = fields.chunks_exact(2);
            pairs.any(|pair| {
                pair.first().is_some_and(|has| has == name)
                    && pair.last().is_some_and(|has| has == value)
            })
        };
        is("flags", "master")
            && is("num-slaves", &REPLICAS.to_string())
            && is("num-other-sentinels", &(SENTINELS - 1).to_string())
    }

    /// Returns the master that every running sentinel names.
    fn named_master(&self) -> Option<&Server> {
        let mut ports = self
            .sentinels
            .iter()
            .filter(|sentinel| sentinel.is_running())
            .map(|sentinel| {
                let ask = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.name];
                sentinel.ask(&ask)?.list().last().map(RespReply::text)
            });
        let port = ports.next()??;
        if !ports.all(|other| other.as_ref() == Some(&port)) {
            return None;
        }
        self.servers
            .iter()
            .find(|server| server.port().to_string() == port)
    }
}

fn info(server: &Server) -> Option<String> {
    Some(server.ask(&["INFO", "replication"])?.text())
}

//! Servers to count in, and instances that count.

use crate::runtime;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use tidegate::{
    AddressBan, AnswerReason, AnyStore, Config, CountingStatus, Decision, Limiter, Request,
};
use tidegate_testkit::redis::{Cluster, RespReply, Server};
use tokio::task::JoinHandle;

/// The threshold of [`Place::config`].
pub(super) const THRESHOLD: u64 = 10;

/// An address that is never banned.
pub(super) const EXEMPT: &str = "192.0.2.200";

/// An address in the list of an exemption in shadow mode.
pub(super) const WATCHED: &str = "192.0.2.77";

/// Servers, and names that no other test uses.
pub(super) struct Place {
    servers: Servers,
    prefix: String,
}

enum Servers {
    One(Server),
    Cluster(&'static Cluster),
}

impl Place {
    /// Returns a server of this test alone, with the names of the documents.
    pub(super) fn standalone() -> Self {
        Self {
            servers: Servers::One(Server::start()),
            prefix: String::new(),
        }
    }

    pub(super) fn cluster() -> Self {
        static CLUSTER: OnceLock<Cluster> = OnceLock::new();
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self {
            servers: Servers::Cluster(CLUSTER.get_or_init(|| Cluster::start(3, 0))),
            prefix: format!("p{}-", NEXT.fetch_add(1, Relaxed)),
        }
    }

    pub(super) fn url(&self) -> String {
        match &self.servers {
            Servers::One(server) => server.url(),
            Servers::Cluster(cluster) => cluster.url(),
        }
    }

    pub(super) fn server(&self) -> &Server {
        match &self.servers {
            Servers::One(server) => server,
            Servers::Cluster(cluster) => &cluster.nodes()[0],
        }
    }

    pub(super) fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Sends a command about the key of this name.
    pub(super) fn type_in(&self, verb: &str, name: &str, rest: &[&str]) -> RespReply {
        self.command(verb, &self.name(name), rest)
    }

    /// Sends a command about the key next to it, with this suffix.
    pub(super) fn run_in_same_slot(
        &self,
        verb: &str,
        name: &str,
        suffix: &str,
        rest: &[&str],
    ) -> RespReply {
        let key = format!("{{{}}}:{suffix}", self.name(name));
        self.command(verb, &key, rest)
    }

    fn command(&self, verb: &str, key: &str, rest: &[&str]) -> RespReply {
        let words = [&[verb, key], rest].concat();
        match &self.servers {
            Servers::One(server) => server.command(&words),
            Servers::Cluster(cluster) => cluster.owner_of(cluster.slot_of(key)).command(&words),
        }
        .good()
    }

    /// Returns all counts of a map.
    pub(super) fn map(&self, name: &str) -> BTreeMap<String, u64> {
        let words = self.type_in("HGETALL", name, &[]).texts();
        let pairs = words.chunks_exact(2);
        pairs
            .map(|pair| (pair[0].clone(), pair[1].parse().expect("a number")))
            .collect()
    }

    pub(super) fn sum(&self, name: &str) -> u64 {
        self.map(name).values().sum()
    }

    pub(super) fn is_in_set(&self, member: &str) -> bool {
        let found = self.type_in("SISMEMBER", "BlacklistIPsSet", &[member]);
        found.int() == 1
    }

    /// Returns a configuration with periods of one second that bans after ten requests; `more` adds settings
    /// to `addresses`.
    pub(super) fn config(&self, more: &str) -> String {
        self.config_at(&self.url(), more, "{ name: all, rate: 1000000/s }")
    }

    pub(super) fn config_at(&self, url: &str, more: &str, limit: &str) -> String {
        let [set, period, total, tg] =
            ["BlacklistIPsSet", "CurrentPeriodMap", "AllIPsMap", "tg:"].map(|name| self.name(name));
        let unless_told = |field: &str, value: String| {
            let is_told = more.contains(field);
            if is_told { String::new() } else { value }
        };
        let maps = format!("maps: {{ period: '{period}', total: '{total}' }},");
        let maps = unless_told("maps:", maps);
        let threshold = unless_told("threshold:", format!("threshold: {THRESHOLD},"));
        format!(
            "
store: {{ url: '{url}', timeout: 10s, on_failure: allow, redis: {{ prefix: '{tg}' }} }}
guards:
  - {{ name: office, allow: ip, list: [{EXEMPT}] }}
  - {{ name: trial, allow: ip, list: [{WATCHED}], mode: shadow }}
  - {{ name: blacklist, deny: ip, redis: {{ set: '{set}' }}, refresh: 100ms }}
addresses: {{ period: 1s, {threshold} {maps} {more} }}
policies:
  - {{ name: api, limits: [{limit}] }}
  - {{ name: llm, reserve: 1min, limits: [{{ name: tokens, rate: 1000000/s }}] }}
"
        )
    }
}

/// A limiter, and the addresses it has banned.
pub(super) struct Instance {
    pub(super) limiter: Limiter<AnyStore>,
    pub(super) banned: Arc<Mutex<Vec<AddressBan>>>,
    keeping: Vec<JoinHandle<()>>,
}

impl Instance {
    /// Starts an instance that counts, and sends nothing yet.
    pub(super) fn start(config: &str) -> Self {
        let builder = Limiter::builder().yaml(config).expect("a valid config");
        let limiter = runtime().block_on(builder.start()).expect("it starts");
        let keeping = vec![runtime().spawn(limiter.keep_lists())];
        Self {
            limiter,
            banned: Arc::default(),
            keeping,
        }
    }

    /// Starts to send counts and close periods.
    pub(super) fn keep(&mut self) {
        let banned = Arc::clone(&self.banned);
        let tell = move |it| banned.lock().push(it);
        self.keeping
            .push(runtime().spawn(self.limiter.keep_counts(tell)));
    }

    /// Starts an instance that sends counts from the beginning.
    pub(super) fn kept(config: &str) -> Self {
        let mut instance = Self::start(config);
        instance.keep();
        instance
    }

    pub(super) fn ask(&self, address: &str) -> Decision {
        let asked = Request::new().ip(address.parse().expect("an address"));
        let decided = runtime().block_on(self.limiter.check(&asked));
        decided.expect("a decision")
    }

    pub(super) fn ask_often(&self, address: &str, times: u64) {
        for _ in 0..times {
            self.ask(address);
        }
    }

    pub(super) fn is_kept_out(&self, address: &str) -> bool {
        let asked = Request::new().ip(address.parse().expect("an address"));
        let decided = self.limiter.check_guards(&asked);
        decided.expect("it is open").reason() == AnswerReason::Blacklisted
    }

    pub(super) fn send(&self) {
        runtime().block_on(self.limiter.send_counts());
    }

    pub(super) fn status(&self) -> CountingStatus {
        self.limiter.counting().expect("addresses are counted")
    }

    pub(super) fn reload(&self, config: &str) {
        let config = Config::from_yaml(config).expect("a valid config");
        self.limiter.reload(config).expect("it is taken");
    }

    pub(super) fn banned(&self) -> Vec<(String, u64)> {
        let banned = self.banned.lock();
        let mut banned: Vec<_> = banned
            .iter()
            .map(|it| (it.address.clone(), it.count))
            .collect();
        banned.sort();
        banned
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.keeping.iter().for_each(JoinHandle::abort);
    }
}

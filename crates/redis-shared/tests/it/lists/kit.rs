//! Servers for lists, and manual changes to them.

use crate::world;
use std::future::Future;
use std::time::Duration;
use tidegate_redis_client::{Connection, ConnectionSettings, NodeChoice, protocol};
use tidegate_redis_shared::{
    BatchPlacement, Census, CensusLimits, CensusMap, CensusNames, CountBatch, RedisSets,
    RedisSharedState,
};
use tidegate_testkit::redis::ServerProgram;

/// Long enough for a busy machine.
pub(crate) const AGES: Duration = Duration::from_secs(30);

/// Longer than any test.
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// Servers, a connection to them, and names that no other test uses.
pub(crate) struct TestRedis {
    settings: ConnectionSettings,
    pub(crate) connection: Connection,
    prefix: String,
}

impl TestRedis {
    pub(crate) fn standalone() -> Self {
        Self::new(world::standalone(world::shared_server()))
    }

    pub(crate) fn cluster() -> Self {
        Self::new(world::cluster(world::shared_cluster()))
    }

    pub(crate) fn redis_8() -> Option<Self> {
        let server = world::shared_flavour(ServerProgram::Redis8)?;
        Some(Self::new(world::standalone(server)))
    }

    pub(crate) fn valkey_9() -> Option<Self> {
        let server = world::shared_flavour(ServerProgram::Valkey9)?;
        Some(Self::new(world::standalone(server)))
    }

    pub(crate) fn new(settings: ConnectionSettings) -> Self {
        Self {
            connection: open(&settings),
            settings,
            prefix: world::own_prefix(),
        }
    }

    /// Another connection.
    pub(crate) fn another(&self) -> Connection {
        open(&self.settings)
    }

    /// Returns the sets there.
    pub(crate) fn sets(&self) -> RedisSets {
        RedisSets::new(self.connection.clone())
    }

    /// Returns the shared state of an instance.
    pub(crate) fn state(&self) -> RedisSharedState {
        RedisSharedState::new(self.connection.clone(), self.prefix.clone())
    }

    pub(crate) fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Runs a command, whose second word is a key, as typed by a person.
    pub(crate) fn by_hand(&self, words: &[&str]) -> protocol::Value {
        let mut command = protocol::cmd(words[0]);
        for word in &words[1..] {
            command.arg(word);
        }
        let route = NodeChoice::Key(words[1].as_bytes());
        run(self.connection.command(route, &command)).expect("it is well-formed")
    }

    /// Returns the reply as text; empty if there is none.
    pub(crate) fn text(&self, words: &[&str]) -> String {
        protocol::from_redis_value::<Option<String>>(self.by_hand(words))
            .unwrap()
            .unwrap_or_default()
    }

    pub(crate) fn int(&self, words: &[&str]) -> i64 {
        protocol::from_redis_value(self.by_hand(words)).unwrap()
    }

    /// Returns the sum of a map's counts.
    pub(crate) fn sum(&self, key: &str) -> u64 {
        let fields = run(self.connection.hgetall(key.as_bytes())).unwrap();
        let counts = fields.into_iter().map(|(_, count)| {
            let count = String::from_utf8(count).unwrap();
            count.parse::<u64>().unwrap()
        });
        counts.sum()
    }

    pub(crate) fn names(&self) -> CensusNames {
        CensusNames {
            period: self.name("CurrentPeriodMap"),
            total: self.name("AllIPsMap"),
        }
    }

    /// Returns a census, which counts for an instance.
    pub(crate) fn census(&self, limits: CensusLimits) -> Census {
        Census::new(self.connection.clone(), &self.names(), limits)
    }
}

fn open(settings: &ConnectionSettings) -> Connection {
    run(Connection::open(settings.clone(), Vec::new())).expect("the servers are up")
}

pub(crate) fn run<F: Future>(future: F) -> F::Output {
    world::runtime().block_on(future)
}

pub(crate) fn texts(members: Vec<Vec<u8>>) -> Vec<String> {
    let mut texts: Vec<String> = members
        .into_iter()
        .map(|member| String::from_utf8(member).unwrap())
        .collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

pub(crate) const ROOMY: CensusLimits = CensusLimits {
    period_max: 1_000_000,
    total_max: 1_000_000,
    total_lasts: None,
};

pub(crate) fn batch(counts: &[(&str, u64)]) -> CountBatch {
    let counts = counts.iter();
    CountBatch::new(
        counts
            .map(|(name, count)| (name.as_bytes().to_vec(), *count))
            .collect(),
    )
}

/// Adds a batch, which must succeed.
pub(crate) fn add(census: &mut Census, counts: &[(&str, u64)]) -> BatchPlacement {
    run(census.add(&mut batch(counts))).expect("it is added")
}

/// Returns the largest counts, as text.
pub(crate) fn top(census: &Census, map: CensusMap, n: usize) -> Vec<(String, u64)> {
    let top = run(census.top(map, n)).unwrap();
    top.into_iter()
        .map(|(name, count)| (String::from_utf8(name).unwrap(), count))
        .collect()
}

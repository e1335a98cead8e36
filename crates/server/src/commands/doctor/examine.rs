//! Queries the servers. Changes nothing.

use super::clock::Offset;
use super::finding::Finding;
use super::info::Info;
use super::judge_sentinel::{self, Sentinel};
use super::latency::{self, CALLS, Latencies};
use super::node::{NodeExam, SETTINGS};
use super::shelves::StoredDocuments;
use super::{
    Report, acl, clock, judge_cluster, judge_memory, judge_persistence, judge_replication,
    permissions,
};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::{Clock, Store, SystemClock};
use tidegate_config::Config;
use tidegate_core::Quota;
use tidegate_policy::store::RedisSettings;
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_redis_client::protocol::{self, Cmd, Value};
use tidegate_redis_client::{
    Address, ConnectError, ConnectErrorKind, Connection, ConnectionSettings, NodeChoice, NodeInfo,
    NodeRole, RedisTopology,
};
use tidegate_telemetry::stopwatch::Stopwatch;

/// The name in `CLIENT LIST`.
const NAME: &str = "tidegate-doctor";

/// The number of times a clock is read: the fastest response is the most precise.
const CLOCK_READINGS: usize = 5;

/// Examines the store.
pub(super) async fn examine(
    (settings, options): (ConnectionSettings, RedisOptions),
    config: &Config,
    redis: &RedisSettings,
) -> Report {
    let settings = settings.client_name(NAME);
    let sentinels = judge_sentinel::judge(&sentinels(&settings).await);
    let mut report = match Connection::open(settings.clone(), Vec::new()).await {
        Ok(connection) => {
            let mut report = masters(&connection, config, redis).await;
            report.findings.push(scripts(settings, options).await);
            connection.close().await;
            report
        }
        Err(error) => Report {
            store: String::new(),
            findings: vec![refused(&error)],
            acl: Some(acl::lines(config, redis, None)),
        },
    };
    report.findings.extend(sentinels);
    report
}

fn refused(error: &ConnectError) -> Finding {
    let check = match error.kind() {
        ConnectErrorKind::Version => "version",
        _ => "connection",
    };
    Finding::fail(check, error.to_string())
}

/// Examines every master.
async fn masters(connection: &Connection, config: &Config, redis: &RedisSettings) -> Report {
    let known = connection.nodes();
    let mut findings = vec![topology(connection.mode(), &known)];
    let mut nodes = Vec::new();
    for node in known.iter().filter(|node| node.role == NodeRole::Master) {
        nodes.push(look(connection, node).await);
    }
    findings.extend(nodes.iter().map(version));
    findings.extend(clock::judge(&nodes));
    findings.extend(latency::judge(&nodes, config.store.timeout));
    let mode = connection.mode();
    for node in &nodes {
        let mut of_node = judge_memory::judge(node);
        of_node.push(judge_persistence::judge(node));
        of_node.extend(judge_replication::judge(node, mode));
        findings.extend(of_node.into_iter().map(|finding| finding.at(&node.address)));
    }
    if *mode == RedisTopology::Cluster {
        findings.extend(judge_cluster::judge(&nodes));
    }
    let mut infos = nodes.iter().filter_map(|node| node.info.as_ref());
    let version = infos.find_map(Info::version);
    findings.push(user(connection, redis).await);
    let needs = acl::needs(config, redis, version.as_ref());
    let key = format!("{}{{doctor}}nobody", redis.prefix);
    for node in &nodes {
        findings.extend(permissions::judge(connection, &node.address, &needs, &key).await);
    }
    let shelves = StoredDocuments::of(config, redis);
    findings.extend(permissions::judge_keys(connection, &shelves.keys).await);
    Report {
        store: String::new(),
        findings,
        acl: Some(acl::lines(config, redis, version.as_ref())),
    }
}

fn topology(mode: &RedisTopology, nodes: &[NodeInfo]) -> Finding {
    let count = |role| nodes.iter().filter(|node| node.role == role).count();
    let (masters, replicas) = (count(NodeRole::Master), count(NodeRole::Replica));
    let addresses: Vec<String> = nodes.iter().map(|node| node.address.to_string()).collect();
    let text = match mode {
        RedisTopology::Standalone => format!("standalone: {}", addresses.join(", ")),
        RedisTopology::Sentinel { master } => {
            format!("sentinel: `{master}` is {}", addresses.join(", "))
        }
        RedisTopology::Cluster => format!(
            "cluster: {masters} masters, {replicas} replicas: {}",
            addresses.join(", ")
        ),
    };
    let lost = nodes
        .iter()
        .filter(|node| node.role == NodeRole::Master && !node.is_connected);
    match lost.count() {
        0 => Finding::ok("topology", text),
        lost => Finding::fail(
            "topology",
            format!("{text}; {lost} masters are not connected"),
        ),
    }
}

/// Reports the user of the connection, as the server knows it.
async fn user(connection: &Connection, redis: &RedisSettings) -> Finding {
    let mut command = protocol::cmd("ACL");
    command.arg("WHOAMI");
    let reply = connection
        .command(NodeChoice::Key(b""), &command)
        .await
        .ok();
    let configured = redis.user.as_deref().unwrap_or("default");
    match reply.as_ref().and_then(text) {
        Some(user) => Finding::ok("user", format!("`{user}`")),
        None => Finding::unseen("user", format!("`{configured}`, as configured")),
    }
}

fn version(node: &NodeExam) -> Finding {
    let version = node.info.as_ref().and_then(Info::version);
    let finding = match version {
        None => Finding::unseen("version", "version not available"),
        Some(version) => match version.too_old_for() {
            None => Finding::ok("version", version.to_string()),
            Some(floor) => {
                Finding::fail("version", format!("{version}: {floor} or later is needed"))
            }
        },
    };
    finding.at(&node.address)
}

/// Runs all queries against a master.
async fn look(connection: &Connection, node: &NodeInfo) -> NodeExam {
    let address = &node.address;
    let asker = NodeExaminer {
        connection,
        address,
    };
    NodeExam {
        address: address.clone(),
        slots: node.slots.iter().map(ExactSizeIterator::len).sum(),
        info: asker.info().await,
        settings: asker.settings().await,
        offset: asker.offset().await,
        ping: asker.time(&protocol::cmd("PING")).await,
        script: asker.script().await,
    }
}

/// Queries one master.
struct NodeExaminer<'a> {
    connection: &'a Connection,
    address: &'a Address,
}

impl NodeExaminer<'_> {
    async fn ask(&self, command: &Cmd) -> Option<Value> {
        let route = NodeChoice::Node(self.address);
        self.connection.command(route, command).await.ok()
    }

    async fn info(&self) -> Option<Info> {
        text(&self.ask(&protocol::cmd("INFO")).await?).map(Info::new)
    }

    async fn settings(&self) -> BTreeMap<&'static str, String> {
        let mut settings = BTreeMap::new();
        for name in SETTINGS {
            let mut command = protocol::cmd("CONFIG");
            command.arg("GET").arg(name);
            // Older servers accept one name at a time, and not all know all of them.
            let Some(Value::Array(pair)) = self.ask(&command).await else {
                continue;
            };
            if let Some(value) = pair.get(1).and_then(text) {
                settings.insert(name, value);
            }
        }
        settings
    }

    async fn offset(&self) -> Option<Offset> {
        let clock = SystemClock::new();
        let mut best: Option<Offset> = None;
        for _ in 0..CLOCK_READINGS {
            let asked = clock.now().as_micros();
            let watch = Stopwatch::start();
            let reply = self.ask(&protocol::cmd("TIME")).await?;
            let offset = Offset::measured(asked, micros(&reply)?, watch.elapsed());
            best = Some(best.map_or(offset, |best| best.better(offset)));
        }
        best
    }

    /// Measures the latency of a series of calls.
    async fn time(&self, command: &Cmd) -> Option<Latencies> {
        let mut series: Vec<Duration> = Vec::new();
        for _ in 0..CALLS {
            let watch = Stopwatch::start();
            self.ask(command).await?;
            series.push(watch.elapsed());
        }
        Latencies::of(series)
    }

    async fn script(&self) -> Option<Latencies> {
        let mut load = protocol::cmd("SCRIPT");
        load.arg("LOAD").arg("return 1");
        let sha = text(&self.ask(&load).await?)?;
        let mut call = protocol::cmd("EVALSHA");
        call.arg(sha).arg(0);
        self.time(&call).await
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

/// Parses the reply of `TIME`: seconds and microseconds.
fn micros(reply: &Value) -> Option<u64> {
    let Value::Array(parts) = reply else {
        return None;
    };
    let mut parts = parts.iter().map(|part| text(part)?.parse::<u64>().ok());
    let (seconds, micros) = (parts.next()??, parts.next()??);
    seconds.checked_mul(1_000_000)?.checked_add(micros)
}

/// Loads the limiter's own scripts on every master, and runs one that only reads.
async fn scripts(settings: ConnectionSettings, options: RedisOptions) -> Finding {
    let store = match RedisBuckets::connect(settings, options).await {
        Ok(store) => store,
        Err(error) => return Finding::fail("scripts", error.to_string()),
    };
    let Ok(quota) = Quota::new(1, 1_000_000).build() else {
        return Finding::unseen("scripts", "not checked: the configuration has no limit");
    };
    let looked = store.inspect(b"tidegate/doctor/nobody", &quota).await;
    store.connection().close().await;
    match looked {
        Ok(_) => Finding::ok("scripts", "scripts load and run on every master"),
        Err(error) => Finding::fail("scripts", error.to_string()),
    }
}

/// Queries each sentinel, if there are any, for the master.
async fn sentinels(settings: &ConnectionSettings) -> Vec<Sentinel> {
    let RedisTopology::Sentinel { master } = &settings.mode else {
        return Vec::new();
    };
    let mut sentinels = Vec::new();
    for address in &settings.addresses {
        let mut alone = settings.clone().database(0).connections(1);
        alone.mode = RedisTopology::Standalone;
        alone.addresses = vec![address.clone()];
        if let Some(credentials) = alone.sentinel.take() {
            alone.user = credentials.user;
            alone.password = credentials.password;
        }
        sentinels.push(Sentinel {
            address: address.to_string(),
            master: ask_sentinel(alone, master).await,
        });
    }
    sentinels
}

async fn ask_sentinel(
    settings: ConnectionSettings,
    master: &str,
) -> Result<BTreeMap<String, String>, String> {
    let connection = Connection::open(settings, Vec::new()).await;
    let connection = connection.map_err(|error| error.to_string())?;
    let mut command = protocol::cmd("SENTINEL");
    command.arg("MASTER").arg(master);
    let reply = connection.command(NodeChoice::EveryMaster, &command).await;
    connection.close().await;
    let Value::Array(replies) = reply.map_err(|error| error.to_string())? else {
        return Err("an unexpected reply".to_owned());
    };
    let Some(Value::Array(fields)) = replies.first() else {
        return Err("an unexpected reply".to_owned());
    };
    let pairs = fields.chunks_exact(2);
    let pairs = pairs.filter_map(|pair| Some((text(pair.first()?)?, text(pair.get(1)?)?)));
    Ok(pairs.collect())
}

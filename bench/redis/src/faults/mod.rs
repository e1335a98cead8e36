//! Latency during faults: the duration of decisions while the store is stopped, killed, slow or
//! silent, compared with a bare timer on the same thread, which shows the machine's own noise.
//!
//! An error of the store counts as a result, because `on_failure` decides immediately. The deadline
//! is the default of 20 ms.

mod observe;

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate_redis_client::{Address, ConnectionSettings, RedisTopology};
use tidegate_testkit::redis::{Cluster, FaultProxy, ProxyFaults, SentinelGroup, Server};

use crate::candidates::tidegate::settings;
use crate::compare::Bench;
use crate::report::Report;
use crate::server::{CLIENT_CORE, SERVER_CORE};
use crate::usage;
use observe::{Observations, Phase, observe};

/// The number of slots moved between nodes.
const SLOTS_MOVED: u16 = 400;

/// Faults that need other servers.
const SENTINELS: &str = "master killed, sentinels make another";
const RESHARD: &str = "cluster: slots move from node to node";
const TAKEOVER: &str = "cluster: one of three masters killed, its replica takes over";

/// A fault and its repair.
struct Fault<'a> {
    name: &'static str,
    settings: ConnectionSettings,
    strike: Box<dyn FnOnce() + Send + 'a>,
}

/// Runs every fault in turn, or those whose name contains one of `only`.
pub(crate) fn run(bench: &Bench, report: &mut Report, only: &[String]) -> anyhow::Result<()> {
    let wanted = |name: &str| only.is_empty() || only.iter().any(|text| name.contains(text));
    let server = &bench.server.server;
    // Short runs only show that it works.
    let long = if bench.span < Duration::from_secs(1) {
        Duration::from_millis(700)
    } else {
        Duration::from_secs(2)
    };
    println!("\n16 tasks, each asks again 2 ms after its answer; deadline 20 ms; latencies in ms.");
    println!("The timer sleeps 1 ms again and again: how much too late it wakes, in ms.");
    // Everything except the client leaves its core.
    usage::pin(SERVER_CORE);
    let proxy = FaultProxy::start(server.port());
    usage::pin(CLIENT_CORE);
    for fault in of_one_server(server, &proxy, long) {
        if wanted(fault.name) {
            measure(bench, report, (fault, long))?;
        }
    }
    if wanted(SENTINELS) {
        usage::pin(SERVER_CORE);
        let group = SentinelGroup::start();
        usage::pin(CLIENT_CORE);
        measure(bench, report, (of_sentinels(&group), long))?;
    }
    for name in [RESHARD, TAKEOVER].into_iter().filter(|name| wanted(name)) {
        usage::pin(SERVER_CORE);
        let cluster = Cluster::start(3, 1);
        usage::pin(CLIENT_CORE);
        let fault = if name == RESHARD {
            reshard(&cluster)
        } else {
            takeover(&cluster)
        };
        measure(bench, report, (fault, long))?;
    }
    Ok(())
}

fn of_one_server<'a>(server: &'a Server, proxy: &'a FaultProxy, long: Duration) -> Vec<Fault<'a>> {
    let through_proxy = |name, faults: ProxyFaults| Fault {
        name,
        settings: settings(proxy.port()),
        strike: Box::new(move || {
            proxy.set(faults);
            thread::sleep(long);
            proxy.set(ProxyFaults::none());
        }),
    };
    let direct = |name, strike: Box<dyn FnOnce() + Send + 'a>| Fault {
        name,
        settings: settings(server.port()),
        strike,
    };
    vec![
        direct("nothing", Box::new(move || thread::sleep(long))),
        direct(
            "stopped and continued",
            Box::new(move || {
                server.stop();
                thread::sleep(long);
                server.cont();
            }),
        ),
        direct(
            "killed and started again",
            Box::new(move || {
                server.kill9();
                thread::sleep(long);
                server.restart();
            }),
        ),
        through_proxy("5 ms away", ProxyFaults::slow(Duration::from_millis(5))),
        through_proxy("50 ms away", ProxyFaults::slow(Duration::from_millis(50))),
        through_proxy("replies dropped", ProxyFaults::drop_replies()),
        Fault {
            name: "connections reset, then refused",
            settings: settings(proxy.port()),
            strike: Box::new(move || {
                proxy.set(ProxyFaults::refuse());
                proxy.reset();
                thread::sleep(long);
                proxy.set(ProxyFaults::none());
            }),
        },
        direct(
            "scripts flushed every millisecond",
            Box::new(move || {
                let end = Instant::now() + long;
                let mut client = server.client();
                while Instant::now() < end {
                    client.command(&["SCRIPT", "FLUSH"]).done();
                    thread::sleep(Duration::from_millis(1));
                }
            }),
        ),
        direct(
            "out of memory",
            Box::new(move || {
                server.command(&["CONFIG", "SET", "maxmemory", "1"]).done();
                thread::sleep(long);
                server.command(&["CONFIG", "SET", "maxmemory", "0"]).done();
            }),
        ),
    ]
}

fn of_sentinels(group: &SentinelGroup) -> Fault<'_> {
    let sentinels = group.sentinels().iter().map(Server::port);
    let addresses = sentinels.map(|port| Address::new("127.0.0.1", port));
    let mode = RedisTopology::Sentinel {
        master: group.name().to_owned(),
    };
    Fault {
        name: SENTINELS,
        settings: ConnectionSettings::new(mode, addresses.collect()),
        strike: Box::new(|| {
            let old = group.kill_master();
            group.await_master_other_than(old);
        }),
    }
}

fn cluster_settings(cluster: &Cluster) -> ConnectionSettings {
    let nodes = cluster.nodes().iter().map(Server::port);
    let addresses = nodes.map(|port| Address::new("127.0.0.1", port));
    ConnectionSettings::new(RedisTopology::Cluster, addresses.collect())
}

fn reshard(cluster: &Cluster) -> Fault<'_> {
    Fault {
        name: RESHARD,
        settings: cluster_settings(cluster),
        strike: Box::new(|| {
            for slot in 0..SLOTS_MOVED {
                let target = cluster.stranger_to(slot);
                cluster.migrate_slot(slot, target);
            }
        }),
    }
}

fn takeover(cluster: &Cluster) -> Fault<'_> {
    Fault {
        name: TAKEOVER,
        settings: cluster_settings(cluster),
        strike: Box::new(|| {
            let old = cluster.kill_master_of(0);
            cluster.await_owner_other_than(0, old);
        }),
    }
}

/// Measures before, during and after a fault.
fn measure(
    bench: &Bench,
    report: &mut Report,
    (fault, long): (Fault<'_>, Duration),
) -> anyhow::Result<()> {
    let Fault {
        name,
        settings,
        strike,
    } = fault;
    let (observed, [from, to]) = thread::scope(|scope| {
        let (tell, over) = tokio::sync::oneshot::channel();
        let striker = scope.spawn(move || {
            usage::pin(SERVER_CORE);
            thread::sleep(long / 2);
            let from = Instant::now();
            strike();
            let to = Instant::now();
            thread::sleep(long * 2);
            tell.send(()).ok();
            [from, to]
        });
        let observed = bench.runtime.block_on(observe(settings, over));
        let span = striker
            .join()
            .map_err(|_| anyhow::anyhow!("{name}: could not be done"));
        Ok::<_, anyhow::Error>((observed?, span?))
    })?;
    show(name, &observed, [from, to]);
    let phases = phases(&observed, [from, to]);
    report.add_fault(json!({
        "fault": name,
        "phases": phases.iter().map(|(phase, figures)| json!({ "phase": phase, "figures": figures })).collect::<Vec<_>>(),
        "first_answer_after_ms": observed.first_answer_after(to),
        "last_error_after_ms": observed.last_error_after(to),
    }))
}

fn phases(observed: &Observations, [from, to]: [Instant; 2]) -> [(&'static str, Phase); 3] {
    [
        ("before", observed.phase(None, Some(from))),
        ("during", observed.phase(Some(from), Some(to))),
        ("after", observed.phase(Some(to), None)),
    ]
}

fn show(name: &str, observed: &Observations, [from, to]: [Instant; 2]) {
    let lasted = to.duration_since(from).as_secs_f64();
    println!("\n{name} ({lasted:.1} s)");
    println!(
        "  {:8} {:>9} {:>9} {:>7} {:>7} {:>7}   {:>9} {:>7} {:>7}  errors",
        "", "decisions", "by store", "p50", "p99", "max", "timer p50", "p99", "max"
    );
    for (phase, figures) in phases(observed, [from, to]) {
        println!("  {phase:8} {}", figures.line());
    }
    let ms = |ms: Option<f64>| ms.map_or_else(|| "never".to_owned(), |ms| format!("{ms:.0} ms"));
    println!(
        "  after the end: first answer of the store {}, last error {}",
        ms(observed.first_answer_after(to)),
        ms(observed.last_error_after(to)),
    );
}

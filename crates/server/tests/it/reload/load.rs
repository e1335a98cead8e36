//! Reloads under load: no request fails, and none mixes two configurations.

use super::kit::{ReloadableServer, Upstream, answered_by, ask, marked, one_route, reloads};
use crate::kit::{Client, in_time};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use tidegate_net::tasks::Tasks;
use tokio::sync::watch;

/// The number of configuration changes under load.
const RELOADS: u64 = 20;
/// The minimum number of responses between two reloads.
const BETWEEN: u64 = 50;
/// Clients that keep their connection, and clients that never do.
const KEEPING: u64 = 6;
const FRESH: u64 = 3;

/// The state shared by clients and the reloading task.
struct LoadProgress {
    /// Reloads that began and that are done: even ones are for `a`, odd ones for `b`.
    begun: AtomicU64,
    done: AtomicU64,
    is_over: AtomicBool,
    answered: watch::Sender<u64>,
    by_a: AtomicU64,
    by_b: AtomicU64,
}

impl LoadProgress {
    /// Sends requests as long as there are reloads. Every response must come from one configuration
    /// that was served between request and response.
    async fn run(&self, gateway: SocketAddr, is_keeping: bool) {
        let mut client = Client::connect(gateway).await;
        for path in ["/", "/extra"].iter().cycle() {
            if self.is_over.load(SeqCst) {
                return;
            }
            let earliest = self.done.load(SeqCst);
            if !is_keeping {
                client = Client::connect(gateway).await;
            }
            let reply = ask(&mut client, path).await;
            let latest = self.begun.load(SeqCst);
            let name = answered_by(&reply);
            let mut served = (earliest..=latest).map(name_of);
            assert!(
                served.any(|it| it == name),
                "{name}: {earliest} to {latest}"
            );
            let by = if name == "a" { &self.by_a } else { &self.by_b };
            by.fetch_add(1, SeqCst);
            self.answered.send_modify(|count| *count += 1);
        }
    }
}

fn name_of(reload: u64) -> &'static str {
    if reload.is_multiple_of(2) { "a" } else { "b" }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_every_request_is_answered_by_one_configuration_as_a_whole() {
    let (a, b) = (Upstream::start("a").await, Upstream::start("b").await);
    // Another upstream, limit and header; and one has a route that the other lacks.
    let config_a = one_route("a", &a);
    let config_b = format!(
        "policies: [{{ name: api, limits: [{{ name: limit-b, rate: 2000000/s }}] }}]
routes:
  - {{ name: extra, match: {{ path: /extra }}, {marked} }}
  - {{ name: all, {marked} }}",
        marked = marked("b", &b)
    );
    let it = ReloadableServer::start(&config_a).await;
    let course = Arc::new(LoadProgress {
        begun: AtomicU64::new(0),
        done: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        answered: watch::Sender::new(0),
        by_a: AtomicU64::new(0),
        by_b: AtomicU64::new(0),
    });
    let clients = Tasks::new();
    let content = Arc::new(AtomicU64::new(0));
    for nth in 0..KEEPING + FRESH {
        let (course, content) = (Arc::clone(&course), Arc::clone(&content));
        let gateway = it.gateway;
        clients.spawn(async move {
            course.run(gateway, nth < KEEPING).await;
            content.fetch_add(1, SeqCst);
        });
    }
    let mut answered = course.answered.subscribe();
    for reload in 1..=RELOADS {
        let enough = *answered.borrow() + BETWEEN;
        let more = answered.wait_for(|count| *count >= enough);
        in_time("more answers", more).await.unwrap();
        course.begun.store(reload, SeqCst);
        it.reload(if reload.is_multiple_of(2) {
            &config_a
        } else {
            &config_b
        });
        course.done.store(reload, SeqCst);
    }
    let enough = *answered.borrow() + BETWEEN;
    let more = answered.wait_for(|count| *count >= enough);
    in_time("more answers", more).await.unwrap();
    course.is_over.store(true, SeqCst);
    in_time("the end of all clients", clients.finished()).await;
    assert_eq!(content.load(SeqCst), KEEPING + FRESH, "a request failed");

    // The metrics count every request, too.
    let metrics = it.metrics().await;
    for (name, by) in [("a", &course.by_a), ("b", &course.by_b)] {
        let series = format!(
            "tidegate_decisions_total{{policy=\"api\",limit=\"limit-{name}\",outcome=\"allowed\",\
             decided_by=\"store\",reason=\"allowed\"}}"
        );
        let count = u32::try_from(by.load(SeqCst)).unwrap();
        assert!(count > 0, "{name} was served");
        assert_eq!(metrics.get(&series), Some(&f64::from(count)), "{name}");
    }
    assert_eq!(reloads(&metrics), [Some(20.0), Some(0.0)]);
}

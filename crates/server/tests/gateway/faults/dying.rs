//! Two upstreams under load, one of which dies.

use super::kit::{Link, OK, Place, RawUpstream, post, stand};
use crate::kit::{Client, in_time};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use tidegate_net::tasks::Tasks;
use tokio::sync::Notify;

const CLIENTS: usize = 16;
/// Requests before one dies, and at least as many after.
const BEFORE: usize = 1_000;

/// The number of executions of each request, by its request line.
type Runs = Arc<Mutex<BTreeMap<String, usize>>>;

fn upstream(runs: &Runs, place: &Place) -> RawUpstream {
    let runs = Arc::clone(runs);
    RawUpstream::at(place, move |mut link: Link| {
        let runs = Arc::clone(&runs);
        async move {
            while let Some((head, _)) = link.request().await? {
                *runs.lock().entry(head.line).or_default() += 1;
                // Work during which it may die.
                tokio::task::yield_now().await;
                link.say(OK).await?;
            }
            Ok(())
        }
    })
}

/// The results of many clients.
#[derive(Default)]
struct Load {
    answered: AtomicUsize,
    failed: AtomicUsize,
    is_over: AtomicBool,
    is_warm: Notify,
}

/// Sends requests without a pause until the load ends.
async fn ask(load: Arc<Load>, address: SocketAddr, who: usize, is_post: bool) {
    let mut client = Client::connect(address).await;
    for nth in 0.. {
        if load.is_over.load(SeqCst) {
            return;
        }
        let target = format!("/{who}/{nth}");
        let reply = if is_post {
            client.ask(post(&target, "hello")).await
        } else {
            client.get(&target, &[]).await
        };
        match reply.status() {
            200 => {
                if load.answered.fetch_add(1, SeqCst) == BEFORE {
                    load.is_warm.notify_one();
                }
            }
            502 => {
                load.failed.fetch_add(1, SeqCst);
            }
            status => panic!("{status}"),
        }
    }
}

/// Returns the number of failed requests, and the number of executions of each.
async fn run(is_post: bool) -> (usize, BTreeMap<String, usize>) {
    let runs = Runs::default();
    let places = (Place::reserve(), Place::reserve());
    let (mortal, other) = (upstream(&runs, &places.0), upstream(&runs, &places.1));
    let stand = stand(&[mortal.address, other.address], "").await;
    let load = Arc::new(Load::default());
    let clients = Tasks::new();
    for who in 0..CLIENTS {
        clients.spawn(ask(Arc::clone(&load), stand.address, who, is_post));
    }
    in_time("load", load.is_warm.notified()).await;
    drop(mortal);
    let at_death = load.answered.load(SeqCst);
    let more = async {
        while load.answered.load(SeqCst) < at_death + BEFORE {
            tokio::task::yield_now().await;
        }
    };
    in_time("answers after its death", more).await;
    load.is_over.store(true, SeqCst);
    in_time("the end of all clients", clients.finished()).await;
    stand.is_at_rest().await;
    let answered = load.answered.load(SeqCst);
    let runs = runs.lock().clone();
    assert!(runs.len() >= answered, "every answered request was run");
    (load.failed.load(SeqCst), runs)
}

#[tokio::test]
async fn requests_that_may_be_repeated_never_fail() {
    let (failed, _) = run(false).await;
    assert_eq!(failed, 0);
}

#[tokio::test]
async fn requests_that_may_not_be_repeated_are_never_run_twice() {
    let (failed, runs) = run(true).await;
    let twice: Vec<_> = runs.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    // Only those in flight when it died.
    assert!(failed <= CLIENTS, "{failed}");
}

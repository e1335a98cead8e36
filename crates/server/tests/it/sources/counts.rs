//! Limits that change under load: as many requests pass as the current rate allows.

use super::kit::Program;
use super::origin::{Origin, Rate};
use crate::kit::{Client, in_time};
use futures_util::future::join_all;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_net::tasks::Tasks;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The number of concurrent clients.
const CLIENTS: usize = 2;
/// The time after which an event counts as missing.
const PATIENCE: Duration = Duration::from_mins(1);

/// Results of requests that were sent and decided under the same rate.
#[derive(Clone, Default)]
struct Counts {
    phase: Phase,
    asked: u64,
    allowed: u64,
    /// Unexpected responses.
    wrong: Vec<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// A change is in progress: either rate may decide.
    #[default]
    Changing,
    /// The rate of this change is in force.
    Settled(u64),
    Over,
}

/// Sends requests continuously.
async fn ask(http: SocketAddr, policy: &str, counts: &watch::Sender<Counts>) {
    let question = format!(r#"{{"policy": "{policy}", "path": "/"}}"#);
    let mut client = Client::connect(http).await;
    loop {
        let phase = counts.borrow().phase;
        if phase == Phase::Over {
            return;
        }
        let reply = client.post(&question).await;
        counts.send_modify(|counts| {
            if reply.status != 200 {
                counts
                    .wrong
                    .push(format!("{} {}", reply.status, reply.body));
            } else if counts.phase == phase {
                counts.asked += 1;
                counts.allowed += u64::from(reply.is_allowed());
            }
        });
    }
}

/// Returns the most requests that a limit admits within any interval of this length: the burst plus
/// the refill.
fn most(rate: Rate, span: Duration) -> u64 {
    rate.amount + refilled(rate, span)
}

/// Returns the refill within an interval.
fn refilled(rate: Rate, span: Duration) -> u64 {
    let micros = u128::from(rate.seconds) * 1_000_000;
    let refilled = u128::from(rate.amount) * span.as_micros() / micros;
    u64::try_from(refilled).unwrap()
}

/// Lets clients send requests under `rate` for long enough to detect half or twice of it, or the
/// rate `before`.
async fn hold(counts: &watch::Sender<Counts>, nth: u64, rate: Rate, before: Option<Rate>) {
    let mut seen = counts.subscribe();
    let began = Instant::now();
    counts.send_modify(|counts| {
        *counts = Counts {
            phase: Phase::Settled(nth),
            wrong: counts.wrong.clone(),
            ..Counts::default()
        };
    });
    let held = async {
        loop {
            seen.changed().await.unwrap();
            let counts = seen.borrow_and_update().clone();
            // Read afterwards: all counted requests happened within it.
            let span = began.elapsed();
            assert_eq!(counts.wrong, [] as [String; 0]);
            let most_now = most(rate, span);
            assert!(
                counts.allowed <= most_now,
                "{rate}: {} of {} passed in {span:?}, and at most {most_now} may",
                counts.allowed,
                counts.asked
            );
            let back = refilled(rate, span);
            let shows = match before {
                Some(before) if before.amount < rate.amount => {
                    counts.allowed > most(before, span).max(back / 2)
                }
                Some(before) => refilled(before, span) > 2 * most_now,
                None => true,
            };
            // Demand far exceeds the quota, so the limit determines how many pass.
            if shows && back > 2 * rate.amount && counts.asked > 2 * most_now {
                return;
            }
        }
    };
    let held = timeout(PATIENCE, held).await;
    let now = counts.borrow().clone();
    assert!(
        held.is_ok(),
        "{rate}: no more than {} of {} passed",
        now.allowed,
        now.asked
    );
    counts.send_modify(|counts| counts.phase = Phase::Changing);
}

async fn follows(origin: &Origin) {
    let rates = [10, 50, 5].map(Rate::a_second);
    let mut program: Program = origin.start(rates[0], "").await;
    let counts = Arc::new(watch::Sender::new(Counts::default()));
    let tasks = Tasks::new();
    for _ in 0..CLIENTS {
        let (http, counts) = (program.http, Arc::clone(&counts));
        let policy = origin.name();
        tasks.spawn(async move { ask(http, policy, &counts).await });
    }
    hold(&counts, 1, rates[0], None).await;
    for (nth, pair) in (2..).zip(rates.windows(2)) {
        origin.change(&mut program, nth, pair[1], "").await;
        hold(&counts, nth, pair[1], Some(pair[0])).await;
    }
    counts.send_modify(|counts| counts.phase = Phase::Over);
    in_time("the end of all clients", tasks.finished()).await;
    assert_eq!(counts.borrow().wrong, [] as [String; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_limit_applies_from_any_source() {
    let origins = Origin::all().await;
    join_all(origins.iter().map(follows)).await;
}

//! Limits that refuse, while they change: what passes is what the number in force lets pass.

use super::kit::Program;
use super::origin::{Origin, Rate};
use crate::kit::Client;
use futures_util::future::join_all;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_server::tasks::Tasks;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// How many ask at once.
const CLIENTS: usize = 2;
/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_mins(1);

/// What became of the questions that were both asked and answered while one number was in force.
#[derive(Clone, Default)]
struct Counts {
    phase: Phase,
    asked: u64,
    allowed: u64,
    /// Answers that should not have been.
    wrong: Vec<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// A change is on its way, and whoever asks may be answered by either number.
    #[default]
    Changing,
    /// The number of this change is in force.
    Settled(u64),
    Over,
}

/// Asks as often as there are answers.
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

/// The most that a limit lets pass within any span of this length: all of it at once, and what comes back
/// meanwhile.
fn most(rate: Rate, span: Duration) -> u64 {
    rate.amount + refilled(rate, span)
}

/// What comes back within a span.
fn refilled(rate: Rate, span: Duration) -> u64 {
    let micros = u128::from(rate.seconds) * 1_000_000;
    let refilled = u128::from(rate.amount) * span.as_micros() / micros;
    u64::try_from(refilled).unwrap()
}

/// Lets them ask while `rate` is in force, for so long that half of it, or twice, would show, and so would
/// the number `before`, had it stayed.
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
            // Looked at afterwards: what was counted has happened within it.
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
            // They ask for far more than there is, so that it is the limit that says how many pass.
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
    tasks.finished().await;
    assert_eq!(counts.borrow().wrong, [] as [String; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_passes_follows_the_number_from_its_change_on_whichever_source_it_comes_from() {
    let origins = Origin::all().await;
    join_all(origins.iter().map(follows)).await;
}

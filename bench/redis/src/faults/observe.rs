//! Decides steadily, and records the time, the duration and the result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tidegate_core::{Ask, Quota, Store};
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_redis_client::ConnectionSettings;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::candidates::tidegate::ample;
use crate::sample::percentile;

const TASKS: usize = 16;
const PAUSE: Duration = Duration::from_millis(2);
const TIMER: Duration = Duration::from_millis(1);
const KEYS: usize = 10_000;

/// One decision, or one tick of the timer.
#[derive(Clone, Copy)]
struct Event {
    asked: Instant,
    ms: f64,
    /// The kind of error, if it was one.
    error: Option<&'static str>,
}

/// All events.
pub(super) struct Observations {
    decisions: Vec<Event>,
    timer: Vec<Event>,
}

/// The events of a period.
#[derive(serde::Serialize)]
pub(super) struct Phase {
    decisions: usize,
    by_store: usize,
    latency_ms: [f64; 3],
    timer_ms: [f64; 3],
    errors: BTreeMap<&'static str, usize>,
}

/// Decides until the phase ends.
pub(super) async fn observe(
    settings: ConnectionSettings,
    over: oneshot::Receiver<()>,
) -> anyhow::Result<Observations> {
    let store = RedisBuckets::connect(settings, RedisOptions::default()).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let quota = ample()?;
    let mut askers = JoinSet::new();
    for task in 0..TASKS {
        askers.spawn(ask(store.clone(), quota, task, Arc::clone(&stop)));
    }
    let timer = tokio::spawn(turn(Arc::clone(&stop)));
    over.await.ok();
    stop.store(true, Relaxed);
    let mut decisions = Vec::new();
    while let Some(events) = askers.join_next().await {
        decisions.extend(events?);
    }
    store.connection().close().await;
    decisions.sort_by_key(|event| event.asked);
    Ok(Observations {
        decisions,
        timer: timer.await?,
    })
}

async fn ask(store: RedisBuckets, quota: Quota, task: usize, stop: Arc<AtomicBool>) -> Vec<Event> {
    let mut events = Vec::new();
    for nth in (task..).step_by(TASKS) {
        if stop.load(Relaxed) {
            break;
        }
        let bucket = format!("api/calls/{:012}", nth % KEYS);
        let asked = Instant::now();
        let answer = store
            .decide(&[Ask::take(bucket.as_bytes(), &quota, 1)])
            .await;
        events.push(Event {
            asked,
            ms: asked.elapsed().as_secs_f64() * 1e3,
            error: answer.err().map(|error| error.kind().as_str()),
        });
        tokio::time::sleep(PAUSE).await;
    }
    events
}

async fn turn(stop: Arc<AtomicBool>) -> Vec<Event> {
    let mut events = Vec::new();
    while !stop.load(Relaxed) {
        let asked = Instant::now();
        tokio::time::sleep(TIMER).await;
        let late = asked.elapsed().saturating_sub(TIMER);
        events.push(Event {
            asked,
            ms: late.as_secs_f64() * 1e3,
            error: None,
        });
    }
    events
}

impl Observations {
    /// Returns the events that began in a period.
    pub(super) fn phase(&self, from: Option<Instant>, to: Option<Instant>) -> Phase {
        let within = |event: &&Event| {
            from.is_none_or(|from| event.asked >= from) && to.is_none_or(|to| event.asked < to)
        };
        let events: Vec<&Event> = self.decisions.iter().filter(within).collect();
        let mut errors = BTreeMap::new();
        for kind in events.iter().filter_map(|event| event.error) {
            *errors.entry(kind).or_default() += 1;
        }
        Phase {
            decisions: events.len(),
            by_store: events.iter().filter(|event| event.error.is_none()).count(),
            latency_ms: figures(events.iter().map(|event| event.ms)),
            timer_ms: figures(self.timer.iter().filter(within).map(|event| event.ms)),
            errors,
        }
    }

    /// Returns the milliseconds from `end` to the last error.
    pub(super) fn last_error_after(&self, end: Instant) -> Option<f64> {
        let failed = |event: &&Event| event.asked >= end && event.error.is_some();
        let last = self.decisions.iter().rfind(failed)?;
        Some(last.asked.duration_since(end).as_secs_f64() * 1e3)
    }

    /// Returns the milliseconds from `end` to the store's first reply.
    pub(super) fn first_answer_after(&self, end: Instant) -> Option<f64> {
        let answered = |event: &&Event| event.asked >= end && event.error.is_none();
        let first = self.decisions.iter().find(answered)?;
        Some(first.asked.duration_since(end).as_secs_f64() * 1e3 + first.ms)
    }
}

/// Returns median, 99th percentile and maximum.
fn figures(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    [0.5, 0.99, 1.0].map(|share| percentile(&mut values, share))
}

impl Phase {
    pub(super) fn line(&self) -> String {
        let [p50, p99, max] = self.latency_ms;
        let [timer_p50, timer_p99, timer_max] = self.timer_ms;
        let errors: Vec<String> = self
            .errors
            .iter()
            .map(|(kind, count)| format!("{kind} {count}"))
            .collect();
        format!(
            "{:>9} {:>8.1}% {p50:>7.2} {p99:>7.2} {max:>7.2}   {timer_p50:>9.2} {timer_p99:>7.2} {timer_max:>7.2}  {}",
            self.decisions,
            100.0 * self.by_store as f64 / (self.decisions.max(1)) as f64,
            errors.join(", "),
        )
    }
}

//! Decisions on one core while ten thousand limits are reloaded on another.

use crate::Plan;
use crate::world::{self, RequestSequence, LAYOUTS, Layout};
use anyhow::ensure;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use tidegate::{Config, Limiter};
use tidegate_bench_measure::{self as measure, Histogram, Summary};

const LIMITS: usize = 10_000;

/// The number of reloads per round.
const TIMES: usize = 5;

/// The maximum time to read them and put them in force.
const BAR: Duration = Duration::from_secs(1);

/// The result; medians over the rounds.
#[derive(serde::Serialize)]
pub(crate) struct Row {
    layout: Layout,
    /// True with reloads, false without.
    reloads: bool,
    took_ms: Summary,
    p50_ns: Summary,
    p99_ns: Summary,
    p999_ns: Summary,
    most_ns: Summary,
}

struct Round {
    histogram: Histogram,
    took: Duration,
}

pub(crate) fn run(plan: Plan) -> anyhow::Result<Vec<Row>> {
    measure::pin(1);
    let mut all = Vec::new();
    println!("\ndecisions, each with a look at the clock, while {LIMITS} limits are read again");
    println!(
        "  {:24} {:>9} {:>7} {:>8} {:>9} {:>9}",
        "", "took ms", "p50 ns", "p99 ns", "p99.9 ns", "most µs"
    );
    for (layout, name) in LAYOUTS {
        let limiter = Limiter::from_yaml(&world::yaml(layout, LIMITS, 0))?;
        let texts = [1, 2].map(|version| world::yaml(layout, LIMITS, version));
        let mut rounds = [Vec::new(), Vec::new()];
        for _ in 0..plan.reps.min(5) {
            rounds[0].push(round(layout, &limiter, None)?);
            rounds[1].push(round(layout, &limiter, Some(&texts))?);
        }
        for (reloads, rounds) in [false, true].into_iter().zip(rounds) {
            let row = row(layout, reloads, &rounds);
            tell(if reloads { name } else { "beside nothing" }, &row);
            all.push(row);
        }
    }
    let slowest = all.iter().map(|row| row.took_ms.median).fold(0.0, f64::max);
    let is_met = slowest <= BAR.as_secs_f64() * 1e3;
    let word = if is_met { "met" } else { "missed" };
    println!("  bar: read and in force within {BAR:?}: {word}");
    Ok(all)
}

fn round(layout: Layout, limiter: &Limiter, texts: Option<&[String; 2]>) -> anyhow::Result<Round> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        let deciding = scope.spawn(move || {
            measure::pin(0);
            decide(layout, limiter, is_over)
        });
        let took = act(limiter, texts);
        is_over.store(true, Relaxed);
        let histogram = deciding
            .join()
            .expect("a measuring thread does not panic")?;
        Ok(Round {
            histogram,
            took: took?,
        })
    })
}

/// Reloads several times; returns how long each took.
fn act(limiter: &Limiter, texts: Option<&[String; 2]>) -> anyhow::Result<Duration> {
    let Some(texts) = texts else {
        thread::sleep(Duration::from_secs(1));
        return Ok(Duration::ZERO);
    };
    let begun = Instant::now();
    for text in texts.iter().cycle().take(TIMES) {
        limiter.reload(Config::from_yaml(text)?)?;
    }
    Ok(begun.elapsed() / u32::try_from(TIMES)?)
}

/// Decides until the reloads end; returns the duration of each decision.
fn decide(layout: Layout, limiter: &Limiter, is_over: &AtomicBool) -> anyhow::Result<Histogram> {
    let mut asking = RequestSequence::new(layout, LIMITS);
    let mut histogram = Histogram::new();
    let mut last = Instant::now();
    while !is_over.load(Relaxed) {
        ensure!(asking.next(limiter), "not every request met its limit");
        let now = Instant::now();
        let took = now.duration_since(last).as_nanos();
        histogram.add(u64::try_from(took).unwrap_or(u64::MAX));
        last = now;
    }
    Ok(histogram)
}

fn row(layout: Layout, reloads: bool, rounds: &[Round]) -> Row {
    let of = |figure: &dyn Fn(&Round) -> f64| Summary::of(rounds.iter().map(figure));
    Row {
        layout,
        reloads,
        took_ms: of(&|it| it.took.as_secs_f64() * 1e3),
        p50_ns: of(&|it| it.histogram.within(500_000)),
        p99_ns: of(&|it| it.histogram.within(990_000)),
        p999_ns: of(&|it| it.histogram.within(999_000)),
        most_ns: of(&|it| it.histogram.most()),
    }
}

fn tell(name: &str, row: &Row) {
    println!(
        "  {name:24} {:>9.0} {:>7.0} {:>8.0} {:>9.0} {:>9.0}",
        row.took_ms.median,
        row.p50_ns.median,
        row.p99_ns.median,
        row.p999_ns.median,
        row.most_ns.median / 1e3
    );
}

//! A decision among ten limits, a thousand, ten thousand.

use crate::Plan;
use crate::world::{self, RequestSequence, CHUNK, LAYOUTS, Layout};
use anyhow::{Context as _, ensure};
use tidegate::Limiter;
use tidegate_bench_measure::{self as measure, Summary};

/// The numbers of limits, the baseline first.
const LIMITS: [usize; 3] = [10, 1_000, 10_000];

/// The maximum ratio of the time with the most limits to that with the fewest.
const BAR: f64 = 1.3;

/// The result for one number of limits.
#[derive(serde::Serialize)]
pub(crate) struct Row {
    layout: Layout,
    limits: usize,
    ns: Summary,
    /// The ratio to the baseline, per round.
    times: Summary,
}

pub(crate) fn run(plan: Plan) -> anyhow::Result<Vec<Row>> {
    measure::pin(0);
    let mut all = Vec::new();
    for (layout, name) in LAYOUTS {
        let rows = of(layout, plan)?;
        tell(plan, name, &rows);
        all.extend(rows);
    }
    Ok(all)
}

fn of(layout: Layout, plan: Plan) -> anyhow::Result<Vec<Row>> {
    let limiters: Result<Vec<_>, _> = LIMITS
        .iter()
        .map(|limits| Limiter::from_yaml(&world::yaml(layout, *limits, 0)))
        .collect();
    let mut asking = LIMITS.map(|limits| RequestSequence::new(layout, limits));
    let mut samples = LIMITS.map(|_| Vec::new());
    let limiters = limiters?;
    for _ in 0..plan.reps {
        // Round-robin, so that other load affects all alike.
        for ((limiter, asking), samples) in limiters.iter().zip(&mut asking).zip(&mut samples) {
            let mut missed = false;
            samples.push(measure::ns_each(plan.span, || {
                let passed = asking.some(limiter);
                missed |= passed != CHUNK;
                passed
            }));
            ensure!(!missed, "{layout:?}: not every request met its limit");
        }
    }
    let first = samples.first().context("there are some")?.clone();
    let rows = LIMITS.iter().zip(samples).map(|(limits, samples)| Row {
        layout,
        limits: *limits,
        ns: Summary::of(samples.iter().copied()),
        times: Summary::of(samples.iter().zip(&first).map(|(ns, first)| ns / first)),
    });
    Ok(rows.collect())
}

fn tell(plan: Plan, name: &str, rows: &[Row]) {
    let (reps, span) = (plan.reps, plan.span.as_millis());
    println!("\na decision; {name}; {reps} rounds of {span} ms");
    println!(
        "  {:>8} {:>8} {:>6} {:>8} {:>16}",
        "limits", "ns", "±", "times", "least .. most"
    );
    for row in rows {
        let times = row.times;
        println!(
            "  {:>8} {:>8.0} {:>5.0}% {:>8.2} {:>16}",
            row.limits,
            row.ns.median,
            row.ns.spread(),
            times.median,
            format!("{:.2} .. {:.2}", times.least, times.most)
        );
    }
    if let Some(most) = rows.last() {
        let is_met = most.times.median <= BAR;
        let word = if is_met { "met" } else { "missed" };
        println!("  bar: at most {BAR} times as long: {word}");
    }
}

//! The cost of limits per request in process: time and allocations of a service behind them,
//! compared with the bare service, in one run.
//!
//! `../README.md` explains how to run it and how to read it.

mod measure;

use anyhow::Context as _;
use clap::Parser;
use measure::Figures;
use std::path::PathBuf;
use std::time::Duration;

/// Measures what limits add to a request.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Short spans and few repetitions: shows that it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Measures the bare application, and of the others only those whose name contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Writes every figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let (reps, span_ms) = if options.quick { (3, 40) } else { (9, 250) };
    measure::pin().context("pinning the thread to a core")?;
    let mut subjects = tidegate_bench_tower::all()?;
    let allocations = measure::allocations()?;
    if let Some(part) = &options.filter {
        subjects.retain(|subject| subject.name == "bare" || subject.name.contains(part));
    }
    let mut samples = vec![Vec::new(); subjects.len()];
    for _ in 0..reps {
        // Round-robin, so that other load affects all alike.
        for (subject, samples) in subjects.iter_mut().zip(&mut samples) {
            samples.push(measure::once(subject, Duration::from_millis(span_ms))?);
        }
    }
    let rows: Vec<Figures> = subjects
        .iter_mut()
        .zip(&samples)
        .map(|(subject, samples)| {
            let named = allocations.iter().find(|(name, _)| name == subject.name);
            Figures::of(
                subject,
                samples,
                named.map_or(u64::MAX, |(_, count)| *count),
            )
        })
        .collect();
    let bare = rows.first().context("the bare application is measured")?;
    println!(
        "{:<26} {:>9} {:>6} {:>9} {:>8} {:>8}",
        "service", "ns", "±", "added ns", "allocs", "headers"
    );
    for row in &rows {
        println!(
            "{:<26} {:>9.0} {:>5.0}% {:>9.0} {:>8} {:>8}",
            row.name,
            row.ns,
            row.spread * 100.0,
            row.ns - bare.ns,
            row.allocations,
            row.headers
        );
    }
    if let Some(path) = options.json {
        let json = serde_json::to_vec_pretty(&rows)?;
        std::fs::write(&path, json).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

//! The cost of one decision in process: Tidegate's memory store, its peers and the floor, measured
//! side by side in one run.
//!
//! | module | contents |
//! |---|---|
//! | [`workload`] | rows, quotas, keys and the order of their use |
//! | [`subject`] | one trait, and the list of candidates |
//! | [`subjects`] | the candidates, one file each; only `tidegate.rs` uses Tidegate's API |
//! | [`measure`] | one timed run on pinned threads |
//! | [`compare`] | repetitions, round-robin over the candidates |
//! | [`memory`] | bytes per key, in a child process for each candidate |
//! | [`watchdog`] | ends a run that hangs |
//! | [`report`] | the table and the JSON file |
//!
//! `../README.md` explains how to run it and how to read its ratios.

mod compare;
mod measure;
mod memory;
mod report;
mod stats;
mod subject;
mod subjects;
mod watchdog;
mod workload;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;

use compare::{Plan, Section};
use report::Report;

/// Measures one decision in process, side by side with the peers.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Short spans and few repetitions: shows that it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Measures only cells whose name contains one of these, such as `hot-deny`, `/governor/2t`
    /// or `bytes/tidegate`
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    filter: Vec<String>,
    /// Writes every figure and every repetition to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Repetitions of each cell [default: 7, quick: 3]
    #[arg(long, value_name = "N")]
    reps: Option<usize>,
    /// Length of one repetition [default: 250, quick: 40]
    #[arg(long, value_name = "MS")]
    span_ms: Option<u64>,
    /// Prints the bytes per key of one candidate; this is how the program calls itself
    #[arg(long, hide = true, value_name = "STORE")]
    bytes_per_key_of: Option<String>,
}

impl Options {
    fn plan(&self) -> anyhow::Result<Plan> {
        let (reps, span_ms) = if self.quick { (3, 40) } else { (7, 250) };
        let span = Duration::from_millis(self.span_ms.unwrap_or(span_ms));
        Ok(Plan {
            reps: self.reps.unwrap_or(reps).max(1),
            span,
            warm_up: span / 5,
            cores: measure::cores().context("asking which cores may be used")?,
            filter: self.filter.clone(),
        })
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(name) = &options.bytes_per_key_of {
        println!("{}", memory::bytes_per_key_here(name)?);
        return Ok(());
    }
    let plan = options.plan()?;
    let mut report = Report::begin(&plan, options.json);
    for section in [Section::decisions(), Section::steps()] {
        for row in section.rows {
            let cells = compare::row(&section, row, &plan)?;
            report.add_row(&section, row, &cells)?;
        }
    }
    report.add_memory(&memory::bytes_per_key(&plan)?)?;
    report.verdict()
}

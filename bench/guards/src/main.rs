//! The cost of guards and plans per decision in process, its growth with their length, and the
//! effect of reloading them on concurrent decisions.
//!
//! | module | contents |
//! |---|---|
//! | [`world`] | clients, lists and plans |
//! | [`decisions`] | a decision with guards and plans, compared with one without |
//! | [`instructions`] | the same in instructions, under valgrind |
//! | [`lookups`] | lookups in lists of several lengths |
//! | [`reloads`] | decisions while a million members are reloaded |
//!
//! `../README.md` explains how to run it and how to read it.

mod decisions;
mod instructions;
mod lookups;
mod reloads;
mod world;

use anyhow::Context as _;
use clap::Parser;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Measures what guards and plans cost.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Short spans, few repetitions and short lists: shows that it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Measures only these: decisions, instructions, lookups, reloads
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<String>,
    /// Writes every figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Decides by one candidate and says nothing; this is how the program calls itself
    #[arg(long, hide = true, value_name = "CANDIDATE")]
    instructions_of: Option<String>,
}

/// The amount of work.
#[derive(Clone, Copy)]
struct Plan {
    reps: usize,
    span: Duration,
    /// Members of the longest list, and subjects of the plan that is reloaded.
    most: usize,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(name) = &options.instructions_of {
        return instructions::here(name);
    }
    let plan = if options.quick {
        Plan {
            reps: 3,
            span: Duration::from_millis(40),
            most: 200_000,
        }
    } else {
        Plan {
            reps: 11,
            span: Duration::from_millis(250),
            most: 1_000_000,
        }
    };
    let wants = |part| options.only.is_empty() || options.only.iter().any(|it| it == part);
    let mut found = json!({});
    if wants("decisions") {
        found["decisions"] = json!(decisions::run(plan)?);
    }
    if wants("instructions") {
        found["instructions"] = json!(instructions::run()?);
    }
    if wants("lookups") {
        found["lookups"] = json!(lookups::run(plan)?);
    }
    if wants("reloads") {
        found["reloads"] = json!(reloads::run(plan)?);
    }
    if let Some(path) = options.json {
        let text = format!("{found:#}\n");
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

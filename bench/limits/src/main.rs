//! The cost of a decision with many limits, and the effect of reloading them on concurrent
//! decisions.
//!
//! | module | contents |
//! |---|---|
//! | [`world`] | configurations with many limits, and clients |
//! | [`decisions`] | a decision with ten limits, a thousand, ten thousand |
//! | [`reloads`] | decisions while ten thousand limits are reloaded |
//!
//! `../README.md` explains how to run it and how to read it.

mod decisions;
mod reloads;
mod world;

use anyhow::Context as _;
use clap::Parser;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Measures what many limits cost.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Short spans and few repetitions: shows that it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Writes every figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The amount of work.
#[derive(Clone, Copy)]
struct Plan {
    reps: usize,
    span: Duration,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let plan = if options.quick {
        Plan {
            reps: 3,
            span: Duration::from_millis(40),
        }
    } else {
        Plan {
            reps: 11,
            span: Duration::from_millis(250),
        }
    };
    let found = json!({
        "decisions": decisions::run(plan)?,
        "reloads": reloads::run(plan)?,
    });
    if let Some(path) = options.json {
        let text = format!("{found:#}\n");
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

//! Whether a decision minds how many limits there are, and what reading all of them again does to
//! decisions meanwhile.
//!
//! | module | what it is |
//! |---|---|
//! | [`world`] | configurations of many limits, and who asks |
//! | [`decisions`] | a decision among ten limits, a thousand, ten thousand |
//! | [`reloads`] | decisions while ten thousand limits are read again |
//!
//! `../README.md` says how to run it and how to read it.

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

/// How much to measure.
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

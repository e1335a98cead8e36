//! The cost of one decision in Redis: Tidegate's store, a plain script under `redis-benchmark`, and
//! the peers, measured side by side on one server in one run.
//!
//! | module | contents |
//! |---|---|
//! | [`sections`] | the comparisons |
//! | [`candidates`] | the candidates, one file each |
//! | [`load`] | the loads of Tidegate's store |
//! | [`drive`] | decisions from many concurrent tasks, on one thread |
//! | [`compare`] | repetitions, round-robin over the candidates |
//! | [`sample`] | one repetition: decisions, and their costs |
//! | [`server`] | Redis on a separate core, and its statistics |
//! | [`faults`] | latency while the store is stopped, killed, slow or silent |
//! | [`bars`] | the required ratios |
//! | [`report`] | the tables and the JSON file |
//!
//! `../README.md` explains how to run it and how to read its ratios.

mod bars;
mod candidates;
mod compare;
mod drive;
mod faults;
mod load;
mod report;
mod sample;
mod sections;
mod server;
#[path = "../../inproc/src/stats.rs"]
mod stats;
mod usage;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Parser, ValueEnum};
use tidegate_testkit::redis::ServerProgram;
use tokio::runtime;

use compare::Bench;
use report::Report;
use server::MeasuredServer;

/// Measures decisions in Redis, side by side with a plain script and the peers.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Short spans, few keys and rounds: shows that it works, not how fast it is
    #[arg(long)]
    quick: bool,
    /// Only these sections: distinct, hot, three, units, calendar, alone, refused; or faults with such a name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Measures latency through faults instead
    #[arg(long)]
    faults: bool,
    /// Writes every figure and every repetition to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Rounds [default: 5, quick: 3]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Length of one repetition [default: 1000, quick: 150]
    #[arg(long, value_name = "MS")]
    span_ms: Option<u64>,
    /// How many connections Tidegate's store has
    #[arg(long, value_name = "N", default_value_t = 2)]
    connections: usize,
    /// The server; `TIDEGATE_TEST_REDIS7` and the like say where it is, if not where it usually is
    #[arg(long, value_enum, default_value_t = Program::Redis7)]
    server: Program,
    /// Debian: in the package redis-tools
    #[arg(long, value_name = "PATH", default_value = "redis-benchmark")]
    redis_benchmark: PathBuf,
    /// redis-cell's library, loaded into a server of its own; without it, its rows say absent
    #[arg(long, value_name = "PATH")]
    redis_cell: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Program {
    Redis7,
    Redis8,
    Valkey9,
}

impl Options {
    fn bench(&self) -> anyhow::Result<Bench> {
        let (rounds, span_ms, keys) = if self.quick {
            (3, 150, 20_000)
        } else {
            (5, 1_000, 100_000)
        };
        let flavour = self.flavour()?;
        let probe = Command::new(&self.redis_benchmark)
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        probe.context("redis-benchmark is not there: apt-get install redis-tools")?;
        let server = MeasuredServer::start(flavour, &[])?;
        Ok(Bench {
            runtime: runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
            server,
            redis_benchmark: self.redis_benchmark.clone(),
            rounds: self.rounds.unwrap_or(rounds).max(1),
            span: Duration::from_millis(self.span_ms.unwrap_or(span_ms)),
            connections: self.connections,
            keys,
        })
    }

    fn flavour(&self) -> anyhow::Result<ServerProgram> {
        let flavour = match self.server {
            Program::Redis7 => ServerProgram::Redis7,
            Program::Redis8 => ServerProgram::Redis8,
            Program::Valkey9 => ServerProgram::Valkey9,
        };
        if !flavour.available() {
            bail!("no server: apt-get install redis-server, or see --help");
        }
        Ok(flavour)
    }

    fn cell(&self) -> sections::Cell {
        let path = self
            .redis_cell
            .as_ref()
            .ok_or("absent: --redis-cell PATH")?;
        let path = path.to_str().filter(|_| path.is_file());
        let path = path.ok_or("absent: there is no such file")?;
        let flavour = self.flavour().map_err(|error| error.to_string())?;
        let server = MeasuredServer::start(flavour, &[("loadmodule", path)]);
        server.map(Rc::new).map_err(|error| error.to_string())
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let bench = options.bench()?;
    let mut report = Report::begin(&bench, options.json.clone());
    if options.faults {
        return faults::run(&bench, &mut report, &options.only);
    }
    Report::explain(&bench);
    let cell = options.cell();
    let wanted = |id: &str| options.only.is_empty() || options.only.iter().any(|only| only == id);
    let mut any = false;
    for (id, make) in sections::ALL {
        if wanted(id) {
            let mut section = make(&bench, &cell)?;
            let cells = compare::section(&bench, &mut section)?;
            report.add(&section, &cells)?;
            any = true;
        }
    }
    if !any {
        bail!("there is no such section");
    }
    report.end();
    Ok(())
}

//! Repetitions, round-robin over the candidates.

use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::sample::Sample;
use crate::server::MeasuredServer;
use crate::stats;

/// The environment of all candidates.
pub(crate) struct Bench {
    /// One thread, on the client's core.
    pub(crate) runtime: Runtime,
    pub(crate) server: MeasuredServer,
    pub(crate) redis_benchmark: PathBuf,
    pub(crate) rounds: usize,
    pub(crate) span: Duration,
    /// The store's connections to the server.
    pub(crate) connections: usize,
    /// The number of distinct keys.
    pub(crate) keys: usize,
}

/// A candidate.
pub(crate) trait Candidate {
    fn name(&self) -> &str;

    /// Creates every key of the load; their memory is counted.
    fn fill(&mut self, bench: &Bench) -> anyhow::Result<()>;

    /// Decides for about `span`, and fails if a result was not as expected.
    fn sample(&mut self, bench: &Bench, span: Duration) -> anyhow::Result<Sample>;
}

/// Candidates with the same load.
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    pub(crate) candidates: Vec<Box<dyn Candidate>>,
    /// Missing candidates, and the reasons.
    pub(crate) absent: Vec<(&'static str, String)>,
    pub(crate) turns: Turns,
}

/// The division of a section's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    /// As set for the run.
    Usual,
    /// Five times as many, a fifth as long, so that other load affects all alike.
    Short,
    /// At least this long, and at most three of them, for slow effects.
    Long(Duration),
}

impl Turns {
    /// Returns the number of rounds, and the length of each.
    fn of(self, bench: &Bench) -> (usize, Duration) {
        match self {
            Self::Usual => (bench.rounds, bench.span),
            Self::Short => (bench.rounds * 5, bench.span / 5),
            // A quick run only shows that it works.
            Self::Long(least) if bench.span < least / 4 => (1, least / 2),
            Self::Long(least) => (bench.rounds.min(3), bench.span.max(least)),
        }
    }
}

/// All repetitions of one candidate.
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) samples: Vec<Sample>,
    pub(crate) bytes_per_key: Option<f64>,
}

impl Cell {
    pub(crate) fn median(&self, part: fn(&Sample) -> f64) -> f64 {
        stats::median(self.samples.iter().map(part))
    }

    pub(crate) fn spread(&self, part: fn(&Sample) -> f64) -> f64 {
        stats::spread(self.samples.iter().map(part))
    }
}

/// Measures a section.
pub(crate) fn section(bench: &Bench, section: &mut Section) -> anyhow::Result<Vec<Cell>> {
    bench.server.command(&["FLUSHALL"])?;
    let mut cells = Vec::new();
    for candidate in &mut section.candidates {
        let (bytes_before, keys_before) = bench.server.memory()?;
        candidate.fill(bench)?;
        let (bytes, keys) = bench.server.memory()?;
        let new = keys - keys_before;
        cells.push(Cell {
            name: candidate.name().to_owned(),
            samples: Vec::new(),
            // Fewer are lost in the noise of buffers.
            bytes_per_key: (new >= 1e4).then(|| (bytes - bytes_before) / new),
        });
    }
    let (rounds, span) = section.turns.of(bench);
    for candidate in &mut section.candidates {
        candidate.sample(bench, span.min(bench.span) / 2)?;
    }
    for _ in 0..rounds {
        for (candidate, cell) in section.candidates.iter_mut().zip(&mut cells) {
            cell.samples.push(candidate.sample(bench, span)?);
        }
    }
    Ok(cells)
}

//! Repetitions, round-robin over the candidates.
//!
//! The first repetition of every candidate comes before the second of any, so that other load
//! affects all of them alike.

use std::time::Duration;

use anyhow::ensure;

use crate::measure::{self, Sample, Timing};
use crate::stats;
use crate::subject::{self, Candidate, Subject};
use crate::watchdog::Watchdog;
use crate::workload::{self, Keys, Row, Verdict};

/// A repetition that lost more than this share of its time to other programs is repeated.
const STOLEN_MAX: f64 = 0.05;

/// The maximum number of attempts; then the least disturbed one counts.
const TRIES_MAX: usize = 3;

/// Calls after which every candidate refuses in a deny row.
const CALLS_UNTIL_SHUT: usize = 4;

/// The maximum time for filling all candidates of a row with keys.
pub(crate) const FILL_MAX: Duration = Duration::from_mins(2);

/// The amount of work.
pub(crate) struct Plan {
    pub(crate) reps: usize,
    pub(crate) span: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) cores: Vec<usize>,
    pub(crate) filter: Vec<String>,
}

impl Plan {
    /// Returns true if the filter selects the cell of this name.
    pub(crate) fn wants(&self, cell: &str) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|text| cell.contains(text.as_str()))
    }

    /// Returns the maximum time of one repetition with all its attempts.
    fn cell_max(&self) -> Duration {
        (self.warm_up + self.span) * 10 + Duration::from_secs(20)
    }

    /// Returns the thread counts to measure.
    pub(crate) fn thread_counts(&self) -> impl Iterator<Item = usize> {
        1..=self.cores.len().min(2)
    }
}

/// Rows that share their candidates.
pub(crate) struct Section {
    pub(crate) rows: &'static [Row],
    pub(crate) candidates: Vec<Candidate>,
    /// The candidate that the others are compared with.
    pub(crate) baseline: &'static str,
    keys: fn(usize) -> Keys,
}

impl Section {
    /// Single decisions, compared with the rival.
    pub(crate) fn decisions() -> Self {
        Self {
            rows: workload::DECISIONS,
            candidates: subject::deciders(),
            baseline: subject::RIVAL,
            keys: Keys::new,
        }
    }

    /// Decisions over several buckets, compared with a single decision.
    pub(crate) fn steps() -> Self {
        Self {
            rows: workload::STEPS,
            candidates: subject::steppers(),
            baseline: subject::ONE_BUCKET,
            keys: Keys::with_companions,
        }
    }
}

/// The result of one candidate on one row and thread count.
pub(crate) struct Cell {
    pub(crate) candidate: &'static str,
    pub(crate) threads: usize,
    pub(crate) samples: Vec<Sample>,
    /// The reason if the samples are invalid.
    pub(crate) fault: Option<String>,
}

impl Cell {
    fn name(&self, row: &Row) -> String {
        format!("{}/{}/{}t", row.id, self.candidate, self.threads)
    }

    /// Calls a second of all threads together.
    pub(crate) fn calls_per_s(&self) -> f64 {
        stats::median(self.samples.iter().map(|sample| sample.calls_per_s))
    }

    /// Nanoseconds of one thread for a call.
    pub(crate) fn ns_per_call(&self) -> f64 {
        self.threads as f64 * 1e9 / self.calls_per_s()
    }

    /// Returns the spread of the repetitions.
    pub(crate) fn spread(&self) -> f64 {
        stats::spread(self.samples.iter().map(|sample| sample.calls_per_s))
    }

    /// Returns the maximum share that other programs took of a repetition that counts.
    pub(crate) fn stolen(&self) -> f64 {
        self.samples
            .iter()
            .map(|sample| sample.stolen)
            .fold(0.0, f64::max)
    }
}

/// Measures one row, without the cells that the filter leaves out.
pub(crate) fn row(section: &Section, row: &Row, plan: &Plan) -> anyhow::Result<Vec<Cell>> {
    let mut cells: Vec<Cell> = section
        .candidates
        .iter()
        .flat_map(|candidate| {
            plan.thread_counts().map(|threads| Cell {
                candidate: candidate.name,
                threads,
                samples: Vec::with_capacity(plan.reps),
                fault: None,
            })
        })
        .filter(|cell| plan.wants(&cell.name(row)))
        .collect();
    // All one-thread cells come first, so that compared cells are measured close in time.
    cells.sort_by_key(|cell| cell.threads);
    if cells.is_empty() {
        return Ok(cells);
    }
    let keys = (section.keys)(row.keys);
    let orders: Vec<_> = plan
        .thread_counts()
        .map(|thread| workload::order(row, thread as u64))
        .collect();
    let filling = Watchdog::over(&format!("{}: filling", row.id), FILL_MAX);
    let subjects = subjects(section, row, &keys, &cells)?;
    drop(filling);
    for repetition in 0..plan.reps {
        for cell in cells.iter_mut().filter(|cell| cell.fault.is_none()) {
            let timing = Timing {
                warm_up: plan.warm_up,
                span: plan.span,
                repetition,
            };
            let subject = subjects
                .iter()
                .find_map(|(name, subject)| (*name == cell.candidate).then_some(&**subject))
                .expect("a subject was made for every cell");
            let _watchdog = Watchdog::over(&cell.name(row), plan.cell_max());
            let sample = undisturbed(|| {
                measure::run(subject, &keys, &orders[..cell.threads], &plan.cores, timing)
            });
            cell.fault = fault(row, cell, sample);
            cell.samples.push(sample);
        }
    }
    Ok(cells)
}

type NamedSubject = (&'static str, Box<dyn Subject>);

/// Returns the subjects that `cells` need, with all keys filled.
fn subjects(
    section: &Section,
    row: &Row,
    keys: &Keys,
    cells: &[Cell],
) -> anyhow::Result<Vec<NamedSubject>> {
    let mut subjects = Vec::new();
    for candidate in &section.candidates {
        if !cells.iter().any(|cell| cell.candidate == candidate.name) {
            continue;
        }
        let subject = (candidate.build)(row.keys, row.quota)?;
        for at in 0..row.keys {
            let met = subject.meet(keys, at);
            ensure!(
                met,
                "{}: {}: key {at} did not start anew",
                row.id,
                candidate.name
            );
            if row.verdict == Verdict::Deny {
                for _ in 0..CALLS_UNTIL_SHUT {
                    subject.decide(keys, at);
                }
            }
        }
        subjects.push((candidate.name, subject));
    }
    Ok(subjects)
}

/// Repeats a disturbed run: at most [`TRIES_MAX`] times.
fn undisturbed(mut run: impl FnMut() -> Sample) -> Sample {
    let mut best = run();
    for _ in 1..TRIES_MAX {
        if best.stolen <= STOLEN_MAX {
            break;
        }
        let again = run();
        if again.stolen < best.stolen {
            best = again;
        }
    }
    best
}

/// A row is valid only if every single call got the expected result.
fn fault(row: &Row, cell: &Cell, sample: Sample) -> Option<String> {
    let expected = match row.verdict {
        Verdict::Allow => 1.0,
        Verdict::Deny => 0.0,
    };
    ((sample.passed - expected).abs() > f64::EPSILON).then(|| {
        let (name, share) = (cell.name(row), sample.passed * 100.0);
        format!("{name}: {share:.3} % of the calls passed")
    })
}

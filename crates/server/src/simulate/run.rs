//! Lines in, decisions out.

use super::engine::Engine;
use super::event::Event;
use super::formats::InputFormat;
use super::formats::detect::{Detected, detect};
use super::lines::{InputLine, InputLines, LINE_MAX};
use super::progress::{Audience, SimulationProgress};
use super::skipped::{BadLine, SkippedLines};
use super::table::grouped;
use crate::failure::Failure;
use crate::wire::answer;
use std::io::{self, ErrorKind, Read, Write};

/// How many bytes of decisions are gathered before they are written.
const OUT_MAX: usize = 256 << 10;

/// What is simulated, and what is told of it.
#[derive(Clone, Debug)]
pub struct Job {
    /// What messages call the trace or access log.
    pub name: String,
    /// How long it is, if that is known.
    pub total_bytes: Option<u64>,
    /// What its lines look like; going by the first of them where absent.
    pub format: Option<InputFormat>,
    /// Whether decisions are written.
    pub decisions: DecisionOutput,
    /// Whether anything but errors is told.
    pub notes: NoteVerbosity,
    /// Who is told how far it has come.
    pub audience: Audience,
}

/// Whether decisions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionOutput {
    /// One for each request.
    Written,
    /// None: they only count.
    Counted,
}

/// Whether anything but errors is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteVerbosity {
    /// Which format was found, the first lines that are passed over, the summary.
    Told,
    /// Nothing.
    Kept,
}

/// Decides every line of `input`. Decisions go to `out`, everything else to `err`.
///
/// Every decision that comes before a failure has been written when this returns.
pub fn run(
    job: Job,
    input: impl Read,
    engine: Engine,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), Failure> {
    let mut lines = InputLines::new(input);
    let mut run = SimulationRun {
        progress: SimulationProgress::start(job.audience, job.total_bytes),
        job,
        engine,
        skipped: SkippedLines::default(),
        pending: Vec::with_capacity(OUT_MAX + OUT_MAX / 4),
        out,
        err,
    };
    let ended = run.decide_all(&mut lines);
    let ended = ended.and_then(|()| run.summarise(lines.number()));
    match ended {
        Ok(()) | Err(RunStop::Unread) => Ok(()),
        Err(RunStop::Failed(failure)) => Err(failure),
    }
}

/// A job under way.
struct SimulationRun<'a> {
    job: Job,
    engine: Engine,
    skipped: SkippedLines,
    progress: SimulationProgress,
    /// Decisions that are yet to be written.
    pending: Vec<u8>,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

/// Why it does not go on.
enum RunStop {
    /// Nobody reads the decisions any more: how `head` says that it has enough.
    Unread,
    /// It failed.
    Failed(Failure),
}

impl From<Failure> for RunStop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl SimulationRun<'_> {
    fn decide_all(&mut self, lines: &mut InputLines<impl Read>) -> Result<(), RunStop> {
        let Some(format) = self.format(lines)? else {
            return Ok(());
        };
        loop {
            loop {
                let number = lines.number() + 1;
                let Some(line) = lines.next_line() else { break };
                if let Err(bad) = self.decide(format, line, number) {
                    self.refuse_or_skip(format, &bad)?;
                }
                if self.pending.len() >= OUT_MAX {
                    self.write()?;
                }
            }
            // Before reading on, which may take as long as whoever writes the input likes.
            self.write()?;
            let told = self
                .progress
                .tell(lines.number(), lines.read_bytes(), self.err);
            told.map_err(|error| untold(&error))?;
            if !lines.fill().map_err(|error| self.unreadable(&error))? {
                return Ok(());
            }
        }
    }

    /// The format that was asked for, or else the one that is found; none where there are no lines.
    fn format(
        &mut self,
        lines: &mut InputLines<impl Read>,
    ) -> Result<Option<InputFormat>, RunStop> {
        if self.job.format.is_some() {
            return Ok(self.job.format);
        }
        let start = lines.peek().map_err(|error| self.unreadable(&error))?;
        let name = &self.job.name;
        match detect(start) {
            Detected::Empty => Ok(None),
            Detected::Format(format) => {
                self.note(&format!("reading {name} as {format}"))?;
                Ok(Some(format))
            }
            Detected::Unknown => Err(RunStop::Failed(Failure::input(format!(
                "cannot tell what {name} is: its first lines are neither questions with `at_ms`, nor \
                 of an access log\n   help: say it with --format trace, combined or json, and the \
                 lines that are wrong will be named"
            )))),
        }
    }

    /// Decides one line.
    #[inline]
    fn decide(
        &mut self,
        format: InputFormat,
        line: InputLine<'_>,
        number: u64,
    ) -> Result<(), BadLine> {
        let InputLine::Whole(text) = line else {
            let message = format!(
                "this line is longer than {} bytes",
                grouped(LINE_MAX as u64)
            );
            return Err(BadLine::whole(number, message));
        };
        if is_blank(text) {
            return Ok(());
        }
        let mut event = Event::default();
        let read = format.read(text, &mut event);
        read.map_err(|fault| BadLine::at(number, text, &fault))?;
        let decided = self.engine.decide(&event, |decision| {
            if self.job.decisions == DecisionOutput::Written {
                answer::write(decision, &mut self.pending);
                self.pending.push(b'\n');
            }
        });
        decided.map_err(|error| BadLine::whole(number, error.to_string()))
    }

    #[cold]
    fn refuse_or_skip(&mut self, format: InputFormat, bad: &BadLine) -> Result<(), RunStop> {
        let message = format!("{}:{bad}", self.job.name);
        if !format.skips() {
            self.write()?;
            return Err(RunStop::Failed(Failure::input(message)));
        }
        if self.skipped.add() {
            self.note(&format!("{message}; passed over"))?;
        }
        Ok(())
    }

    /// Writes what is pending.
    fn write(&mut self) -> Result<(), RunStop> {
        let written = self
            .out
            .write_all(&self.pending)
            .and_then(|()| self.out.flush());
        self.pending.clear();
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => RunStop::Unread,
            _ => RunStop::Failed(Failure::runtime(format!("cannot write decisions: {error}"))),
        })
    }

    /// Tells something beside the decisions.
    fn note(&mut self, text: &str) -> Result<(), RunStop> {
        if self.job.notes == NoteVerbosity::Kept {
            return Ok(());
        }
        let told = self.progress.clear(self.err);
        told.and_then(|()| writeln!(self.err, "{text}"))
            .map_err(|error| untold(&error))
    }

    fn summarise(&mut self, lines: u64) -> Result<(), RunStop> {
        let skipped = match self.skipped.count() {
            0 => String::new(),
            1 => "; 1 could not be read and was passed over".to_owned(),
            count => format!(
                "; {} could not be read and were passed over",
                grouped(count)
            ),
        };
        let summary = format!(
            "{}{skipped}\n{}",
            self.progress.pace(lines),
            self.engine.tally()
        );
        self.note(summary.trim_end())
    }

    fn unreadable(&self, error: &io::Error) -> RunStop {
        let message = format!("cannot read {}: {error}", self.job.name);
        RunStop::Failed(Failure::input(message))
    }
}

fn untold(error: &io::Error) -> RunStop {
    RunStop::Failed(Failure::runtime(format!(
        "cannot write to the error stream: {error}"
    )))
}

#[inline]
fn is_blank(line: &[u8]) -> bool {
    line.first().is_none_or(u8::is_ascii_whitespace) && line.trim_ascii().is_empty()
}

//! Lines in, decisions out.

use super::engine::Engine;
use super::event::Event;
use super::formats::InputFormat;
use super::formats::detect::{FormatDetection, detect};
use super::lines::{InputLine, InputLines, LINE_MAX};
use super::progress::{Audience, SimulationProgress};
use super::skipped::{BadLine, SkippedLines};
use super::table::grouped;
use std::io::{self, ErrorKind, Read, Write};
use tidegate_control::failure::Failure;
use tidegate_frontends::wire::answer;

/// The number of bytes of decisions to buffer before they are written.
const OUT_MAX: usize = 256 << 10;

/// The parameters of a simulation.
#[derive(Clone, Debug)]
pub struct Job {
    /// The name of the trace or access log in messages.
    pub name: String,
    /// The length of the input, if known.
    pub total_bytes: Option<u64>,
    /// The format of the lines. Default: detected from the first lines.
    pub format: Option<InputFormat>,
    /// The output of decisions.
    pub decisions: DecisionOutput,
    /// The output of notes.
    pub notes: NoteVerbosity,
    /// The destination of progress reports.
    pub audience: Audience,
    /// The summary has colours.
    pub is_colored: bool,
}

/// The output of decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionOutput {
    /// One line for each request.
    Written,
    /// None: decisions are only counted.
    Counted,
}

/// The output of everything but errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteVerbosity {
    /// The detected format, the first skipped lines, and the summary.
    Told,
    /// Nothing.
    Kept,
}

/// Decides every line of `input`. Decisions go to `out`, everything else to `err`.
///
/// All decisions before a failure have been written when this returns.
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

/// A simulation that is running.
struct SimulationRun<'a> {
    job: Job,
    engine: Engine,
    skipped: SkippedLines,
    progress: SimulationProgress,
    /// Decisions that are not written yet.
    pending: Vec<u8>,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

/// The reason why the simulation stops.
enum RunStop {
    /// The reader of the decisions has closed the pipe, like `head`.
    Unread,
    /// A failure.
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
            // Write before reading more, which may block for any time.
            self.write()?;
            let written = self
                .progress
                .tell(lines.number(), lines.read_bytes(), self.err);
            written.map_err(|error| untold(&error))?;
            if !lines.fill().map_err(|error| self.unreadable(&error))? {
                return Ok(());
            }
        }
    }

    /// Returns the requested format, or else the detected one; `None` if there are no lines.
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
            FormatDetection::Empty => Ok(None),
            FormatDetection::Format(format) => {
                self.note(&format!("reading {name} as {format}"))?;
                Ok(Some(format))
            }
            FormatDetection::Unknown => Err(RunStop::Failed(Failure::input(format!(
                "cannot detect the format of {name}: its first lines are neither check requests \
                 with `at_ms` nor an access log\n   help: set --format trace, combined or json \
                 to see the invalid lines"
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
            self.note(&format!("{message}; skipped"))?;
        }
        Ok(())
    }

    /// Writes the pending decisions.
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

    /// Writes a note to `err`.
    fn note(&mut self, text: &str) -> Result<(), RunStop> {
        if self.job.notes == NoteVerbosity::Kept {
            return Ok(());
        }
        let written = self.progress.clear(self.err);
        written
            .and_then(|()| writeln!(self.err, "{text}"))
            .map_err(|error| untold(&error))
    }

    fn summarise(&mut self, lines: u64) -> Result<(), RunStop> {
        let skipped = match self.skipped.count() {
            0 => String::new(),
            1 => "; 1 invalid line was skipped".to_owned(),
            count => format!("; {} invalid lines were skipped", grouped(count)),
        };
        let tally = self.engine.tally();
        let tally = if self.job.is_colored {
            tally.styled()
        } else {
            tally.to_string()
        };
        let summary = format!("{}{skipped}\n{tally}", self.progress.pace(lines));
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

//! The progress of a simulation, reported while it runs.

use super::table::grouped;
use std::fmt::Write as _;
use std::io::{self, Write};
use tidegate::{Clock, SystemClock, Timestamp};
use tidegate_policy::text::counted;

/// The interval of reports on a terminal.
const TERMINAL_EVERY_US: u64 = 100_000;

/// The interval of reports elsewhere, where each is a new line.
const LINES_EVERY_US: u64 = 1_000_000;

/// The destination of progress reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A terminal: one line, which is overwritten.
    Terminal,
    /// A file or a pipe: a new line each time.
    Log,
    /// No reports.
    Nobody,
}

/// Reports the progress of a simulation. Real time is used for this and for nothing else.
#[derive(Debug)]
pub struct SimulationProgress {
    audience: Audience,
    clock: SystemClock,
    started: Timestamp,
    shown_at: Timestamp,
    /// The length of the input, if known.
    total_bytes: Option<u64>,
}

impl SimulationProgress {
    /// Starts the clock.
    pub fn start(audience: Audience, total_bytes: Option<u64>) -> Self {
        let clock = SystemClock::new();
        let started = clock.now();
        Self {
            audience,
            clock,
            started,
            shown_at: started,
            total_bytes,
        }
    }

    /// Reports the progress, unless the interval has not elapsed.
    pub fn tell(&mut self, lines: u64, bytes: u64, to: &mut dyn Write) -> io::Result<()> {
        let every_us = match self.audience {
            Audience::Terminal => TERMINAL_EVERY_US,
            Audience::Log => LINES_EVERY_US,
            Audience::Nobody => return Ok(()),
        };
        let now = self.clock.now();
        if now.since(self.shown_at) < every_us {
            return Ok(());
        }
        self.shown_at = now;
        let text = describe(lines, bytes, self.total_bytes, now.since(self.started));
        match self.audience {
            Audience::Terminal => write!(to, "\r{text}\x1b[K")?,
            _ => writeln!(to, "{text}")?,
        }
        to.flush()
    }

    /// Erases the last report from a terminal, so that other output can follow.
    pub fn clear(&self, to: &mut dyn Write) -> io::Result<()> {
        if self.audience == Audience::Terminal && self.shown_at > self.started {
            to.write_all(b"\r\x1b[K")?;
        }
        Ok(())
    }

    /// Returns the number of lines so far, their duration, and the rate per second.
    pub fn pace(&self, lines: u64) -> String {
        let taken_us = self.clock.now().since(self.started);
        let (seconds, millis) = (taken_us / 1_000_000, taken_us / 1_000 % 1_000);
        let rate = grouped(per_second(lines, taken_us));
        let lines = counted(grouped(lines), "line", "lines");
        format!("{lines} in {seconds}.{millis:03} s, {rate} a second")
    }
}

fn describe(lines: u64, bytes: u64, total_bytes: Option<u64>, taken_us: u64) -> String {
    let rate = grouped(per_second(lines, taken_us));
    let lines = counted(grouped(lines), "line", "lines");
    let mut text = format!("{lines}, {rate} a second");
    let Some(total) = total_bytes.filter(|total| *total > 0 && bytes > 0) else {
        return text;
    };
    // A file may grow while it is read.
    let total = total.max(bytes);
    let share = u128::from(bytes) * 100 / u128::from(total);
    let left_us = u128::from(taken_us) * u128::from(total - bytes) / u128::from(bytes);
    let left = left_us / 1_000_000;
    let _ = write!(text, ", {share} %, {}:{:02} left", left / 60, left % 60);
    text
}

fn per_second(lines: u64, taken_us: u64) -> u64 {
    let rate = u128::from(lines) * 1_000_000 / u128::from(taken_us.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_the_known_figures() {
        assert_eq!(
            describe(1_000, 250, Some(1_000), 30_000_000),
            "1,000 lines, 33 a second, 25 %, 1:30 left"
        );
        assert_eq!(describe(5, 100, None, 1_000_000), "5 lines, 5 a second");
        assert_eq!(describe(1, 100, None, 1_000_000), "1 line, 1 a second");
        assert_eq!(
            describe(5, 100, Some(50), 1_000_000),
            "5 lines, 5 a second, 100 %, 0:00 left"
        );
    }

    #[test]
    fn without_an_audience_no_progress_is_shown() {
        let mut output = Vec::new();
        let mut progress = SimulationProgress::start(Audience::Nobody, None);
        progress.tell(1, 1, &mut output).expect("memory");
        progress.clear(&mut output).expect("memory");
        assert!(output.is_empty());
    }
}

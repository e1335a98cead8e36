//! Logs: text lines on a terminal, JSON elsewhere. Always on standard error, so that standard output holds
//! only a command's own output.

mod queue;

pub use self::queue::LogWriter;
pub(crate) use self::queue::dropped_lines;

use crate::styles;
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use tidegate_control::failure::Failure;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// The format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// Lines of text.
    Text,
    /// A JSON object for each line.
    Json,
}

/// Starts logging. `level` is a level, or a list such as `info,hyper=debug`. Keep the writer until the
/// program ends: lines that are queued then are written when it is dropped.
///
/// # Errors
///
/// If `level` has a part that is neither a level nor `TARGET=LEVEL`, or if logging has started already.
pub fn start(level: &str, format: LogFormat) -> Result<LogWriter, Failure> {
    let (filter, most) = filter(level)?;
    let is_terminal = io::stderr().is_terminal();
    // The filter decides: the layer below it would stop at `info` otherwise. No more than what the filter
    // lets pass: the hundred trace points of an HTTP/2 request are skipped by this level, or each is looked
    // up.
    let (lines, writer) = queue::start();
    let logs = tracing_subscriber::fmt()
        .with_max_level(most)
        .with_writer(lines);
    let is_text = format == LogFormat::Text || format == LogFormat::Auto && is_terminal;
    let started = if is_text {
        let logs = logs.with_target(false).with_ansi(styles::on_stderr());
        logs.finish().with(filter).try_init()
    } else {
        logs.json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .finish()
            .with(filter)
            .try_init()
    };
    started.map_err(Failure::runtime)?;
    Ok(writer)
}

/// Parses levels strictly. The parser of `Targets` takes a word without a level as the name of a target, so
/// that a misspelt level would log nothing. Also returns the most verbose of the levels.
fn filter(text: &str) -> Result<(Targets, LevelFilter), Failure> {
    let mut filter = Targets::new();
    let mut most = LevelFilter::OFF;
    for part in text.split(',') {
        let (target, level) = match part.split_once('=') {
            Some((target, level)) => (Some(target.trim()), level.trim()),
            None => (None, part.trim()),
        };
        let level = level
            .parse::<LevelFilter>()
            .ok()
            .filter(|_| !level.is_empty());
        let level = level.ok_or_else(|| {
            Failure::input(format!(
                "`{part}` is not a log level\n   help: write error, warn, info, debug or trace, or a list \
                 such as `info,hyper=debug`"
            ))
        })?;
        most = most.max(level);
        filter = match target {
            Some(target) => filter.with_target(target, level),
            None => filter.with_default(level),
        };
    }
    Ok((filter, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn levels_apply_to_targets() {
        for (text, everything, hyper) in [
            ("info", Level::INFO, Level::INFO),
            ("WARN", Level::WARN, Level::WARN),
            ("info,hyper=debug", Level::INFO, Level::DEBUG),
            ("debug, hyper=error", Level::DEBUG, Level::ERROR),
        ] {
            let (filter, most) = filter(text).expect(text);
            assert_eq!(most, everything.max(hyper), "{text}");
            for level in [
                Level::ERROR,
                Level::WARN,
                Level::INFO,
                Level::DEBUG,
                Level::TRACE,
            ] {
                assert_eq!(
                    filter.would_enable("tidegate", &level),
                    level <= everything,
                    "{text}: {level}"
                );
                assert_eq!(
                    filter.would_enable("hyper", &level),
                    level <= hyper,
                    "{text}: {level}"
                );
            }
        }
    }

    #[test]
    fn a_misspelt_level_is_an_error_and_not_the_name_of_a_target() {
        for text in ["", "inof", "info,hyper", "info,hyper=loud", "info,"] {
            let error = filter(text).expect_err(text).to_string();
            assert!(error.contains("is not a log level"), "{text}: {error}");
        }
    }
}

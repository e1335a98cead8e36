//! Logs: text lines on a terminal, JSON elsewhere. Always on standard error, so that standard output holds
//! only a command's own output.

use crate::failure::Failure;
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// The format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// Lines of text, with colours on a terminal.
    Text,
    /// A JSON object for each line.
    Json,
}

/// Starts logging. `level` is a level, or a list such as `info,hyper=debug`.
pub fn start(level: &str, format: LogFormat) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(level).map_err(|error| {
        Failure::input(format!(
            "`{level}` is not a log level: {error}\n   help: write error, warn, info, debug or \
             trace, or a list such as `info,hyper=debug`"
        ))
    })?;
    let is_terminal = io::stderr().is_terminal();
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let started = match format {
        LogFormat::Text => logs.with_target(false).with_ansi(is_terminal).try_init(),
        LogFormat::Auto if is_terminal => logs.with_target(false).try_init(),
        LogFormat::Json | LogFormat::Auto => logs
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init(),
    };
    started.map_err(Failure::runtime)
}

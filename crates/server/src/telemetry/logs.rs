//! Logs: lines for people on a terminal, JSON for everybody else. Always on the error stream, so
//! that what a command prints stays its own.

use crate::failure::Failure;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// Begins to log. `level` is a level, or a list such as `info,hyper=debug`.
pub fn start(level: &str) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(level).map_err(|error| {
        Failure::input(format!(
            "`{level}` is not a log level: {error}\n   help: write error, warn, info, debug or \
             trace, or a list such as `info,hyper=debug`"
        ))
    })?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let started = if io::stderr().is_terminal() {
        logs.with_target(false).try_init()
    } else {
        logs.json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init()
    };
    started.map_err(Failure::runtime)
}

//! The queue between the program and the reader of its log.
//!
//! A pipe holds 64 KiB. If its reader stalls, a write to it waits, and so does the request that logs: one
//! slow log collector would stop every decision. Lines therefore pass through a bounded queue and a thread
//! that writes them. When the queue is full, lines are dropped and counted.

use std::io;
use std::sync::OnceLock;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// The maximum number of queued lines: about 2 MiB of usual ones.
const QUEUED_LINES_MAX: usize = 8_192;

/// Lines dropped by the queue of this process. There is one queue, as there is one log.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// The thread that writes queued lines. Dropping it writes the rest, for up to a second.
#[derive(Debug)]
#[must_use = "dropping it ends the log"]
pub struct LogWriter(#[expect(dead_code, reason = "kept for its drop")] WorkerGuard);

/// Starts the thread that writes to standard error, and returns the queue in front of it.
pub(super) fn start() -> (NonBlocking, LogWriter) {
    let (queue, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(QUEUED_LINES_MAX)
        .lossy(true)
        .thread_name("log")
        .finish(io::stderr());
    DROPPED.get_or_init(|| queue.error_counter());
    (queue, LogWriter(guard))
}

/// Returns the number of lines dropped since the start.
pub(crate) fn dropped_lines() -> u64 {
    let dropped = DROPPED.get().map_or(0, ErrorCounter::dropped_lines);
    u64::try_from(dropped).unwrap_or(u64::MAX)
}

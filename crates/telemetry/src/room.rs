//! A full memory store: one warning in the log, and a reason in `/status`.

use super::store::StoreStats;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Limiter, MemoryStats, OverflowedLimit};
use tidegate_net::tasks;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

/// A store counts as full for this long after the last check that a shared overflow bucket decided.
const LASTS: Duration = Duration::from_mins(1);

/// The interval at which the log watcher looks.
const EVERY: Duration = Duration::from_secs(1);

/// The log has at most one warning in this time.
const QUIET: Duration = Duration::from_mins(10);

/// The room of a memory store.
pub trait StoreRoom: Debug + Send + Sync {
    /// Returns a limit that shares overflow buckets now, or has within the last minute.
    fn overflowed(&self) -> Option<OverflowedLimit>;

    /// Returns the size and capacity of the store. Reads the whole table, so a thread that serves requests
    /// must not call it.
    fn stats(&self) -> Option<MemoryStats>;
}

impl<S: StoreStats> StoreRoom for Limiter<S> {
    fn overflowed(&self) -> Option<OverflowedLimit> {
        self.store().overflowed(LASTS)
    }

    fn stats(&self) -> Option<MemoryStats> {
        self.store().memory()
    }
}

/// Returns the size and capacity of the store, read on a thread that blocks no request.
pub async fn stats(room: &Arc<dyn StoreRoom>) -> MemoryStats {
    let room = Arc::clone(room);
    let stats = tasks::blocking(move || room.stats()).await;
    stats.flatten().unwrap_or_default()
}

/// Logs when the store becomes full and when it has room again, until aborted.
pub async fn watch(room: Arc<dyn StoreRoom>) {
    let mut seen = LoggedLines::default();
    loop {
        sleep(EVERY).await;
        let overflowed = room.overflowed();
        match (seen.look(overflowed.is_some(), Instant::now()), overflowed) {
            (Some(RoomLogLine::Full), Some(OverflowedLimit { limit, network })) => {
                let stats = stats(&room).await;
                warn!(
                    event = "memory_store_full",
                    limit = limit.trim_end_matches('/'),
                    network,
                    buckets = stats.buckets,
                    slots = stats.slots,
                    shared_allowed = stats.shared.allowed,
                    shared_refused = stats.shared.refused,
                    fix = "raise store.max_keys, or find the client that makes so many keys",
                    "memory store full; new keys share the bucket of their network"
                );
            }
            (Some(RoomLogLine::Room), _) => {
                info!(
                    event = "memory_store_recovered",
                    "memory store has room again; new keys get their own buckets"
                );
            }
            _ => {}
        }
    }
}

/// A line to log.
#[derive(Debug, PartialEq, Eq)]
enum RoomLogLine {
    Full,
    Room,
}

/// The lines that were logged.
#[derive(Debug, Default)]
struct LoggedLines {
    warned: Option<Instant>,
    /// True if the last line was a warning.
    is_open: bool,
}

impl LoggedLines {
    /// Returns the line to log, if any. A store that is full intermittently logs no more than one that is
    /// full for long.
    fn look(&mut self, is_full: bool, now: Instant) -> Option<RoomLogLine> {
        let may_warn = self
            .warned
            .is_none_or(|warned| now.duration_since(warned) >= QUIET);
        if is_full && may_warn {
            (self.warned, self.is_open) = (Some(now), true);
            return Some(RoomLogLine::Full);
        }
        let is_over = !is_full && self.is_open;
        self.is_open &= is_full;
        is_over.then_some(RoomLogLine::Room)
    }
}

#[cfg(test)]
mod tests {
    use super::{LoggedLines, RoomLogLine};
    use std::time::Duration;
    use tokio::time::Instant;

    #[test]
    fn a_full_store_warns_once_in_ten_minutes() {
        let (mut seen, start) = (LoggedLines::default(), Instant::now());
        let mut look = |second, is_full| seen.look(is_full, start + Duration::from_secs(second));
        assert_eq!(look(0, false), None);
        assert_eq!(look(1, true), Some(RoomLogLine::Full));
        assert_eq!(look(2, true), None);
        assert_eq!(look(62, false), Some(RoomLogLine::Room));
        assert_eq!(look(63, false), None);
        // Again, within ten minutes: neither line.
        assert_eq!(look(100, true), None);
        assert_eq!(look(200, false), None);
        assert_eq!(look(300, true), None);
        assert_eq!(look(601, true), Some(RoomLogLine::Full));
        assert_eq!(look(602, true), None);
        assert_eq!(look(1_201, true), Some(RoomLogLine::Full));
        assert_eq!(look(1_202, false), Some(RoomLogLine::Room));
    }
}

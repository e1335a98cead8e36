//! Refreshes items that other programs write and that change without a reload: the lists of guards, plans.
//!
//! | module | contents |
//! |---|---|
//! | this one | the loop: reads each item again when it is due, follows reloads, ends with its owner |
//! | `health` | the outcome of the reads of one item, and the time of its next read |
//! | `backoff` | pauses after failures |
//!
//! A read has a deadline. A failed read leaves the last good version active and logs one warning.

mod backoff;
mod health;

pub(crate) use backoff::FILE_RETRY;
pub use backoff::delay;
pub(crate) use health::{RefreshError, RefreshHealth, Retry};

use futures_util::future::{Either, join_all, select};
use std::future::pending;
use std::pin::pin;
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// A kind of items that are refreshed for as long as their owner, a `T`, exists.
pub(crate) trait Refresh<T> {
    /// The type of an item.
    type Item;

    /// Returns the items of the current configuration, and the time when each is due.
    fn items(&self, owner: &T) -> Vec<(Self::Item, Instant)>;

    /// Reads an item, and returns the time when it is due again.
    fn read(&self, owner: &T, item: &Self::Item) -> impl Future<Output = Instant> + Send;
}

/// Reads the items of `kind` whenever they are due, for as long as their owner exists.
pub(crate) async fn keep<T, R: Refresh<T>>(
    owner: Weak<T>,
    mut reloads: watch::Receiver<()>,
    kind: R,
) {
    loop {
        // Marked before the configuration is read, so that no reload is missed.
        reloads.mark_unchanged();
        let Some(present) = owner.upgrade() else {
            return;
        };
        let items = kind.items(&present);
        // Immediately: the owner may end while nothing is due.
        drop(present);
        let keeping = items.iter().map(async |(item, due)| {
            let mut due = *due;
            loop {
                sleep_until(due).await;
                let Some(present) = owner.upgrade() else {
                    return;
                };
                due = kind.read(&present, item).await;
            }
        });
        let keeping = async {
            join_all(keeping).await;
            pending::<()>().await;
        };
        match select(pin!(reloads.changed()), pin!(keeping)).await {
            Either::Left((Ok(()), _)) | Either::Right(_) => {}
            Either::Left((Err(_), _)) => return,
        }
    }
}

/// Runs `read` within `time`; `late` begins the error if it takes longer.
pub(crate) async fn within<T, E>(
    time: Duration,
    late: &str,
    read: impl Future<Output = Result<T, E>>,
    error: impl FnOnce(String) -> E,
) -> Result<T, E> {
    let read = timeout(time, read).await;
    read.unwrap_or_else(|_| Err(error(format!("{late} within {time:?}"))))
}

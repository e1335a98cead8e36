//! Keeps something fresh that others write and that changes without a reload: the lists of guards, plans.
//!
//! | module | contents |
//! |---|---|
//! | this one | the loop: reads each item again when it is due, follows reloads, ends with the limiter |
//! | `health` | the outcome of the reads of one item, and when it is read again |
//! | `backoff` | pauses after failures |
//!
//! A read has a deadline. One that fails leaves the last good version in force and logs one warning.

mod backoff;
mod health;

pub(crate) use backoff::FILE_RETRY;
pub use backoff::delay;
pub(crate) use health::{RefreshError, RefreshHealth, Retry};

use crate::limiter::{Limiter, LimiterInner};
use futures_util::future::{Either, join_all, select};
use std::future::pending;
use std::pin::pin;
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// A kind of items that a limiter keeps fresh.
pub(crate) trait Refresh<S> {
    /// One of them.
    type Item;

    /// Returns the items of the present configuration, and when each is due.
    fn items(&self, limiter: &Limiter<S>) -> Vec<(Self::Item, Instant)>;

    /// Reads an item, and returns when it is due again.
    fn read(&self, limiter: &Limiter<S>, item: &Self::Item)
    -> impl Future<Output = Instant> + Send;
}

/// Reads what `kind` names whenever it is due, for as long as there is a limiter.
pub(crate) async fn keep<S, R: Refresh<S>>(
    limiter: Weak<LimiterInner<S>>,
    mut reloads: watch::Receiver<()>,
    kind: R,
) {
    loop {
        // Marked before the configuration is read, so that no reload is missed.
        reloads.mark_unchanged();
        let Some(shared) = limiter.upgrade() else {
            return;
        };
        // Dropped at once: the limiter may end while nothing is due.
        let items = kind.items(&Limiter::of_shared(shared));
        let keeping = items.iter().map(async |(item, due)| {
            let mut due = *due;
            loop {
                sleep_until(due).await;
                let Some(shared) = limiter.upgrade() else {
                    return;
                };
                due = kind.read(&Limiter::of_shared(shared), item).await;
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

/// Reads within `time`; `late` begins the error if it takes longer.
pub(crate) async fn within<T, E>(
    time: Duration,
    late: &str,
    read: impl Future<Output = Result<T, E>>,
    error: impl FnOnce(String) -> E,
) -> Result<T, E> {
    let read = timeout(time, read).await;
    read.unwrap_or_else(|_| Err(error(format!("{late} within {time:?}"))))
}

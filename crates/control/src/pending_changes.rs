//! Changes by administrators in flight: finished even if their callers disconnect, and waited for when the
//! server stops.

use std::future::Future;
use std::time::Duration;
use tidegate_net::tasks::Tasks;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::warn;

/// The time for the remaining work once the time to drain is over: recording interrupted changes, and sending
/// responses.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Changes in flight.
#[derive(Debug, Default)]
pub struct PendingChanges {
    tasks: Tasks,
    /// True if there is no time left for any of them.
    is_over: watch::Sender<bool>,
}

impl PendingChanges {
    /// Runs a change in its own task, independent of its caller.
    pub fn spawn(&self, change: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(change);
    }

    /// Returns true if there is no time left, and nothing may begin any more.
    pub fn is_over(&self) -> bool {
        *self.is_over.borrow()
    }

    /// Waits until there is no time left: an interrupted change then records that it was interrupted.
    pub async fn over(&self) {
        let mut is_over = self.is_over.subscribe();
        // The sender lives as long as this does.
        is_over.wait_for(|is_over| *is_over).await.ok();
    }

    /// Waits until no change is left, until `by` at the latest, and after that for at most [`LAST_WORDS`].
    /// Returns the number of changes that did not finish.
    async fn finish(&self, by: Instant) -> usize {
        if timeout_at(by, self.tasks.finished()).await.is_ok() {
            return 0;
        }
        let changes = self.tasks.count();
        warn!(
            event = "admin_changes_cut",
            changes, "admin changes aborted: they did not finish in time"
        );
        self.is_over.send_replace(true);
        if timeout(LAST_WORDS, self.tasks.finished()).await.is_err() {
            self.tasks.abort();
            self.tasks.finished().await;
        }
        changes
    }
}

/// Closes the admin listener, whose `connections` have been signalled to end. A change that has begun
/// finishes, is recorded and answered, in the time that is left for draining, until `by`. Returns the number
/// of changes that did not finish.
pub async fn close(changes: &PendingChanges, connections: &Tasks, by: Instant) -> usize {
    let by = by.max(Instant::now() + LAST_WORDS);
    let mut cut = 0;
    loop {
        cut += changes.finish(by).await;
        // The connections carry the responses. A call that was still being read may yet begin a change.
        let ended = timeout(LAST_WORDS, connections.finished()).await.is_ok();
        if changes.tasks.count() == 0 || ended || Instant::now() >= by {
            break;
        }
    }
    // Cutting a probe loses nothing.
    connections.abort();
    connections.finished().await;
    // No new change can begin, but one may just have begun.
    cut + changes.finish(by).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::Arc;
    use tokio::sync::oneshot;
    use tokio::time::sleep;

    const DRAIN: Duration = Duration::from_secs(10);

    /// Starts a change that takes this long. Returns receivers that resolve when it ends.
    fn change(
        changes: &PendingChanges,
        length: Duration,
    ) -> (oneshot::Receiver<()>, oneshot::Receiver<()>) {
        let (done, is_done) = oneshot::channel();
        let (told, is_told) = oneshot::channel();
        changes.spawn(async move {
            sleep(length).await;
            done.send(()).ok();
            told.send(()).ok();
        });
        (is_done, is_told)
    }

    /// Closes, and returns the time that it took and the number of changes that were cut.
    async fn closed(changes: &PendingChanges, connections: &Tasks) -> (Duration, usize) {
        let begun = Instant::now();
        let cut = close(changes, connections, begun + DRAIN).await;
        (begun.elapsed(), cut)
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_waits_just_for_a_change_in_progress() {
        let (changes, connections) = (PendingChanges::default(), Tasks::new());
        let length = Duration::from_secs(7);
        let (is_done, _) = change(&changes, length);
        let (took, cut) = closed(&changes, &connections).await;
        is_done.await.unwrap();
        assert!(took >= length && took < DRAIN, "{took:?}");
        assert_eq!(cut, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_also_waits_for_the_response_to_a_change() {
        let (changes, connections) = (PendingChanges::default(), Tasks::new());
        let (_, is_told) = change(&changes, Duration::from_secs(7));
        let (answered, is_answered) = oneshot::channel();
        connections.spawn(async move {
            is_told.await.unwrap();
            sleep(LAST_WORDS / 2).await;
            answered.send(()).unwrap();
        });
        assert_eq!(closed(&changes, &connections).await.1, 0);
        is_answered.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_read_during_shutdown_was_started_and_abandoned() {
        let (changes, connections) = (Arc::new(PendingChanges::default()), Tasks::new());
        let (answered, is_answered) = oneshot::channel();
        let these = Arc::clone(&changes);
        connections.spawn(async move {
            sleep(LAST_WORDS / 2).await;
            let (is_done, _told) = change(&these, Duration::from_secs(5));
            is_done.await.unwrap();
            answered.send(()).unwrap();
        });
        let (took, cut) = closed(&changes, &connections).await;
        is_answered.await.unwrap();
        assert!(took < DRAIN, "{took:?}");
        assert_eq!(cut, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_cut_by_shutdown_can_still_log_it() {
        let (changes, connections) = (Arc::new(PendingChanges::default()), Tasks::new());
        let (wrote, has_written) = oneshot::channel();
        let these = Arc::clone(&changes);
        changes.spawn(async move {
            these.over().await;
            sleep(LAST_WORDS / 2).await;
            wrote.send(()).unwrap();
        });
        // Tasks that ignore it are cut.
        changes.spawn(pending());
        connections.spawn(pending());
        let (took, cut) = closed(&changes, &connections).await;
        has_written.await.unwrap();
        assert!(took >= DRAIN && took <= DRAIN + 4 * LAST_WORDS, "{took:?}");
        assert_eq!(cut, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_without_a_change_do_not_delay_shutdown() {
        let (changes, connections) = (PendingChanges::default(), Tasks::new());
        connections.spawn(pending());
        let (took, cut) = closed(&changes, &connections).await;
        assert!(took <= 2 * LAST_WORDS, "{took:?}");
        assert_eq!(cut, 0);
    }
}

//! A Redis channel on which changes are announced.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tidegate::redis::Connection;
use tidegate_redis_client::{ConnectError, ConnectErrorKind, Subscription};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

/// The delay before a lost channel is subscribed to again.
const PAUSE: Duration = Duration::from_secs(1);

/// A channel with one subscriber.
#[derive(Debug)]
pub(crate) struct Channel {
    name: String,
    listening: Mutex<Option<Subscription>>,
    /// The number of consecutive failures to subscribe.
    failures: AtomicU32,
}

impl Channel {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            listening: Mutex::new(None),
            failures: AtomicU32::new(0),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until a message arrives, or may have been missed, and no longer than `most`.
    pub(crate) async fn wait_for_change(&self, connection: &Connection, most: Duration) {
        // Either is reason enough to read again.
        timeout(most, self.wait_for_messages(connection)).await.ok();
    }

    /// Waits until a message arrives, or may have been missed. Completes only then: a server that cannot
    /// be subscribed to is retried.
    pub(crate) async fn message(&self, connection: &Connection) {
        while !self.wait_for_messages(connection).await {}
    }

    /// Waits until a message arrives, and returns true. Returns false if a read is due because the
    /// subscription failed.
    async fn wait_for_messages(&self, connection: &Connection) -> bool {
        let mut listening = self.listening.lock().await;
        loop {
            let Some(channel) = listening.as_mut() else {
                match connection.listen(self.name.as_bytes()).await {
                    Ok(channel) => {
                        *listening = Some(channel);
                        self.failures.store(0, Relaxed);
                        // Messages before the subscription are not known.
                        return true;
                    }
                    // The master may have died: a read is how another is found.
                    Err(error) if is_passing(&error) => {
                        let failures = self.failures.fetch_add(1, Relaxed);
                        sleep(tidegate::retry_delay(failures)).await;
                        return false;
                    }
                    // The interval elapses anyway.
                    Err(_) => return pending().await,
                }
            };
            if channel.wait_for_messages().await.is_ok() {
                return true;
            }
            *listening = None;
            sleep(PAUSE).await;
        }
    }
}

/// Returns true if the error may be temporary, without any action by an operator.
fn is_passing(error: &ConnectError) -> bool {
    matches!(
        error.kind(),
        ConnectErrorKind::Unreachable | ConnectErrorKind::NotReady
    )
}

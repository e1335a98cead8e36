//! A channel on which somebody may say that something has changed.

use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tidegate::redis::Connection;
use tidegate_redis::{ConnectError, ConnectErrorKind, Listening};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

/// How long to wait before a channel is listened to again that was lost.
const PAUSE: Duration = Duration::from_secs(1);

/// A channel that is listened to by one.
#[derive(Debug)]
pub(crate) struct Channel {
    name: String,
    listening: Mutex<Option<Listening>>,
    /// How often in a row nobody was there to listen to.
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

    /// Waits until something is said, or could have been without being heard, and no longer than `most`.
    pub(crate) async fn hear(&self, connection: &Connection, most: Duration) {
        // Either is reason enough to look.
        timeout(most, self.heard(connection)).await.ok();
    }

    /// Waits until something is said, or could have been without being heard. Completes only then: a
    /// server that cannot be listened to is tried again.
    pub(crate) async fn told(&self, connection: &Connection) {
        while !self.heard(connection).await {}
    }

    /// Waits until something is said, and returns true; false if it is worth to look although nobody
    /// can be listened to.
    async fn heard(&self, connection: &Connection) -> bool {
        let mut listening = self.listening.lock().await;
        loop {
            let Some(channel) = listening.as_mut() else {
                match connection.listen(self.name.as_bytes()).await {
                    Ok(channel) => {
                        *listening = Some(channel);
                        self.failures.store(0, Relaxed);
                        // What was said before is not known.
                        return true;
                    }
                    // Whoever was master may have died: to look is how another is found.
                    Err(error) if is_passing(&error) => {
                        let failures = self.failures.fetch_add(1, Relaxed);
                        sleep(tidegate::retry_delay(failures)).await;
                        return false;
                    }
                    // The interval goes by anyway.
                    Err(_) => return pending().await,
                }
            };
            if channel.heard().await.is_ok() {
                return true;
            }
            *listening = None;
            sleep(PAUSE).await;
        }
    }
}

/// Whether it may be otherwise in a moment, without anybody doing something about it.
fn is_passing(error: &ConnectError) -> bool {
    matches!(
        error.kind(),
        ConnectErrorKind::Unreachable | ConnectErrorKind::NotReady
    )
}

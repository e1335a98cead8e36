//! Where the server is in its life. Everybody watches it; one place changes it.

use tokio::sync::watch;

/// Where the server is in its life; it only ever moves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not yet ready for requests.
    Starting,
    /// Serving.
    Serving,
    /// Serving as ever, and telling whoever asks that it will not for long, so that nobody sends any more.
    Leaving,
    /// Finishing what has begun; no new connections but on the admin door.
    Draining,
    /// All doors but the admin door are closed, and now it closes as well.
    Closing,
}

/// Tells in which phase the server is.
#[derive(Clone, Debug)]
pub struct PhaseWatch(watch::Receiver<Phase>);

/// Moves the server from phase to phase.
#[derive(Debug)]
pub struct Lead(watch::Sender<Phase>);

/// The two ends.
pub fn channel() -> (Lead, PhaseWatch) {
    let (sender, receiver) = watch::channel(Phase::Starting);
    (Lead(sender), PhaseWatch(receiver))
}

impl Lead {
    /// Enters `phase`.
    pub fn enter(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let is_later = phase > *now;
            *now = (*now).max(phase);
            is_later
        });
    }
}

impl PhaseWatch {
    /// The present phase.
    pub fn now(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until the server is in `phase` or past it. A server that is gone is past everything.
    pub async fn reaches(&mut self, phase: Phase) {
        // An error means that the lead was dropped.
        self.0.wait_for(|now| *now >= phase).await.ok();
    }
}

//! The lifecycle of the server. All parts watch it; one place changes it.

use tokio::sync::watch;

/// The phase of the server; it only ever moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not yet ready for requests.
    Starting,
    /// Serving.
    Serving,
    /// Serving as usual, while health checks fail, so that no new requests are sent.
    Leaving,
    /// Finishing requests in flight; no new connections except on the admin listener.
    Draining,
    /// All listeners but the admin listener are closed, and now it closes as well.
    Closing,
}

/// A watcher of the server's phase.
#[derive(Clone, Debug)]
pub struct PhaseWatch(watch::Receiver<Phase>);

/// The controller of the server's phase.
#[derive(Debug)]
pub struct PhaseController(watch::Sender<Phase>);

/// Returns the two ends, in the phase `Starting`.
///
/// ```
/// use tidegate_net::phase::{self, Phase};
///
/// let (lead, watch) = phase::channel();
/// lead.enter(Phase::Leaving);
/// // The server is past it: this does nothing.
/// lead.enter(Phase::Serving);
/// assert_eq!(watch.now(), Phase::Leaving);
/// ```
pub fn channel() -> (PhaseController, PhaseWatch) {
    let (sender, receiver) = watch::channel(Phase::Starting);
    (PhaseController(sender), PhaseWatch(receiver))
}

impl PhaseController {
    /// Enters `phase`. Does nothing if the server is past it.
    pub fn enter(&self, phase: Phase) {
        self.0.send_if_modified(|now| {
            let is_later = phase > *now;
            *now = (*now).max(phase);
            is_later
        });
    }
}

impl PhaseWatch {
    /// Returns the present phase.
    pub fn now(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until the server is in `phase` or past it. Returns at once if the server is gone.
    pub async fn reaches(&mut self, phase: Phase) {
        // An error means that the lead was dropped.
        self.0.wait_for(|now| *now >= phase).await.ok();
    }
}

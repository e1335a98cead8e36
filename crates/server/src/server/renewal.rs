//! Reloading of the listeners' TLS files when they change, and when a reload is requested.

use super::bind::Listeners;
use super::expiry::seconds;
use super::tls::DoorTls;
use crate::live::{Again, Composer, EVERY};
use crate::sight::FileStamp;
use crate::tasks::blocking;
use crate::telemetry::metrics::{DoorMetrics, Metrics};
use std::future::pending;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

/// The TLS files of one listener.
#[derive(Debug)]
pub(super) struct Renewal {
    door: &'static str,
    tls: Arc<DoorTls>,
    metrics: DoorMetrics,
    /// The stamps of the files when they were last read, and a second ago.
    read: Vec<FileStamp>,
    seen: Vec<FileStamp>,
    /// The time at which invalid files are read once more.
    again: Again,
    /// The last error that was logged about them.
    complaint: Option<String>,
}

/// Returns the TLS files of all listeners that have any.
pub(super) fn of(listeners: &Listeners, metrics: &Metrics) -> Vec<Renewal> {
    let all = listeners.each().filter_map(|(door, bound)| {
        let tls = Arc::clone(bound.tls.as_ref()?);
        let renewal = Renewal {
            door,
            metrics: metrics.door(door),
            read: tls.first_seen().to_vec(),
            seen: tls.first_seen().to_vec(),
            tls,
            again: Again::default(),
            complaint: None,
        };
        renewal.show();
        Some(renewal)
    });
    all.collect()
}

/// Keeps `all` up to date for as long as it is polled. Without `live` there are no reload requests.
pub(super) async fn keep(mut all: Vec<Renewal>, live: Option<Composer>) {
    let is_watched = live.as_ref().is_none_or(Composer::is_watched);
    let mut reloads = live.as_ref().map(Composer::reloads);
    while !all.is_empty() {
        let is_requested = tokio::select! {
            () = sleep(EVERY), if is_watched => false,
            () = requested(&mut reloads) => true,
        };
        let looked = blocking(move || {
            for renewal in &mut all {
                renewal.look(is_requested);
            }
            all
        });
        all = looked.await.unwrap_or_default();
    }
}

async fn requested(reloads: &mut Option<watch::Receiver<u64>>) {
    if let Some(reloads) = reloads
        && reloads.changed().await.is_ok()
    {
        return;
    }
    pending::<()>().await;
}

impl Renewal {
    /// Reads the files again if that is requested, or if they have changed and look the same twice in a row:
    /// a certificate and its key are seldom written at the same time.
    fn look(&mut self, is_requested: bool) {
        let now = self.tls.sights();
        let is_changed = now != self.read && now == self.seen;
        self.seen.clone_from(&now);
        if !(is_requested || is_changed || self.again.is_due()) {
            return;
        }
        self.read = now;
        let read = self.tls.read_again();
        self.again.note(read.is_err());
        let (door, expires) = (self.door, self.tls.expiry());
        match read {
            Ok(is_new) => {
                self.complaint = None;
                if is_new {
                    self.show();
                    info!(
                        door,
                        expires, "TLS files changed; new connections use the new ones"
                    );
                }
            }
            Err(error) => {
                if is_requested || self.complaint.as_ref() != Some(&error) {
                    warn!(
                        door,
                        error, "cannot use the changed TLS files; keeping the previous ones"
                    );
                }
                self.complaint = Some(error);
            }
        }
    }

    /// Sets the metric of the certificate's expiry.
    fn show(&self) {
        let expiry = self.tls.expiry();
        self.metrics
            .certificate_expires(expiry.as_deref().map(seconds));
    }
}

//! Reloading of the listeners' TLS files when they change, and when a reload is requested.
//!
//! Files are compared by their metadata each second, and read when two looks in a row agree, so that a
//! certificate that is still being written is not used. Invalid files change nothing: handshakes
//! continue with the previous ones, and the error is logged once.

use crate::timestamps::{LATEST, rfc3339};
use std::future::pending;
use std::sync::Arc;
use tidegate_control::live::{Composer, EVERY, RetrySchedule};
use tidegate_net::Listeners;
use tidegate_net::file_stamp::FileStamp;
use tidegate_net::metrics::ListenerMetrics;
use tidegate_net::tasks::blocking;
use tidegate_net::tls::ListenerTls;
use tidegate_telemetry::metrics::Metrics;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

/// The TLS files of one listener.
#[derive(Debug)]
pub(super) struct Renewal {
    listener: &'static str,
    tls: Arc<ListenerTls>,
    metrics: ListenerMetrics,
    /// The stamps of the files when they were last read, and a second ago.
    read: Vec<FileStamp>,
    seen: Vec<FileStamp>,
    /// The time at which invalid files are read once more.
    again: RetrySchedule,
    /// The last error that was logged about them.
    complaint: Option<String>,
}

/// Returns the TLS files of all listeners that have any.
pub(super) fn of(listeners: &Listeners, metrics: &Metrics) -> Vec<Renewal> {
    let all = listeners.each().filter_map(|(listener, bound)| {
        let tls = Arc::clone(bound.tls.as_ref()?);
        let renewal = Renewal {
            listener,
            metrics: metrics.listener(listener),
            read: tls.first_seen().to_vec(),
            seen: tls.first_seen().to_vec(),
            tls,
            again: RetrySchedule::default(),
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
        let (listener, expires) = (self.listener, self.tls.expiry());
        match read {
            Ok(is_new) => {
                self.complaint = None;
                if is_new {
                    self.show();
                    info!(
                        event = "tls_reloaded",
                        listener, expires, "TLS files reloaded; new connections use them"
                    );
                }
            }
            Err(error) => {
                if is_requested || self.complaint.as_ref() != Some(&error) {
                    warn!(
                        event = "tls_reload_failed",
                        listener, error, "TLS reload failed; keeping the previous files"
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

/// Returns the expiry as seconds since 1970, or the latest supported instant if it is beyond that.
fn seconds(expiry: &str) -> i64 {
    let at = rfc3339(expiry).unwrap_or(LATEST);
    i64::try_from(at.as_micros() / 1_000_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn a_date_beyond_the_supported_range_is_not_missing() {
        for (year, expected) in [
            (1999, 920_160_000),
            (2031, 1_930_003_200),
            (2049, 2_498_083_200),
            (2050, 2_529_619_200),
            (2100, 4_107_456_000),
            (9999, 9_007_199_254),
        ] {
            assert_eq!(seconds(&format!("{year}-02-28T00:00:00Z")), expected);
        }
    }
}

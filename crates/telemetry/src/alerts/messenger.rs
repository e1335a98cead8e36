//! Delivers alerts to a webhook.
//!
//! One task sends one alert at a time, so that a slow webhook gets no burst. An alert is tried up to
//! five times with pauses of 15 seconds in total, then logged and counted as failed. Alerts are lost
//! when the process ends: they report that an operator should look, and the metrics have the facts.

use super::alert::Alert;
use super::sender::AlertMetrics;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use std::time::Duration;
use tidegate_config::alerts::AlertFormat;
use tidegate_proxy::http_fetch::HttpFetch;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{debug, warn};

/// The number of attempts for one alert.
const TRIES: u32 = 5;

/// The delay after the first attempt; it doubles with each.
const PAUSE: Duration = Duration::from_secs(1);

/// Delivers alerts, one after the other.
#[derive(Debug)]
pub struct Messenger {
    errand: HttpFetch,
    format: AlertFormat,
    queued: mpsc::Receiver<Alert>,
    metrics: AlertMetrics,
}

impl Messenger {
    /// Creates a messenger that takes alerts from a queue.
    pub fn new(
        errand: HttpFetch,
        format: AlertFormat,
        queued: mpsc::Receiver<Alert>,
        metrics: AlertMetrics,
    ) -> Self {
        Self {
            errand,
            format,
            queued,
            metrics,
        }
    }

    /// Delivers all alerts, until no sender is left.
    pub async fn run(mut self) {
        while let Some(alert) = self.queued.recv().await {
            let outcome = if self.bring(&alert).await {
                "sent"
            } else {
                "failed"
            };
            self.metrics.count(alert.kind, outcome);
        }
    }

    /// Retries until the alert is accepted, or the attempts are exhausted. The next alert waits
    /// meanwhile: a webhook that does not accept one does not accept another.
    async fn bring(&self, alert: &Alert) -> bool {
        let mut pause = PAUSE;
        for last in (0..TRIES).map(|nth| nth == TRIES - 1) {
            let Err(why) = self.post(alert).await else {
                return true;
            };
            if last {
                warn!(
                    event = "alert_failed",
                    kind = alert.kind.as_str(),
                    error = why,
                    "alert not delivered"
                );
                return false;
            }
            debug!(
                event = "alert_retried",
                kind = alert.kind.as_str(),
                error = why,
                "alert not delivered; retrying"
            );
            sleep(pause).await;
            pause = pause.saturating_mul(2);
        }
        false
    }

    async fn post(&self, alert: &Alert) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        let content_type = Alert::content_type(self.format);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        let body = alert.body(self.format);
        let answer = self.errand.run(Method::POST, headers, body).await;
        match answer {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(format!("the response status was {}", answer.status)),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Alert, AlertMetrics, AlertSender, AlertWindow};
    use std::time::Duration;
    use tidegate::Timestamp;
    use tidegate_config::alerts::{AlertFormat, AlertKind, Alerts};
    use tidegate_policy::text::Secret;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    async fn hook() -> (TcpListener, Alerts) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let alerts = Alerts {
            webhook: Secret::new(format!("http://{address}/hush")),
            format: AlertFormat::Json,
            on: vec![AlertKind::Ban, AlertKind::Store, AlertKind::Threshold],
            timeout: Duration::from_secs(5),
            repeat: Duration::from_mins(10),
        };
        (listener, alerts)
    }

    /// Accepts one alert, responds with `status`, and returns the alert.
    async fn take(listener: &TcpListener, status: &str) -> serde_json::Value {
        let (mut stream, _) = listener.accept().await.expect("a client connects");
        let mut asked = Vec::new();
        while !asked.ends_with(b"}") {
            stream.read_buf(&mut asked).await.expect("a request");
        }
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream
            .write_all(answer.as_bytes())
            .await
            .expect("it listens");
        let text = String::from_utf8(asked).expect("text");
        let (_, body) = text.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }

    fn counted(metrics: &AlertMetrics, kind: AlertKind, outcome: &'static str) -> u64 {
        metrics.counter_value(kind, outcome)
    }

    #[tokio::test]
    async fn a_repeated_alert_is_sent_once_and_a_disabled_one_never() {
        let (listener, alerts) = hook().await;
        let metrics = AlertMetrics::default();
        let (bell, messenger) = AlertSender::hang(&alerts, metrics.clone()).expect("a valid URL");
        for subject in ["192.0.2.1", "192.0.2.1", "192.0.2.2"] {
            bell.ring(Alert::new(AlertKind::Ban, subject, "banned"));
        }
        bell.ring(Alert::new(AlertKind::Stale, "blacklist", "not wanted"));
        drop(bell);
        let taken = async {
            let first = take(&listener, "200 OK").await;
            (first, take(&listener, "204 No Content").await)
        };
        let (taken, ()) = tokio::join!(taken, messenger.run());
        assert_eq!(taken.0["subject"], "192.0.2.1");
        assert_eq!(taken.1["subject"], "192.0.2.2");
        assert_eq!(counted(&metrics, AlertKind::Ban, "sent"), 2);
        assert_eq!(counted(&metrics, AlertKind::Ban, "repeated"), 1);
    }

    /// Masked keys of two users may be the same.
    #[tokio::test]
    async fn the_alert_of_another_user_was_taken_for_a_repetition() {
        let (listener, alerts) = hook().await;
        let metrics = AlertMetrics::default();
        let (bell, messenger) = AlertSender::hang(&alerts, metrics.clone()).expect("a valid URL");
        for user in ["ann", "adam", "ann"] {
            let alert = Alert::new(AlertKind::Ban, "user:a…", user);
            let alert = alert.caused_by(format!("user:{user}/key"));
            assert!(!format!("{alert:?}").contains("/key"), "{alert:?}");
            bell.ring(alert);
        }
        drop(bell);
        let taken = async {
            let first = take(&listener, "200 OK").await;
            (first, take(&listener, "200 OK").await)
        };
        let (taken, ()) = tokio::join!(taken, messenger.run());
        assert_eq!([&taken.0["message"], &taken.1["message"]], ["ann", "adam"]);
        assert_eq!(taken.0["subject"], "user:a…");
        assert!(taken.0.get("cause").is_none(), "{}", taken.0);
        assert_eq!(counted(&metrics, AlertKind::Ban, "repeated"), 1);
    }

    /// `repeat` was longer than the window, so that every second window alerted.
    #[tokio::test]
    async fn the_alert_of_the_next_window_was_taken_for_a_repetition() {
        let (listener, alerts) = hook().await;
        let metrics = AlertMetrics::default();
        let (bell, messenger) = AlertSender::hang(&alerts, metrics.clone()).expect("a valid URL");
        for (message, at, ends) in [
            ("first", 10, 60),
            ("after a refund", 59, 60),
            ("second", 60, 120),
            ("as late", 119, 120),
            ("fourth", 200, 240),
        ] {
            let [at, ends] = [at, ends].map(|seconds| Timestamp::from_millis(seconds * 1_000));
            let alert = Alert::new(AlertKind::Threshold, "user:a…", message);
            bell.ring(alert.within(AlertWindow { at, ends }));
        }
        drop(bell);
        let taken = async {
            let mut messages = Vec::new();
            for _ in 0..3 {
                messages.push(take(&listener, "200 OK").await["message"].clone());
            }
            messages
        };
        let (taken, ()) = tokio::join!(taken, messenger.run());
        assert_eq!(taken, ["first", "second", "fourth"]);
        assert_eq!(counted(&metrics, AlertKind::Threshold, "repeated"), 2);
    }

    #[tokio::test]
    async fn an_unaccepted_alert_is_retried() {
        let (listener, alerts) = hook().await;
        let metrics = AlertMetrics::default();
        let (bell, messenger) = AlertSender::hang(&alerts, metrics.clone()).expect("a valid URL");
        bell.ring(Alert::new(AlertKind::Store, "store", "away"));
        drop(bell);
        let taken = async {
            take(&listener, "503 Service Unavailable").await;
            take(&listener, "200 OK").await
        };
        let (taken, ()) = tokio::join!(taken, messenger.run());
        assert_eq!(taken["kind"], "store");
        assert_eq!(counted(&metrics, AlertKind::Store, "sent"), 1);
    }

    /// A second outage of the store was not reported if it came soon.
    #[tokio::test]
    async fn a_second_outage_soon_after_the_first_was_not_reported() {
        let (listener, alerts) = hook().await;
        let metrics = AlertMetrics::default();
        let (bell, messenger) = AlertSender::hang(&alerts, metrics.clone()).expect("a valid URL");
        for (subject, over) in [("away", "back"), ("back", "away"), ("away", "back")] {
            bell.forget(AlertKind::Store, over);
            bell.ring(Alert::new(AlertKind::Store, subject, "it is so"));
        }
        drop(bell);
        let taken = async {
            let mut subjects = Vec::new();
            for _ in 0..3 {
                subjects.push(take(&listener, "200 OK").await["subject"].clone());
            }
            subjects
        };
        let (taken, ()) = tokio::join!(taken, messenger.run());
        assert_eq!(taken, ["away", "back", "away"]);
    }

    #[tokio::test]
    async fn raising_an_alert_never_blocks() {
        let (_listener, alerts) = hook().await;
        let metrics = AlertMetrics::default();
        let (bell, _messenger) = AlertSender::hang(&alerts, metrics.clone()).expect("a valid URL");
        for subject in 0..300 {
            bell.ring(Alert::new(AlertKind::Ban, &subject.to_string(), "banned"));
        }
        assert_eq!(counted(&metrics, AlertKind::Ban, "dropped"), 44);
    }
}

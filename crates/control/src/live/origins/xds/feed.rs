//! The stream from an xDS server: opened again after every failure, and answered once the composer has
//! decided on a version.

use super::messages::{AnyResource, DiscoveryRequest, DiscoveryResponse, METHOD, TYPE_URL};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::source::XdsServer;
use tidegate_proxy::grpc_stream::{GrpcStream, GrpcStreamError, GrpcTarget};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

/// The maximum length of a response: more than the configuration language accepts.
const BYTES_MAX: usize = 16 << 20;

/// The maximum time to connect.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The maximum delay of the answer to a rejected version that was sent again.
const REPEAT_MAX: Duration = Duration::from_secs(5);

/// The time after which a server without a configuration is reported.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// The progress of the stream, for the source.
#[derive(Debug, Default)]
pub(super) struct FeedState {
    /// The reason why there is no configuration, or no newer one; `None` while all is well.
    pub(super) trouble: Option<String>,
    /// The last configuration.
    pub(super) latest: Option<Arc<ReceivedVersion>>,
}

/// A complete configuration, as received.
#[derive(Debug)]
pub(super) struct ReceivedVersion {
    /// Counts the configurations of this process.
    pub(super) serial: u64,
    /// The version, unique in this process.
    pub(super) revision: String,
    /// The version, as the server has it.
    pub(super) version: String,
    pub(super) resources: Vec<AnyResource>,
}

/// The composer's decision on a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FeedVerdict {
    pub(super) serial: u64,
    /// The reason of a rejection.
    pub(super) rejected: Option<String>,
}

/// A stream that is kept open.
pub(super) struct Feed {
    pub(super) name: String,
    pub(super) server: XdsServer,
    pub(super) target: GrpcTarget,
    pub(super) headers: HeaderMap,
    /// The maximum delay between two attempts to connect.
    pub(super) pause_max: Duration,
    pub(super) state: watch::Sender<FeedState>,
    pub(super) verdicts: watch::Receiver<Option<FeedVerdict>>,
}

/// The state of one stream.
#[derive(Debug, Default)]
struct StreamState {
    /// The last version that was accepted on this stream.
    accepted: String,
    /// The last response, if it is not answered yet.
    open: Option<UnansweredResponse>,
    /// True if there was a response.
    has_begun: bool,
    /// True if it was reported that there is no response.
    is_reported: bool,
}

#[derive(Debug)]
struct UnansweredResponse {
    nonce: String,
    version: String,
    serial: u64,
    /// The time of the answer, if the composer has decided on the same resources before.
    due: Option<Instant>,
}

/// Returns the target of a server's stream.
pub(super) fn target(server: &XdsServer) -> Result<GrpcTarget, String> {
    GrpcTarget::to(&server.url, &server.tls, CONNECT_MAX)
}

/// Returns the additional headers of the call.
pub(super) fn headers(server: &XdsServer) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, text) in &server.headers {
        let wrong = || format!("the header `{name}` cannot be sent");
        let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        let mut value = HeaderValue::from_str(text.expose()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

impl Feed {
    /// Keeps the stream open, as long as it is polled.
    pub(super) async fn run(mut self) {
        let mut failures: u32 = 0;
        // The number of consecutive rejections of the same resources.
        let mut rejections: u32 = 0;
        loop {
            let began = Instant::now();
            let (has_begun, why) = self.stream(&mut rejections).await;
            let is_old = began.elapsed() >= self.pause_max;
            failures = if has_begun && is_old {
                0
            } else {
                failures.saturating_add(1)
            };
            if has_begun {
                // Servers end streams of a certain age, and the next one usually opens at once: if it does
                // not, that is trouble.
                let source = self.name.as_str();
                info!(
                    event = "xds_stream_ended",
                    source,
                    reason = why,
                    "xDS stream ended; reconnecting"
                );
            } else {
                self.fail(why);
            }
            let pause = tidegate::retry_delay(failures.saturating_sub(1));
            sleep(pause.min(self.pause_max)).await;
        }
    }

    /// Records why there is no stream. Logs it while there has been no configuration at all: nothing else
    /// does, as long as the start waits for one.
    fn fail(&self, why: String) {
        let source = self.name.as_str();
        self.state.send_if_modified(|state| {
            let is_news = state.trouble.as_ref() != Some(&why);
            if is_news && state.latest.is_none() {
                warn!(
                    event = "xds_unavailable",
                    source,
                    error = why,
                    "xDS server unavailable; retrying"
                );
            }
            state.trouble = Some(why);
            is_news
        });
    }

    /// Opens a stream and reads it to its end. Returns true if there was any response, and why it ended.
    async fn stream(&mut self, rejections: &mut u32) -> (bool, String) {
        let mut stream = match self.target.open(METHOD, self.headers.clone()).await {
            Ok(stream) => stream,
            Err(why) => return (false, why.to_string()),
        };
        let mut known = StreamState::default();
        let first = DiscoveryRequest {
            node: Some(&self.server),
            // No version of an earlier stream: a server that was restarted may count from 1 again, and
            // would not send what it has under the same number.
            ..DiscoveryRequest::default()
        };
        if let Err(why) = stream.send(&first.encode()) {
            return (false, why.to_string());
        }
        let silent_at = Instant::now() + SILENCE_MAX;
        loop {
            let is_silent = !known.has_begun && !known.is_reported;
            let due = known.open.as_ref().and_then(|open| open.due);
            let is_due = async {
                match due {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            let ended = tokio::select! {
                message = stream.next(BYTES_MAX) => self.read(message, &mut known, rejections),
                // The sender lives as long as the source. A delayed answer goes by the verdict of its time.
                _ = self.verdicts.changed(), if due.is_none() => {
                    self.answer(&stream, &mut known, rejections)
                }
                () = is_due => self.answer(&stream, &mut known, rejections),
                () = sleep_until(silent_at), if is_silent => {
                    known.is_reported = true;
                    self.fail(silence(&self.server));
                    Ok(())
                }
            };
            if let Err(why) = ended {
                return (known.has_begun, why);
            }
        }
    }

    /// Takes a message of the stream, or returns why it ended.
    fn read(
        &self,
        message: Result<Bytes, GrpcStreamError>,
        known: &mut StreamState,
        rejections: &mut u32,
    ) -> Result<(), String> {
        let message = message.map_err(|why| why.to_string())?;
        let response = DiscoveryResponse::read(&message);
        let response = response.map_err(|why| format!("a response cannot be read: {why}"))?;
        if response.type_url == TYPE_URL {
            self.take(response, known, rejections);
        } else {
            let source = self.name.as_str();
            warn!(
                event = "xds_type_unknown",
                source, "xDS response of another type ignored"
            );
        }
        Ok(())
    }

    /// Takes a response.
    fn take(&self, response: DiscoveryResponse, known: &mut StreamState, rejections: &mut u32) {
        known.has_begun = true;
        let DiscoveryResponse {
            version,
            nonce,
            resources,
            ..
        } = response;
        let mut serial = 0;
        let mut is_new = false;
        self.state.send_if_modified(|state| {
            let had_trouble = state.trouble.take().is_some();
            let latest = state.latest.as_ref();
            let is_used = latest.is_some_and(|it| it.version == version);
            serial = latest.map_or(1, |it| it.serial.saturating_add(1));
            if let Some(same) = latest.filter(|it| is_used && it.resources == resources) {
                serial = same.serial;
                return had_trouble;
            }
            is_new = true;
            // A server that was restarted may use a version again.
            let revision = if is_used || version.is_empty() {
                format!("{version}~{serial}")
            } else {
                version.clone()
            };
            state.latest = Some(Arc::new(ReceivedVersion {
                serial,
                revision,
                version: version.clone(),
                resources,
            }));
            true
        });
        let due = if is_new {
            *rejections = 0;
            None
        } else {
            self.due(serial, *rejections)
        };
        known.open = Some(UnansweredResponse {
            nonce,
            version,
            serial,
            due,
        });
    }

    /// Returns the time to answer resources that were sent before; `None` if they are not decided on yet.
    fn due(&self, serial: u64, rejections: u32) -> Option<Instant> {
        let verdict = self.verdicts.borrow();
        let own = verdict.as_ref().filter(|it| it.serial == serial)?;
        let now = Instant::now();
        match own.rejected {
            // go-control-plane sends a rejected version again at once, and sends nothing newer until that
            // is answered as well.
            Some(_) => Some(now + tidegate::retry_delay(rejections).min(REPEAT_MAX)),
            None => Some(now),
        }
    }

    /// Answers the last response, if there is a verdict on it.
    fn answer(
        &mut self,
        stream: &GrpcStream,
        known: &mut StreamState,
        rejections: &mut u32,
    ) -> Result<(), String> {
        let verdict = self.verdicts.borrow_and_update().clone();
        let is_own = |open: &mut UnansweredResponse| {
            verdict.as_ref().is_some_and(|it| it.serial == open.serial)
        };
        let (Some(open), Some(verdict)) = (known.open.take_if(is_own), &verdict) else {
            return Ok(());
        };
        if verdict.rejected.is_some() {
            *rejections = rejections.saturating_add(1);
        } else {
            known.accepted.clone_from(&open.version);
        }
        let request = DiscoveryRequest {
            node: None,
            version: &known.accepted,
            nonce: &open.nonce,
            error: verdict.rejected.as_deref(),
        };
        let sent = stream.send(&request.encode());
        sent.map_err(|why| why.to_string())
    }
}

/// Returns the reason for having nothing of a server while a stream to it is open.
pub(super) fn silence(server: &XdsServer) -> String {
    format!(
        "connected, but the server has sent no configuration for the node `{}`",
        server.node_id
    )
}

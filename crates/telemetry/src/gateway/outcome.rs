//! Outcomes of upstream requests and of messages.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The outcome of a request to an upstream. Each request has one, in addition to a possible
/// [`CutShort`](Self::CutShort).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamOutcome {
    /// The response headers arrived, with any status.
    Answered,
    /// The connection was refused.
    RefusedConnection,
    /// No connection could be made for another reason: an unknown name, an unreachable network, an untrusted
    /// certificate.
    Unreachable,
    /// No connection was made in time.
    ConnectTimeout,
    /// All connections that the upstream may have were in use for too long, or too many requests waited for
    /// one.
    ConnectionsFull,
    /// No response came in time.
    ResponseTimeout,
    /// The connection broke before the response, or the reply is not HTTP.
    Broken,
    /// The client's body failed or was malformed.
    UploadFailed,
    /// The client disconnected before the response.
    Abandoned,
    /// The response body did not complete. Counted in addition to `Answered`, which is known long before.
    CutShort,
}

/// The outcome of a message that a client sent through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// It was forwarded.
    Allowed,
    /// A limit refused it.
    Refused,
    /// There was no decision, because the store was unavailable.
    Undecided,
    /// It exceeded the maximum size.
    TooLarge,
}

/// An enumeration whose variants are counted.
pub(super) trait CountedLabel: Copy + Into<usize> + 'static {
    /// The labels, by number.
    const LABELS: &'static [&'static str];
}

impl CountedLabel for UpstreamOutcome {
    const LABELS: &'static [&'static str] = &[
        "answered",
        "refused_connection",
        "unreachable",
        "connect_timeout",
        "response_timeout",
        "broken",
        "upload_failed",
        "abandoned",
        "cut_short",
        "connections_full",
    ];
}

impl From<UpstreamOutcome> for usize {
    fn from(outcome: UpstreamOutcome) -> Self {
        match outcome {
            UpstreamOutcome::Answered => 0,
            UpstreamOutcome::RefusedConnection => 1,
            UpstreamOutcome::Unreachable => 2,
            UpstreamOutcome::ConnectTimeout => 3,
            UpstreamOutcome::ResponseTimeout => 4,
            UpstreamOutcome::Broken => 5,
            UpstreamOutcome::UploadFailed => 6,
            UpstreamOutcome::Abandoned => 7,
            UpstreamOutcome::CutShort => 8,
            UpstreamOutcome::ConnectionsFull => 9,
        }
    }
}

impl CountedLabel for MessageOutcome {
    const LABELS: &'static [&'static str] = &["allowed", "refused", "undecided", "too_large"];
}

impl From<MessageOutcome> for usize {
    fn from(outcome: MessageOutcome) -> Self {
        match outcome {
            MessageOutcome::Allowed => 0,
            MessageOutcome::Refused => 1,
            MessageOutcome::Undecided => 2,
            MessageOutcome::TooLarge => 3,
        }
    }
}

/// A counter for each outcome.
#[derive(Debug, Default)]
pub(super) struct UpstreamOutcomeCounters([AtomicU64; 10]);

impl UpstreamOutcomeCounters {
    #[inline]
    pub(super) fn count(&self, outcome: impl CountedLabel) {
        if let Some(count) = self.0.get(outcome.into()) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Encodes the outcomes. The first one, which is success, starts at zero, so that a rate over its first
    /// increase is right; the others appear once they occur.
    pub(super) fn encode<C: CountedLabel, const N: usize>(
        &self,
        encoder: &mut MetricEncoder<'_>,
        whose: [(&str, &str); N],
    ) -> fmt::Result {
        for (nth, (label, count)) in C::LABELS.iter().zip(&self.0).enumerate() {
            let count = count.load(Relaxed);
            if count == 0 && nth > 0 {
                continue;
            }
            let labels = (whose, [("outcome", *label)]);
            ConstCounter::new(count).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

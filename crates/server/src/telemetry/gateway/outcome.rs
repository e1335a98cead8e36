//! What came of requests to upstreams, and of messages.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What came of a request to an upstream. Each has one of these, but for [`CutShort`](Self::CutShort).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamOutcome {
    /// The head of an answer came, whatever its status.
    Answered,
    /// Nobody listens there.
    RefusedConnection,
    /// No connection could be made for another reason: a name that is not known, a network that is
    /// away, a certificate that is not believed.
    Unreachable,
    /// No connection was made in time.
    ConnectTimeout,
    /// All connections that the upstream may have were in use for too long, or too many requests waited
    /// for one.
    ConnectionsFull,
    /// No answer came in time.
    ResponseTimeout,
    /// The connection broke before the answer, or what came is not HTTP.
    Broken,
    /// The client's body did not come as it should.
    UploadFailed,
    /// The client went away before the answer.
    Abandoned,
    /// The answer did not come to its end. Counted beside `Answered`, for that is known long before.
    CutShort,
}

/// What came of a message that a client sent through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageOutcome {
    /// It was sent on.
    Allowed,
    /// A limit refused it.
    Refused,
    /// There was no decision, because the store could not tell.
    Undecided,
    /// It was larger than any may be.
    TooLarge,
}

/// One of a few things that are counted.
pub(super) trait CountedLabel: Copy + Into<usize> + 'static {
    /// As labels, by number.
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

    /// The first outcome, which is the good one, begins at zero, so that a rate over its first increase
    /// is right; the others appear once they happen.
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

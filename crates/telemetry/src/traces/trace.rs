//! One request, recorded or not.

use super::context::Context;
use super::span::{AttributeValue, Attributes, RequestSpans, Span, SpanKind};
use super::tracer::Tracer;
use crate::stopwatch::Stopwatch;
use http::HeaderValue;
use parking_lot::Mutex;
use std::mem;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{CheckError, Clock, Decision, SystemClock};
use tidegate_net::random::chance;

/// The most spans within one request. A list has at most a hundred check requests.
const SPANS_MAX: usize = 128;

/// One request. Recorded when it is dropped. If it is not to be recorded, all methods are no-ops.
#[derive(Debug)]
pub struct RequestTrace(Option<Box<ActiveTrace>>);

/// The trace of work that is never recorded.
pub static UNTRACED: RequestTrace = RequestTrace::none();

#[derive(Debug)]
struct ActiveTrace {
    tracer: Arc<Tracer>,
    context: Context,
    parent: Option<u64>,
    began_us: u64,
    watch: Stopwatch,
    /// Locked briefly by each operation of the request.
    so_far: Mutex<TraceProgress>,
}

#[derive(Debug, Default)]
struct TraceProgress {
    name: String,
    attributes: Attributes,
    status: Option<SpanStatus>,
    within: Vec<Span>,
}

/// The status of a response.
#[derive(Clone, Copy, Debug)]
enum SpanStatus {
    Http(u16),
    /// The status code of gRPC.
    Grpc(u16),
}

impl SpanStatus {
    fn attribute(self) -> (&'static str, AttributeValue) {
        match self {
            Self::Http(status) => (
                "http.response.status_code",
                AttributeValue::Number(status.into()),
            ),
            Self::Grpc(code) => ("rpc.grpc.status_code", AttributeValue::Number(code.into())),
        }
    }

    /// Returns true for a server error, as OpenTelemetry defines it: rejecting an invalid request is not an
    /// error.
    fn is_error(self) -> bool {
        match self {
            Self::Http(status) => status >= 500,
            // Unknown, deadline exceeded, unimplemented, internal, unavailable, data loss.
            Self::Grpc(code) => matches!(code, 2 | 4 | 12 | 13 | 14 | 15),
        }
    }
}

/// An operation within a request that takes a while.
#[derive(Debug)]
pub struct ChildSpan(Option<SpanStart>);

#[derive(Debug)]
struct SpanStart {
    id: u64,
    /// The start, relative to the start of the request.
    after: Duration,
}

impl RequestTrace {
    /// Returns a trace that is not recorded.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Starts a trace that is recorded, as a child of `parent` if there is one.
    pub fn begin(tracer: &Arc<Tracer>, parent: Option<Context>) -> Self {
        let trace = parent.map_or_else(new_trace, |parent| parent.trace);
        Self(Some(Box::new(ActiveTrace {
            tracer: Arc::clone(tracer),
            context: Context {
                trace,
                span: new_span(),
                is_sampled: true,
            },
            parent: parent.map(|parent| parent.span),
            began_us: SystemClock::new().now().as_micros(),
            watch: Stopwatch::start(),
            so_far: Mutex::default(),
        })))
    }

    /// Sets the name, which is computed only if the request is recorded.
    pub fn name(&self, name: impl FnOnce() -> String) {
        if let Some(active) = &self.0 {
            active.so_far.lock().name = name();
        }
    }

    /// Adds attributes, which are computed only if the request is recorded.
    pub fn note<const N: usize>(
        &self,
        notes: impl FnOnce() -> [(&'static str, AttributeValue); N],
    ) {
        if let Some(active) = &self.0 {
            active.so_far.lock().attributes.extend(notes());
        }
    }

    /// Records the HTTP status of the response.
    pub fn answered(&self, status: u16) {
        if let Some(active) = &self.0 {
            active.so_far.lock().status = Some(SpanStatus::Http(status));
        }
    }

    /// Records the code with which a gRPC call ended; 0 if it has a response.
    pub fn called(&self, code: u16) {
        if let Some(active) = &self.0 {
            active.so_far.lock().status = Some(SpanStatus::Grpc(code));
        }
    }

    /// Starts an operation.
    pub fn leg(&self) -> ChildSpan {
        ChildSpan(self.0.as_ref().map(|active| SpanStart {
            id: new_span(),
            after: active.watch.elapsed(),
        }))
    }

    /// Ends an operation that decided.
    pub fn decided(&self, leg: ChildSpan, outcome: Result<&Decision, &CheckError>) {
        self.end(leg, "decide", SpanKind::Internal, || match outcome {
            Ok(decision) => (described(decision), false),
            Err(_) => (
                vec![("tidegate.outcome", AttributeValue::Word("error"))],
                true,
            ),
        });
    }

    /// Ends a request to an upstream, which responded with `status`, or not at all.
    pub fn forwarded(&self, leg: ChildSpan, status: Option<u16>) {
        self.end(leg, "upstream", SpanKind::Client, || {
            let name = "http.response.status_code";
            let status = status.map(|status| (name, AttributeValue::Number(status.into())));
            let is_error = status.is_none();
            (status.into_iter().collect(), is_error)
        });
    }

    fn end(
        &self,
        leg: ChildSpan,
        name: &str,
        kind: SpanKind,
        rest: impl FnOnce() -> (Attributes, bool),
    ) {
        let (Some(active), Some(began)) = (&self.0, leg.0) else {
            return;
        };
        let took = active.watch.elapsed().saturating_sub(began.after);
        let (attributes, is_error) = rest();
        let mut so_far = active.so_far.lock();
        if so_far.within.len() < SPANS_MAX {
            so_far.within.push(Span {
                id: began.id,
                parent: Some(active.context.span),
                name: name.to_owned(),
                kind,
                began_us: active.began_us.saturating_add(micros(began.after)),
                took,
                attributes,
                is_error,
            });
        }
    }

    /// Returns the header for an upstream, so that its spans belong to `leg`.
    pub fn header(&self, leg: &ChildSpan) -> Option<HeaderValue> {
        let (active, began) = (self.0.as_ref()?, leg.0.as_ref()?);
        let context = Context {
            span: began.id,
            ..active.context
        };
        context.header()
    }
}

impl Drop for ActiveTrace {
    fn drop(&mut self) {
        let TraceProgress {
            name,
            mut attributes,
            status,
            within,
        } = mem::take(&mut *self.so_far.lock());
        attributes.extend(status.map(SpanStatus::attribute));
        let mut spans = Vec::with_capacity(within.len() + 1);
        spans.push(Span {
            id: self.context.span,
            parent: self.parent,
            name,
            kind: SpanKind::Server,
            began_us: self.began_us,
            took: self.watch.elapsed(),
            attributes,
            // Without a status, the client had disconnected.
            is_error: status.is_some_and(SpanStatus::is_error),
        });
        spans.extend(within);
        self.tracer.record(RequestSpans {
            trace: self.context.trace,
            spans,
        });
    }
}

/// Describes a decision by names of the configuration.
fn described(decision: &Decision) -> Attributes {
    let outcome = match decision.is_allowed() {
        true if decision.guard().is_some() => "exempt",
        true if decision.is_unlimited() => "unlimited",
        true => "allowed",
        false => "refused",
    };
    let mut attributes: Attributes = vec![
        ("tidegate.policy", decision.policy().into()),
        ("tidegate.outcome", AttributeValue::Word(outcome)),
        (
            "tidegate.decided_by",
            AttributeValue::Word(decision.decided_by().as_str()),
        ),
    ];
    if decision.reports_reason() {
        let reason = AttributeValue::Word(decision.reason().as_str());
        attributes.push(("tidegate.reason", reason));
    }
    if let Some(guard) = decision.guard() {
        attributes.push(("tidegate.guard", guard.name.as_str().into()));
    }
    if let Some(binding) = decision.binding() {
        attributes.extend([
            ("tidegate.limit", binding.limit().into()),
            (
                "tidegate.capacity",
                AttributeValue::Number(binding.capacity()),
            ),
            (
                "tidegate.remaining",
                AttributeValue::Number(binding.remaining()),
            ),
        ]);
        if let Some(wait) = binding.retry_after().filter(|_| !decision.is_allowed()) {
            attributes.push((
                "tidegate.retry_after_us",
                AttributeValue::Number(micros(wait)),
            ));
        }
    }
    let waited = decision.waited();
    if !waited.is_zero() {
        attributes.push(("tidegate.waited_us", AttributeValue::Number(micros(waited))));
    }
    attributes
}

fn new_trace() -> u128 {
    (u128::from(chance()) << 64) | u128::from(new_span())
}

/// Returns a new span id. 0 means no span.
fn new_span() -> u64 {
    chance().max(1)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

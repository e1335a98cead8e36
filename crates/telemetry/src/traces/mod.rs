//! Traces: spans of single requests, for an OpenTelemetry collector.
//!
//! | module | what it is |
//! |---|---|
//! | `context` | the trace of a request: `traceparent` |
//! | `trace` | one request, recorded or not |
//! | `span` | the recorded data |
//! | `tracer` | the sampling decision and the bounded queue |
//! | `outbox` | sending, many requests at a time |
//! | `otlp` | encoding |
//! | `metrics` | outcomes of spans |
//!
//! ```text
//! request ─▶ recorded? ─▶ spans ─▶ queue (bounded) ─▶ outbox ─▶ POST, again after a pause, given up
//! ```

mod context;
mod metrics;
mod otlp;
mod outbox;
mod span;
#[cfg(test)]
mod tests;
mod trace;
mod tracer;

pub use context::{Context, TRACEPARENT, TRACESTATE};
pub(crate) use metrics::TraceMetrics;
pub use span::AttributeValue;
pub use trace::{ChildSpan, RequestTrace, UNTRACED};
pub use tracer::Tracer;

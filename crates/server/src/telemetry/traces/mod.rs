//! Traces: what single requests went through, for an OpenTelemetry collector.
//!
//! | module | what it is |
//! |---|---|
//! | `context` | which trace a request belongs to: `traceparent` |
//! | `trace` | one request that is recorded, or is not |
//! | `span` | what is recorded of it |
//! | `tracer` | decides what is recorded, and keeps it within a bound |
//! | `outbox` | sends it, many requests at a time |
//! | `otlp` | how it is written |
//! | `metrics` | what became of it |
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

pub(crate) use context::{Context, TRACEPARENT, TRACESTATE};
pub(crate) use metrics::TraceMetrics;
pub(crate) use span::AttributeValue;
pub(crate) use trace::{Leg, RequestTrace, UNTRACED};
pub(crate) use tracer::Tracer;

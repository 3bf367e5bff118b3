//! Traces: a span for each event and each invocation, sent to a collector as OTLP.
//!
//! They never delay an event: spans that do not fit into the queue are dropped and counted.
//!
//! ```text
//! routes/events.rs ── Event ──▶ Tracer::begin         (the event gets its span, whose id hooks receive)
//! run::RunActor ── FinishedEvent ──▶ Tracer ── bounded queue ──▶ SpanExporter ── batch of spans ──▶ collector
//! ```
//!
//! OTLP is sent in its JSON form through the HTTP client that hookyard already uses. The `opentelemetry` crates would add a
//! dozen more, Protocol Buffers among them, for one request of one shape. Without an endpoint there is no tracer, and all
//! that an event pays is to see that.

mod exporter;
mod otlp_json;
mod span;
mod tracer;

pub(super) use tracer::Tracer;

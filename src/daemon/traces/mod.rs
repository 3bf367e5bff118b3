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
//! dozen more, Protocol Buffers among them, for one request of one shape. A build without the feature `otel` has
//! `disabled` instead.

#[cfg(not(feature = "otel"))]
mod disabled;
mod error;
#[cfg(feature = "otel")]
mod exporter;
#[cfg(feature = "otel")]
mod id_generator;
#[cfg(feature = "otel")]
mod otlp_json;
#[cfg(feature = "otel")]
mod span;
#[cfg(feature = "otel")]
mod tracer;

#[cfg(not(feature = "otel"))]
pub(super) use disabled::Tracer;
pub use error::TracesError;
#[cfg(feature = "otel")]
pub(super) use tracer::Tracer;

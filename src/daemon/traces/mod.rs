//! Traces: a span for each event and each invocation, sent as OTLP. Owns which events are traced and how many spans
//! wait and are lost; refuses to keep an event waiting: what does not fit is dropped and counted.
//!
//! ```text
//! routes/events.rs ── Event ──▶ Tracer::begin             (the event gets its span, hooks are told of it)
//! run::RunActor ── FinishedEvent ──▶ Tracer ── bounded queue ──▶ SpanExporter's task ── batch of spans ──▶ collector
//! ```
//!
//! OTLP is spoken in its JSON form, through the HTTP client that is here anyway. The `opentelemetry` crates would bring
//! a dozen more, Protocol Buffers among them, for what is one request with one shape. A build without the feature
//! `otel` has `absent` in the place of all that.

#[cfg(not(feature = "otel"))]
mod disabled;
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
#[cfg(feature = "otel")]
pub(super) use tracer::Tracer;

use crate::model::AddressError;

/// Why no traces can be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TracesError {
    /// This build cannot.
    #[error("`traces.endpoint` is set, and this hookyard is built without the feature `otel`; leave it out")]
    NotBuilt,
    /// A variable names no place for them.
    #[error("the variable {name} names no place for traces: {why}")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What is wrong with its value.
        why: AddressError,
    },
}

//! What the requests and answers of OTLP in JSON have in common, be they of spans or of logs.

use serde_json::{Value, json};

/// An attribute with a text.
pub(super) fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// What says which program sends.
pub(super) fn service() -> [Value; 2] {
    [attribute("service.name", "hookyard"), attribute("service.version", env!("CARGO_PKG_VERSION"))]
}

/// What says which part of it has made the records.
pub(super) fn scope() -> Value {
    json!({ "name": "hookyard", "version": env!("CARGO_PKG_VERSION") })
}

/// The number of records that the collector rejected from an accepted request, by the name of that number.
pub(super) fn rejected(answer: &[u8], name: &str) -> u64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    // OTLP writes 64-bit numbers as strings; some collectors write plain numbers.
    let rejected = &answer["partialSuccess"][name];
    rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or_default()
}

//! One question to a model API, as both protocols produce it.

use reqwest::header::{HeaderName, HeaderValue};

/// The parts of an HTTP request that depend on the protocol.
#[derive(Debug)]
pub(super) struct ApiRequest {
    /// The path below the base address.
    pub(super) path: &'static str,
    /// The protocol's own headers, without the key.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The header that carries the key.
    pub(super) key_header: HeaderName,
    /// What precedes the key in its header.
    pub(super) key_prefix: &'static str,
    /// The body, or why it cannot be written.
    pub(super) body: serde_json::Result<Vec<u8>>,
}

//! Asking language models: the trait that an embedding program may implement, and the client of the model APIs in
//! the settings.

#[cfg(feature = "models")]
mod anthropic;
#[cfg(feature = "models")]
mod api;
mod call;
mod client;
mod conversation;
#[cfg(feature = "models")]
mod openai;

#[cfg(feature = "models")]
pub(super) use api::ApiClient;
pub(crate) use call::ModelRouter;
pub(super) use call::{ModelCall, run_call};
pub use client::{
    ModelAnswer, ModelClient, ModelError, ModelRequest, ModelToolCall, ToolResult, ToolSpecification,
    ToolUse, Turn,
};
pub(super) use conversation::Conversation;

#[cfg(feature = "models")]
use reqwest::header::{HeaderName, HeaderValue};

/// The parts of an HTTP request that depend on the protocol.
#[cfg(feature = "models")]
#[derive(Debug)]
struct ApiRequest {
    /// The path below the base address.
    path: &'static str,
    /// The protocol's own headers, without the key.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// The header that carries the key.
    key_header: HeaderName,
    /// What precedes the key in its header.
    key_prefix: &'static str,
    /// The body, or why it cannot be written.
    body: serde_json::Result<Vec<u8>>,
}

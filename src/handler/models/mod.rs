//! Asking language models: the trait that an embedding program may implement, and the client of the model APIs in
//! the settings.

#[cfg(feature = "models")]
mod anthropic;
#[cfg(feature = "models")]
mod api;
#[cfg(feature = "models")]
mod api_request;
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

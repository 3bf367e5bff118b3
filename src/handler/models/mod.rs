//! Asking language models: the trait an embedding program may implement, and the client that speaks the protocols
//! of the settings. Owns what a model is told and how an answer is read off the wire; refuses to know hooks.

mod anthropic;
mod api;
mod client;
mod dialogue;
mod door;
mod openai;
mod talk;

pub(crate) use api::ApiLimits;
pub use client::{
    ModelAnswer, ModelClient, ModelError, ModelRequest, ToolCall, ToolResult, ToolSpecification, ToolUse,
    Turn,
};
pub(super) use dialogue::Dialogue;
pub(crate) use door::ModelDoor;
pub(super) use talk::{Talk, talk};

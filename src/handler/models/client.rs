//! The interface of a client of language models, independent of the protocol.

use std::fmt;

use futures_util::future::BoxFuture;

use crate::model::{Approval, Model, TokenUsage};

/// Asks language models.
///
/// An implementation enforces no deadline: the future is dropped at the hook's, and nothing may go on after that. It
/// does not retry, because hooks share limits and deadlines that it does not know.
pub trait ModelClient: fmt::Debug + Send + Sync {
    /// Whether this client answers for a model of this name. Models of other names are looked up in the settings.
    fn has(&self, model_ref: &str) -> bool;

    /// Asks a model once.
    ///
    /// Returns an error if there is no answer. The operator reads its message, which must not contain keys.
    fn ask<'a>(
        &'a self,
        model: &'a Model,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>>;
}

/// One question to a model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The text for the system role. Nothing of an event is ever in it.
    pub system: String,
    /// The conversation so far; the last turn is never the model's.
    pub turns: Vec<Turn>,
    /// The tools that the model may call before it answers.
    pub tools: Vec<ToolSpecification>,
    /// Whether it may call them in its next turn.
    pub tool_use: ToolUse,
    /// The JSON Schema of the object to answer with.
    pub schema: serde_json::Value,
    /// Proof that the hook which asks may run.
    pub approval: Approval,
}

/// Whether a model may use its tools in its next answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolUse {
    /// It may call tools or answer.
    Allowed,
    /// It has to answer.
    Forbidden,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Turn {
    /// A message to the model.
    User(String),
    /// A message of the model.
    Model {
        /// Its text; may be empty if it calls tools.
        text: String,
        /// The tools it calls.
        calls: Vec<ModelToolCall>,
    },
    /// The results of all tool calls of the turn before.
    Results(Vec<ToolResult>),
}

/// A tool, described for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSpecification {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// The JSON Schema of its arguments, as text.
    pub schema: &'static str,
}

/// A model's call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelToolCall {
    /// The id that the model gave the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if it followed the schema.
    pub arguments: String,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The output, or an error message; both are for the model.
    pub result: Result<String, String>,
}

/// An answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelAnswer {
    /// Its text.
    pub text: String,
    /// The tools it calls before it goes on.
    pub calls: Vec<ModelToolCall>,
    /// The tokens used, if the model's server reports them.
    pub tokens: Option<TokenUsage>,
    /// Whether the answer was cut off at the limit of output tokens.
    pub cut_off: bool,
}

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// It could not be asked, or its server refused.
    #[error("{0}")]
    Failed(String),
    /// Its answer exceeds the limit of bytes.
    #[error("{0}")]
    TooLarge(String),
}

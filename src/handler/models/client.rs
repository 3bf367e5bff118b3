//! What a client of language models is asked and answers, whoever reaches the model and over which protocol.

use std::fmt;

use futures_util::future::BoxFuture;

use crate::model::{Model, TokenUsage};

/// Reaches language models.
///
/// An implementation watches no clock: the future is dropped at the hook's deadline, and nothing may go on after
/// that. It does not ask again by itself, because hooks share limits and deadlines that it does not know.
pub trait ModelClient: fmt::Debug + Send + Sync {
    /// Whether it answers for a model of this name. Hooks that name another one get it from the settings.
    fn has(&self, model_ref: &str) -> bool;

    /// Asks a model once.
    ///
    /// Returns an error, with words for the operator and without keys, if there is no answer.
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
    /// For the system role. Nothing of an event is ever in it.
    pub system: String,
    /// What was said so far; the last turn is never the model's.
    pub turns: Vec<Turn>,
    /// What the model may have done before it answers.
    pub tools: Vec<ToolSpecification>,
    /// Whether it may do so now.
    pub tool_use: ToolUse,
    /// The JSON Schema of the object it has to answer with.
    pub schema: serde_json::Value,
}

/// Whether a model may use its tools in its next answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolUse {
    /// It may.
    Allowed,
    /// It has to come to its answer.
    Forbidden,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Turn {
    /// To the model.
    User(String),
    /// By the model.
    Model {
        /// Its words.
        text: String,
        /// What it wanted done.
        calls: Vec<ToolCall>,
    },
    /// What came of everything it wanted done in the turn before.
    Results(Vec<ToolResult>),
}

/// A tool as a model is told about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolSpecification {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// The JSON Schema of its arguments, as text.
    pub schema: &'static str,
}

/// Something a model wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The model's id for it.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if it kept to the schema.
    pub arguments: String,
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// What came of it, or what was wrong with it.
    pub result: Result<String, String>,
}

/// An answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelAnswer {
    /// Its words.
    pub text: String,
    /// What it wants done before it goes on.
    pub calls: Vec<ToolCall>,
    /// What the answer cost, where the model's server says so.
    pub tokens: Option<TokenUsage>,
    /// Whether the answer was cut off because it became too long.
    pub cut_off: bool,
}

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// It could not be asked, or its server refused.
    #[error("{0}")]
    Failed(String),
    /// It answered with more than it may.
    #[error("{0}")]
    TooLarge(String),
}

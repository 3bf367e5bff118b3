//! Language models of the settings, and the handlers that use them.

use std::{num::NonZeroUsize, sync::Arc};

use serde::Serialize;

use super::{Address, SecretText};

/// A language model and its name in hook files.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The name in hook files: its `model_ref`.
    pub reference: Arc<str>,
    /// How requests reach it.
    pub access: ModelAccess,
}

/// How requests reach a model.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelAccess {
    /// Through a protocol of hookyard, configured in the settings.
    Api(Arc<ApiModel>),
    /// Through the embedding program's own client.
    Host,
}

/// A model behind an API that hookyard supports.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiModel {
    /// The protocol.
    pub api: ModelApi,
    /// The base URL.
    pub base_url: Address,
    /// The model's name in the API.
    pub model: String,
    /// The API key; `None` for servers without authentication.
    pub key: Option<SecretText>,
    /// How it is asked for JSON output.
    pub json: JsonOutput,
    /// The most tokens of one response.
    pub max_output_tokens: NonZeroUsize,
    /// The most bytes of one request.
    pub max_input: usize,
    /// The sampling temperature; `None` for the default of the API.
    pub temperature: Option<f64>,
}

/// The supported APIs of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelApi {
    /// Chat completions of `OpenAI` and compatible servers.
    OpenAi,
    /// Messages of Anthropic.
    Anthropic,
}

impl ModelApi {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::OpenAi, Self::Anthropic];

    /// The name as written in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// How a model is asked for JSON output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum JsonOutput {
    /// The API's JSON mode: `response_format` of `OpenAI`, a forced tool call of Anthropic.
    #[default]
    Object,
    /// JSON mode with a schema, where the API supports one.
    Schema,
    /// By instructions in the prompt alone, for servers without a JSON mode.
    Words,
}

impl JsonOutput {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Object, Self::Schema, Self::Words];

    /// The name as written in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Schema => "schema",
            Self::Words => "words",
        }
    }
}

/// A prompt for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptHandler {
    /// The prompt; the envelope is appended to it.
    pub prompt: Arc<str>,
    /// The model.
    pub model: Model,
}

/// A task for an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentHandler {
    /// The agent.
    pub agent: Arc<Agent>,
    /// The task; the envelope is appended to it.
    pub task: Arc<str>,
}

/// A model with a system prompt and tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its description, for people.
    pub description: Option<String>,
    /// Its system prompt.
    pub system: String,
    /// Its model.
    pub model: Model,
    /// Its tools.
    pub tools: Vec<AgentTool>,
    /// The most requests to its model for one task.
    pub max_turns: NonZeroUsize,
}

/// The tools of agents, which can only read the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentTool {
    /// Reads a text file.
    ReadFile,
    /// Finds lines by a pattern.
    Grep,
    /// Finds files by their names.
    Glob,
}

impl AgentTool {
    /// All tools.
    pub const ALL: [Self; 3] = [Self::ReadFile, Self::Grep, Self::Glob];

    /// The name in agent files and in requests to models.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::Grep => "grep",
            Self::Glob => "glob",
        }
    }

    /// The tool with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }
}

/// The number of tokens of requests and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TokenUsage {
    /// Tokens of the input.
    pub input: u64,
    /// Tokens of the output.
    pub output: u64,
}

impl TokenUsage {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
        }
    }
}

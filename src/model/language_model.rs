//! Language models as settings describe them, and the handlers that ask them.

use std::{num::NonZeroUsize, sync::Arc};

use serde::Serialize;

use super::{Address, SecretText};

/// A language model under the name that hook files have for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The name in hook files: its `model_ref`.
    pub reference: Arc<str>,
    /// How it is reached.
    pub access: ModelAccess,
}

/// How a model is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelAccess {
    /// Over one of the protocols hookyard speaks, as the settings say.
    Api(Arc<ApiModel>),
    /// By the embedding program, which knows the model under its reference.
    Host,
}

/// A model behind a protocol that hookyard speaks.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiModel {
    /// The protocol.
    pub api: ModelApi,
    /// Where it is spoken.
    pub base_url: Address,
    /// The model's name there.
    pub model: String,
    /// Says who asks; none for servers that let anybody ask.
    pub key: Option<SecretText>,
    /// How it is made to answer in JSON.
    pub json: JsonOutput,
    /// How many tokens one answer may have.
    pub max_output_tokens: NonZeroUsize,
    /// How many bytes it may be asked with.
    pub max_input: usize,
    /// How freely it chooses its words; none leaves it to the model.
    pub temperature: Option<f64>,
}

/// The protocols of models that hookyard speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelApi {
    /// Chat completions as `OpenAI` has them, and the many servers that speak like it.
    OpenAi,
    /// Messages as Anthropic has them.
    Anthropic,
}

impl ModelApi {
    /// Every protocol.
    pub const ALL: [Self; 2] = [Self::OpenAi, Self::Anthropic];

    /// The name as written in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// How a model is made to answer in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum JsonOutput {
    /// The protocol's own means to have an object: `OpenAI`'s JSON mode, Anthropic's tool that must be called.
    #[default]
    Object,
    /// The object's schema as well, where the protocol has a place for it besides the tool's.
    Schema,
    /// By words alone, for servers that know no such means.
    Words,
}

impl JsonOutput {
    /// Every way.
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

/// A question to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptHandler {
    /// The question; the envelope goes with it.
    pub prompt: Arc<str>,
    /// Who is asked.
    pub model: Model,
}

/// A task for an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentHandler {
    /// Who gets it.
    pub agent: Arc<Agent>,
    /// The task; the envelope goes with it.
    pub task: Arc<str>,
}

/// A model with a role, and what it may look at before it answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// What it is for, for people.
    pub description: Option<String>,
    /// Its role, in its own words.
    pub system: String,
    /// The model that plays it.
    pub model: Model,
    /// What it may look around with.
    pub tools: Vec<AgentTool>,
    /// How often its model may be asked for one task.
    pub max_turns: NonZeroUsize,
}

/// What an agent may look around the workspace with; all only read.
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
    /// Every tool.
    pub const ALL: [Self; 3] = [Self::ReadFile, Self::Grep, Self::Glob];

    /// The name as written in agent files and told to models.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::Grep => "grep",
            Self::Glob => "glob",
        }
    }

    /// The tool of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }
}

/// How many tokens were read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TokenUsage {
    /// Read by the model.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
}

impl TokenUsage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
        }
    }
}

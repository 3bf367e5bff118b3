//! Handlers: what a hook runs.

use std::{borrow::Cow, fmt, num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde::{Serialize, Serializer};

use super::{
    Address, AgentHandler, Draft, ModelAccess, PromptHandler, Reply, RuleHandler, Sandbox, SecretReference,
    SecretText,
};

/// What a hook runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Handler {
    /// A program.
    Command(CommandHandler),
    /// A request to a web server.
    Http(HttpHandler),
    /// A question to a model.
    Prompt(PromptHandler),
    /// A task for an agent.
    Agent(AgentHandler),
    /// Expressions that judge the event in process.
    Rule(RuleHandler),
    /// Policies in Rego that judge the event in process.
    Rego(RuleHandler),
    /// A closure of the embedding program.
    Native(NativeHandler),
}

impl Handler {
    /// Which of the seven it is.
    pub fn kind(&self) -> HandlerKind {
        match self {
            Self::Command(_) => HandlerKind::Command,
            Self::Http(_) => HandlerKind::Http,
            Self::Prompt(_) => HandlerKind::Prompt,
            Self::Agent(_) => HandlerKind::Agent,
            Self::Rule(_) => HandlerKind::Rule,
            Self::Rego(_) => HandlerKind::Rego,
            Self::Native(_) => HandlerKind::Native,
        }
    }

    /// The variables and secrets that its values refer to and lack.
    pub(crate) fn references(&self) -> Vec<SecretReference> {
        let model = match self {
            Self::Command(command) => return references_of(&command.environment),
            Self::Http(http) => return references_of(&http.headers),
            Self::Prompt(prompt) => &prompt.model,
            Self::Agent(task) => &task.agent.model,
            Self::Rule(_) | Self::Rego(_) | Self::Native(_) => return Vec::new(),
        };
        match &model.access {
            ModelAccess::Api(api) => api.key.iter().flat_map(SecretText::references).cloned().collect(),
            ModelAccess::Host => Vec::new(),
        }
    }

    /// Takes the values of the same handler read again.
    pub(crate) fn take_values(&mut self, resolved: &Self) {
        match (self, resolved) {
            (Self::Command(command), Self::Command(resolved)) => {
                for (name, value) in &mut command.environment {
                    let known = resolved.environment.iter().find(|(known, _)| known == name);
                    if let Some((_, known)) = known {
                        value.clone_from(known);
                    }
                }
            }
            (Self::Http(http), Self::Http(resolved)) => http.headers.clone_from(&resolved.headers),
            (Self::Prompt(prompt), Self::Prompt(resolved)) => prompt.model = resolved.model.clone(),
            (Self::Agent(task), Self::Agent(resolved)) => {
                Arc::make_mut(&mut task.agent).model = resolved.agent.model.clone();
            }
            _ => {}
        }
    }

    /// How a program's process is started; none for what is no program.
    pub fn mode(&self) -> Option<&'static str> {
        match self {
            Self::Command(command) => Some(command.mode.as_str()),
            Self::Http(_)
            | Self::Prompt(_)
            | Self::Agent(_)
            | Self::Rule(_)
            | Self::Rego(_)
            | Self::Native(_) => None,
        }
    }
}

/// The kinds of handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HandlerKind {
    /// A program.
    Command,
    /// A request to a web server.
    Http,
    /// A question to a model.
    Prompt,
    /// A task for an agent.
    Agent,
    /// Expressions that judge the event in process.
    Rule,
    /// Policies in Rego that judge the event in process.
    Rego,
    /// A closure of the embedding program.
    Native,
}

fn references_of(values: &[(String, SecretText)]) -> Vec<SecretReference> {
    values.iter().flat_map(|(_, value)| value.references()).cloned().collect()
}

impl HandlerKind {
    /// Every kind.
    #[cfg(feature = "daemon")]
    pub(crate) const ALL: [Self; 7] =
        [Self::Command, Self::Http, Self::Prompt, Self::Agent, Self::Rule, Self::Rego, Self::Native];

    /// The name as written in hook files and shown as a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Http => "http",
            Self::Prompt => "prompt",
            Self::Agent => "agent",
            Self::Rule => "rule",
            Self::Rego => "rego",
            Self::Native => "native",
        }
    }
}

impl fmt::Display for HandlerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for HandlerKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A program that gets the envelope on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandHandler {
    /// What is run.
    pub line: CommandLine,
    /// Where it is run: an absolute directory inside the workspace.
    pub cwd: PathBuf,
    /// Its own variables, beside the allowed ones of hookyard's environment and the dialect's.
    pub environment: Vec<(String, SecretText)>,
    /// How its process is started.
    pub mode: CommandMode,
    /// What its process may do; `None` for all that hookyard may.
    pub sandbox: Option<Arc<Sandbox>>,
}

/// The endings of scripts.
const SCRIPT_ENDINGS: [&str; 12] =
    ["bash", "cjs", "js", "lua", "mjs", "mts", "php", "pl", "py", "rb", "sh", "ts"];

/// What a command handler runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// A line for `/bin/sh -c`.
    Shell(String),
    /// A program and its arguments, without a shell.
    Exec {
        /// The program: an absolute path, found when the hook was loaded.
        program: PathBuf,
        /// Its arguments.
        args: Vec<String>,
    },
}

impl CommandLine {
    /// The scripts and programs that the command names as files, as it writes them: what has a directory or the ending
    /// of a script. What a shell would expand is not found.
    pub(crate) fn scripts(&self) -> Vec<&str> {
        let words: Vec<&str> = match self {
            Self::Shell(line) => {
                line.split_whitespace().map(|word| word.trim_matches(['\'', '"', ';', '(', ')'])).collect()
            }
            Self::Exec { program, args } => {
                program.to_str().into_iter().chain(args.iter().map(String::as_str)).collect()
            }
        };
        let is_script = |word: &&str| {
            let ending =
                word.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
            ending.is_some_and(|ending| SCRIPT_ENDINGS.contains(&ending))
        };
        let mut scripts: Vec<_> = words.iter().copied().filter(is_script).collect();
        scripts.extend(words.first().copied().filter(|word| word.contains('/') && !scripts.contains(word)));
        scripts
    }

    /// What a shell is given to run, whichever shell it is; of other programs, the whole line.
    pub(crate) fn in_a_shell(&self) -> Cow<'_, str> {
        match self {
            Self::Shell(line) => line.into(),
            Self::Exec { program, args } => match args.as_slice() {
                [option, line] if option == "-c" && program.ends_with("bash") => line.into(),
                _ => self.to_string().into(),
            },
        }
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell(line) => f.write_str(line),
            Self::Exec { program, args } => {
                write!(f, "{}", program.display())?;
                args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
        }
    }
}

/// How a command's process is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommandMode {
    /// A process for each event.
    #[default]
    Oneshot,
    /// A process for each event that is started before it.
    Prespawn {
        /// How many wait.
        spares: NonZeroUsize,
    },
    /// Processes that serve many events, over the worker protocol.
    Worker(WorkerBounds),
}

/// How many workers a hook has, and after what another takes the place of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerBounds {
    /// How many there are at most.
    pub workers: NonZeroUsize,
    /// After so many events.
    pub max_requests: NonZeroUsize,
    /// After so long without events.
    pub max_idle: Duration,
    /// At this age.
    pub max_age: Option<Duration>,
    /// With more memory than this, in MiB.
    pub max_rss_mib: Option<NonZeroUsize>,
}

impl Default for WorkerBounds {
    fn default() -> Self {
        Self {
            workers: NonZeroUsize::MIN,
            max_requests: NonZeroUsize::MIN.saturating_add(9_999),
            max_idle: Duration::from_mins(1),
            max_age: None,
            max_rss_mib: None,
        }
    }
}

impl CommandMode {
    /// The name as written in hook files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Oneshot => "oneshot",
            Self::Prespawn { .. } => "prespawn",
            Self::Worker(_) => "worker",
        }
    }
}

/// A request to a web server, with the envelope as its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpHandler {
    /// Where it goes.
    pub address: Address,
    /// With which method.
    pub method: HttpMethod,
    /// With which headers.
    pub headers: Vec<(String, SecretText)>,
}

/// The methods of http handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpMethod {
    /// `POST`
    #[default]
    Post,
    /// `GET`
    Get,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

impl HttpMethod {
    /// Every method.
    pub const ALL: [Self; 5] = [Self::Post, Self::Get, Self::Put, Self::Patch, Self::Delete];

    /// The method as sent.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What a native hook answers: a reply, or why it failed.
pub type NativeReply = Result<Reply, String>;

/// A closure of the embedding program.
#[derive(Clone)]
pub enum NativeHandler {
    /// Runs inside the run's actor, so it must be quick and must not block.
    Inline(Arc<dyn Fn(&Draft) -> NativeReply + Send + Sync>),
    /// Runs as a task of its own; its future is dropped at the deadline.
    Task(Arc<dyn Fn(Draft) -> BoxFuture<'static, NativeReply> + Send + Sync>),
}

/// Two are the same if they share their closure.
impl PartialEq for NativeHandler {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Inline(one), Self::Inline(other)) => Arc::ptr_eq(one, other),
            (Self::Task(one), Self::Task(other)) => Arc::ptr_eq(one, other),
            (Self::Inline(_), Self::Task(_)) | (Self::Task(_), Self::Inline(_)) => false,
        }
    }
}

impl fmt::Debug for NativeHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inline(_) => "Inline(closure)",
            Self::Task(_) => "Task(closure)",
        })
    }
}

impl Handler {
    /// The cargo feature that the handler needs and this build of hookyard does not have. Its hooks fail with
    /// `spawn_failed`.
    pub fn missing_feature(&self) -> Option<&'static str> {
        let access = match self {
            Self::Command(_) | Self::Rule(_) | Self::Native(_) => return None,
            Self::Http(_) => return (!cfg!(feature = "http")).then_some("http"),
            Self::Rego(_) => return (!cfg!(feature = "rego")).then_some("rego"),
            Self::Prompt(prompt) => &prompt.model.access,
            Self::Agent(handler) => &handler.agent.model.access,
        };
        // The embedding program's own client needs no feature.
        let needs_api = matches!(access, ModelAccess::Api(_));
        (needs_api && !cfg!(feature = "models")).then_some("models")
    }
}

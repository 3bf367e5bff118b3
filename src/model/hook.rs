//! Hooks as they are loaded: which events they want, what they run and under which policies.

use std::{borrow::Cow, fmt, num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde::{Serialize, Serializer};

use super::{
    Address, AgentHandler, Capabilities, Dialect, Draft, EventKinds, ExecutionPolicy, HookName, Matcher,
    PromptHandler, Reply, SecretText, Verdict,
};

/// A named rule, ready to run.
#[derive(Debug, Clone)]
pub struct Hook {
    /// Its name, unique in its workspace.
    pub name: HookName,
    /// The dialect it is written for: what it is told and how its answer is read.
    pub dialect: &'static dyn Dialect,
    /// The kinds of event it wants.
    pub events: EventKinds,
    /// Which of them; without one, all.
    pub matcher: Option<Matcher>,
    /// What it runs.
    pub handler: Handler,
    /// What it may do besides giving its verdict.
    pub capabilities: Capabilities,
    /// Lower runs earlier.
    pub priority: i32,
    /// A disabled hook is listed and never runs.
    pub enabled: bool,
    /// The longest one invocation may take.
    pub timeout: Duration,
    /// How many invocations of it run at once, over all runs; without it, as many as its pool has places.
    pub max_concurrency: Option<NonZeroUsize>,
    /// What a failure counts as.
    pub on_error: FailurePolicy,
    /// What a timeout counts as.
    pub on_timeout: FailurePolicy,
    /// When it runs and who waits for it, beyond what its dialect says.
    pub execution: ExecutionPolicy,
    /// Where it was found.
    pub source: HookSource,
}

/// What the failure of a hook counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FailurePolicy {
    /// No opinion: fail open.
    #[default]
    Ignore,
    /// A block that names the hook and the failure: fail closed.
    Deny,
    /// A question to a person.
    Ask,
}

impl FailurePolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Ignore, Self::Deny, Self::Ask];

    /// The policy of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == name)
    }

    /// The name as written in hook files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }

    /// What a failure counts as.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Ignore => Verdict::Proceed,
            Self::Deny => Verdict::Block,
            Self::Ask => Verdict::Ask,
        }
    }
}

/// Where a hook comes from, in the order in which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Given by the embedding program.
    Host,
    /// Installed on the machine by its administrator.
    Managed,
    /// From the user's own files.
    User,
    /// From the workspace.
    Project,
    /// From the user's own files in the workspace.
    Local,
}

impl Scope {
    /// The name as shown in listings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Managed => "managed",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The place where a hook was found.
#[derive(Debug, Clone)]
pub struct HookSource {
    /// How far it reaches.
    pub scope: Scope,
    /// Its file; none for native hooks.
    pub file: Option<Arc<std::path::Path>>,
    /// The line of its name, from 1; 0 for native hooks.
    pub line: usize,
    /// Its number among the hooks of its file, or among the native hooks.
    pub position: usize,
}

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
    /// A closure of the embedding program.
    Native(NativeHandler),
}

impl Handler {
    /// Which of the five it is.
    pub fn kind(&self) -> HandlerKind {
        match self {
            Self::Command(_) => HandlerKind::Command,
            Self::Http(_) => HandlerKind::Http,
            Self::Prompt(_) => HandlerKind::Prompt,
            Self::Agent(_) => HandlerKind::Agent,
            Self::Native(_) => HandlerKind::Native,
        }
    }

    /// How a program's process is started; none for what is no program.
    pub fn mode(&self) -> Option<&'static str> {
        match self {
            Self::Command(command) => Some(command.mode.as_str()),
            Self::Http(_) | Self::Prompt(_) | Self::Agent(_) | Self::Native(_) => None,
        }
    }
}

/// The five kinds of handler.
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
    /// A closure of the embedding program.
    Native,
}

impl HandlerKind {
    /// The name as written in hook files and shown as a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Http => "http",
            Self::Prompt => "prompt",
            Self::Agent => "agent",
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
}

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

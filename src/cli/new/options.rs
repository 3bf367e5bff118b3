//! What a new hook can be: its handler, language and process mode.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// The type of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum HandlerType {
    /// A program
    Command,
    /// A request to a web server
    Http,
    /// A question to a language model
    Prompt,
    /// A task for an agent
    Agent,
}

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum ScriptLanguage {
    /// POSIX shell; with `--mode worker` it needs `jq`
    #[default]
    Sh,
    /// Python 3
    Python,
    /// JavaScript for Node.js
    Node,
}

/// How a command's process is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum ProcessMode {
    /// One process per event
    #[default]
    Oneshot,
    /// One process per event, started in advance
    Prespawn,
    /// One process for many events
    Worker,
}

/// A path below the directory of hooks.
pub(super) fn in_hooks(rest: &str) -> PathBuf {
    Path::new(".openharness/hooks").join(rest)
}

//! What `check` warns of on a node of a cluster: hooks that look at files which are on the machines of agents.

use clap::Args;

use crate::{
    config::Settings,
    model::{CommandLine, Diagnostic, Handler, Hook, Severity},
};

/// Whether the hooks are for a node.
#[derive(Debug, Args)]
pub(super) struct ClusterFlag {
    /// Warn of hooks that look at files of agents, which a node of a cluster does not have; implied by `cluster.enabled`
    #[arg(long)]
    cluster: bool,
}

impl ClusterFlag {
    /// The warnings about hooks that need files of agents.
    pub(super) fn warnings(&self, hooks: &[Hook], settings: &Settings) -> Vec<Diagnostic> {
        if !self.cluster && !settings.cluster.enabled {
            return Vec::new();
        }
        hooks.iter().filter(|hook| hook.enabled).filter_map(warning).collect()
    }
}

/// What a command mentions that takes a path from the event or from its agent, with what it is then.
const AGENT_FILES: [(&str, &str); 6] = [
    ("transcript_path", "the transcript of the session"),
    ("file_path", "the file that a tool works on"),
    ("notebook_path", "the file that a tool works on"),
    ("workspace_roots", "directories of the agent"),
    (".cwd", "the agent's directory"),
    ("_ENV_FILE", "a file of the agent"),
];

fn warning(hook: &Hook) -> Option<Diagnostic> {
    let (file, what) = (hook.source.file.as_deref()?, what_it_needs(&hook.handler)?);
    let message =
        format!("the hook `{}` looks at {what}, and runs on a node, where no file of an agent is", hook.name);
    let warning = Diagnostic::of_file(Severity::Warning, "agent-files", file, message);
    let help = "judge what is in the event, or give the hook to a daemon on the agent's machine";
    Some(Diagnostic { line: hook.source.line, column: 1, ..warning.help(help) })
}

/// What a handler needs that is on the machine of an agent.
fn what_it_needs(handler: &Handler) -> Option<&'static str> {
    match handler {
        Handler::Command(command) => match &command.line {
            CommandLine::Shell(line) => mentioned_in(line),
            CommandLine::Exec { args, .. } => args.iter().find_map(|argument| mentioned_in(argument)),
        },
        Handler::Agent(_) => Some("files of the workspace, as the agent's model asks for them"),
        _ => None,
    }
}

fn mentioned_in(text: &str) -> Option<&'static str> {
    AGENT_FILES.iter().find(|(name, _)| text.contains(name)).map(|(_, what)| *what)
}

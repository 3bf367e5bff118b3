//! What can be typed: the commands and the flags they share. Refuses to act on any of it.

use std::path::PathBuf;

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum, builder::PossibleValue};

use super::{
    check::Check, completions::Completions, convert::Convert, explain::Explain, fire::Fire, list::List,
    new::New, replay::Replay, schema::Schema,
};
#[cfg(feature = "daemon")]
use super::{
    daemon_runs::Runs,
    daemon_status::{Reload, Status},
    relay::Relay,
    serve::Serve,
    top::Top,
};
use crate::model::DialectName;

const EXAMPLES: &str = "\
Examples:
  hookyard new my-guard                  Write a hook that works, to change into one's own
  hookyard check                         Is everything in order here?
  hookyard list                          Which hooks are there, and in which order do they run?
  hookyard explain --event event.json    Which of them run for this event, and why not the others?
  hookyard fire --event event.json       Run them, and show what a host would be told
  hookyard replay session.jsonl          Do so for a whole recorded session
  hookyard serve --workspace .           Run them for hosts in any language, over a socket
  hookyard status                        How is that daemon?
  hookyard top                           What do hooks and runs do there at the moment?

Exit codes: 0 done, 1 the work failed or found errors, 2 the arguments make no sense.
Logs go to standard error; HOOKYARD_LOG=hookyard=debug shows more of them.";

/// Runs hooks for AI-agent hosts, and helps to write them.
///
/// A hook is a small program that is told what an agent is about to do, and may change or stop it. Hooks
/// stand in files of a workspace; these commands look at them and try them out.
#[derive(Debug, Parser)]
#[command(name = "hookyard", version, after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,

    /// When to use colours; `auto` means on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Check(Check),
    List(List),
    Explain(Explain),
    Fire(Fire),
    Replay(Replay),
    New(New),
    Schema(Schema),
    Convert(Convert),
    #[cfg(feature = "daemon")]
    Serve(Serve),
    #[cfg(feature = "daemon")]
    Relay(Relay),
    #[cfg(feature = "daemon")]
    Status(Status),
    #[cfg(feature = "daemon")]
    Runs(Runs),
    #[cfg(feature = "daemon")]
    Top(Top),
    #[cfg(feature = "daemon")]
    Reload(Reload),
    Completions(Completions),
}

/// Which hooks, under which settings.
#[derive(Debug, Clone, Args)]
pub(super) struct WorkspaceFlags {
    /// The workspace; without it, the nearest directory with hook files, from here upwards
    #[arg(long, short, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,

    #[command(flatten)]
    pub(super) settings: SettingsFlags,
}

/// Which settings.
#[derive(Debug, Clone, Args)]
pub(super) struct SettingsFlags {
    /// The home directory with the user's own hooks; without it, `$HOOKYARD_HOME`, that of the settings, or `$HOME`
    #[arg(long, value_name = "DIR")]
    pub(super) home: Option<PathBuf>,

    /// A settings file; what it leaves out has its default. A variable such as `HOOKYARD_LIMITS_IN_FLIGHT`
    /// counts before the file
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// One setting, which counts before file and variables: `--set limits.in_flight=100`; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub(super) set: Vec<(String, String)>,
}

fn assignment(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("write a key, `=` and its value: limits.in_flight=100")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

/// Which event, in which words.
#[derive(Debug, Clone, Args)]
pub(super) struct EventFlags {
    /// A file with the event as JSON; `-` reads it from standard input
    #[arg(long, short, value_name = "FILE")]
    pub(super) event: PathBuf,

    #[command(flatten)]
    pub(super) dialect: DialectFlag,
}

/// Whose words an event is written in.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct DialectFlag {
    /// Whose words the event is written in
    #[arg(long, short, value_name = "NAME", default_value = "canonical")]
    pub(super) dialect: DialectName,
}

/// Who reads the result.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct JsonFlag {
    /// Prints JSON, for programs
    #[arg(long)]
    pub(super) json: bool,
}

impl ValueEnum for DialectName {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.as_str()).help(self.events()))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_arguments_are_sound() {
        crate::cli::command().debug_assert();
    }
}

//! The command line as it is typed: the program and its subcommands.

use clap::{ColorChoice, Parser, Subcommand};

use super::{
    check::CheckCommand, completions::CompletionsCommand, convert::ConvertCommand, explain::ExplainCommand,
    fire::FireCommand, list::ListCommand, new::NewCommand, replay::ReplayCommand, schema::SchemaCommand,
};
#[cfg(feature = "daemon")]
use super::{
    relay::RelayCommand,
    runs::RunsCommand,
    serve::ServeCommand,
    status::{ReloadCommand, StatusCommand},
    top::TopCommand,
};

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
    pub(super) command: CliCommand,

    /// When to use colours; `auto` means on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: ColorChoice,
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    Check(CheckCommand),
    List(ListCommand),
    Explain(ExplainCommand),
    Fire(FireCommand),
    Replay(ReplayCommand),
    New(NewCommand),
    Schema(SchemaCommand),
    Convert(ConvertCommand),
    #[cfg(feature = "daemon")]
    Serve(ServeCommand),
    #[cfg(feature = "daemon")]
    Relay(RelayCommand),
    #[cfg(feature = "daemon")]
    Status(StatusCommand),
    #[cfg(feature = "daemon")]
    Runs(RunsCommand),
    #[cfg(feature = "daemon")]
    Top(TopCommand),
    #[cfg(feature = "daemon")]
    Reload(ReloadCommand),
    Completions(CompletionsCommand),
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_arguments_are_sound() {
        crate::cli::command().debug_assert();
    }
}

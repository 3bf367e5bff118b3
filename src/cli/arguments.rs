//! The command line as it is typed: the program and its subcommands.

use clap::{Args, ColorChoice, Parser, Subcommand};
use clap_complete::Shell;

#[cfg(feature = "daemon")]
use super::{
    audit::AuditCommand,
    connect::{ConnectCommand, DisconnectCommand},
    doctor::DoctorCommand,
    log::LogCommand,
    outbox::OutboxCommand,
    relay::RelayCommand,
    reload::ReloadCommand,
    runs::RunsCommand,
    serve::ServeCommand,
    status::StatusCommand,
    stop::StopCommand,
    top::TopCommand,
    tune::TuneCommand,
    workspaces::WorkspacesCommand,
};
use super::{
    check::CheckCommand,
    convert::ConvertCommand,
    exit::{CliResult, Exit},
    explain::ExplainCommand,
    fire::FireCommand,
    list::ListCommand,
    new::NewCommand,
    replay::ReplayCommand,
    schema::SchemaCommand,
    screen::Screen,
    trust::TrustCommand,
};

const FOOTER: &str = "\
Examples:
  hookyard new my-guard\tCreate a working hook to start from
  hookyard trust\tShow what hooks of a workspace run, and agree to it
  hookyard check\tFind mistakes in hook files
  hookyard list\tList hooks in the order in which they run
  hookyard explain --event event.json\tShow which hooks an event selects, and why
  hookyard fire --event event.json\tRun the hooks for one event
  hookyard replay session.jsonl\tRun the hooks for a recorded session
  hookyard tune --events session.jsonl\tFind out which hooks are faster when their processes are kept warm
  hookyard connect claude\tHave an agent ask hookyard
  hookyard serve --workspace .\tStart the daemon for hosts in any language
  hookyard doctor\tFind out why hooks do not run as they should
  hookyard status\tShow daemon status
  hookyard top\tLive view of hooks and runs
  hookyard log --follow\tShow what is blocked and why, live

Exit codes: 0 success; 1 the command failed or found errors; 2 invalid arguments.

Logs go to standard error. Set `HOOKYARD_LOG=hookyard=debug` for more detail.";

const COMPLETIONS_FOOTER: &str = "\
Examples:
  hookyard completions bash > ~/.local/share/bash-completion/completions/hookyard
  hookyard completions zsh > ~/.zfunc/_hookyard
  hookyard completions fish > ~/.config/fish/completions/hookyard.fish";

/// Run hooks for AI-agent hosts, and write new ones
///
/// A hook is a small program that sees what an agent is about to do and can change or stop it. Hooks are declared in
/// files of a workspace. These commands check, run and serve them.
#[derive(Debug, Parser)]
#[command(name = "hookyard", version, after_help = FOOTER)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: CliCommand,

    /// When to use colours; `auto`: on a terminal, unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: ColorChoice,
}

/// The subcommands, in the order of the help.
#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    Check(CheckCommand),
    List(ListCommand),
    Explain(ExplainCommand),
    Fire(FireCommand),
    Replay(ReplayCommand),
    New(NewCommand),
    Trust(TrustCommand),
    #[cfg(feature = "daemon")]
    Tune(TuneCommand),
    Schema(SchemaCommand),
    Convert(ConvertCommand),
    #[cfg(feature = "daemon")]
    Connect(ConnectCommand),
    #[cfg(feature = "daemon")]
    Disconnect(DisconnectCommand),
    #[cfg(feature = "daemon")]
    Doctor(DoctorCommand),
    #[cfg(feature = "daemon")]
    Serve(ServeCommand),
    #[cfg(feature = "daemon")]
    Stop(StopCommand),
    #[cfg(feature = "daemon")]
    Relay(RelayCommand),
    #[cfg(feature = "daemon")]
    Status(StatusCommand),
    #[cfg(feature = "daemon")]
    Runs(RunsCommand),
    #[cfg(feature = "daemon")]
    Top(TopCommand),
    #[cfg(feature = "daemon")]
    Log(LogCommand),
    #[cfg(feature = "daemon")]
    Audit(AuditCommand),
    #[cfg(feature = "daemon")]
    Outbox(OutboxCommand),
    #[cfg(feature = "daemon")]
    Reload(ReloadCommand),
    #[cfg(feature = "daemon")]
    Workspaces(WorkspacesCommand),
    Completions(CompletionsCommand),
}

/// Print a completion script for your shell
///
/// Save the script where your shell looks for completions, then start a new shell.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_FOOTER)]
pub(super) struct CompletionsCommand {
    /// Shell to complete for
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl CompletionsCommand {
    pub(super) fn run(self, command: &mut clap::Command, screen: &Screen) -> CliResult {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "hookyard", &mut script);
        screen.print(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_declared_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}

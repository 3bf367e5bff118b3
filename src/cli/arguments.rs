//! The command line as it is typed: the program and its subcommands.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::{Args, ColorChoice, Parser, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;

#[cfg(feature = "daemon")]
use super::{
    add::AddCommand,
    audit::AuditCommand,
    bench::BenchCommand,
    bundle::BundleCommand,
    connect::{ConnectCommand, DisconnectCommand},
    doctor::DoctorCommand,
    handlers::{DisableCommand, EnableCommand},
    log::LogCommand,
    outbox::OutboxCommand,
    record::RecordCommand,
    relay::RelayCommand,
    reload::ReloadCommand,
    runs::RunsCommand,
    serve::ServeCommand,
    status::StatusCommand,
    stop::StopCommand,
    top::TopCommand,
    tune::TuneCommand,
    ui::UiCommand,
    workspaces::WorkspacesCommand,
};
use super::{
    check::CheckCommand,
    convert::ConvertCommand,
    escape,
    exit::{CliError, CliResult, Exit},
    explain::ExplainCommand,
    fire::FireCommand,
    list::ListCommand,
    new::NewCommand,
    replay::ReplayCommand,
    schema::SchemaCommand,
    screen::Screen,
    test::TestCommand,
    trust::TrustCommand,
};
#[cfg(feature = "cluster")]
use super::{cluster::ClusterCommand, work::WorkCommand};
use crate::model::io_reason;

const FOOTER: &str = "\
Examples:
  hookyard new my-guard\tCreate a working hook to start from
  hookyard add --list\tShow the packs of guards that can be added
  hookyard trust\tShow what hooks of a workspace run, and agree to it
  hookyard check\tFind mistakes in hook files
  hookyard list\tList hooks in the order in which they run
  hookyard explain --event event.json\tShow which hooks an event selects, and why
  hookyard fire --event event.json\tRun the hooks for one event
  hookyard replay session.jsonl\tRun the hooks for a recorded session
  hookyard test\tRun the hooks for cases, and compare the outcomes
  hookyard tune --events session.jsonl\tFind out which hooks are faster when their processes are kept warm
  hookyard bench\tMeasure what hosts wait for under load
  hookyard disable NAME\tSwitch a hook off
  hookyard connect claude\tHave an agent ask hookyard
  hookyard record claude\tRecord the events of a connected agent
  hookyard serve --workspace .\tStart the daemon for hosts in any language
  hookyard doctor\tFind out why hooks do not run as they should
  hookyard status\tShow daemon status
  hookyard top\tLive view of hooks and runs
  hookyard ui\tOpen the daemon's page in a browser
  hookyard log\tShow what was blocked and why

Exit codes: 0 success; 1 the command failed or found errors; 2 invalid arguments.

Logs go to standard error. Set `HOOKYARD_LOG=hookyard=debug` for more detail.";

const COMPLETIONS_FOOTER: &str = "\
Examples:
  hookyard completions bash > ~/.local/share/bash-completion/completions/hookyard
  hookyard completions zsh > ~/.zfunc/_hookyard
  hookyard completions fish > ~/.config/fish/completions/hookyard.fish";

const MAN_FOOTER: &str = "\
Examples:
  hookyard man | man -l -
  hookyard man serve | man -l -
  hookyard man --write ~/.local/share/man/man1";

/// The width of examples in manual pages, in columns.
const MAN_WIDTH: usize = 72;

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
    Test(TestCommand),
    New(NewCommand),
    #[cfg(feature = "daemon")]
    Add(AddCommand),
    Trust(TrustCommand),
    #[cfg(feature = "daemon")]
    Enable(EnableCommand),
    #[cfg(feature = "daemon")]
    Disable(DisableCommand),
    #[cfg(feature = "daemon")]
    Tune(TuneCommand),
    #[cfg(feature = "daemon")]
    Bench(Box<BenchCommand>),
    Schema(SchemaCommand),
    Convert(ConvertCommand),
    #[cfg(feature = "daemon")]
    Connect(ConnectCommand),
    #[cfg(feature = "daemon")]
    Disconnect(DisconnectCommand),
    #[cfg(feature = "daemon")]
    Bundle(Box<BundleCommand>),
    #[cfg(feature = "cluster")]
    Cluster(Box<ClusterCommand>),
    #[cfg(feature = "daemon")]
    Doctor(DoctorCommand),
    #[cfg(feature = "daemon")]
    Serve(ServeCommand),
    #[cfg(feature = "cluster")]
    Work(Box<WorkCommand>),
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
    Ui(UiCommand),
    #[cfg(feature = "daemon")]
    Log(LogCommand),
    #[cfg(feature = "daemon")]
    Record(RecordCommand),
    #[cfg(feature = "daemon")]
    Audit(AuditCommand),
    #[cfg(feature = "daemon")]
    Outbox(OutboxCommand),
    #[cfg(feature = "daemon")]
    Reload(ReloadCommand),
    #[cfg(feature = "daemon")]
    Workspaces(WorkspacesCommand),
    Completions(CompletionsCommand),
    Man(ManCommand),
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

/// Print a manual page, or write all of them
///
/// Without a command, prints the page of `hookyard` itself, as source for `man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_FOOTER)]
pub(super) struct ManCommand {
    /// Command, such as `serve` or `workspaces add`
    #[arg(value_name = "COMMAND")]
    of: Vec<String>,

    /// Directory to write the pages of all commands into, such as `hookyard-serve.1`
    #[arg(long, value_name = "DIR", conflicts_with = "of")]
    write: Option<PathBuf>,
}

/// Lays out the footer of a command in a width.
type FooterLayout = fn(&clap::Command, usize) -> Option<String>;

impl ManCommand {
    /// `footer` lays out what follows the options of a command, in this width.
    pub(super) fn run(self, command: clap::Command, footer: FooterLayout, screen: &Screen) -> CliResult {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        if let Some(directory) = &self.write {
            let written =
                fs::create_dir_all(directory).and_then(|()| write_pages(&command, footer, directory));
            written.map_err(|error| {
                let name = escape::path(directory);
                CliError::new(format!("the pages cannot be written to {name}: {}", io_reason(&error)))
            })?;
            return Ok(Exit::Done);
        }
        let mut page = &command;
        for name in &self.of {
            page = page.find_subcommand(name).ok_or_else(|| {
                let what = format!("there is no command `{}`", escape::line(name));
                CliError::with_help(what, "`hookyard --help` lists them")
            })?;
        }
        screen.print(&String::from_utf8_lossy(&page_of(page, footer)?.1))?;
        Ok(Exit::Done)
    }
}

/// Writes the pages of a command and its subcommands.
fn write_pages(command: &clap::Command, footer: FooterLayout, directory: &Path) -> io::Result<()> {
    let (name, page) = page_of(command, footer)?;
    fs::write(directory.join(name), page)?;
    command.get_subcommands().try_for_each(|subcommand| write_pages(subcommand, footer, directory))
}

/// The manual page of a command, and the name of its file.
fn page_of(command: &clap::Command, footer: FooterLayout) -> io::Result<(String, Vec<u8>)> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(footer) = footer(command, MAN_WIDTH) {
        // As it is laid out: examples are to be copied.
        writeln!(page, ".SH NOTES\n.nf")?;
        for line in footer.lines() {
            writeln!(page, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
        }
        writeln!(page, ".fi")?;
    }
    Ok((man.get_filename(), page))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_declared_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}

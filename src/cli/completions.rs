//! `completions`: print a shell's completion script.

use clap::Args;
use clap_complete::Shell;

use super::{
    exit::{CliResult, Exit},
    screen::Screen,
};

const FOOTER: &str = "\
Examples:
  hookyard completions bash > ~/.local/share/bash-completion/completions/hookyard
  hookyard completions zsh > ~/.zfunc/_hookyard
  hookyard completions fish > ~/.config/fish/completions/hookyard.fish";

/// Print a completion script for your shell
///
/// Save the script where your shell looks for completions, then start a new shell.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
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

//! `completions`: what a shell needs to complete hookyard's arguments.

use clap::Args;
use clap_complete::Shell;

use super::{
    exit::{CliResult, Exit},
    screen::Screen,
};

const EXAMPLES: &str = "\
Examples:
  hookyard completions bash > ~/.local/share/bash-completion/completions/hookyard
  hookyard completions zsh > ~/.zfunc/_hookyard
  hookyard completions fish > ~/.config/fish/completions/hookyard.fish";

/// Prints a script that lets your shell complete hookyard's arguments
///
/// Save it where your shell looks for completions; a new shell then knows them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompletionsCommand {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl CompletionsCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "hookyard", &mut script);
        screen.print(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}

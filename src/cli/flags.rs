//! Flags that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::PossibleValue};

use crate::model::DialectName;

/// The workspace and its settings.
#[derive(Debug, Clone, Args)]
pub(super) struct WorkspaceFlags {
    /// Workspace directory; default: the nearest directory with hook files, from the current one upwards
    #[arg(long, short, value_name = "DIR")]
    pub(super) workspace: Option<PathBuf>,

    #[command(flatten)]
    pub(super) settings: SettingsFlags,
}

/// Where settings come from.
#[derive(Debug, Clone, Args)]
pub(super) struct SettingsFlags {
    /// Home directory with the user's own hooks; default: the setting `home`, or that of the account
    #[arg(long, value_name = "DIR")]
    pub(super) home: Option<PathBuf>,

    /// Settings file; default: `~/.config/hookyard/hookyard.yaml`, if it exists. Keys it leaves out keep their
    /// defaults. For `serve` and `check`, environment variables such as `HOOKYARD_LIMITS_IN_FLIGHT` override the file
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Override one setting: `--set limits.in_flight=100`. Overrides file and environment; can be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub(super) set: Vec<(String, String)>,
}

fn assignment(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("write a key, `=` and its value: limits.in_flight=100")?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

/// The event and its format.
#[derive(Debug, Clone, Args)]
pub(super) struct EventFlags {
    /// File with the event as JSON; `-` reads standard input
    #[arg(long, short, value_name = "FILE")]
    pub(super) event: PathBuf,

    #[command(flatten)]
    pub(super) dialect: DialectFlag,
}

/// The format of events.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct DialectFlag {
    /// Event format (dialect)
    #[arg(long, short, value_name = "NAME", default_value = "canonical")]
    pub(super) dialect: DialectName,
}

/// Whether the command trusts the workspace.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct TrustFlag {
    /// Run the hooks of the workspace in this call, whether they are trusted or not
    #[arg(long)]
    pub(super) trust_workspace: bool,
}

/// The form of the result.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct JsonFlag {
    /// Print JSON
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

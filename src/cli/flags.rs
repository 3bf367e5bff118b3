//! Flags that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::PossibleValue};

use crate::model::DialectName;

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

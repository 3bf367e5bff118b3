//! Settings of a command, from its file, environment variables and flags.

use std::{
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use tracing::Level;

use super::{
    diagnostics, escape,
    exit::CliError,
    flags::SettingsFlags,
    paths::open_input,
    screen::{FATAL_TARGET, MessageFormat, Screen},
};
use crate::{
    config::Settings,
    model::{Diagnostic, Severity},
};

/// The largest settings file, in bytes.
const LARGEST_SETTINGS: u64 = 1 << 20;

/// Whether a command takes settings from environment variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariablePolicy {
    /// It does: it is the daemon, which an operator starts, or checks the settings for it.
    Read,
    /// It does not: an agent may run it, and takes variables from the files of a project.
    Ignored,
}

/// The settings, or the defaults if there are errors in them, and what is wrong.
///
/// Returns an error if the file cannot be read, or the home directory cannot be used.
pub(super) fn settings_of(
    flags: &SettingsFlags,
    variables: VariablePolicy,
) -> Result<(Settings, Vec<Diagnostic>), CliError> {
    let text = flags.config.as_deref().map(text_of).transpose()?;
    let file = text.as_deref().zip(flags.config.as_deref());
    let variables = std::env::vars_os().filter(|_| variables == VariablePolicy::Read);
    let (settings, diagnostics) = Settings::layered(file, variables, &flags.set);
    let mut settings = settings.unwrap_or_default();
    if let Some(home) = &flags.home {
        settings.home = Some(home_directory(home)?);
    }
    if settings.sandbox.launcher.is_none() {
        // Without its own path, hooks with a sandbox report that there is no launcher.
        settings.sandbox.launcher = std::env::current_exe().ok();
    }
    Ok((settings, diagnostics))
}

/// Shows what is wrong with settings on standard error.
///
/// Returns an error if any of it is one.
pub(super) fn tell(diagnostics: &[Diagnostic], screen: &Screen) -> Result<(), CliError> {
    for diagnostic in diagnostics {
        match (screen.message_format, diagnostic.severity) {
            (MessageFormat::Text, severity) => {
                let text = diagnostics::render(diagnostic, None, screen.err.paint, screen.width());
                screen.write_message(level(severity), &text);
            }
            (MessageFormat::Log, Severity::Error) => tracing::error!(target: FATAL_TARGET, "{diagnostic}"),
            (MessageFormat::Log, Severity::Warning) => tracing::warn!("{diagnostic}"),
            (MessageFormat::Log, Severity::Info) => tracing::info!("{diagnostic}"),
        }
    }
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    if failed { Err(CliError::AlreadyReported) } else { Ok(()) }
}

fn level(severity: Severity) -> Level {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARN,
        Severity::Info => Level::INFO,
    }
}

fn home_directory(given: &Path) -> Result<PathBuf, CliError> {
    given.canonicalize().map_err(|error| {
        let name = escape::path(given);
        CliError::new(format!(
            "the home directory `{name}` cannot be used: {}",
            crate::model::io_reason(&error)
        ))
    })
}

/// The text of a settings file.
///
/// Returns an error if it cannot be read, is too large, or is not UTF-8.
fn text_of(file: &Path) -> Result<String, CliError> {
    let bytes = start_of(file)
        .map_err(|error| unusable(file, &format!("cannot be read: {}", crate::model::io_reason(&error))))?;
    if bytes.len() as u64 > LARGEST_SETTINGS {
        return Err(unusable(file, &format!("is larger than the {LARGEST_SETTINGS} bytes allowed")));
    }
    String::from_utf8(bytes).map_err(|_| unusable(file, "is not UTF-8"))
}

/// The bytes of a file, at most one more than are allowed.
///
/// Returns an error of a pipe through which nothing comes: the guards of its settings would be missing without a word.
fn start_of(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened = open_input(file)?;
    let is_pipe = opened.metadata()?.file_type().is_fifo();
    opened.take(LARGEST_SETTINGS + 1).read_to_end(&mut bytes)?;
    if is_pipe && bytes.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is a pipe, and nobody writes to it"));
    }
    Ok(bytes)
}

fn unusable(file: &Path, why: &str) -> CliError {
    CliError::new(format!("the settings file `{}` {why}", escape::path(file)))
}

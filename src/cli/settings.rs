//! The settings a command works with: those of its file, its variables and its flags. Owns what is said about a file
//! that cannot be read; refuses to look at any workspace.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    diagnostics, escape,
    exit::CliError,
    flags::SettingsFlags,
    paths::io_reason,
    screen::{FATAL_TARGET, MessageFormat, Screen},
};
use crate::{
    config::Settings,
    model::{Diagnostic, Severity},
};

/// The largest settings file, in bytes.
const LARGEST_SETTINGS: u64 = 1 << 20;

/// The settings, and what is wrong with them; the defaults if they have errors.
///
/// Returns an error if the file cannot be read, or the home directory cannot be used.
pub(super) fn settings_of(flags: &SettingsFlags) -> Result<(Settings, Vec<Diagnostic>), CliError> {
    let text = flags.config.as_deref().map(text_of).transpose()?;
    let file = text.as_deref().zip(flags.config.as_deref());
    let (settings, diagnostics) = Settings::layered(file, std::env::vars_os(), &flags.set);
    let mut settings = settings.unwrap_or_default();
    if let Some(home) = &flags.home {
        settings.home = Some(home_directory(home)?);
    }
    Ok((settings, diagnostics))
}

/// Shows what is wrong with settings on standard error.
///
/// Returns an error if they cannot be worked with.
pub(super) fn tell(diagnostics: &[Diagnostic], screen: &Screen) -> Result<(), CliError> {
    for diagnostic in diagnostics {
        match (screen.message_format, diagnostic.severity) {
            (MessageFormat::Text, _) => {
                screen.note(&diagnostics::render(diagnostic, screen.err.paint, screen.width()));
            }
            (MessageFormat::Log, Severity::Error) => tracing::error!(target: FATAL_TARGET, "{diagnostic}"),
            (MessageFormat::Log, Severity::Warning) => tracing::warn!("{diagnostic}"),
            (MessageFormat::Log, Severity::Info) => tracing::info!("{diagnostic}"),
        }
    }
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    if failed { Err(CliError::AlreadyReported) } else { Ok(()) }
}

fn home_directory(given: &Path) -> Result<PathBuf, CliError> {
    given.canonicalize().map_err(|error| {
        let name = escape::path(given);
        CliError::new(format!("the home directory `{name}` cannot be used: {}", io_reason(&error)))
    })
}

fn text_of(file: &Path) -> Result<String, CliError> {
    let trouble = |why: &str| CliError::new(format!("the settings file `{}` {why}", escape::path(file)));
    let open = || {
        let mut bytes = Vec::new();
        File::open(file)?.take(LARGEST_SETTINGS + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    let bytes = open().map_err(|error| trouble(&format!("cannot be read: {}", io_reason(&error))))?;
    if bytes.len() as u64 > LARGEST_SETTINGS {
        return Err(trouble(&format!("is larger than the {LARGEST_SETTINGS} bytes allowed")));
    }
    String::from_utf8(bytes).map_err(|_| trouble("is not UTF-8"))
}

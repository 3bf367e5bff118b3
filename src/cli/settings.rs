//! The settings a command works with: those of its file, its variables and its flags. Owns what is said about a file
//! that cannot be read; refuses to look at any workspace.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    arguments::SettingsFlags,
    diagnostics, escape,
    exit::Trouble,
    logs::FATAL,
    screen::{Screen, Voice},
    workspace::reason,
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
pub(super) fn settings_of(flags: &SettingsFlags) -> Result<(Settings, Vec<Diagnostic>), Trouble> {
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
pub(super) fn tell(diagnostics: &[Diagnostic], screen: &Screen) -> Result<(), Trouble> {
    for diagnostic in diagnostics {
        match (screen.voice, diagnostic.severity) {
            (Voice::Text, _) => {
                screen.note(&diagnostics::render(diagnostic, screen.err.paint, screen.width()));
            }
            (Voice::Log, Severity::Error) => tracing::error!(target: FATAL, "{diagnostic}"),
            (Voice::Log, Severity::Warning) => tracing::warn!("{diagnostic}"),
            (Voice::Log, Severity::Info) => tracing::info!("{diagnostic}"),
        }
    }
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    if failed { Err(Trouble::Silent) } else { Ok(()) }
}

fn home_directory(given: &Path) -> Result<PathBuf, Trouble> {
    given.canonicalize().map_err(|error| {
        let name = escape::path(given);
        Trouble::new(format!("the home directory `{name}` cannot be used: {}", reason(&error)))
    })
}

fn text_of(file: &Path) -> Result<String, Trouble> {
    let trouble = |why: &str| Trouble::new(format!("the settings file `{}` {why}", escape::path(file)));
    let open = || {
        let mut bytes = Vec::new();
        File::open(file)?.take(LARGEST_SETTINGS + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    let bytes = open().map_err(|error| trouble(&format!("cannot be read: {}", reason(&error))))?;
    if bytes.len() as u64 > LARGEST_SETTINGS {
        return Err(trouble(&format!("is larger than the {LARGEST_SETTINGS} bytes allowed")));
    }
    String::from_utf8(bytes).map_err(|_| trouble("is not UTF-8"))
}

//! Settings of a command, from its file, environment variables and flags.

use std::{
    io::{self, Read},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use tracing::Level;

use super::{
    diagnostics, escape,
    exit::CliError,
    flags::SettingsFlags,
    paths::open_input,
    screen::{FATAL_TARGET, MessageFormat, Screen},
};
#[cfg(feature = "daemon")]
use crate::config::SetKey;
use crate::{
    config::{self, Settings},
    model::{Diagnostic, Severity, io_reason},
};

/// The largest settings file, in bytes.
const LARGEST_SETTINGS: u64 = 1 << 20;

/// The variable that names the settings file.
const FILE_VARIABLE: &str = "HOOKYARD_CONFIG";

/// The variable that names the directory with the settings of a user, as the XDG Base Directory Specification has it.
const DIRECTORY_VARIABLE: &str = "XDG_CONFIG_HOME";

/// Where the settings file is in that directory.
const FILE_BELOW_CONFIG: &str = "hookyard/hookyard.yaml";

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
    settings_from(SettingsSource::of(flags, variables)?.as_ref(), flags, variables)
}

/// A settings file as it was read.
pub(super) struct SettingsSource {
    path: PathBuf,
    text: String,
}

impl SettingsSource {
    /// That of a command, if there is one.
    ///
    /// Returns an error if it cannot be read.
    pub(super) fn of(flags: &SettingsFlags, variables: VariablePolicy) -> Result<Option<Self>, CliError> {
        let Some(path) = settings_file(flags, variables)? else { return Ok(None) };
        let text = text_of(&path)?;
        Ok(Some(Self { path, text }))
    }

    fn layer(&self) -> (&str, &Path) {
        (&self.text, &self.path)
    }
}

/// The keys that a settings file, variables and `--set` set, without secrets.
#[cfg(feature = "daemon")]
pub(super) fn set_keys(source: Option<&SettingsSource>, flags: &SettingsFlags) -> Vec<SetKey> {
    Settings::set_keys(source.map(SettingsSource::layer), std::env::vars_os(), &flags.set)
}

/// The same as [`settings_of`], from a file that was read.
pub(super) fn settings_from(
    source: Option<&SettingsSource>,
    flags: &SettingsFlags,
    variables: VariablePolicy,
) -> Result<(Settings, Vec<Diagnostic>), CliError> {
    let layer = std::env::vars_os().filter(|_| variables == VariablePolicy::Read);
    let (settings, mut diagnostics) = Settings::layered(source.map(SettingsSource::layer), layer, &flags.set);
    if variables == VariablePolicy::Ignored {
        diagnostics.extend(ignored_variable(flags));
    }
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

/// The settings file of a command: the one that it is given, or else that of the user, if there is one.
///
/// Returns an error if nobody knows whether there is one, or if somebody else may have written it.
fn settings_file(flags: &SettingsFlags, variables: VariablePolicy) -> Result<Option<PathBuf>, CliError> {
    if let Some(given) = &flags.config {
        return Ok(Some(given.clone()));
    }
    if variables == VariablePolicy::Read {
        let named = std::env::var_os(FILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
        let moved = || moved_file(flags).filter(|file| file.symlink_metadata().is_ok());
        if let Some(file) = named.or_else(moved) {
            outside_workspaces(&file, flags)?;
            return check_own(&file).map(|()| Some(file));
        }
    }
    let Some(file) = user_file(flags) else { return Ok(None) };
    match file.symlink_metadata() {
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
            Ok(None)
        }
        _ => check_own(&file).map(|()| Some(file)),
    }
}

/// Returns an error unless a file belongs to this user or root, who alone can write it.
fn check_own(file: &Path) -> Result<(), CliError> {
    let metadata =
        file.metadata().map_err(|error| unusable(file, &format!("cannot be read: {}", io_reason(&error))))?;
    if metadata.uid() != 0 && metadata.uid() != geteuid().as_raw() {
        return Err(unusable(file, "belongs to another user"));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(unusable(file, "can be written by others; run `chmod go-w` on it"));
    }
    Ok(())
}

/// Returns an error about a relative path, or a file in a workspace: its project could have set the variable that names
/// it.
fn outside_workspaces(file: &Path, flags: &SettingsFlags) -> Result<(), CliError> {
    if !file.is_absolute() {
        return Err(unusable(file, &format!("is no absolute path, as `{FILE_VARIABLE}` must have")));
    }
    let directory = file.canonicalize().ok().and_then(|real| Some(real.parent()?.to_owned()));
    let workspace =
        directory.and_then(|directory| config::nearest_workspace(&directory, home_of(flags).as_deref()));
    let Some(workspace) = workspace else { return Ok(()) };
    let what = format!(
        "the settings file `{}`, which a variable names, is in the workspace {}",
        escape::path(file),
        escape::path(&workspace)
    );
    Err(CliError::with_help(what, "name it with `--config FILE`: a project can set variables"))
}

/// The settings file that a command changes, which need not exist: the one that it is given, or else that of the user.
///
/// Returns an error if the user has no home directory.
#[cfg(feature = "daemon")]
pub(super) fn file_to_change(flags: &SettingsFlags) -> Result<PathBuf, CliError> {
    flags.config.clone().or_else(|| user_file(flags)).ok_or_else(|| {
        CliError::with_help("this account has no home directory", "name the settings file: `--config FILE`")
    })
}

/// The settings file of the user, which need not exist.
fn user_file(flags: &SettingsFlags) -> Option<PathBuf> {
    home_of(flags).map(|home| home.join(".config").join(FILE_BELOW_CONFIG))
}

/// The home directory of the user, before any settings are read.
fn home_of(flags: &SettingsFlags) -> Option<PathBuf> {
    let settings = Settings { home: flags.home.clone(), ..Settings::default() };
    config::home_directory(&settings, &|name| std::env::var(name).ok())
}

/// The settings file of the user where a variable says that all settings of the user are elsewhere than usual.
fn moved_file(flags: &SettingsFlags) -> Option<PathBuf> {
    let directory = std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from);
    let file = directory.filter(|directory| directory.is_absolute())?.join(FILE_BELOW_CONFIG);
    (Some(&file) != user_file(flags).as_ref()).then_some(file)
}

/// A remark on a variable that names a settings file for `serve` and `check` alone.
fn ignored_variable(flags: &SettingsFlags) -> Option<Diagnostic> {
    if flags.config.is_some() {
        return None;
    }
    let is_set = std::env::var_os(FILE_VARIABLE).is_some_and(|name| !name.is_empty());
    let is_moved = moved_file(flags).is_some_and(|file| file.exists());
    let name = match () {
        () if is_set => FILE_VARIABLE,
        () if is_moved => DIRECTORY_VARIABLE,
        () => return None,
    };
    let message = "only `serve` and `check` find their settings file by it: a project can set variables";
    let remark = Diagnostic::of_file(Severity::Info, "ignored-variable", Path::new(name), message);
    Some(remark.help("name the file with `--config FILE`"))
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
        CliError::new(format!("the home directory `{name}` cannot be used: {}", io_reason(&error)))
    })
}

/// The text of a settings file.
///
/// Returns an error if it cannot be read, is too large, or is not UTF-8.
fn text_of(file: &Path) -> Result<String, CliError> {
    let bytes =
        start_of(file).map_err(|error| unusable(file, &format!("cannot be read: {}", io_reason(&error))))?;
    if bytes.len() as u64 > LARGEST_SETTINGS {
        return Err(unusable(file, &format!("is larger than the {LARGEST_SETTINGS} bytes allowed")));
    }
    String::from_utf8(bytes).map_err(|_| unusable(file, "is not UTF-8"))
}

/// The bytes of a file, at most one more than are allowed.
///
/// Returns an error of a pipe through which nothing comes: the guards of its settings would be missing silently.
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

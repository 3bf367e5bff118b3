//! The variables that every command hook of a workspace gets from hookyard's own environment. Owns the
//! allow-list and what a safe PATH is; refuses everything that is not named there.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// What hooks get of hookyard's environment besides `LC_*` and what the operator adds.
const ALLOWED: [&str; 7] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "SHELL"];

/// Tells a program that it runs as a hook, or below one. An agent whose hook is hookyard itself would otherwise have
/// it run itself for ever.
pub(crate) const OF_A_HOOK: &str = "HOOKYARD_HOOK";

/// Tells a program in which trace its event is, as OpenTelemetry's tools read it.
pub(crate) const TRACEPARENT: &str = "TRACEPARENT";

/// Variables with their values.
pub(crate) type Variables = Vec<(OsString, OsString)>;

/// The part of every command's environment that does not depend on the event.
#[derive(Debug, Clone, Default)]
pub(crate) struct BaseEnvironment {
    variables: Variables,
}

impl BaseEnvironment {
    /// The allowed variables of this process, and those that `pass` names: a name, or a prefix that ends in `*`.
    pub(crate) fn of_process(pass: &[String]) -> Self {
        Self::of(env::vars_os(), pass)
    }

    fn of(all: impl Iterator<Item = (OsString, OsString)>, pass: &[String]) -> Self {
        Self { variables: all.filter(|(name, _)| is_allowed(name, pass)).collect() }
    }

    /// The variables for a workspace: its PATH holds no directory that a project could put programs into.
    pub(crate) fn within(&self, root: &Path) -> Variables {
        let safe = |(name, value): &(OsString, OsString)| match name.as_bytes() {
            b"PATH" => (name.clone(), safe_path(value, root)),
            _ => (name.clone(), value.clone()),
        };
        let own = (OsString::from(OF_A_HOOK), OsString::from("1"));
        self.variables.iter().map(safe).chain([own]).collect()
    }
}

fn is_allowed(name: &OsStr, pass: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    let passed = |pattern: &String| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    };
    ALLOWED.contains(&name) || name.starts_with("LC_") || pass.iter().any(passed)
}

/// The PATH without empty, relative and workspace directories, through which a project could slip its own
/// `sh` or `node` under a hook.
fn safe_path(path: &OsStr, root: &Path) -> OsString {
    let (safe, dropped): (Vec<PathBuf>, Vec<PathBuf>) = env::split_paths(path).partition(|directory| {
        directory.is_absolute()
            && !directory.starts_with(root)
            && !directory.canonicalize().is_ok_and(|real| real.starts_with(root))
    });
    if !dropped.is_empty() {
        tracing::warn!(
            ?dropped,
            "directories left out of the PATH of hooks: relative, empty or in the workspace"
        );
    }
    env::join_paths(safe).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_variables_are_passed_on() {
        let all = ["PATH", "LC_TIME", "SECRET", "APP_A", "APP", "OTHER", "LD_PRELOAD"];
        let pass = ["APP_*".to_owned(), "OTHER".to_owned()];
        let base = BaseEnvironment::of(all.iter().map(|name| (name.into(), "x".into())), &pass);
        let names: Vec<_> = base.variables.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["PATH", "LC_TIME", "APP_A", "OTHER"]);
    }

    #[test]
    fn the_path_has_no_directory_a_project_can_write() {
        let path = OsStr::new("/usr/bin:.::bin:/srv/space/bin:/srv/spacious:/bin");
        assert_eq!(safe_path(path, Path::new("/srv/space")), "/usr/bin:/srv/spacious:/bin");
    }
}

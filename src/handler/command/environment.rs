//! The environment variables of command hooks: which of hookyard's own they inherit, and which are the same for
//! every event.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The variables of hookyard's environment that hooks inherit, besides `LC_*` and those that the operator adds.
const ALLOWED: [&str; 7] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "SHELL"];

/// Set for every hook and inherited by what it starts. An agent whose hook is hookyard itself would otherwise run it
/// recursively for ever.
pub(super) const OF_A_HOOK: &str = "HOOKYARD_HOOK";

/// The value of [`OF_A_HOOK`].
const INSIDE: &str = "1";

/// Whether this process was started by a hook. A variable that is empty or has another value means nothing.
#[cfg(feature = "cli")]
pub(crate) fn is_inside_hook() -> bool {
    env::var_os(OF_A_HOOK).is_some_and(|value| value == INSIDE)
}

/// The variable by which processes inside a hook are recognised.
pub(super) fn hook_variable() -> (OsString, OsString) {
    (OF_A_HOOK.into(), INSIDE.into())
}

/// The W3C trace context of the event, as OpenTelemetry's tools read it.
pub(crate) const TRACEPARENT: &str = "TRACEPARENT";

/// Variables that differ from event to event. A process that is started before its event has none of them.
const PER_EVENT: [&str; 2] = ["HOOKYARD_EVENT", "HOOKYARD_DEADLINE_MS"];

/// Names and values of variables.
pub(crate) type Variables = Vec<(OsString, OsString)>;

/// What every command inherits of hookyard's environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct BaseEnvironment {
    variables: Variables,
}

impl BaseEnvironment {
    /// Takes the allowed variables of this process, and those that `pass` names: a name, or a prefix that ends in
    /// `*`.
    pub(crate) fn of_process(pass: &[String]) -> Self {
        Self::of(env::vars_os(), pass)
    }

    fn of(all: impl Iterator<Item = (OsString, OsString)>, pass: &[String]) -> Self {
        Self { variables: all.filter(|(name, _)| is_allowed(name, pass)).collect() }
    }

    /// The variables for a workspace, with a PATH that has no directory in it that the project can write to.
    pub(crate) fn for_workspace(&self, root: &Path) -> Variables {
        let mut variables = self.variables.clone();
        for (name, value) in &mut variables {
            if name.as_bytes() == b"PATH" {
                *value = safe_path(value, root);
            }
        }
        variables.push(hook_variable());
        variables
    }
}

/// The variables of a dialect that are the same for every event.
pub(super) fn stable_variables<'a>(
    variables: &'a [(&'static str, String)],
) -> impl Iterator<Item = &'a (&'static str, String)> {
    variables.iter().filter(|(name, _)| !PER_EVENT.contains(name))
}

fn is_allowed(name: &OsStr, pass: &[String]) -> bool {
    let Some(name) = name.to_str() else { return false };
    ALLOWED.contains(&name) || name.starts_with("LC_") || pass.iter().any(|pattern| matches(pattern, name))
}

/// Whether a pattern is this name, or a prefix of it followed by `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// The PATH without empty, relative and workspace directories, through which a project could replace `sh` or `node`
/// with a program of its own.
fn safe_path(path: &OsStr, root: &Path) -> OsString {
    let (safe, dropped): (Vec<PathBuf>, Vec<PathBuf>) = env::split_paths(path).partition(|directory| {
        directory.is_absolute()
            && !directory.starts_with(root)
            && !directory.canonicalize().is_ok_and(|real| real.starts_with(root))
    });
    if !dropped.is_empty() {
        let dropped: Vec<_> = dropped.iter().map(|directory| directory.to_string_lossy()).collect();
        tracing::warn!(
            dropped = dropped.join(":"),
            "directories removed from the PATH of hooks: relative, empty or in the workspace"
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

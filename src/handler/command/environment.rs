//! The environment variables of command hooks: which of hookyard's own they inherit, and which are the same for
//! every event.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use crate::root_dir::is_safe_in_path;

/// The variables of hookyard's environment that hooks inherit, besides `LC_*` and those that the operator adds. `HOME` is
/// none of them: whoever sets it for hookyard would decide what `~` is for the hooks of the user, and whose modules their
/// interpreters load.
const ALLOWED: [&str; 6] = ["PATH", "LANG", "TZ", "TMPDIR", "USER", "SHELL"];

/// The variable with the home directory.
const HOME: &str = "HOME";

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
    /// `*`. `HOME` is `home`, whatever it is in this process.
    pub(crate) fn of_process(pass: &[String], home: Option<PathBuf>) -> Self {
        Self::of(env::vars_os(), pass, home)
    }

    fn of(all: impl Iterator<Item = (OsString, OsString)>, pass: &[String], home: Option<PathBuf>) -> Self {
        let inherited = all.filter(|(name, _)| name != HOME && is_allowed(name, pass));
        Self { variables: inherited.chain(home.map(|home| (HOME.into(), home.into()))).collect() }
    }

    /// The variables for a project with these directories, with a PATH that has no directory in it that the project can
    /// write to.
    pub(crate) fn for_project(&self, roots: &[PathBuf]) -> Variables {
        let mut variables = self.variables.clone();
        for (name, value) in &mut variables {
            if name == "PATH" {
                *value = safe_path(value, roots);
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

/// The PATH without the directories through which a project could replace `sh` or `node` with a program of its own:
/// empty and relative ones, those of the project, those that do not exist, and those in `/proc` or `/dev`.
fn safe_path(path: &OsStr, roots: &[PathBuf]) -> OsString {
    let (safe, mut dropped): (Vec<PathBuf>, Vec<PathBuf>) =
        env::split_paths(path).partition(|directory| is_safe_in_path(directory, roots));
    // One that is not there has no programs to miss.
    dropped.retain(|directory| !directory.is_absolute() || directory.exists());
    if !dropped.is_empty() {
        let dropped: Vec<_> = dropped.iter().map(|directory| directory.to_string_lossy()).collect();
        tracing::warn!(
            dropped = dropped.join(":"),
            "directories removed from the PATH of hooks: relative, in `/proc` or `/dev`, or of the project"
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
        let base = BaseEnvironment::of(all.iter().map(|name| (name.into(), "x".into())), &pass, None);
        let names: Vec<_> = base.variables.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["PATH", "LC_TIME", "APP_A", "OTHER"]);
    }

    #[test]
    fn home_is_what_is_given_and_no_variable() {
        let all = || [("HOME".into(), "/ws".into())].into_iter();
        let of = |home: Option<&str>| {
            BaseEnvironment::of(all(), &["H*".to_owned()], home.map(PathBuf::from)).variables
        };
        assert_eq!(of(Some("/home/a")), [("HOME".into(), "/home/a".into())]);
        assert_eq!(of(None), []);
    }

    #[test]
    fn the_path_has_no_directory_a_project_can_write() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        for directory in ["space/bin", "space/nested", "spacious"] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        std::os::unix::fs::symlink(at("space/bin"), at("link")).unwrap();
        let root = |name: &str| at(name).display().to_string();
        let path = [
            "/usr/bin:.::bin:/proc/self/cwd:/usr/../proc/self/cwd:/dev/fd:/no/such",
            &root("space/bin"),
            &root("link"),
            &root("absent"),
            &root("spacious"),
            "/bin",
        ];
        let safe = format!("/usr/bin:{}:/bin", root("spacious"));
        assert_eq!(safe_path(OsStr::new(&path.join(":")), &[at("space/nested"), at("space")]), *safe);
    }
}

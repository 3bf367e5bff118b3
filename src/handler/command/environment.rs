//! The environment variables of command hooks: which of hookyard's own they inherit, and which are the same for
//! every event.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use crate::root_dir::is_safe_in_path;

/// The variables of hookyard's environment that hooks inherit, besides `LC_*` and those that the operator adds. What
/// describes the account is none of them: whoever sets `HOME` for hookyard would decide what `~` is for the hooks of the
/// user, and whose modules their interpreters load.
const ALLOWED: [&str; 4] = ["PATH", "LANG", "TZ", "TMPDIR"];

/// The variables that describe the account.
const OF_ACCOUNT: [&str; 4] = ["HOME", "LOGNAME", "SHELL", "USER"];

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
    /// `*`. What describes the account is `account`, whatever it is in this process.
    pub(crate) fn of_process(pass: &[String], account: Variables) -> Self {
        Self::of(env::vars_os(), pass, account)
    }

    fn of(all: impl Iterator<Item = (OsString, OsString)>, pass: &[String], account: Variables) -> Self {
        let inherited =
            all.filter(|(name, _)| !OF_ACCOUNT.iter().any(|own| name == own) && is_allowed(name, pass));
        Self { variables: inherited.chain(account).collect() }
    }

    /// The variables for a project with these directories: with a PATH that has no directory in it that the project can
    /// write to, and without a directory for temporary files or a locale in them.
    pub(crate) fn for_project(&self, roots: &[PathBuf]) -> Variables {
        let mut variables = self.variables.clone();
        variables.retain(|(name, value)| is_of_no_project(name, value, roots));
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

/// Whether the value of an inherited variable leads programs to no file of a project. A locale or a time zone may be a
/// name, which is looked up in a directory of the system.
fn is_of_no_project(name: &OsStr, value: &OsStr, roots: &[PathBuf]) -> bool {
    let is_directory = name == "TMPDIR";
    let is_name = name == "LANG" || name == "TZ" || name.as_encoded_bytes().starts_with(b"LC_");
    if !is_directory && !is_name {
        return true;
    }
    let bytes = value.as_encoded_bytes();
    // A time zone may be `:/etc/localtime`.
    let path = Path::new(OsStr::from_bytes(bytes.strip_prefix(b":").unwrap_or(bytes)));
    if path.components().any(|part| part == Component::ParentDir) {
        return false;
    }
    if path.is_relative() {
        return is_name;
    }
    // What is not there yet may appear.
    let nearest = path.ancestors().find(|above| above.exists());
    path.starts_with("/dev/shm") || nearest.is_some_and(|nearest| is_safe_in_path(nearest, roots))
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
        let base = BaseEnvironment::of(all.iter().map(|name| (name.into(), "x".into())), &pass, Vec::new());
        let names: Vec<_> = base.variables.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["PATH", "LC_TIME", "APP_A", "OTHER"]);
    }

    #[test]
    fn what_describes_the_account_is_what_is_given_and_no_variable() {
        let all = || OF_ACCOUNT.into_iter().map(|name| (OsString::from(name), OsString::from("/ws")));
        let pass = ["H*".to_owned(), "USER".to_owned(), "L*".to_owned()];
        let given: Variables = vec![("HOME".into(), "/home/a".into()), ("USER".into(), "a".into())];
        assert_eq!(BaseEnvironment::of(all(), &pass, given.clone()).variables, given);
        assert_eq!(BaseEnvironment::of(all(), &pass, Vec::new()).variables, []);
    }

    #[test]
    fn no_inherited_variable_leads_into_the_project() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("shop");
        std::fs::create_dir_all(root.join("tmp")).unwrap();
        let beside = place.path().canonicalize().unwrap().join("tmp");
        std::fs::create_dir(&beside).unwrap();
        std::os::unix::fs::symlink(root.join("tmp"), beside.join("link")).unwrap();
        let inside = |path: &str| root.join(path).display().to_string();
        let beside = |path: &str| beside.join(path).display().to_string();
        let cases = [
            ("TMPDIR", beside(""), true),
            ("TMPDIR", beside("later"), true),
            ("TMPDIR", "/dev/shm".to_owned(), true),
            ("TMPDIR", inside("tmp"), false),
            ("TMPDIR", inside("later"), false),
            ("TMPDIR", inside(""), false),
            ("TMPDIR", beside("link"), false),
            ("TMPDIR", beside("link/later"), false),
            ("TMPDIR", beside("../shop/tmp"), false),
            ("TMPDIR", "tmp".to_owned(), false),
            ("TMPDIR", String::new(), false),
            ("TMPDIR", "/proc/self/cwd/tmp".to_owned(), false),
            ("LANG", "de_DE.UTF-8".to_owned(), true),
            ("LC_ALL", inside("locale"), false),
            ("TZ", "Europe/Berlin".to_owned(), true),
            ("TZ", ":/etc".to_owned(), true),
            ("TZ", format!(":{}", inside("zone")), false),
            ("TZ", "../../shop/zone".to_owned(), false),
            ("OTHER", inside("x"), true),
        ];
        for (name, value, is_kept) in cases {
            let base = BaseEnvironment { variables: vec![(name.into(), value.clone().into())] };
            let kept = base.for_project(std::slice::from_ref(&root));
            assert_eq!(kept.iter().any(|(known, _)| known == name), is_kept, "{name}={value}");
        }
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

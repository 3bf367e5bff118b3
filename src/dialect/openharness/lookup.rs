//! What hook files are checked against: the rules of the settings, and what they refer to outside themselves, such as
//! variables, secrets, programs, files and models.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::super::{Mapping, Value};
use crate::model::{Model, Secret, SecretText};

/// What hook files are checked against.
#[derive(Debug, Clone, Copy)]
pub struct HookRules {
    /// The timeout of a hook that has none.
    pub default_timeout: Duration,
    /// The longest timeout a hook may have.
    pub max_timeout: Duration,
    /// Whether hooks may set variables that make programs run other code.
    pub unsafe_variables: UnsafeVariables,
    /// Whether hooks may ask servers at Unix sockets.
    pub unix_sockets: UnixSockets,
}

/// Whether hooks may set variables that make programs run code of someone else's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnsafeVariables {
    /// They may not.
    #[default]
    Refused,
    /// They may.
    Allowed,
}

/// Whether hooks may ask servers at Unix sockets. What listens there often trusts whoever can connect, and may
/// be able to do more than any hook should, as the sockets of container engines are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnixSockets {
    /// They may not.
    #[default]
    Refused,
    /// They may.
    Allowed,
}

/// The keys at the top of a hook file.
pub(super) const HOOK_KEYS: [&str; 9] =
    ["name", "events", "matcher", "handler", "capabilities", "priority", "enabled", "on_error", "on_timeout"];

/// The keys that every handler may have.
const HANDLER_KEYS: [&str; 3] = ["type", "timeout_seconds", "max_concurrency"];

/// Records every key that is none of every handler's or of this type's `own`.
pub(super) fn allow_handler_keys(handler: &Mapping<'_>, own: &[&str]) {
    let known = [&HANDLER_KEYS[..], own].concat();
    handler.allow_only_with(&known, |key| {
        HOOK_KEYS.contains(&key).then(|| format!("write `{key}` beside `handler`, not inside it"))
    });
}

/// The most headers or variables of one hook.
const MOST_ENTRIES: usize = 128;

/// The entries of a mapping such as `headers`; `None` if there are more than a hook may have, which is reported.
pub(in crate::dialect) fn bounded_entries<'d>(value: &Value<'d>) -> Option<Vec<Value<'d>>> {
    let entries: Vec<_> = value.mapping()?.values().collect();
    if entries.len() <= MOST_ENTRIES {
        return Some(entries);
    }
    let message =
        format!("`{}` has {} entries; at most {MOST_ENTRIES} are allowed", value.name(), entries.len());
    value.error("too-many", message, "remove those that the hook does not need");
    None
}

/// Programs whose first argument is a script.
const INTERPRETERS: [&str; 10] =
    ["ash", "bash", "dash", "node", "perl", "php", "python", "python3", "ruby", "sh"];

/// Options of interpreters after which no script follows.
const CODE_OPTIONS: [&str; 7] = ["-c", "-e", "-m", "-p", "-s", "--eval", "--print"];

/// A place a hook file names, as it is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedPath {
    /// It is there: an absolute path.
    Found(PathBuf),
    /// It is not there now, or cannot be used: where it would be, and what the matter is. A hook that names
    /// it is loaded all the same, because a guard that fails closed must not vanish with its program.
    Missing(PathBuf, String),
    /// It may not be used: why.
    Refused(String),
}

/// What a hook file refers to outside itself. Whoever loads hook files looks these things up.
pub trait ReferenceLookup {
    /// The value of a variable of hookyard's own environment.
    fn variable(&self, name: &str) -> Option<SecretText>;

    /// The value of a variable that becomes part of a hook's definition, if it is set.
    ///
    /// Returns what is wrong and what to do if it may only be used where values are not shown.
    fn definition_variable(&self, name: &str) -> Result<Option<String>, (String, String)> {
        Ok(self.option(name))
    }

    /// A secret by its name.
    ///
    /// Returns what is wrong and what to do if there is none, or it cannot be had.
    fn secret(&self, name: &str) -> Result<Secret, (String, String)>;

    /// What a reference to a secret stands for in a value.
    ///
    /// Returns the same as `secret`.
    fn secret_text(&self, name: &str) -> Result<SecretText, (String, String)> {
        self.secret(name).map(SecretText::secret)
    }

    /// The value of a variable that says how all hooks of an agent run, whatever hook files say.
    fn option(&self, name: &str) -> Option<String> {
        self.variable(name).map(|value| value.expose().to_owned())
    }

    /// A directory inside the workspace, by its path from the workspace's root.
    fn directory(&self, relative: &str) -> ResolvedPath;

    /// A program: a name is looked up in the `PATH`, a relative path begins at `cwd`.
    fn program(&self, name: &str, cwd: &Path) -> ResolvedPath;

    /// The text of a file inside the workspace, by its path from the workspace's root.
    ///
    /// Returns what is wrong if there is no such file, or it may not be read.
    fn text_file(&self, relative: &str) -> Result<String, String>;

    /// The file of an agent by the agent's name, and what is in it.
    ///
    /// Returns what is wrong and what to do if there is none, or it may not be read.
    fn agent_file(&self, name: &str) -> Result<(PathBuf, Vec<u8>), (String, String)>;

    /// A model by the name that hook files have for it.
    ///
    /// Returns what is wrong and what to do if there is none, or this workspace may not ask it.
    fn model(&self, reference: &str) -> Result<Model, (String, String)>;
}

/// Warns of a program that a command names and that is not there.
pub(in crate::dialect) fn check_program(
    value: &Value<'_>,
    name: &str,
    cwd: &Path,
    resolver: &dyn ReferenceLookup,
) {
    if let ResolvedPath::Missing(_, why) = resolver.program(name, cwd) {
        value.warn("program", why, "the hook will end `spawn_failed`");
    }
}

/// Warns of scripts among the arguments of a program that are not there, each at its place. Some interpreters then exit with the code that
/// blocks, others with one that lets everything pass. Only what is written as a path, or is the first argument of an
/// interpreter, is surely meant as one.
pub(in crate::dialect) fn check_scripts(
    places: &[Value<'_>],
    program: &str,
    arguments: &[&str],
    cwd: &Path,
    resolver: &dyn ReferenceLookup,
) {
    let of_interpreter = script_of_interpreter(program, arguments);
    for (position, word) in arguments.iter().enumerate() {
        let is_path = word.starts_with('.') && word.contains('/');
        if !is_path && of_interpreter != Some(position) {
            continue;
        }
        // A name without a directory is that of a file here, not of a program in the `PATH`.
        let path = if word.contains('/') { (*word).to_owned() } else { format!("./{word}") };
        if let ResolvedPath::Missing(_, why) = resolver.program(&path, cwd)
            && why.ends_with("does not exist")
            && let Some(place) = places.get(position).or_else(|| places.last())
        {
            place.warn("script", why, "create it, or correct the path");
        }
    }
}

/// Which argument of an interpreter is its script.
fn script_of_interpreter(program: &str, arguments: &[&str]) -> Option<usize> {
    let name = program.rsplit('/').next().unwrap_or(program);
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    let first = arguments.iter().position(|word| !word.starts_with('-'))?;
    let takes_code = arguments[..first].iter().any(|option| CODE_OPTIONS.contains(option));
    (!takes_code && arguments[first].contains(['.', '/'])).then_some(first)
}

//! Environment variables and `--set` flags, each as a document with one key.

use std::{collections::HashMap, ffi::OsString, path::Path};

use crate::{
    dialect::{NativeDialect, natives, nearest, shorten},
    model::{Diagnostic, Severity},
};

/// What the names of hookyard's variables begin with.
const PREFIX: &str = "HOOKYARD_";

/// Variables that hookyard knows and that are no settings.
pub(super) const NOT_SETTINGS: [&str; 11] = [
    // Of the command line.
    "HOOKYARD_CONFIG",
    "HOOKYARD_LOG",
    // Of hook processes, in which `hookyard` may be run again.
    "HOOKYARD_HOOK",
    "HOOKYARD_WORKER",
    "HOOKYARD_EVENT",
    "HOOKYARD_DEADLINE_MS",
    "HOOKYARD_LIFE",
    "HOOKYARD_PROCESS",
    // Of a build and of its tests.
    "HOOKYARD_COMMIT",
    "HOOKYARD_TEST_HOME",
    // Of hosts that call a daemon over TCP.
    "HOOKYARD_TOKEN",
];

/// What YAML takes for the end of a line.
const LINE_ENDS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// How to write a value that YAML takes apart.
pub(super) const QUOTE: &str = "put a text in quotes, `\"…\"`, and a list in brackets, `[a, b]`";

/// The top-level keys that no variable sets: an agent takes variables from the files of a project, which must neither
/// free its own hooks nor move the files of others out of sight.
pub(super) const NO_VARIABLES: [&str; 12] = [
    "broken",
    "bundle",
    "cluster",
    "data",
    "handlers",
    "home",
    "levels",
    "required",
    "sandbox",
    "state_directory",
    "system_directory",
    "trust",
];

/// Whether a key is one that no variable sets.
pub(super) fn is_no_variable(key: &str) -> bool {
    key.split('.').next().is_some_and(|section| NO_VARIABLES.contains(&section))
}

/// How much of an unknown key is repeated, in characters.
const LONGEST_ECHO: usize = 64;

/// The value of one key, as a document.
pub(super) struct Override {
    /// The variable or the flag.
    pub(super) name: String,
    pub(super) text: String,
}

impl Override {
    /// Returns a diagnostic if the value could set more than its key, or would be cut.
    fn new(name: String, key: &str, value: &str) -> Result<Self, Diagnostic> {
        if value.contains(LINE_ENDS) {
            let help = "write a list as `[a, b]` and a mapping as `{ a: b }`";
            return Err(error("line-break", &name, "the value must be one line", help));
        }
        let plain = !value.trim_start().starts_with(['"', '\'', '[', '{']);
        if plain && [" #", "\t#"].iter().any(|comment| format!(" {value}").contains(comment)) {
            return Err(error("comment", &name, "the value has a `#`, which begins a comment", QUOTE));
        }
        let parts = key.split('.').enumerate();
        let lines: Vec<String> =
            parts.map(|(depth, part)| format!("{}{part}:", "  ".repeat(depth))).collect();
        Ok(Self { name, text: format!("{} {value}\n", lines.join("\n")) })
    }
}

/// Takes over a value, or the diagnostic about it.
fn keep(read: Result<Override, Diagnostic>, overrides: &mut Vec<Override>, invalid: &mut Vec<Diagnostic>) {
    match read {
        Ok(single) => overrides.push(single),
        Err(diagnostic) => invalid.push(diagnostic),
    }
}

/// The values that flags give to keys, in the order of the flags.
pub(super) fn of_flags(
    keys: &[String],
    flags: &[(String, String)],
    invalid: &mut Vec<Diagnostic>,
) -> Vec<Override> {
    let mut overrides = Vec::new();
    for (key, value) in flags {
        if keys.contains(key) {
            keep(Override::new(format!("--set {key}"), key, value), &mut overrides, invalid);
        } else {
            invalid.push(unknown_key(key, keys));
        }
    }
    overrides
}

fn unknown_key(key: &str, keys: &[String]) -> Diagnostic {
    let known: Vec<&str> = keys.iter().map(String::as_str).collect();
    let help = match nearest(key, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write the path of a key of the settings file, such as `limits.in_flight`".to_owned(),
    };
    let message = format!("unknown key `{}`", shorten(key, LONGEST_ECHO));
    error("unknown-key", "--set", &message, &help)
}

fn error(code: &'static str, name: &str, message: &str, help: &str) -> Diagnostic {
    Diagnostic::of_file(Severity::Error, code, Path::new(name), message).help(help)
}

/// The variables whose names begin with `HOOKYARD_` and that are not empty.
pub(super) struct SettingVariables(HashMap<String, OsString>);

impl SettingVariables {
    pub(super) fn of(
        environment: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
    ) -> Self {
        let variables = environment
            .into_iter()
            .filter_map(|(name, value)| Some((name.into().into_string().ok()?, value.into())))
            .filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty());
        Self(variables.collect())
    }

    /// The values that variables give to keys, in the order of the keys: a section before the keys in it.
    pub(super) fn overrides(&self, keys: &[String], invalid: &mut Vec<Diagnostic>) -> Vec<Override> {
        let mut overrides = Vec::new();
        for key in keys {
            let name = variable_of(key);
            match self.0.get(&name).map(|value| value.to_str()) {
                None => {}
                Some(_) if is_no_variable(key) => {
                    let message = format!(
                        "`{key}` cannot be set by an environment variable: a project can set variables of its agent"
                    );
                    let help = format!("set it in the settings file or with `--set {key}=…`");
                    invalid.push(error("trust", &name, &message, &help));
                }
                Some(Some(value)) => keep(Override::new(name, key, value), &mut overrides, invalid),
                Some(None) => {
                    invalid.push(error("not-utf8", &name, "the value is not UTF-8", "write it in UTF-8"));
                }
            }
        }
        overrides
    }

    /// Warnings about variables that nothing reads, in the order of their names.
    pub(super) fn unknown(&self, keys: &[String], secrets: Option<&str>) -> Vec<Diagnostic> {
        let known: Vec<String> = keys.iter().map(|key| variable_of(key)).collect();
        let of_dialects: Vec<&str> = natives().flat_map(NativeDialect::variables).collect();
        let is_known = |name: &str| {
            known.iter().any(|known| known == name)
                || NOT_SETTINGS.contains(&name)
                || of_dialects.contains(&name)
                || secrets.is_some_and(|prefix| name.starts_with(prefix))
                || is_of_kubernetes(name)
        };
        let mut unknown: Vec<&str> =
            self.0.keys().map(String::as_str).filter(|name| !is_known(name)).collect();
        unknown.sort_unstable();
        unknown.into_iter().map(|name| unknown_variable(name, &known)).collect()
    }
}

/// The variable of a key.
pub(super) fn variable_of(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_uppercase())
}

/// Whether Kubernetes may have set a variable: each container gets the addresses of the services of its namespace, and
/// one of them may be called `hookyard` or `hookyard-…`.
fn is_of_kubernetes(name: &str) -> bool {
    let after_port = name.split_once("_PORT_").map(|(_, rest)| rest);
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.ends_with("_PORT")
        || after_port.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn unknown_variable(name: &str, known: &[String]) -> Diagnostic {
    // Without the prefix, which would make all of them alike.
    let ends: Vec<&str> = known.iter().filter_map(|name| name.strip_prefix(PREFIX)).collect();
    let near = name.strip_prefix(PREFIX).and_then(|end| nearest(end, &ends));
    let help = match near {
        Some(near) => format!("did you mean `{PREFIX}{near}`?"),
        None => "the variable of a setting is its path, such as `HOOKYARD_LIMITS_IN_FLIGHT`".to_owned(),
    };
    let message = "no setting has this variable";
    Diagnostic::of_file(Severity::Warning, "unknown-variable", Path::new(name), message).help(help)
}

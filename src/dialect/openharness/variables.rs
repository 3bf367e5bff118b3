//! Environment variables that hooks may set, and `${…}` references in values. Anything that looks like a reference
//! and is none is an error, so that no secret's name is sent in place of its value.

use super::lookup::ReferenceLookup;
use crate::model::SecretText;

/// Prefixes of variables that make the dynamic linker load other code.
const LINKER: [&str; 2] = ["LD_", "DYLD_"];

/// Variables that make a shell, an interpreter or a common tool run or load code that the command line does
/// not name. `NODE_PATH`, which only adds places for modules not found elsewhere, is not among them.
const CODE: [&str; 27] = [
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "IFS",
    "ZDOTDIR",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "DOTNET_STARTUP_HOOKS",
];

/// The longest name of a secret, in bytes.
const LONGEST_SECRET_NAME: usize = 128;

/// Whether a program may read other code because of this variable.
pub(super) fn is_unsafe(name: &str) -> bool {
    LINKER.iter().any(|prefix| name.starts_with(prefix)) || CODE.contains(&name)
}

/// Whether a shell could name it.
pub(super) fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a secret can be called so: names of variables, and of files that are not hidden.
fn is_secret_name(name: &str) -> bool {
    name.len() <= LONGEST_SECRET_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// A value with its `${env.NAME}` and `${secrets.NAME}` replaced.
///
/// Returns what is wrong and what to do if anything else in it looks like a substitution, or if there is no
/// variable or secret of the name.
pub(crate) fn expand(value: &str, resolver: &dyn ReferenceLookup) -> Result<SecretText, (String, String)> {
    if value.contains("$(") {
        return Err(("commands in values are not run".into(), "remove the `$(…)`".into()));
    }
    let mut expanded = SecretText::default();
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        expanded.push(&rest[..start]);
        let Some(end) = rest[start..].find('}').map(|length| start + length) else {
            return Err(("`${` is never closed".into(), "write `${env.NAME}` or `${secrets.NAME}`".into()));
        };
        expanded.push(substitute(&rest[start + 2..end], resolver)?);
        rest = &rest[end + 1..];
    }
    expanded.push(rest);
    Ok(expanded)
}

fn substitute(reference: &str, resolver: &dyn ReferenceLookup) -> Result<SecretText, (String, String)> {
    let shown = super::super::suggest::shorten(reference, 64);
    match reference.split_once('.') {
        Some(("env", name)) if is_name(name) => resolver.variable(name).ok_or_else(|| {
            let help = "set it where hookyard is started, or write the value out";
            (format!("the variable `{shown}` is not set"), help.into())
        }),
        Some(("secrets", name)) if is_secret_name(name) => resolver.secret_text(name),
        Some(("secrets", _)) => {
            let help = "use `A-Z a-z 0-9 _ . -`, beginning with a letter, a digit or `_`";
            Err((format!("`${{{shown}}}` is not a valid name of a secret"), help.into()))
        }
        _ => {
            let help = "only `${env.NAME}` and `${secrets.NAME}` are known";
            Err((format!("unknown reference `${{{shown}}}`"), help.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::{
        dialect::ResolvedPath,
        model::{Model, Secret},
    };

    struct Home;

    impl ReferenceLookup for Home {
        fn variable(&self, name: &str) -> Option<SecretText> {
            (name == "HOME").then(|| "/home/a".into())
        }

        fn secret(&self, name: &str) -> Result<Secret, (String, String)> {
            match name {
                "KEY" => Ok(Secret::new("k3y-0001")),
                _ => Err((format!("unknown secret `{name}`"), String::new())),
            }
        }

        fn directory(&self, _: &str) -> ResolvedPath {
            ResolvedPath::Found(PathBuf::new())
        }

        fn program(&self, _: &str, _: &Path) -> ResolvedPath {
            ResolvedPath::Found(PathBuf::new())
        }

        fn text_file(&self, _: &str) -> Result<String, String> {
            Ok(String::new())
        }

        fn agent_file(&self, name: &str) -> Result<(PathBuf, Vec<u8>), (String, String)> {
            Err((format!("no agent `{name}`"), String::new()))
        }

        fn model(&self, reference: &str) -> Result<Model, (String, String)> {
            Err((format!("no model `{reference}`"), String::new()))
        }
    }

    #[test]
    fn variables_are_expanded_and_nothing_else() {
        let cases = [
            ("plain $5 {x}", Ok("plain $5 {x}")),
            ("a ${env.HOME}/b ${env.HOME}", Ok("a /home/a/b /home/a")),
            ("${env.NOPE}", Err("not set")),
            ("Bearer ${secrets.KEY}", Ok("Bearer k3y-0001")),
            ("${secrets.NOPE}", Err("unknown secret `NOPE`")),
            ("${secrets...}", Err("is not a valid name of a secret")),
            ("${secrets.a/b}", Err("is not a valid name of a secret")),
            ("${secrets.}", Err("is not a valid name of a secret")),
            ("${other.X}", Err("unknown reference")),
            ("${secrets.${x}}", Err("is not a valid name of a secret")),
            ("${env.HOME", Err("never closed")),
            ("$(id)", Err("are not run")),
            ("${}", Err("unknown reference")),
        ];
        for (value, expected) in cases {
            match (expand(value, &Home), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.expose(), expected),
                (Err((message, _)), Err(expected)) => {
                    assert!(message.contains(expected), "{value}: {message}");
                }
                (found, _) => panic!("{value}: {found:?}"),
            }
        }
    }

    #[test]
    fn names_that_load_code_are_known() {
        for name in ["LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "NODE_OPTIONS", "PYTHONSTARTUP"] {
            assert!(is_unsafe(name), "{name}");
        }
        for name in ["HOME", "NODE_PATH", "CI", "LDAP"] {
            assert!(!is_unsafe(name), "{name}");
        }
        assert!(is_name("_A1") && !is_name("1A") && !is_name("A-B") && !is_name(""));
    }
}

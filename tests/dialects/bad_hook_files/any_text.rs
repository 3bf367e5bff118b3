//! No text at all breaks the reader of hook files.

use std::path::{Path, PathBuf};

use hookyard::{
    config::Settings,
    dialect::{HookRules, ReferenceLookup, ResolvedPath, UnixSockets, UnsafeVariables, read_hook},
    model::{Model, Secret, SecretText, Severity},
};
use proptest::prelude::*;

/// A machine on which nothing is.
struct Nowhere;

impl ReferenceLookup for Nowhere {
    fn variable(&self, _: &str) -> Option<SecretText> {
        None
    }

    fn secret(&self, name: &str) -> Result<Secret, (String, String)> {
        Err((format!("unknown secret `{name}`"), String::new()))
    }

    fn directory(&self, relative: &str) -> ResolvedPath {
        ResolvedPath::Missing(relative.into(), "is not there".into())
    }

    fn program(&self, name: &str, _: &Path) -> ResolvedPath {
        ResolvedPath::Missing(name.into(), "is not there".into())
    }

    fn text_file(&self, relative: &str) -> Result<String, String> {
        Err(format!("`{relative}` is not there"))
    }

    fn agent_file(&self, name: &str) -> Result<(PathBuf, Vec<u8>), (String, String)> {
        Err((format!("there is no agent `{name}`"), String::new()))
    }

    fn model(&self, reference: &str) -> Result<Model, (String, String)> {
        Err((format!("unknown model `{reference}`"), String::new()))
    }
}

/// Text that is almost a hook file.
fn almost_a_hook() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("name: a"),
        Just("events: [before_tool_dispatch]"),
        Just("handler:"),
        Just("  type: command"),
        Just("  command: x"),
        Just("matcher: \"(\""),
        Just("\n"),
        Just("\r\n"),
        Just("  "),
        Just("- "),
        Just("? "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just(": "),
        Just("&a "),
        Just("*a"),
        Just("!!x "),
        Just("!x "),
        Just("---\n"),
        Just("...\n"),
        Just("'"),
        Just("\""),
        Just("|\n"),
        Just("# "),
        Just("%TAG"),
        Just("\u{2028}"),
        Just("\u{feff}"),
        Just("é"),
        Just("<<: "),
        Just("null"),
        Just("1e999"),
        Just("\t"),
    ];
    prop::collection::vec(
        prop_oneof![4 => word.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)],
        0..40,
    )
    .prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in almost_a_hook()) {
        let settings = Settings::default();
        let rules = HookRules {
            default_timeout: settings.default_timeout,
            max_timeout: settings.max_timeout,
            unsafe_variables: UnsafeVariables::Refused,
            unix_sockets: UnixSockets::Refused,
        };
        let (hook, diagnostics) = read_hook(text.as_bytes(), Path::new("a.yaml"), &rules, &Nowhere);
        let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
        prop_assert_eq!(hook.is_none(), errors > 0);
        for diagnostic in &diagnostics {
            prop_assert!(diagnostic.line <= text.lines().count() + 1, "{}", diagnostic);
            prop_assert!(!diagnostic.to_string().chars().any(char::is_control), "{}", diagnostic);
        }
    }
}

//! Hooks whose workspace cannot be looked at while they are read, such as for lack of descriptors.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use hookyard::{
    dialect::{
        HookRules, ReferenceLookup, ResolvedPath, UnixSockets, UnsafeVariables, natives, read_hook,
        read_settings,
    },
    model::{Diagnostic, Dialect, Model, Scope, Secret, SecretText},
};
use serde_json::json;

/// Why nothing is found.
const WHY: &str = "cannot be opened: too many open files";

const RULES: HookRules = HookRules {
    default_timeout: Duration::from_mins(1),
    max_timeout: Duration::from_hours(1),
    unsafe_variables: UnsafeVariables::Allowed,
    unix_sockets: UnixSockets::Allowed,
};

/// A disk of which nothing can be opened.
struct Nothing;

impl ReferenceLookup for Nothing {
    fn variable(&self, _: &str) -> Option<SecretText> {
        None
    }

    fn secret(&self, _: &str) -> Result<Secret, (String, String)> {
        Err((WHY.to_owned(), String::new()))
    }

    fn directory(&self, _: &str) -> ResolvedPath {
        ResolvedPath::Refused(WHY.to_owned())
    }

    fn program(&self, _: &str, _: &Path) -> ResolvedPath {
        ResolvedPath::Refused(WHY.to_owned())
    }

    fn text_file(&self, _: &str) -> Result<String, String> {
        Err(WHY.to_owned())
    }

    fn agent_file(&self, _: &str) -> Result<(PathBuf, Vec<u8>), (String, String)> {
        Err((WHY.to_owned(), String::new()))
    }

    fn model(&self, _: &str) -> Result<Model, (String, String)> {
        Err((WHY.to_owned(), String::new()))
    }
}

/// Whether it is reported that a hook is not loaded, and why.
fn is_reported(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.skipped && diagnostic.message.contains(WHY))
}

#[test]
fn a_hook_that_is_not_loaded_is_reported() {
    for handler in [
        json!({ "type": "command", "command": "exit 2" }),
        json!({ "type": "command", "args": ["true"] }),
        json!({ "type": "command", "command": "exit 2", "cwd": "." }),
        json!({ "type": "prompt", "prompt": { "inline": "may this be?" }, "model_ref": "m" }),
        json!({ "type": "agent", "agent": "a", "task": { "inline": "may this be?" } }),
    ] {
        let hook = json!({ "name": "guard", "events": ["before_tool_dispatch"], "handler": handler });
        let (loaded, diagnostics) =
            read_hook(hook.to_string().as_bytes(), Path::new("guard.yaml"), &RULES, &Nothing);
        assert!(loaded.is_none() && is_reported(&diagnostics), "{handler} {diagnostics:?}");
    }
}

#[test]
fn a_hook_of_an_agent_that_is_not_loaded_is_reported() {
    for native in natives() {
        let event = match native.name().as_str() {
            "gemini" => "BeforeTool",
            "cursor" => "preToolUse",
            _ => "PreToolUse",
        };
        let hooks = json!([{ "hooks": [{ "type": "command", "command": "exit 2" }] }]);
        let settings = json!({ "hooks": { event: hooks } }).to_string();
        let (found, diagnostics) = read_settings(
            native,
            settings.as_bytes(),
            Path::new("settings.json"),
            Scope::Project,
            &RULES,
            &Nothing,
        );
        assert!(found.hooks.is_empty() && is_reported(&diagnostics), "{:?} {diagnostics:?}", native.name());
    }
}

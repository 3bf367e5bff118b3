//! The targets of the fuzzer: each takes any bytes to a reader of hookyard and panics if something does not hold.

mod bundle;
mod rule;
mod store_record;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use hookyard::{
    config::{Settings, load_workspace},
    dialect::{
        HookConfigFile, HookRules, ReferenceLookup, ResolvedPath, UnixSockets, UnsafeVariables, convert,
        named, natives, read_hook, read_settings,
    },
    model::{
        CommandHandler, CommandLine, CommandMode, Diagnostic, DialectName, Draft, Event, EventKind,
        ExecutionPolicy, FailurePolicy, Handler, Hook, HookName, HookSource, HookTrust, Model, Outcome,
        RawReply, Scope, Secret, SecretText, Severity, Target, Workspace, WorkspaceId,
    },
    run::next_decision_id,
};

pub use bundle::bundle;
pub use rule::rule;
pub use store_record::store_record;

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

/// A hook file of OpenHarness: it loads, or an error says why and where. What loads can be converted into every other
/// dialect.
pub fn hook_file(bytes: &[u8]) {
    let (hook, diagnostics) = read_hook(bytes, Path::new("a.yaml"), &rules(), &Nowhere);
    let errors = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(hook.is_none(), errors, "a hook is missing without an error, or has one: {diagnostics:?}");
    check_places(bytes, &diagnostics);
    convert_all(DialectName::OpenHarness, ".openharness/hooks/a.yaml", bytes);
}

/// A settings file of an agent, in every dialect that has one: what is wrong is said with its place.
pub fn agent_settings(bytes: &[u8]) {
    for native in natives() {
        let path = Path::new("settings.json");
        let (hooks, diagnostics) = read_settings(native, bytes, path, Scope::Project, &rules(), &Nowhere);
        drop(hooks);
        check_places(bytes, &diagnostics);
    }
    convert_all(DialectName::Claude, ".claude/settings.json", bytes);
}

/// The settings file of hookyard: there are settings, or an error says why and where.
pub fn settings_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (settings, diagnostics) = Settings::from_yaml(text, Path::new("hookyard.yaml"));
    let errors = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(settings.is_none(), errors, "settings are missing without an error: {diagnostics:?}");
    check_places(bytes, &diagnostics);
}

/// An event, in every dialect: it is read, and what a hook of its dialect is told of it reads as the same event; or an
/// error says why.
pub fn event(bytes: &[u8]) {
    for name in DialectName::ALL {
        let dialect = named(*name);
        dialect.kind_of(bytes);
        dialect.cwd_of(bytes);
        match dialect.read_event(bytes) {
            Ok(event) => answer(event),
            Err(error) => check_text(&error.to_string()),
        }
    }
}

/// What an event of a dialect is told, and what its host is answered.
fn answer(event: Event) {
    let dialect = named(event.dialect);
    let event = Arc::new(event);
    for reason in [None, Some("no")] {
        let mut outcome = Outcome::proceed(next_decision_id(), event.kind, 1);
        if let Some(reason) = reason {
            outcome.verdict = hookyard::model::Verdict::Block;
            outcome.reason = Some(reason.into());
        }
        dialect.write_response(&event, &outcome);
    }
    let place = Workspace::new(WorkspaceId::new("shop").expect("it is an id"), "/srv/shop");
    let envelope = dialect.envelope(&Draft::new(Arc::clone(&event)), &place);
    // Hooks in Rust are handed the event itself.
    if envelope.is_empty() {
        return;
    }
    let again = dialect.read_event(&envelope);
    let again = again.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&envelope)));
    assert_eq!(again.kind, event.kind, "{}", String::from_utf8_lossy(&envelope));
    assert_eq!(again.attributes.tool_name, event.attributes.tool_name);
    let input = |event: &Event| event.targets.get(Target::ToolInput).map(|input| input.as_str().to_owned());
    assert_eq!(input(&again), input(&event));
}

/// A reply of a hook, in every dialect and from every kind of handler: it is read, or a short text says why not.
pub fn reply(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let body: Vec<u8> = bytes.to_vec();
    for name in DialectName::ALL.iter().filter(|name| **name != DialectName::Canonical) {
        let hook = hook(*name);
        for kind in EventKind::ALL {
            let exits = [0, 1, 2].map(|exit_code| RawReply::Command {
                exit_code,
                stdout: body.clone().into(),
                stderr: body.clone().into(),
                truncated: false,
            });
            let others =
                [RawReply::Http { status: 200, body: body.clone().into() }, RawReply::Text(text.clone())];
            for raw in exits.into_iter().chain(others) {
                if let Err(failure) = hook.dialect.read_reply(&hook, *kind, raw) {
                    check_text(&failure.message);
                }
            }
        }
    }
}

/// A record of what a person has agreed to: whatever it says, a hook that nobody has agreed to is refused.
pub fn trust_records(bytes: &[u8]) {
    let state = tempfile::tempdir().expect("there is room");
    let workspace = tempfile::tempdir().expect("there is room");
    fs::write(state.path().join("trust.json"), bytes).expect("there is room");
    let only_own = fs::Permissions::from_mode(0o600);
    fs::set_permissions(state.path().join("trust.json"), only_own).expect("the file is there");
    let hooks = workspace.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).expect("there is room");
    fs::write(
        hooks.join("a.yaml"),
        "name: a\nevents: [run_completed]\nhandler: { type: command, command: 'true' }\n",
    )
    .expect("there is room");
    let settings = Settings { state_directory: Some(state.path().to_owned()), ..Settings::default() };
    let loaded = load_workspace(workspace.path(), None, &settings, &|_| None);
    for hook in &loaded.hooks {
        assert!(hook.trust.refusal().is_some(), "nobody has agreed to {}", hook.name);
    }
    assert!(!loaded.hooks.is_empty(), "the hook is gone: {:?}", loaded.diagnostics);
}

fn rules() -> HookRules {
    HookRules {
        default_timeout: Duration::from_mins(1),
        max_timeout: Duration::from_mins(10),
        unsafe_variables: UnsafeVariables::Refused,
        unix_sockets: UnixSockets::Refused,
    }
}

fn hook(dialect: DialectName) -> Hook {
    let line = CommandLine::Shell("true".into());
    let mode = CommandMode::Oneshot;
    let handler =
        CommandHandler { line, cwd: "/srv/shop".into(), environment: Vec::new(), mode, sandbox: None };
    Hook {
        name: HookName::new("guard").expect("it is a name"),
        dialect: named(dialect),
        events: EventKind::ALL.iter().copied().collect(),
        matcher: None,
        handler: Handler::Command(handler),
        capabilities: hookyard::model::Capability::ALL.into_iter().collect(),
        priority: 0,
        enabled: true,
        timeout: Duration::from_mins(1),
        max_concurrency: None,
        on_error: FailurePolicy::Deny,
        on_timeout: FailurePolicy::Deny,
        execution: ExecutionPolicy::default(),
        source: HookSource {
            scope: Scope::Project,
            file: None,
            line: 1,
            position: 0,
            content: None,
            bundle: None,
        },
        trust: HookTrust::default(),
    }
}

/// Converts a file into every dialect. What is written can be read.
fn convert_all(from: DialectName, path: &str, bytes: &[u8]) {
    for to in DialectName::ALL.iter().filter(|to| **to != from && **to != DialectName::Canonical) {
        let file = HookConfigFile { path: path.into(), bytes: bytes.to_vec() };
        let converted = convert(from, &[file], *to, &|_| None);
        for file in &converted.files {
            let written = file.text.as_bytes();
            if *to == DialectName::OpenHarness {
                read_hook(written, &file.path, &rules(), &Nowhere);
            }
            for native in natives().filter(|_| *to != DialectName::OpenHarness) {
                read_settings(native, written, &file.path, Scope::Project, &rules(), &Nowhere);
            }
        }
    }
}

/// What is wrong is said in one line, with a place inside the text.
fn check_places(bytes: &[u8], diagnostics: &[Diagnostic]) {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.split('\n').collect();
    for diagnostic in diagnostics {
        check_text(&diagnostic.message);
        let Diagnostic { line, column, .. } = *diagnostic;
        assert!(line <= lines.len() + 1, "there is no line {line}: {diagnostic}");
        let width =
            line.checked_sub(1).and_then(|line| lines.get(line)).map_or(0, |line| line.chars().count());
        assert!(column <= width + 1, "line {line} has no column {column}: {diagnostic}");
    }
}

/// A text for a person: no control characters, and not as long as what it is about.
fn check_text(text: &str) {
    assert!(!text.chars().any(char::is_control), "control characters: {text:?}");
    assert!(text.len() < 4096, "{} bytes: {text}", text.len());
}

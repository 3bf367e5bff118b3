//! `convert`: what is written loads, and there and back keeps the meaning.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use hookyard::{
    config::{LoadedWorkspace, Settings, load_workspace},
    dialect::{Conversion, HookConfigFile, convert},
    model::{DialectName, FailurePolicy, Handler, Hook, Severity},
};
use tempfile::TempDir;

/// Values that matchers are tried with.
const VALUES: [&str; 10] =
    ["Bash", "BashOutput", "Edit", "MultiEdit", "Write", "mcp__a__b", "startup", "manual", "shell.exec", ""];

/// Hook files of OpenHarness with everything that can be said.
const OPENHARNESS: [(&str, &str); 6] = [
    (
        "guard",
        "events: [before_tool_dispatch]\nmatcher: ^(?:Bash|Edit)$\ncapabilities: [rewrite_tool_request]\n\
         handler: { type: command, command: 'sh \"$OPENHARNESS_WORKSPACE_ROOT/x.sh\"', timeout_seconds: 5 }",
    ),
    (
        "searcher",
        "events: [before_tool_dispatch, after_tool_dispatch]\nmatcher: Edit\ncapabilities: [rewrite_tool_request, rewrite_tool_response, suppress_output]\n\
         handler: { type: command, command: './y.sh', timeout_seconds: 1.5 }",
    ),
    ("plain", "events: [before_context_compact]\nhandler: { type: command, args: [/bin/echo, 'a b'] }"),
    (
        "asker",
        "events: [before_tool_dispatch]\ncapabilities: [rewrite_tool_request]\n\
         handler: { type: http, url: 'http://127.0.0.1:9/x', headers: { X-Home: 'a ${env.SHOP}' } }",
    ),
    (
        "judge",
        "events: [before_tool_dispatch]\ncapabilities: [rewrite_tool_request]\n\
         handler: { type: prompt, prompt: { inline: Is it safe? }, model_ref: default }",
    ),
    ("watcher", "events: [run_failed]\nhandler: { type: command, command: 'true', timeout_seconds: 3 }"),
];

fn settings() -> Settings {
    let home = tempfile::tempdir().unwrap().path().join("nobody");
    let text = "{ models: { default: { api: openai, model: m } }, http: { allow: ['127.0.0.1:9'] } }";
    let settings = Settings::from_yaml(text, Path::new("h.yaml")).0.unwrap();
    Settings {
        home: Some(home.clone()),
        system_directory: Some(home),
        trust: hookyard::config::TrustPolicy::Off,
        ..settings
    }
}

fn load(root: &Path) -> LoadedWorkspace {
    let environment = |name: &str| match name {
        "PATH" => Some("/bin:/usr/bin".to_owned()),
        "SHOP" => Some("/home/me".to_owned()),
        _ => None,
    };
    load_workspace(root, None, &settings(), &environment)
}

fn workspace() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for script in ["x.sh", "y.sh"] {
        let path = root.path().join(script);
        fs::write(&path, "exit 0\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    root
}

/// What a hook comes to for each event it wants.
fn meanings(hook: &Hook) -> Vec<String> {
    let accepted: Vec<bool> =
        VALUES.iter().map(|value| hook.matcher.as_ref().is_none_or(|m| m.accepts(value))).collect();
    let runs = match &hook.handler {
        // One dialect runs its lines with bash where others take sh, and has no arguments besides the line.
        Handler::Command(command) => {
            let line = command.line.to_string().replace('\'', "");
            line.split_once("bash -c ").map_or(line.clone(), |(_, line)| line.to_owned())
        }
        Handler::Http(http) => {
            let headers = http.headers.iter().map(|(name, value)| format!("{name}={}", value.expose()));
            format!("{} {}", http.address, headers.collect::<String>())
        }
        Handler::Prompt(prompt) => format!("{} {}", prompt.model.reference, prompt.prompt),
        Handler::Agent(task) => format!("{} {}", task.agent.model.reference, task.task),
        other => unreachable!("no file has {} hooks", other.kind()),
    };
    let meaning =
        |kind| format!("{kind} {:?} {accepted:?} {runs} {:?}", hook.execution.host_event, hook.timeout);
    hook.events.iter().map(meaning).collect()
}

/// Writes hooks into a workspace of their own and loads them there.
fn written(conversion: &Conversion) -> (TempDir, LoadedWorkspace) {
    let root = workspace();
    for file in &conversion.files {
        let path = root.path().join(&file.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &file.text).unwrap();
    }
    let loaded = load(root.path());
    let wrong: Vec<_> = loaded.diagnostics.iter().filter(|d| d.severity > Severity::Info).collect();
    assert!(wrong.is_empty(), "{wrong:?}\n{conversion:?}");
    (root, loaded)
}

fn sources(conversion: &Conversion) -> Vec<HookConfigFile> {
    let file = |file: &hookyard::dialect::ConvertedFile| HookConfigFile {
        path: file.path.clone(),
        bytes: file.text.clone().into_bytes(),
    };
    conversion.files.iter().filter(|file| !file.path.starts_with(".openharness/agents")).map(file).collect()
}

fn openharness() -> Vec<HookConfigFile> {
    let file = |(name, text): &(&str, &str)| HookConfigFile {
        path: PathBuf::from(format!(".openharness/hooks/{name}.yaml")),
        bytes: format!("name: {name}\n{text}\n").into_bytes(),
    };
    OPENHARNESS.iter().map(file).collect()
}

fn to(files: &[HookConfigFile], from: DialectName, to: DialectName) -> Conversion {
    convert(from, files, to, &|_| None)
}

/// The dialects that hooks are written in.
fn dialects() -> impl Iterator<Item = DialectName> {
    DialectName::ALL.iter().copied().filter(|name| *name != DialectName::Canonical)
}

#[test]
fn converting_there_and_back_keeps_the_meaning() {
    let home = DialectName::OpenHarness;
    let original = to(&openharness(), home, home);
    assert_eq!(original.remarks, []);
    let (_original_root, original) = written(&original);
    for other in dialects().filter(|name| *name != home) {
        let there = to(&openharness(), home, other);
        let (_there_root, loaded) = written(&there);
        assert_eq!(loaded.hooks.len(), there.hooks, "{other}: {there:?}");
        assert!(loaded.hooks.iter().all(|hook| hook.dialect.name() == other));
        let back = to(&sources(&there), other, home);
        let (_back_root, back) = written(&back);
        let meant: BTreeSet<String> = original.hooks.iter().flat_map(meanings).collect();
        let now: BTreeSet<String> = back.hooks.iter().flat_map(meanings).collect();
        assert!(now.is_subset(&meant), "{other} adds {:#?}", now.difference(&meant));
        let gone: Vec<&String> = meant.difference(&now).collect();
        let told =
            there.remarks.iter().filter(|remark| remark.left_out || remark.message.contains("no event for"));
        assert!(gone.len() <= told.count(), "{other} loses {gone:#?} and says {:#?}", there.remarks);
    }
}

#[test]
fn every_conversion_loads() {
    for first in dialects() {
        let files = sources(&to(&openharness(), DialectName::OpenHarness, first));
        for second in dialects() {
            let conversion = to(&files, first, second);
            let (_root, loaded) = written(&conversion);
            assert_eq!(loaded.hooks.len(), conversion.hooks, "{first} to {second}: {conversion:?}");
            assert!(conversion.hooks > 0, "{first} to {second}");
        }
    }
}

#[test]
fn what_cannot_be_converted_is_reported() {
    let text = "name: strict\nevents: [before_tool_dispatch, before_context_build]\npriority: 3\non_error: deny\n\
                on_timeout: ask\nhandler: { type: command, command: 'x', cwd: sub dir, mode: worker, max_concurrency: 2, \
                environment: { A: \"it's ${env.HOME}/b\", B: c } }\n";
    let file = HookConfigFile { path: "strict.yaml".into(), bytes: text.into() };
    let conversion = to(&[file], DialectName::OpenHarness, DialectName::Claude);
    let told: Vec<&str> = conversion.remarks.iter().map(|remark| remark.message.as_str()).collect();
    for expected in [
        "`mode: worker`",
        "`max_concurrency`",
        "no event for `before_context_build`",
        "`on_error: deny`: where the hook fails, the event passes",
        "`on_timeout: ask`: where the hook is too late",
        "`priority`",
        "it may do more there: every hook has `rewrite_tool_request`",
    ] {
        assert!(told.iter().any(|message| message.contains(expected)), "{expected} is not in {told:#?}");
    }
    let line = r#"cd 'sub dir' && export A='it'\\''s '\"${HOME}\"/b && export B=c && x"#;
    assert!(conversion.files[0].text.contains(line), "{}", conversion.files[0].text);
}

#[test]
fn hooks_that_would_change_meaning_are_left_out() {
    let cases = [
        ("environment: { K: '${secrets.K}' }, command: x, type: command", "a secret in its `environment`"),
        ("headers: { K: '${secrets.K}' }, url: 'http://a/', type: http", "a secret in its `headers`"),
        ("method: PUT, url: 'http://a/', type: http", "always `POST`"),
    ];
    for (handler, expected) in cases {
        let text = format!("name: a\nevents: [before_tool_dispatch]\nhandler: {{ {handler} }}\n");
        let file = HookConfigFile { path: "a.yaml".into(), bytes: text.into() };
        let conversion = to(&[file], DialectName::OpenHarness, DialectName::Claude);
        assert_eq!((conversion.hooks, conversion.files.len()), (0, 0), "{conversion:?}");
        assert!(
            conversion.remarks.iter().any(|r| r.left_out && r.message.contains(expected)),
            "{conversion:?}"
        );
    }
}

#[test]
fn hooks_of_settings_get_names_and_keep_their_units() {
    let text = r#"{"hooks":{
        "PreToolUse":[{"matcher":"Bash|Edit","hooks":[
            {"type":"command","command":"$CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh --strict"},
            {"type":"command","command":"python3 .claude/hooks/guard.sh","timeout":0.5,"async":true,"once":true,"if":"Bash(git *)"},
            {"type":"prompt","prompt":"Is it safe?","model":"default"}]}],
        "Setup":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
    let file = HookConfigFile { path: ".claude/settings.json".into(), bytes: text.into() };
    let conversion = to(&[file], DialectName::Claude, DialectName::OpenHarness);
    let paths: Vec<String> = conversion.files.iter().map(|file| file.path.display().to_string()).collect();
    let name = |name: &str| format!(".openharness/hooks/{name}.yaml");
    assert_eq!(paths, [name("guard"), name("guard-2"), name("PreToolUse")]);
    let first = &conversion.files[0].text;
    for part in [
        "^(?:Bash|Edit)$",
        "$OPENHARNESS_WORKSPACE_ROOT/.claude/hooks/guard.sh --strict",
        "timeout_seconds: 600",
    ] {
        assert!(first.contains(part), "{part} is not in {first}");
    }
    assert!(conversion.files[1].text.contains("timeout_seconds: 0.5"));
    let told: Vec<&str> = conversion.remarks.iter().map(|remark| remark.message.as_str()).collect();
    for expected in ["`async`", "`once`", "`if: Bash(git *)`", "no event for `Setup`"] {
        assert!(told.iter().any(|message| message.contains(expected)), "{expected} is not in {told:#?}");
    }
}

#[test]
fn policies_for_all_hooks_are_never_milder_than_those_of_one() {
    let hook = |name: &str, policies: &str| {
        let text = format!(
            "name: {name}\nevents: [before_tool_dispatch]\n{policies}handler: {{ type: command, command: 'true' }}\n"
        );
        HookConfigFile { path: name.into(), bytes: text.into() }
    };
    let files = [hook("strict", "on_error: deny\n"), hook("mild", "on_timeout: ask\n")];
    let there = to(&files, DialectName::OpenHarness, DialectName::Clawd);
    let file: serde_json::Value = serde_json::from_str(&there.files[0].text).unwrap();
    assert_eq!(file["hooks"]["failureBehavior"], "deny");
    assert_eq!(file["hooks"]["timeoutBehavior"], "ask");
    let stricter =
        |remark: &&hookyard::dialect::ConversionRemark| remark.message.contains("is for all hooks");
    assert_eq!(there.remarks.iter().filter(stricter).count(), 2, "{:?}", there.remarks);
    let back = to(&sources(&there), DialectName::Clawd, DialectName::OpenHarness);
    let (_root, loaded) = written(&back);
    for hook in &loaded.hooks {
        assert_eq!((hook.on_error, hook.on_timeout), (FailurePolicy::Deny, FailurePolicy::Ask));
    }
    let told = to(&files, DialectName::OpenHarness, DialectName::Gemini).remarks;
    assert_eq!(
        told.iter().filter(|remark| remark.message.contains("the event passes")).count(),
        2,
        "{told:?}"
    );
}

#[test]
fn defaults_for_all_hooks_of_a_file_are_converted() {
    let file = |path: &str, text: &str| HookConfigFile { path: path.into(), bytes: text.into() };
    let clawd = file(
        ".clawdcode/settings.json",
        r#"{"hooks":{"defaultTimeout":7,"failureBehavior":"ask","maxConcurrentHooks":2,"PreToolUse":[{"matcher":
            {"tools":"Bash","paths":"**/*.ts"},"hooks":[{"type":"command","command":"true"}]}]}}"#,
    );
    let conversion = to(&[clawd], DialectName::Clawd, DialectName::OpenHarness);
    let text = &conversion.files[0].text;
    assert!(text.contains("timeout_seconds: 7") && text.contains("on_error: ask"), "{text}");
    for expected in ["`paths` of its matcher", "`maxConcurrentHooks`"] {
        assert!(conversion.remarks.iter().any(|r| r.message.contains(expected)), "{:?}", conversion.remarks);
    }
    let gemini = file(
        ".gemini/settings.json",
        r#"{"hooksConfig":{"disabled":["old"]},"hooks":{"BeforeTool":[{"hooks":[{"name":"old","type":"command",
            "command":"a"},{"name":"new","type":"command","command":"b","timeout":1500}]}]}}"#,
    );
    let conversion = to(&[gemini], DialectName::Gemini, DialectName::OpenHarness);
    assert_eq!(conversion.hooks, 1, "{conversion:?}");
    assert!(conversion.files[0].text.contains("timeout_seconds: 1.5"));
    assert!(conversion.remarks.iter().any(|r| r.left_out && r.hook == "old"), "{:?}", conversion.remarks);
    let off = r#"{"disableAllHooks":true,"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
    let claude = file(".claude/settings.json", off);
    assert_eq!(to(&[claude], DialectName::Claude, DialectName::OpenHarness).hooks, 0);
}

#[test]
fn a_file_with_the_events_at_the_top_is_converted() {
    let entry = r#""PreToolUse":[{"matcher":"Execute","commandRegex":"^git","hooks":[{"type":"command","command":"true"}]}]"#;
    let file = |text: String| HookConfigFile { path: ".factory/hooks.json".into(), bytes: text.into() };
    let conversion = to(&[file(format!("{{{entry}}}"))], DialectName::Droid, DialectName::OpenHarness);
    assert!(conversion.files[0].text.contains("Execute"), "{}", conversion.files[0].text);
    assert!(
        conversion.remarks.iter().any(|r| r.message.contains("`commandRegex`")),
        "{:?}",
        conversion.remarks
    );
    let off = file(format!(r#"{{"hooksDisabled":true,"showHookOutput":false,{entry}}}"#));
    let conversion = to(&[off], DialectName::Droid, DialectName::OpenHarness);
    assert_eq!((conversion.hooks, conversion.remarks.len()), (0, 1), "{conversion:?}");
}

#[test]
fn settings_that_are_no_hooks_are_reported_and_harmless() {
    for (dialect, text) in [
        (DialectName::OpenHarness, "name: ["),
        (DialectName::OpenHarness, "name: a"),
        (DialectName::Claude, "{"),
        (DialectName::Claude, r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command"}]}],"Nope":[]}}"#),
        (DialectName::Claude, r#"{"hooks":[null]}"#),
    ] {
        let file = HookConfigFile { path: "x".into(), bytes: text.into() };
        let conversion = to(&[file], dialect, DialectName::CodeBuddy);
        assert_eq!((conversion.hooks, conversion.files.len()), (0, 0), "{text}");
    }
}

#[test]
fn the_command_shows_or_writes_and_overwrites_nothing() {
    let root = workspace();
    let hooks = root.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for file in openharness() {
        fs::write(root.path().join(file.path), file.bytes).unwrap();
    }
    let run = |more: &[&str]| {
        let mut command = assert_cmd::Command::cargo_bin("hookyard").unwrap();
        command.args(["convert", "--from", "openharness", "--to", "claude", "--workspace"]).arg(root.path());
        command.args(more).args(crate::support::trust::OFF).assert()
    };
    let target = root.path().join(".claude/settings.json");
    let shown = run(&[]).success().get_output().clone();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("# .claude/settings.json\n{\n"));
    assert!(String::from_utf8_lossy(&shown.stderr).contains("7 hooks in 1 file"), "{shown:?}");
    assert!(!target.exists());
    run(&["--write"]).success();
    let written = fs::read(&target).unwrap();
    let again = run(&["--write"]).failure().code(1).get_output().clone();
    assert!(String::from_utf8_lossy(&again.stderr).contains(".claude/settings.json already exists"));
    assert_eq!(fs::read(&target).unwrap(), written);
    let json = run(&["--json"]).success().get_output().stdout.clone();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["hooks"], 7);
}

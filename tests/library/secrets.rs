//! Secrets: their sources, and that no value comes back in an outcome, a notice or on a screen.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fmt::Write,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use crate::support::{
    servers::Server,
    trust::{self, orchestrator_with},
};
use assert_cmd::Command;
use axum::{Router, http::HeaderMap, routing::any};
use futures_util::FutureExt;
use hookyard::{
    config::{
        HttpSettings, LoadedWorkspace, ModelSettings, SecretSources, Settings, TrustPolicy,
        WorkspaceSettings, load_workspace,
    },
    model::{
        Ended, Event, EventKind, Handler, ModelApi, Outcome, RunId, SessionId, TrustState, Verdict,
        WorkspaceId,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The value that must not be seen.
const VALUE: &str = "k3y-0001-\"quoted\"";

/// A part of it, which must not be seen either.
const PART: &str = "k3y-0";

fn workspace(handler: &Value) -> TempDir {
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let file = json!({ "name": "hook", "events": ["before_tool_dispatch"], "handler": handler });
    fs::write(hooks.join("hook.yaml"), file.to_string()).unwrap();
    workspace
}

/// A workspace whose hook runs a line, with a variable that refers to this.
fn with_variable(reference: &str) -> TempDir {
    workspace(&json!({ "type": "command", "command": "true", "environment": { "KEY": reference } }))
}

fn nothing(_: &str) -> Option<String> {
    None
}

fn load(
    reference: &str,
    sources: SecretSources,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let root = with_variable(reference);
    let loaded = load_workspace(
        root.path(),
        None,
        &Settings { secrets: sources, trust: hookyard::config::TrustPolicy::Off, ..Settings::default() },
        environment,
    );
    value_of(&loaded).ok_or_else(|| loaded.diagnostics.iter().map(ToString::to_string).collect())
}

#[test]
fn a_workspace_does_not_see_what_belongs_to_another() {
    let secrets = tempfile::tempdir().unwrap();
    for (workspace, value) in [("shop", "of the shop"), ("bank", "of the bank")] {
        fs::create_dir(secrets.path().join(workspace)).unwrap();
        fs::write(secrets.path().join(workspace).join("KEY"), value).unwrap();
    }
    fs::write(secrets.path().join("bank/ONLY"), VALUE).unwrap();
    let sources = SecretSources { by_workspace: Some(secrets.path().to_owned()), ..sources(None, None) };
    let load = |declared: &[&str], id: Option<&str>, at: &str, reference: &str| {
        let roots = tempfile::tempdir().unwrap();
        // Ids with `..` in them are roots with `..` in them here.
        fs::create_dir_all(roots.path().join("declared/x")).unwrap();
        let mut settings = Settings {
            secrets: sources.clone(),
            trust: hookyard::config::TrustPolicy::Off,
            ..Settings::default()
        };
        for name in declared {
            let root = roots.path().join("declared").join(name);
            fs::create_dir_all(&root).unwrap();
            settings.workspaces.insert(WorkspaceId::new(name).unwrap(), WorkspaceSettings::new(root));
        }
        let root = roots.path().join(at);
        fs::create_dir_all(&root).unwrap();
        let written = with_variable(reference);
        fs::rename(written.path().join(".openharness"), root.join(".openharness")).unwrap();
        let id = id.map(|id| WorkspaceId::new(id).unwrap());
        let loaded = load_workspace(&root, id, &settings, &nothing);
        value_of(&loaded)
            .ok_or_else(|| loaded.diagnostics.iter().map(ToString::to_string).collect::<String>())
    };
    let both: &[&str] = &["shop", "bank"];
    assert_eq!(load(both, Some("shop"), "declared/shop", "${secrets.KEY}").unwrap(), "of the shop");
    assert_eq!(load(both, None, "declared/bank", "${secrets.KEY}").unwrap(), "of the bank");
    assert_eq!(load(both, Some("bank"), "declared/bank", "${secrets.ONLY}").unwrap(), VALUE);
    // The root decides: a clone has the name of its directory, and a host may send any id.
    for (id, at) in [
        (None, "clones/bank"),
        (Some("bank"), "clones/bank"),
        (Some("bank"), "declared/shop"),
        (Some("shop"), "declared/shop"),
        (Some("../bank"), "clones/x"),
        (Some("."), "clones/x"),
    ] {
        let mistake = load(both, id, at, "${secrets.ONLY}").unwrap_err();
        assert!(mistake.contains("secret `ONLY` not found"), "{id:?} {at}: {mistake}");
    }
    let mistake = load(&[], Some("bank"), "declared/bank", "${secrets.ONLY}").unwrap_err();
    assert!(mistake.contains("declare the workspace with its `root`"), "{mistake}");
    for odd in ["../bank", "x/../bank", "bank/", "."] {
        let mistake = load(&[odd], Some(odd), &format!("declared/{odd}"), "${secrets.ONLY}").unwrap_err();
        assert!(mistake.contains("secret `ONLY` not found"), "{odd}: {mistake}");
    }
}

fn value_of(loaded: &LoadedWorkspace) -> Option<String> {
    let Handler::Command(command) = &loaded.hooks.first()?.handler else { return None };
    assert!(format!("{:?}", loaded.hooks).contains("***"));
    Some(command.environment[0].1.expose().to_owned())
}

fn sources(dir: Option<&Path>, file: Option<&Path>) -> SecretSources {
    SecretSources {
        by_workspace: None,
        env_prefix: None,
        dir: dir.map(Path::to_owned),
        file: file.map(Path::to_owned),
    }
}

/// A file that only its owner reads.
fn closed(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn the_first_source_that_has_it_counts() {
    let place = tempfile::tempdir().unwrap();
    let (dir, file) = (place.path().join("secrets"), place.path().join("secrets.yaml"));
    fs::create_dir(&dir).unwrap();
    for name in ["A", "B"] {
        fs::write(dir.join(name), format!("directory-{name}\n")).unwrap();
    }
    closed(&file, "A: file-A\nB: file-B\nC: file-C\n");
    let all = SecretSources {
        by_workspace: None,
        env_prefix: Some("KEY_".into()),
        dir: Some(dir),
        file: Some(file),
    };
    let environment = |name: &str| (name == "KEY_A").then(|| "variable-A".to_owned());
    for (name, expected) in [("A", "variable-A"), ("B", "directory-B"), ("C", "file-C")] {
        let found = load(&format!("<${{secrets.{name}}}>"), all.clone(), &environment);
        assert_eq!(found, Ok(format!("<{expected}>")));
    }
}

#[test]
fn nothing_is_looked_up_before_somebody_has_agreed() {
    let hooks = [
        json!({ "type": "command", "command": "true", "environment": { "A": "${env.TOKEN}", "B": "${secrets.KEY}" } }),
        json!({ "type": "http", "url": "https://guard.example/", "headers": { "A": "${env.TOKEN} ${secrets.KEY}" } }),
        json!({ "type": "prompt", "prompt": { "inline": "?" }, "model_ref": "large" }),
    ];
    let key = Some("${env.TOKEN}${secrets.KEY}".into());
    let model = ModelSettings { key, ..ModelSettings::new(ModelApi::OpenAi, "m") };
    let state = tempfile::tempdir().unwrap();
    for hook in hooks {
        let workspace = workspace(&hook);
        let asked = RefCell::new(BTreeSet::new());
        let environment = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            (name == "TOKEN" || name == "S_KEY").then(|| VALUE.to_owned())
        };
        let secrets = SecretSources { env_prefix: Some("S_".into()), ..sources(None, None) };
        let settings = |trust| Settings {
            trust,
            secrets: secrets.clone(),
            models: [("large".to_owned(), model.clone())].into(),
            home: Some(state.path().join("home")),
            state_directory: Some(state.path().join("state")),
            ..Settings::default()
        };
        let untrusted = load_workspace(workspace.path(), None, &settings(TrustPolicy::Enforce), &environment);
        let states: Vec<_> = untrusted.hooks.iter().map(|hook| hook.trust.state()).collect();
        assert_eq!(states, [Some(TrustState::Untrusted)], "{hook}: {:?}", untrusted.diagnostics);
        let names = ["TOKEN".to_owned(), "S_KEY".to_owned()];
        assert!(names.iter().all(|name| !asked.borrow().contains(name)), "{hook}: {asked:?}");
        load_workspace(workspace.path(), None, &settings(TrustPolicy::Off), &environment);
        assert!(names.iter().all(|name| asked.borrow().contains(name)), "{hook}: {asked:?}");
    }
}

#[test]
fn a_missing_secret_costs_its_hook_and_names_the_sources() {
    let found = load("${secrets.NOPE}", SecretSources::default(), &nothing).unwrap_err();
    assert!(found.contains("hook.yaml:1:"), "{found}");
    assert!(found.contains("secret `NOPE` not found in the variable `HOOKYARD_SECRET_NOPE`"), "{found}");
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("secrets.yaml");
    closed(&file, "OTHER: x\n");
    let found = load("${secrets.NOPE}", sources(Some(place.path()), Some(&file)), &nothing).unwrap_err();
    let expected =
        format!("not found in the directory {}, the file {}", place.path().display(), file.display());
    assert!(found.contains(&expected), "{found}");
    let found = load("${secrets.NOPE}", sources(None, None), &nothing).unwrap_err();
    assert!(found.contains("no source of secrets is configured"), "{found}");
    let empty = |name: &str| (name == "HOOKYARD_SECRET_E").then(String::new);
    let found = load("${secrets.E}", SecretSources::default(), &empty).unwrap_err();
    assert!(found.contains("the secret `E` is empty"), "{found}");
}

#[test]
fn a_file_of_a_directory_is_one_secret() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::write(path("plain"), "a b").unwrap();
    fs::write(path("line"), "a b\n").unwrap();
    fs::write(path("windows"), "a b\r\n").unwrap();
    fs::write(path("lines"), "a\nb\n\n").unwrap();
    symlink("plain", path("linked")).unwrap();
    for (name, expected) in
        [("plain", "a b"), ("line", "a b"), ("windows", "a b"), ("lines", "a\nb\n"), ("linked", "a b")]
    {
        let found = load(&format!("${{secrets.{name}}}"), sources(Some(place.path()), None), &nothing);
        assert_eq!(found.as_deref(), Ok(expected), "{name}");
    }
    fs::create_dir(path("directory")).unwrap();
    symlink("nowhere", path("dangling")).unwrap();
    symlink("/dev/zero", path("device")).unwrap();
    fs::write(path("large"), vec![b'k'; (64 << 10) + 1]).unwrap();
    fs::write(path("binary"), b"k3y-0\xff").unwrap();
    fs::write(path("nul"), "k3y-0\0").unwrap();
    let fifo = std::ffi::CString::new(path("fifo").to_str().unwrap()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for (name, expected) in [
        ("directory", "is not a regular file"),
        ("dangling", "cannot be read"),
        ("device", "is not a regular file"),
        ("fifo", "is not a regular file"),
        ("large", "is larger than the 65536 bytes allowed"),
        ("binary", "is not UTF-8"),
        ("nul", "contains a NUL character"),
    ] {
        let found = load(&format!("${{secrets.{name}}}"), sources(Some(place.path()), None), &nothing);
        let found = found.unwrap_err();
        assert!(found.contains(expected) && !found.contains(PART), "{name}: {found}");
    }
}

#[test]
fn a_file_of_secrets_is_closed_to_others() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("secrets.yaml");
    closed(&file, &format!("KEY: '{VALUE}'\nNUMBER: 5\n"));
    let ask =
        |name: &str, file: &Path| load(&format!("${{secrets.{name}}}"), sources(None, Some(file)), &nothing);
    let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    for closed in [0o600, 0o400] {
        mode(closed);
        assert_eq!(ask("KEY", &file).as_deref(), Ok(VALUE));
    }
    for (open, shown) in [(0o644, "0644"), (0o640, "0640"), (0o602, "0602")] {
        mode(open);
        let found = ask("KEY", &file).unwrap_err();
        assert!(found.contains(&format!("is open to others: its mode is {shown}")), "{found}");
        assert!(found.contains("chmod 600"), "{found}");
    }
    mode(0o600);
    assert!(ask("NUMBER", &file).unwrap_err().contains("is not a string (put it in quotes)"));
    let link = place.path().join("link.yaml");
    symlink(&file, &link).unwrap();
    assert!(ask("KEY", &link).unwrap_err().contains("is a symbolic link"));
    assert!(ask("KEY", &place.path().join("nowhere.yaml")).unwrap_err().contains("cannot be read"));
    for text in [format!("- {VALUE}\n"), format!("{VALUE}\n"), format!("KEY: [{VALUE}\n"), "\"".into()] {
        closed(&file, &text);
        let found = ask("KEY", &file).unwrap_err();
        assert!(found.contains("is not a mapping") || found.contains("cannot be read from line"), "{found}");
        assert!(!found.contains(PART), "{found}");
    }
    closed(&file, "KEY: mine\n");
    // Only a privileged user can give a file away.
    if std::os::unix::fs::chown(&file, Some(12345), None).is_ok() {
        assert!(ask("KEY", &file).unwrap_err().contains("belongs to another user"));
    }
}

fn event() -> Event {
    let kind = EventKind::BeforeToolDispatch;
    Event::new(kind, SessionId::new("session").unwrap(), RunId::new("run").unwrap())
}

/// The outcome of one event, and everything else that was told about it.
async fn told(handler: &Value) -> (Outcome, String) {
    let (workspace, secrets) = (workspace(handler), tempfile::tempdir().unwrap());
    fs::write(secrets.path().join("KEY"), VALUE).unwrap();
    let http = HttpSettings { allow: vec!["127.0.0.0/8".parse().unwrap()] };
    let settings = Settings { secrets: sources(Some(secrets.path()), None), http, ..Settings::default() };
    let orchestrator = orchestrator_with(workspace.path(), settings).await;
    let mut notices = orchestrator.subscribe();
    let outcome = orchestrator.dispatch(event()).await.unwrap();
    let mut all = format!("{:?} {:?}", orchestrator.load_reports(), orchestrator.snapshot(None));
    while let Some(Some(Ok(notice))) = notices.next().now_or_never() {
        write!(all, "{notice:?}").unwrap();
    }
    all.push_str(&serde_json::to_string(&outcome).unwrap());
    (outcome, all)
}

#[tokio::test]
async fn a_secret_in_the_output_of_a_command_is_redacted() {
    let padding = "x".repeat(70);
    let json = r#"printf '{"KEY":%s}' "$(printf %s "$KEY" | sed 's/"/\\"/g; s/^/"/; s/$/"/')""#;
    let cases = [
        ("echo \"$KEY\" >&2; exit 2".to_owned(), Ended::Completed, Verdict::Block),
        ("echo \"$KEY\" >&2; exit 1".to_owned(), Ended::Failed, Verdict::Proceed),
        (format!("echo \"{}$KEY\" >&2; exit 1", "x".repeat(190)), Ended::Failed, Verdict::Proceed),
        ("echo \"$KEY\"".to_owned(), Ended::InvalidOutput, Verdict::Proceed),
        (format!("echo \"{padding}$KEY\""), Ended::InvalidOutput, Verdict::Proceed),
        (
            json.replace("KEY\":", "reason\":").replace('}', ",\"decision\":\"block\"}"),
            Ended::Completed,
            Verdict::Block,
        ),
        (json.replace("KEY\":", "decision\":"), Ended::Completed, Verdict::Proceed),
        (json.replace("KEY\":", "systemMessage\":"), Ended::Completed, Verdict::Proceed),
        (
            json.replace("\"KEY\":%s", "%s:1").replace("s/^/\"", &format!("s/^/\"{padding}")),
            Ended::Completed,
            Verdict::Proceed,
        ),
    ];
    for (command, end, verdict) in cases {
        let environment = json!({ "KEY": "${secrets.KEY}" });
        let handler = json!({ "type": "command", "command": command, "environment": environment });
        let (outcome, told) = told(&handler).await;
        let report = &outcome.hooks[0];
        assert_eq!((report.ended, outcome.verdict), (end, verdict), "{command}: {outcome:?}");
        assert!(!told.contains(PART), "{command}: {told}");
        assert!(told.contains("***"), "{command}: {told}");
    }
}

#[tokio::test]
async fn a_secret_in_the_response_of_a_server_is_redacted() {
    let echo = async |headers: HeaderMap| headers["authorization"].to_str().unwrap().to_owned();
    let reason = async |headers: HeaderMap| {
        assert_eq!(headers["authorization"], format!("Bearer {VALUE}"));
        json!({ "decision": "block", "reason": headers["authorization"].to_str().unwrap() }).to_string()
    };
    let server = Server::start(Router::new().route("/echo", any(echo)).route("/reason", any(reason))).await;
    let cases = [("/echo", Ended::InvalidOutput, None), ("/reason", Ended::Completed, Some("Bearer ***"))];
    for (path, end, reason) in cases {
        let headers = json!({ "Authorization": "Bearer ${secrets.KEY}" });
        let (outcome, told) =
            told(&json!({ "type": "http", "url": server.url(path), "headers": headers })).await;
        assert_eq!((outcome.hooks[0].ended, outcome.reason.as_deref()), (end, reason), "{outcome:?}");
        assert!(!told.contains(PART), "{told}");
    }
}

#[tokio::test]
async fn a_secret_with_a_line_break_is_no_header() {
    let root = workspace(&json!({
        "type": "http", "url": "http://127.0.0.1:9/", "headers": { "X-Key": "${secrets.KEY}" }
    }));
    let environment = |name: &str| (name == "HOOKYARD_SECRET_KEY").then(|| "k3y-0\r\nX-Evil: 1".to_owned());
    let loaded = load_workspace(
        root.path(),
        None,
        &Settings { trust: hookyard::config::TrustPolicy::Off, ..Settings::default() },
        &environment,
    );
    assert!(loaded.hooks.is_empty());
    let found = format!("{:?}", loaded.diagnostics);
    assert!(found.contains("the value of `X-Key` contains a line break") && !found.contains(PART), "{found}");
}

#[test]
fn a_variable_with_the_prefix_is_a_secret_under_either_name() {
    let environment = |name: &str| (name == "HOOKYARD_SECRET_KEY").then(|| VALUE.to_owned());
    let root = with_variable("${env.HOOKYARD_SECRET_KEY}");
    let loaded = load_workspace(
        root.path(),
        None,
        &Settings { trust: hookyard::config::TrustPolicy::Off, ..Settings::default() },
        &environment,
    );
    let Handler::Command(command) = &loaded.hooks[0].handler else { panic!("another handler") };
    assert_eq!(command.environment[0].1.secrets()[0].expose(), VALUE);
}

#[test]
fn no_command_prints_a_secret() {
    let root = with_variable("${secrets.KEY}");
    fs::write(root.path().join("event.json"), r#"{"hook_event_name":"before_tool_dispatch","session_id":"s","run_id":"r","tool_name":"Bash","tool_input":{}}"#)
        .unwrap();
    let event = root.path().join("event.json");
    let event = ["--dialect", "openharness", "--event", event.to_str().unwrap()];
    let commands: [&[&str]; 4] = [&["check"], &["list"], &["explain"], &["fire"]];
    for command in commands {
        for json in [&["--json"][..], &[]] {
            let mut hookyard = Command::cargo_bin("hookyard").unwrap();
            hookyard.env("HOOKYARD_SECRET_KEY", VALUE).args(command).args(json);
            hookyard.arg("--workspace").arg(root.path()).args(trust::OFF);
            if ["explain", "fire"].contains(&command[0]) {
                hookyard.args(event);
            }
            let output = hookyard.output().unwrap();
            let shown = format!("{output:?}");
            assert!(output.status.success(), "{command:?}: {shown}");
            assert!(!shown.contains(PART), "{command:?}: {shown}");
        }
    }
}

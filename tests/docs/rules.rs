//! The rules that docs/rules.md shows are run: each is the hook of a case.

use std::{fs, time::Duration};

use hookyard::{
    Orchestrator,
    config::TrustPolicy,
    model::{Event, EventKind, Json, RunId, SessionId, Target, Verdict},
};

use crate::support::cases::{Content, Files, case_files};

/// A case, as far as documents show it.
#[derive(serde::Deserialize)]
pub(crate) struct DocumentedCase {
    #[serde(default)]
    pub(crate) files: Files,
    pub(crate) events: Vec<serde_json::Value>,
}

#[test]
fn every_rule_of_the_document_is_run() {
    let document = fs::read_to_string("docs/rules.md").unwrap();
    let shown: Vec<&str> =
        document.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let files = case_files::<DocumentedCase>("rules");
    let run: Vec<&DocumentedCase> = files.iter().flat_map(|file| &file.cases).collect();
    assert!(shown.len() >= 7, "{}", shown.len());
    for hook in shown {
        let case = run.iter().find(|case| {
            case.files.values().any(|content| matches!(content, Content::Text(text) if text == hook))
        });
        let case = case.unwrap_or_else(|| panic!("no case of tests/cases/rules has this hook:\n{hook}"));
        let verdicts: Vec<&str> =
            case.events.iter().filter_map(|event| event["outcome"]["verdict"].as_str()).collect();
        let silent = |verdict: &&str| *verdict == "proceed";
        let decides = verdicts.iter().any(|verdict| !silent(verdict)) || hook.contains("patch:");
        assert!(decides && verdicts.iter().any(silent), "{verdicts:?} of\n{hook}");
    }
}

/// The handlers of the guards that docs/rules.md compares, in the order of its table, and their scripts: a name and the language of
/// the block that shows it.
const GUARDS: [(&str, Option<(&str, &str)>); 4] = [
    ("type: command, command: exec sh .openharness/hooks/scripts/guard.sh", Some(("guard.sh", "sh"))),
    ("type: command, command: exec node .openharness/hooks/scripts/guard.js", Some(("guard.js", "js"))),
    (
        "type: command, mode: worker, command: exec node .openharness/hooks/scripts/guard.mjs",
        Some(("guard.mjs", "mjs")),
    ),
    ("", None),
];

fn block<'d>(document: &'d str, language: &str) -> &'d str {
    let begin = document.split_once(&format!("```{language}\n")).unwrap().1;
    begin.split_once("```").unwrap().0
}

/// A workspace with one guard of the document.
fn workspace(document: &str, handler: &str, script: Option<(&str, &str)>) -> tempfile::TempDir {
    let workspace = tempfile::tempdir().unwrap();
    let scripts = workspace.path().join(".openharness/hooks/scripts");
    fs::create_dir_all(&scripts).unwrap();
    let sdk = "config/workers/javascript/hookyard-worker.mjs";
    fs::copy(sdk, scripts.join("hookyard-worker.mjs")).unwrap();
    let hook = match script {
        Some((name, language)) => {
            fs::write(scripts.join(name), block(document, language)).unwrap();
            format!(
                "name: guard\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler: {{ {handler} }}\n\
                 on_error: deny\non_timeout: deny\n"
            )
        }
        None => block(document, "yaml").to_owned(),
    };
    fs::write(workspace.path().join(".openharness/hooks/guard.yaml"), hook).unwrap();
    workspace
}

fn call_of(command: &str) -> Event {
    let (session, run) = (SessionId::new("s").unwrap(), RunId::new("r").unwrap());
    let mut event = Event::new(EventKind::BeforeToolDispatch, session, run);
    event.attributes.tool_name = Some("Bash".into());
    let input = serde_json::json!({ "command": command }).to_string();
    event.targets.set(Target::ToolInput, Json::parse(&input).unwrap());
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guards_that_are_compared_stop_what_the_table_says() {
    if !["node", "jq"].iter().all(|program| is_there(program)) {
        return;
    }
    let document = fs::read_to_string("docs/rules.md").unwrap();
    let table = document.split_once("| a command | sh |").unwrap().1;
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 8, "{rows:?}");
    for (column, (handler, script)) in (1..).zip(GUARDS) {
        let workspace = workspace(&document, handler, script);
        let builder = Orchestrator::builder().trust(TrustPolicy::Off).workspace(workspace.path());
        let orchestrator = builder.start().await.unwrap();
        for row in &rows {
            let command = row[0].trim_matches('`');
            let outcome = orchestrator.dispatch(call_of(command)).await.unwrap();
            assert!(outcome.hooks.iter().all(|hook| hook.error.is_none()), "{command}: {outcome:?}");
            let is_blocked = outcome.verdict == Verdict::Block;
            assert_eq!(is_blocked, row[column] == "blocked", "column {column}, {command}: {outcome:?}");
        }
        assert!(orchestrator.shutdown(Duration::from_secs(10)).await, "column {column}");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test runs what the document shows")]
fn the_script_that_is_shown_becomes_the_rule_below_it() {
    if !is_there("jq") || !is_there("bash") {
        return;
    }
    let document = fs::read_to_string("docs/rules.md").unwrap();
    let section = document.split_once("## From a script to a rule").unwrap().1;
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".claude/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join("no-publish.sh"), block(section, "bash")).unwrap();
    let hook = serde_json::json!({ "type": "command", "command": "bash .claude/hooks/no-publish.sh" });
    let settings = serde_json::json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [hook] }] } });
    fs::write(workspace.path().join(".claude/settings.json"), settings.to_string()).unwrap();
    let convert =
        ["convert", "--set", "trust=off", "--from", "claude", "--to", "openharness", "--rules", "--write"];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_hookyard"))
        .args(convert)
        .current_dir(workspace.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = fs::read_to_string(workspace.path().join(".openharness/hooks/no-publish.yaml")).unwrap();
    let read = |text: &str| serde_yaml::from_str::<serde_json::Value>(text).unwrap();
    let (written, shown) = (read(&written), read(block(section, "yaml")));
    assert_eq!((&written["handler"], &written["on_error"]), (&shown["handler"], &shown["on_error"]));
}

/// Whether a program is on the PATH; says so if it is not.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if !found {
        println!("not run: {program} is missing");
    }
    found
}

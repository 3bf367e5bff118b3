//! Commands that are only a pattern and an answer, as rules: by `convert`, which compares them, and by `tune`.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

use super::*;

/// A script, and what becomes of it.
#[derive(Debug, Deserialize)]
struct ScriptCase {
    name: String,
    run: String,
    script: String,
    /// A part of what is said why it is no rule.
    why: Option<String>,
}

impl ScriptCase {
    fn text(&self) -> String {
        match self.script.as_str() {
            "TOO LONG" => format!("case x in {} esac", "y) exit 2 ;; ".repeat(4_000)),
            "MANY" => {
                let test = |n: usize| format!("[[ \"$cmd\" == *p{n}* ]] && x=1 || x=2\n");
                format!("cmd=$(jq -r .tool_input.command)\n{}", (0..40).map(test).collect::<String>())
            }
            text => text.to_owned(),
        }
    }
}

fn cases_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/guards")
}

fn script_cases(file: &str) -> Vec<ScriptCase> {
    serde_yaml::from_str(&std::fs::read_to_string(cases_dir().join(file)).unwrap()).unwrap()
}

/// A workspace whose settings for Claude Code run the scripts.
fn claude(cases: &[&ScriptCase], matcher: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let hooks = directory.path().join(".claude/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let mut entries = Vec::new();
    for case in cases {
        let command = match case.run.as_str() {
            "line" => case.text().trim_end().to_owned(),
            program => {
                let ending = match program {
                    "python3" => "py",
                    "node" => "js",
                    _ => "sh",
                };
                let file = format!("{}.{ending}", case.name);
                std::fs::write(hooks.join(&file), case.text()).unwrap();
                format!("{program} \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/{file}")
            }
        };
        entries.push(json!({ "type": "command", "command": command, "name": case.name }));
    }
    let entry = json!({ "matcher": matcher, "hooks": entries });
    let settings = json!({ "hooks": { "PreToolUse": [entry] } });
    std::fs::write(directory.path().join(".claude/settings.json"), settings.to_string()).unwrap();
    directory
}

const CONVERT: [&str; 5] = ["convert", "--from", "claude", "--to", "openharness"];

/// The search path with Python itself before whatever chooses its version, which takes longer than the scripts.
fn interpreters_first() -> std::ffi::OsString {
    let text = "import os, sys; print(os.path.dirname(sys.executable))";
    let found = Command::new("python3").args(["-c", text]).output().unwrap();
    let python = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim_end());
    let usual = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(python).chain(std::env::split_paths(&usual))).unwrap()
}

/// What became of each script: its converted file, and what is said of it.
fn converted(cases: &[&ScriptCase]) -> BTreeMap<String, (Value, Value)> {
    let directory = claude(cases, "Bash|Read|Write");
    let arguments = [&CONVERT[..], &["--rules", "--json"]].concat();
    let mut command = program(directory.path());
    command.args(without_trust(&arguments)).env("LC_ALL", "C.UTF-8").env("PATH", interpreters_first());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let said = |path: &str| {
        let rules = report["rules"].as_array().unwrap().iter();
        rules.filter(|rule| rule["file"] == path).map(Value::clone).next().unwrap_or(Value::Null)
    };
    let files = report["files"].as_array().unwrap().iter().map(|file| {
        let path = file["path"].as_str().unwrap();
        let text: Value = serde_yaml::from_str(file["text"].as_str().unwrap()).unwrap();
        (text["name"].as_str().unwrap().to_owned(), (text.clone(), said(path)))
    });
    files.collect()
}

/// The cases of some languages: several tests share the work, since each event is a process.
fn become_rules(language: &[&str], handlers: &str) {
    let cases = script_cases("rules.yaml");
    let cases: Vec<&ScriptCase> = cases.iter().filter(|case| language.contains(&case.run.as_str())).collect();
    let expected = cases_dir().join(handlers);
    let mut known: BTreeMap<String, Value> =
        serde_json::from_str(&std::fs::read_to_string(&expected).unwrap_or_else(|_| "{}".to_owned()))
            .unwrap();
    let converted = converted(&cases);
    for case in &cases {
        let (file, said) = &converted[&case.name];
        assert_eq!(said.get("why"), None, "{}: {said}", case.name);
        assert_eq!(file["handler"]["type"], "rule", "{}: {file} {said}", case.name);
        assert!(said["events"].as_u64().unwrap() >= 20, "{}: {said}", case.name);
        if std::env::var_os("UPDATE_CASES").is_some() {
            known.insert(case.name.clone(), file["handler"].clone());
        }
        assert_eq!(Some(&file["handler"]), known.get(&case.name), "{}", case.name);
    }
    if std::env::var_os("UPDATE_CASES").is_some() {
        std::fs::write(expected, serde_json::to_string_pretty(&known).unwrap() + "\n").unwrap();
    }
}

#[test]
fn scripts_of_bash_become_rules() {
    become_rules(&["bash"], "handlers-of-bash.json");
}

#[test]
fn scripts_of_sh_and_command_lines_become_rules() {
    become_rules(&["sh", "line"], "handlers-of-sh.json");
}

#[test]
fn scripts_of_python_become_rules() {
    become_rules(&["python3"], "handlers-of-python.json");
}

#[test]
fn scripts_of_node_become_rules() {
    become_rules(&["node"], "handlers-of-node.json");
}

#[test]
fn what_is_more_than_a_pattern_is_left_alone() {
    let cases = script_cases("none.yaml");
    let cases: Vec<&ScriptCase> = cases.iter().collect();
    let converted = converted(&cases);
    for case in &cases {
        let (file, said) = &converted[&case.name];
        assert_eq!(file["handler"]["type"], "command", "{}: {file}", case.name);
        let why = said["why"].as_str().unwrap_or_default();
        assert!(why.contains(case.why.as_deref().unwrap()), "{}: {why}", case.name);
    }
}

const TUNE: [&str; 4] = ["tune", "--rounds", "5", "--events"];

/// A guard as a file of its own, and recorded events that it stops or not.
fn guarded(script: &str) -> TempDir {
    let more = "matcher: ^Bash$ # the shell\npriority: 7";
    let directory = workspace(&[("guard", &hook("guard", "before_tool_dispatch", "bash guard.sh", more))]);
    std::fs::write(directory.path().join("guard.sh"), script).unwrap();
    let events = ["ls", "git push --force", "make"].map(tool).join("\n");
    std::fs::write(directory.path().join("session.jsonl"), events).unwrap();
    std::fs::write(directory.path().join("hookyard.yaml"), "# ours\n").unwrap();
    directory
}

const PUSH: &str = "cmd=$(jq -r '.tool_input.command // empty')\nif [[ $cmd == *'git push'*'--force'* ]]; then\n  echo 'no force' >&2\n  exit 2\nfi\n";

fn fired(directory: &Path, command: &str) -> Value {
    let fired = run_with(directory, &["fire", "-e", "-"], &tool(command)).json();
    json!([fired["verdict"], fired["reason"], fired["hooks"].as_array().map_or(0, Vec::len)])
}

#[test]
fn tune_shows_a_rule_and_writes_it_only_with_both_flags() {
    let directory = guarded(PUSH);
    let file = directory.path().join(".openharness/hooks/guard.yaml");
    let before = std::fs::read_to_string(&file).unwrap();
    let was = fired(directory.path(), "git push --force");
    assert_eq!(was, json!(["block", "no force", 1]));
    let done = run(directory.path(), &[&TUNE[..], &["session.jsonl"]].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    for part in
        ["3 of them recorded", "+  type: rule", "-  type: command", "`--write --rules`", "shell.commands"]
    {
        assert!(done.out.contains(part), "{part}: {}", done.out);
    }
    let write = [&TUNE[..], &["session.jsonl", "--config", "hookyard.yaml", "--write"]].concat();
    assert_eq!(run(directory.path(), &write).code, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    let done = run(directory.path(), &[&write[..], &["--rules", "--json"]].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    let rule = &done.json()["rules"][0];
    assert_eq!((&rule["written"], &rule["recorded"]), (&json!(true), &json!(3)), "{rule}");
    assert!(rule["made_up"].as_u64().unwrap() >= 20, "{rule}");
    let after = std::fs::read_to_string(&file).unwrap();
    let (head, tail) = (
        "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: rule\n",
        "matcher: ^Bash$ # the shell\npriority: 7\n",
    );
    assert!(
        after.starts_with(head) && after.contains(tail) && after.ends_with("on_error: deny\n"),
        "{after}"
    );
    assert_eq!(fired(directory.path(), "git push --force"), was);
    assert_eq!(fired(directory.path(), "ls"), json!(["proceed", null, 1]));
    assert_eq!(run(directory.path(), &["check"]).code, 0);
    let usage = run(directory.path(), &["tune", "--rules"]);
    assert_eq!(usage.code, 2, "{}", usage.err);
}

#[test]
fn a_recorded_event_with_another_answer_drops_the_rule() {
    // A text that is a list is one for jq, and none for a rule.
    let directory = guarded(PUSH);
    let list = json!({ "command": ["git push", "--force"] });
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash", "tool_input": list });
    std::fs::write(directory.path().join("session.jsonl"), event.to_string()).unwrap();
    let done = run(directory.path(), &[&TUNE[..], &["session.jsonl", "--json", "-v"]].concat());
    let report = done.json();
    assert_eq!(report["rules"], json!([]), "{report}");
    let why = &report["no_rules"][0];
    assert!(why["differs"] == json!(true) && why["why"].as_str().unwrap().contains("(line 1)"), "{report}");
    let quiet = run(directory.path(), &[&TUNE[..], &["session.jsonl"]].concat());
    assert!(!quiet.out.contains("no rule") && !quiet.out.contains("type: rule"), "{}", quiet.out);
}

#[test]
fn a_rule_in_place_of_a_hook_of_an_agent_is_a_file_and_a_switch() {
    let case = ScriptCase { name: "push".into(), run: "bash".into(), script: PUSH.into(), why: None };
    let directory = claude(&[&case], "Bash");
    let settings = directory.path().join(".claude/settings.json");
    let before = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(directory.path().join("hookyard.yaml"), "# ours\n").unwrap();
    let write = ["tune", "--rounds", "5", "--config", "hookyard.yaml", "--write", "--rules", "--json"];
    let done = run(directory.path(), &write);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(done.json()["rules"][0]["written"], json!(true), "{}", done.out);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), before);
    let text = std::fs::read_to_string(directory.path().join(".openharness/hooks/push.yaml")).unwrap();
    assert!(text.contains("type: rule") && text.contains("matcher: ^(Bash)$"), "{text}");
    let text = std::fs::read_to_string(directory.path().join("hookyard.yaml")).unwrap();
    assert!(text.starts_with("# ours\n") && text.contains("replaced_by: push"), "{text}");
    assert!(directory.path().join("hookyard.yaml.bak").exists());
    let list = run(directory.path(), &["list", "--json", "--config", "hookyard.yaml"]).json();
    let on = |hook: &&Value| hook["enabled"] == json!(true);
    let found: Vec<&Value> = list.as_array().unwrap().iter().filter(on).collect();
    assert!(found.len() == 1 && found[0]["name"] == "push", "{list}");

    // Another repository has a guard with the same command, which the rule does not replace.
    let other = claude(&[&case], "Bash");
    let settings = directory.path().join("hookyard.yaml");
    let on_there = |at: &TempDir| {
        let list = run(at.path(), &["list", "--json", "--config", settings.to_str().unwrap()]).json();
        list.as_array().unwrap().iter().filter(on).map(|hook| hook["name"].to_string()).collect::<Vec<_>>()
    };
    let guards = on_there(&other);
    assert!(guards.len() == 1 && guards[0].contains("claude"), "{guards:?}");
    // Nor where it does not load, or is gone.
    let rule = directory.path().join(".openharness/hooks/push.yaml");
    let broken = "name: push\nevents: [before_tool_dispatch]\nhandler: { type: rule, deny: nonsense(1) }\n";
    std::fs::write(&rule, broken).unwrap();
    assert_eq!(on_there(&directory), guards);
    std::fs::remove_file(&rule).unwrap();
    assert_eq!(on_there(&directory), guards);
}

#[test]
fn a_rule_that_nobody_could_agree_to_is_taken_back() {
    let directory = guarded(PUSH);
    let case = ScriptCase { name: "push".into(), run: "bash".into(), script: PUSH.into(), why: None };
    for directory in [directory, claude(&[&case], "Bash")] {
        let file = directory.path().join(".openharness/hooks/guard.yaml");
        let before = std::fs::read_to_string(&file).ok();
        let state = tempfile::tempdir().unwrap();
        let state = format!("state_directory={}", state.path().display());
        let arguments =
            ["tune", "--rounds", "5", "--trust-workspace", "--config", "hookyard.yaml", "--write", "--rules"];
        std::fs::write(directory.path().join("hookyard.yaml"), "# ours\n").unwrap();
        let output = program(directory.path()).args(arguments).args(["--set", &state]).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && err.contains("a person has to agree"), "{err}");
        assert_eq!(std::fs::read_to_string(&file).ok(), before);
        assert!(!directory.path().join(".openharness/hooks/push.yaml").exists());
        assert_eq!(std::fs::read_to_string(directory.path().join("hookyard.yaml")).unwrap(), "# ours\n");
    }
}

#[test]
fn convert_says_that_there_are_rules_and_runs_nothing_without_a_flag() {
    let script = format!("touch ran\n{PUSH}");
    let runs = ScriptCase { name: "runs".into(), run: "bash".into(), script, why: None };
    let case = ScriptCase { name: "push".into(), run: "bash".into(), script: PUSH.into(), why: None };
    let directory = claude(&[&case, &runs], "Bash");
    let done = run(directory.path(), &CONVERT);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(!done.out.contains("type: rule") && done.out.contains("type: command"), "{}", done.out);
    assert!(done.err.contains("1 hook may be a rule: `--rules`"), "{}", done.err);
    assert!(!directory.path().join("ran").exists());
    let done = run(directory.path(), &[&CONVERT[..], &["--rules", "--write"]].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    for part in ["push.yaml: a rule; ", "runs.yaml: no rule: the command `touch`"] {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    assert!(!directory.path().join("ran").exists());
    let text = std::fs::read_to_string(directory.path().join(".openharness/hooks/push.yaml")).unwrap();
    assert!(text.contains("type: rule") && text.contains("on_error: deny"), "{text}");
    // Hooks that nobody has agreed to do not run.
    let state = tempfile::tempdir().unwrap();
    let state = format!("state_directory={}", state.path().display());
    let output = program(directory.path()).args(CONVERT).args(["--rules", "--set", &state]).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("push.yaml: no rule: ") && !err.contains("a rule; "), "{err}");
}

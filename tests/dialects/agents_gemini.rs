//! The command line with the settings files of Gemini CLI.

use std::{path::Path, process::Stdio};

use assert_cmd::cargo::cargo_bin_cmd;
use hookyard::{
    dialect::named,
    model::{DialectName, EventKind, Outcome, Verdict},
};
use serde_json::{Value, json};

use crate::support::trust::without_trust;

fn run(directory: &Path, arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut command = cargo_bin_cmd!("hookyard");
    command
        .current_dir(directory)
        .env_remove("HOOKYARD_LOG")
        .args(without_trust(arguments))
        .write_stdin(input);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Whether a program the example hooks need is there. `scripts/test` installs it where it may.
fn is_there(program: &str) -> bool {
    #[allow(clippy::disallowed_methods, reason = "a test looks at its machine")]
    let found = std::process::Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        println!("not run: {program} is missing");
    }
    found
}

fn event(name: &str) -> Value {
    json!({
        "session_id": "s", "hook_event_name": name, "tool_name": "run_shell_command", "tool_input": {},
        "prompt": "p", "llm_request": { "model": "m" }, "llm_response": {},
    })
}

#[test]
fn the_directory_of_the_project_is_one_word_of_a_command() {
    let above = tempfile::tempdir().unwrap();
    let project = above.path().join("my $HOME shop");
    std::fs::create_dir_all(project.join(".gemini")).unwrap();
    std::fs::write(project.join("guard.sh"), "echo \"held by $1\" >&2; exit 2\n").unwrap();
    let hooks = ["GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"].map(
        |name| json!({ "type": "command", "name": name, "command": format!("sh ${name}/guard.sh {name}") }),
    );
    let settings = json!({ "hooks": { "BeforeTool": [{ "hooks": hooks }] } }).to_string();
    std::fs::write(project.join(".gemini/settings.json"), settings).unwrap();
    let fire = ["fire", "--event", "-", "--dialect", "gemini", "--native"];
    let (code, out, err) = run(&project, &fire, &event("BeforeTool").to_string());
    let answer: Value = serde_json::from_str(&out).unwrap();
    let reason = "held by GEMINI_PROJECT_DIR\nheld by CLAUDE_PROJECT_DIR";
    assert_eq!((code, &answer["reason"], err.as_str()), (0, &json!(reason), ""));
}

#[test]
fn a_settings_file_marks_a_workspace_and_answers_are_in_the_hosts_dialect() {
    let project = tempfile::tempdir().unwrap();
    let deep = project.path().join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::create_dir(project.path().join(".gemini")).unwrap();
    let hook = json!({ "type": "command", "command": "echo no >&2; exit 2" });
    let settings = json!({ "hooks": { "BeforeTool": [{ "hooks": [hook] }] } }).to_string();
    std::fs::write(project.path().join(".gemini/settings.json"), settings).unwrap();
    let fire = ["fire", "--event", "-", "--dialect", "gemini", "--native"];
    let (code, out, err) = run(&deep, &fire, &event("BeforeTool").to_string());
    assert_eq!((code, out.trim(), err.as_str()), (0, r#"{"decision":"deny","reason":"no"}"#, ""));
    let (code, out, _) = run(&deep, &["list", "--json"], "");
    let rows: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &rows[0]["dialect"], &rows[0]["handler"]), (0, &json!("gemini"), &json!("command")));
}

#[test]
fn the_example_workspace_guards_rewrites_and_tells() {
    if ![is_there("node"), is_there("python3")].into_iter().all(|found| found) {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = "config/workspaces/gemini";
    assert_eq!(run(root, &["check", "-w", workspace], "").0, 0);
    let fire = ["fire", "--event", "-", "--dialect", "gemini", "--native", "-w", workspace];
    let answer = |event: &Value| -> Value {
        let (code, out, err) = run(root, &fire, &event.to_string());
        assert_eq!((code, err.as_str()), (0, ""));
        serde_json::from_str(&out).unwrap()
    };
    let call = |command: &str| {
        let mut call = event("BeforeTool");
        call["tool_input"] = json!({ "command": command });
        answer(&call)
    };
    let denied = json!({ "decision": "deny", "reason": "rm -rf / is not allowed here" });
    assert_eq!(call("rm -rf /"), denied);
    assert_eq!(call("npm install")["hookSpecificOutput"]["tool_input"]["command"], "npm ci");
    assert_eq!(call("ls"), json!({}));
    let output = answer(&event("BeforeAgent"));
    assert!(output["hookSpecificOutput"]["additionalContext"].as_str().unwrap().contains("TASKS.md"));
}

/// Whatever hooks of other dialects decide, the host is told something no milder.
#[test]
fn no_answer_is_milder_than_its_outcome() {
    let names = [
        "BeforeAgent",
        "AfterAgent",
        "BeforeModel",
        "AfterModel",
        "BeforeToolSelection",
        "BeforeTool",
        "AfterTool",
    ];
    let gemini = named(DialectName::Gemini);
    for name in names {
        let event = gemini.read_event(event(name).to_string().as_bytes()).unwrap();
        for verdict in Verdict::ALL {
            let mut outcome = Outcome::proceed(hookyard::run::next_decision_id(), event.kind, 1);
            outcome.verdict = verdict;
            outcome.reason = Some("r".into());
            let printed = gemini.write_response(&event, &outcome).stdout;
            let selects = event.kind == EventKind::BeforeToolSelection;
            if selects && verdict < Verdict::Ask {
                assert_eq!(printed, "", "the host would make a configuration of any answer");
                continue;
            }
            let answer: Value = serde_json::from_str(&printed).unwrap();
            let no_tools = answer["hookSpecificOutput"]["toolConfig"]["mode"] == "NONE";
            let expected = match verdict {
                Verdict::Proceed => answer == json!({}),
                Verdict::Allow => answer == json!({ "decision": "allow", "reason": "r" }),
                Verdict::Ask if name == "BeforeTool" => answer == json!({ "decision": "ask", "reason": "r" }),
                Verdict::Ask | Verdict::Block => answer["decision"] == "deny",
                Verdict::Halt => answer["continue"] == false && answer["stopReason"] == "r",
            };
            assert!(expected, "{name} {verdict}: {answer}");
            assert_eq!(no_tools, selects && verdict >= Verdict::Ask, "{name} {verdict}: {answer}");
        }
    }
}

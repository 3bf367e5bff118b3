//! `check`, and the settings from the file, variables and flags.

use super::*;

#[test]
fn a_workspace_in_order_passes_the_check() {
    let shop = shop();
    let done = run(shop.path(), &["check"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!("check_in_order", done.out);
    let report = run(shop.path(), &["check", "--json"]).json();
    assert_eq!(report["hooks"], 3);
    assert_eq!(report["files"].as_array().unwrap().len(), 3);
    assert_eq!(report["diagnostics"], json!([]));
}

#[test]
fn every_mistake_is_shown_with_its_line() {
    let shop = broken_shop();
    let done = run(shop.path(), &["check"]);
    assert_eq!((done.code, done.err.as_str()), (1, ""));
    insta::assert_snapshot!("check_with_mistakes", done.out);
    let done = run(shop.path(), &["check", "--json"]);
    let report = done.json();
    assert_eq!((done.code, &report["hooks"]), (1, &json!(3)));
    let first = &report["diagnostics"][0];
    assert_eq!(
        (&first["severity"], &first["line"], &first["column"]),
        (&json!("error"), &json!(2), &json!(10))
    );
    for key in ["code", "message", "file", "help"] {
        assert!(first[key].is_string(), "{key} in {first}");
    }
}

#[test]
fn a_hook_of_an_agents_settings_that_is_not_loaded_fails_the_check() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join(".claude")).unwrap();
    let cases = [
        (json!({ "type": "command", "comand": "./guard.sh" }), 1, "1 error, 1 warning\n"),
        (
            json!({ "type": "http", "url": "http://127.0.0.1:8787/v1/events/claude" }),
            0,
            "0 errors, 0 warnings",
        ),
        (json!({ "type": "command", "command": "true", "timeot": 5 }), 0, "0 errors, 1 warning\n"),
    ];
    for (hook, code, summary) in cases {
        let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } });
        std::fs::write(directory.path().join(".claude/settings.json"), settings.to_string()).unwrap();
        let done = run(directory.path(), &["check"]);
        assert_eq!(done.code, code, "{}", done.out);
        assert!(done.out.contains(summary), "{}", done.out);
        let fired = run_with(directory.path(), &["fire", "--event", "-"], &tool("ls"));
        assert_eq!(fired.err.contains("1 error in hook files"), code == 1, "{}", fired.err);
    }
}

#[test]
fn a_strict_check_fails_on_warnings() {
    let shop = workspace(&[("odd", &hook("odd", "run_failed", "nosuchprogram", ""))]);
    for (arguments, code) in [(&["check"][..], 0), (&["check", "--strict"], 1)] {
        let done = run(shop.path(), arguments);
        assert_eq!(done.code, code, "{}", done.out);
        assert!(
            done.out.contains("warning[program]") && done.out.contains("0 errors, 1 warning"),
            "{}",
            done.out
        );
    }
    let shop = workspace(&[("odd", &hook("odd", "run_failed", "true", ""))]);
    assert_eq!(run(shop.path(), &["check", "--strict"]).code, 0);
}

#[test]
fn a_missing_agent_file_is_listed_as_missing() {
    let agent =
        "name: a\nevents: [before_tool_dispatch]\nhandler: { type: agent, agent: revewer, task: look }\n";
    let shop = workspace(&[("a", agent)]);
    let done = run(shop.path(), &["check"]);
    let file = ".openharness/agents/revewer.md";
    assert!(done.out.contains(&format!("missing {file}")), "{}", done.out);
    assert!(!done.out.contains(&format!("read {file}")), "{}", done.out);
    let report = run(shop.path(), &["check", "--json"]).json();
    assert!(report["missing_files"][0].as_str().unwrap().ends_with(file), "{report}");
}

#[test]
fn control_characters_of_files_do_not_reach_the_terminal() {
    let shop =
        workspace(&[("odd\x1b[31m", "name: odd\nevents: [run_failed]\n\"k\\e[2J\": 1\nhandler: {}\n")]);
    for arguments in [&["check"][..], &["check", "--color", "always"]] {
        let done = run(shop.path(), arguments);
        assert_eq!(done.code, 1);
        assert!(!done.out.contains("\x1b[2J") && !done.out.contains("\x1b[31m["), "{:?}", done.out);
        assert!(done.out.contains("odd\\x1b[31m.yaml"), "{}", done.out);
    }
}

#[test]
fn settings_with_mistakes_are_shown_and_refused() {
    let shop = shop();
    std::fs::write(shop.path().join("bad.yaml"), "max_timeout: 60\n").unwrap();
    std::fs::write(shop.path().join("good.yaml"), "max_timeout: 60s\n").unwrap();
    let done = run(shop.path(), &["check", "--config", "bad.yaml"]);
    assert_eq!(done.code, 1);
    assert!(done.out.contains("bad.yaml:1:14") && done.out.contains("1 error"), "{}", done.out);
    let done = run(shop.path(), &["list", "--config", "bad.yaml"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("bad.yaml:1:14"), "{}", done.err);
    assert_eq!(run(shop.path(), &["list", "--config", "good.yaml"]).code, 0);
    // Where there is no workspace, the settings are checked all the same.
    let elsewhere = tempfile::tempdir().unwrap();
    for (name, code, mistakes, said) in
        [("bad", 1, 1, "settings: 1 error, 0 warnings"), ("good", 0, 0, "settings: 0 errors")]
    {
        let file = shop.path().join(format!("{name}.yaml"));
        let done = run(elsewhere.path(), &["check", "--config", file.to_str().unwrap()]);
        assert_eq!(done.code, code);
        assert!(done.out.contains(said) && done.err.contains("only the settings were checked"), "{done:?}");
        let done = run(elsewhere.path(), &["check", "--json", "--config", file.to_str().unwrap()]);
        assert_eq!((done.code, done.json()["diagnostics"].as_array().unwrap().len()), (code, mistakes));
    }
    let done = run(shop.path(), &["list", "--config", "none.yaml"]);
    let expected = "error: the settings file `none.yaml` cannot be read: no such file or directory\n";
    assert_eq!((done.code, done.err.as_str()), (1, expected));
}

#[test]
fn flags_override_the_file_and_variables_are_for_the_daemon() {
    let shop = workspace(&[("audit", &hook("audit", "run_failed", "true", ""))]);
    std::fs::write(shop.path().join("small.yaml"), "limits: { payload: 64B }\n").unwrap();
    let explain = |variable: Option<&str>, more: &[&str]| {
        let mut program = program(shop.path());
        if let Some(value) = variable {
            program.env("HOOKYARD_LIMITS_PAYLOAD", value);
        }
        let arguments = ["explain", "--event", "-", "--config", "small.yaml"];
        let output = program
            .args(without_trust(&arguments))
            .args(more)
            .write_stdin(tool(&"x".repeat(100)))
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert!(explain(None, &[]).1.contains(" 64 bytes"));
    assert!(explain(Some("1KiB"), &[]).1.contains(" 64 bytes"), "an agent takes variables from a project");
    assert!(explain(Some("many"), &[]).1.contains(" 64 bytes"));
    assert!(explain(None, &["--set", "limits.payload=16B"]).1.contains(" 16 bytes"));
    let twice = ["--set", "limits.payload=16B", "--set", "limits.payload = 1KiB"];
    assert_eq!(explain(None, &twice), (0, String::new()));
}

#[test]
fn an_agent_is_blocked_where_settings_keep_its_hooks_from_being_asked() {
    let shop = workspace(&[("audit", &hook("audit", "run_failed", "true", ""))]);
    std::fs::write(shop.path().join("bad.yaml"), "limits: { payload: many }\n").unwrap();
    let fire = |config: &str| {
        let arguments = ["fire", "--native", "--dialect", "claude", "--event", "-", "--config", config];
        run_with(shop.path(), &arguments, "{}")
    };
    for config in ["bad.yaml", "none.yaml"] {
        let done = fire(config);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{config}: {done:?}");
        assert!(done.err.contains(config), "{done:?}");
    }
}

#[test]
fn commands_take_a_workspace_as_the_settings_declare_it() {
    let shop = workspace(&[("audit", &hook("audit", "run_failed", "true", ""))]);
    let root = shop.path().display();
    let settings = format!(
        "workspaces: {{ front: {{ root: '{root}' }} }}\nrequired: [{{ hook: guard, workspaces: [front] }}]\n"
    );
    std::fs::write(shop.path().join("h.yaml"), settings).unwrap();
    let checked = run(shop.path(), &["check", "--config", "h.yaml"]);
    assert!(checked.code == 1 && checked.out.contains("`guard`"), "{checked:?}");
    let fired = run_with(shop.path(), &["fire", "--json", "--event", "-", "--config", "h.yaml"], &tool("ls"));
    assert_eq!(fired.json()["verdict"], "block", "{fired:?}");
}

#[test]
fn mistakes_in_variables_and_flags_are_shown_and_refused() {
    let shop = shop();
    let with = |variable: (&str, &str), arguments: &[&str]| {
        let output =
            program(shop.path()).env(variable.0, variable.1).args(without_trust(arguments)).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    };
    let bad = ("HOOKYARD_LISTEN_TCP", "0.0.0.0:80");
    let done = with(bad, &["check", "--json"]);
    let told = &done.json()["diagnostics"][0];
    assert_eq!(
        (done.code, &told["code"], &told["file"]),
        (1, &json!("listen"), &json!("HOOKYARD_LISTEN_TCP"))
    );
    let done = with(bad, &["check"]);
    assert_eq!(done.code, 1);
    assert!(done.out.contains("HOOKYARD_LISTEN_TCP") && done.out.contains("`token_file`"), "{}", done.out);
    assert_eq!(with(bad, &["check", "--set", "listen.token_file=/token"]).code, 0);
    assert_eq!(with(bad, &["list"]).code, 0, "only the daemon listens");

    let done = with(("HOOKYARD_LIMITS_INFLIGHT", "1"), &["check"]);
    assert_eq!(done.code, 0);
    assert!(
        done.out.contains("1 warning") && done.out.contains("`HOOKYARD_LIMITS_IN_FLIGHT`"),
        "{}",
        done.out
    );

    let done = run(shop.path(), &["check", "--set", "limits.in_flite=1"]);
    assert_eq!(done.code, 1);
    assert!(done.out.contains("did you mean `limits.in_flight`?"), "{}", done.out);
    let done = run(shop.path(), &["check", "--set", "limits.in_flight"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("write a key, `=` and its value"), "{}", done.err);
}

#[test]
fn check_reports_mistakes_in_the_settings_of_a_daemon() {
    let shop = shop();
    let bad = "listen: { tcp: here, token_file: token }\nworkspaces: { shop: { root: shop } }\n\
               workspace_roots: [srv]\nwatch: 1\nlimits: { streams: 0, idle_timeout: 5 }\n";
    std::fs::write(shop.path().join("bad.yaml"), bad).unwrap();
    let done = run(shop.path(), &["check", "--config", "bad.yaml", "--json"]);
    let told: Vec<_> = done.json()["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|told| (told["line"].as_u64().unwrap(), told["code"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        (1, "address"),
        (1, "path"),
        (2, "path"),
        (3, "path"),
        (4, "wrong-type"),
        (5, "count"),
        (5, "quantity"),
        // With errors in the settings, trust is enforced.
        (0, "trust"),
    ];
    assert_eq!(told, expected.map(|(line, code)| (line, code.to_owned())));
    assert_eq!(done.code, 1);
}

#[test]
fn a_file_name_that_is_no_text_keeps_no_report_from_being_written() {
    use std::os::unix::ffi::OsStrExt;
    let shop = broken_shop();
    let files = shop.path().join(".openharness/hooks");
    let odd = |bytes: &[u8]| files.join(std::ffi::OsStr::from_bytes(bytes));
    std::fs::write(odd(b"wrong\xff.yaml"), "name: wrong\ntypo: 1\n").unwrap();
    std::fs::write(odd(b"right\xff.yaml"), hook("right", "run_failed", "true", "")).unwrap();
    let report = run(shop.path(), &["check", "--json"]).json();
    let reported = |name: &str| {
        let diagnostics = report["diagnostics"].as_array().unwrap().iter();
        diagnostics.filter(|one| one["file"].as_str().unwrap().ends_with(name)).count()
    };
    assert!(reported("wrong\u{fffd}.yaml") > 0, "{report}");
    assert!(report["files"].to_string().contains("right\u{fffd}.yaml"), "{report}");
    let hooks = run(shop.path(), &["list", "--json"]).json();
    assert!(hooks.to_string().contains("right\u{fffd}.yaml"), "{hooks}");
}

#[test]
fn what_is_no_file_is_an_error_at_once_wherever_a_command_reads_one() {
    let shop = shop();
    let here = shop.path();
    rustix::fs::mkfifoat(rustix::fs::CWD, here.join("pipe"), 0o600.into()).unwrap();
    std::fs::create_dir(here.join("directory")).unwrap();
    for file in ["pipe", "directory", "/dev/zero", "/dev/tty", "/dev/full"] {
        let as_settings = [
            &["check", "--config", file][..],
            &["serve", "--check", "--config", file],
            &["serve", "--config", file],
            &["trust", "--config", file],
        ];
        let as_input = [
            &["fire", "--event", file][..],
            &["replay", file],
            &["audit", file],
            &["explain", "--event", file],
        ];
        for arguments in as_settings.into_iter().chain(as_input) {
            // An empty file has no events to replay.
            if file == "pipe" && arguments[0] == "replay" {
                run(here, arguments);
                continue;
            }
            let done = run(here, arguments);
            assert!(done.code == 1 || done.code == 2, "{arguments:?}: {done:?}");
            assert!(done.err.to_lowercase().contains("error"), "{arguments:?}: {done:?}");
        }
    }
}

#[test]
fn files_that_look_like_hook_files_and_are_not_loaded_are_named() {
    let shop = workspace(&[("audit", &hook("audit", "run_failed", "true", ""))]);
    let hooks = shop.path().join(".openharness/hooks");
    for folder in ["team", "resources"] {
        std::fs::create_dir(hooks.join(folder)).unwrap();
    }
    assert!(run(shop.path(), &["check"]).out.contains("0 warnings"));
    for ignored in ["Guard.YAML", "guard.Yml", "team/guard.yaml"] {
        std::fs::write(hooks.join(ignored), hook("guard", "run_failed", "true", "")).unwrap();
        let done = run(shop.path(), &["check"]);
        assert!(done.code == 0 && done.out.contains("warning[ignored-file]"), "{done:?}");
        assert!(done.out.contains(ignored) && done.out.contains("0 errors, 1 warning"), "{done:?}");
        assert_eq!(run(shop.path(), &["check", "--strict"]).code, 1);
        std::fs::remove_file(hooks.join(ignored)).unwrap();
    }
    // Those of editors and of what hooks run are no mistake.
    for other in [".#guard.yaml", "guard.yaml~", "guard.yaml.bak", "team/prompt.md", "resources/guard.yaml"] {
        std::fs::write(hooks.join(other), hook("guard", "run_failed", "true", "")).unwrap();
    }
    std::fs::write(hooks.join("team/policy.yaml"), "allow: [ls]\n").unwrap();
    let done = run(shop.path(), &["check"]);
    assert!(done.out.contains("0 errors, 0 warnings"), "{done:?}");
}

#[test]
fn hooks_that_look_at_files_of_agents_are_warned_of_on_a_node() {
    let shop = workspace(&[
        (
            "format",
            &hook("format", "after_tool_dispatch", "jq -r .tool_input.file_path | xargs prettier", ""),
        ),
        ("judge", &hook("judge", "after_tool_dispatch", "jq .tool_input.command", "")),
    ]);
    assert!(!run(shop.path(), &["check"]).out.contains("agent-files"));
    let done = run(shop.path(), &["check", "--cluster"]);
    let warnings: Vec<_> = done.out.lines().filter(|line| line.contains("warning[agent-files]")).collect();
    assert_eq!((done.code, warnings.len()), (0, 1), "{}", done.out);
    assert!(done.out.contains("the hook `format` looks at the file that a tool works on"), "{}", done.out);
    let settings = shop.path().join("node.yaml");
    std::fs::write(&settings, "cluster: { enabled: true }\n").unwrap();
    let report = run(shop.path(), &["check", "--json", "--config", settings.to_str().unwrap()]).json();
    assert_eq!(report["diagnostics"][0]["code"], "agent-files", "{report}");
}

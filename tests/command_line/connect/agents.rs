//! What `connect` writes for one agent alone: Gemini CLI, Codex, Copilot CLI, Cursor.

use super::*;

const BARE_HOOKS: &str = "{\n  // mine\n  \"theme\": \"dark\",\n  \"hooks\": {\n    \"PreToolUse\": [\n      { \"type\": \"command\", \"bash\": \"guard.sh\" }, // the guard\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"second.sh\" }] }\n    ],\n    \"agentStop\": [{ \"bash\": \"stop.sh\" }]\n  }\n}\n";

#[test]
fn gemini_keeps_its_comments() {
    let home = Home::new();
    let text = "// my settings\n{\n  \"theme\": \"dark\", // not light\n  /* hooks */ \"hooks\": {}\n}\n";
    let file = home.write(".gemini/settings.json", text);
    let done = home.run(&["connect", "gemini"]);
    let after = fs::read_to_string(&file).unwrap();
    for kept in [
        "// my settings",
        "// not light",
        "/* hooks */",
        "\"BeforeTool\"",
        "\"name\": \"hookyard\"",
        "600000",
    ] {
        assert!(after.contains(kept), "{kept}: {after}");
    }
    assert!(!after.contains("AfterModel") && done.out.contains("--event AfterModel"), "{done:?}");
    home.run(&["connect", "gemini", "--event", "AfterModel"]);
    assert!(fs::read_to_string(&file).unwrap().contains("AfterModel"));
    home.run(&["connect", "gemini"]);
    assert!(fs::read_to_string(&file).unwrap().contains("AfterModel"), "what was asked for once stays");
    home.run(&["disconnect", "gemini"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn codex_is_connected_by_its_hooks_file_and_has_to_be_told_to_trust_it() {
    for before in [None, Some("{\n  \"hooks\": {\"Stop\": []}\n}\n")] {
        let home = Home::new();
        let file = home.path(".codex/hooks.json");
        if let Some(text) = before {
            home.write(".codex/hooks.json", text);
        }
        let done = home.run(&["connect", "codex"]);
        assert!(done.out.contains("14 events") && done.out.contains("`/hooks`"), "{done:?}");
        let settings = json_of(&file);
        for event in ["PreToolUse", "PermissionRequest", "SessionEnd", "Interrupt", "PostModelRequest"] {
            let entry = &settings["hooks"][event][0]["hooks"][0];
            assert!(entry["command"].as_str().unwrap().contains(" relay --dialect codex "), "{settings}");
            assert_eq!((&entry["type"], &entry["timeout"]), (&json!("command"), &json!(600)));
        }
        home.run(&["disconnect", "codex"]);
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), before);
    }
    let home = Home::new();
    fs::create_dir(home.path("shop")).unwrap();
    home.run(&["connect", "codex", "--project", "shop"]);
    assert!(json_of(&home.path("shop/.codex/hooks.json"))["hooks"]["PreToolUse"].is_array());
}

/// Settings of an agent whose hooks may stand in an event's list themselves.
#[test]
fn copilot_gets_an_entry_for_each_event_that_names_itself() {
    let home = Home::new();
    let file = home.write(".copilot/settings.json", BARE_HOOKS);
    let shown = home.run(&["connect", "copilot", "--dry-run"]);
    assert!(shown.out.contains("relay --dialect copilot"), "{shown:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), BARE_HOOKS);
    let done = home.run(&["connect", "copilot"]);
    assert!(done.out.contains("12 events") && done.out.contains("3 hooks"), "{done:?}");
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(after.matches(" relay --dialect copilot ").count(), 12, "{after}");
    assert_eq!(after.matches("\"timeout\": 600").count(), 12, "{after}");
    // What holds nothing back does not block, and what comes unnamed or twice has no entry.
    assert_eq!(after.matches("--if-down block").count(), 3, "{after}");
    assert!(!after.contains("SubagentStart") && !after.contains("permissionRequest"), "{after}");
    for kept in ["// mine", "// the guard", "guard.sh", "second.sh", "stop.sh"] {
        assert!(after.contains(kept), "{kept}: {after}");
    }
    assert!(home.run(&["connect", "copilot"]).out.contains("as before"));
    let refused = home.run(&["connect", "copilot", "--event", "SubagentStart"]);
    assert!(refused.code == Some(1) && refused.err.contains("has no event `SubagentStart`"), "{refused:?}");
    home.run(&["disconnect", "copilot"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), BARE_HOOKS);
}

#[test]
fn cursor_gets_entries_that_fail_closed_and_the_version_that_its_file_needs() {
    let home = Home::new();
    let file = home.path(".cursor/hooks.json");
    let done = home.run(&["connect", "cursor"]);
    assert!(done.out.contains("21 events"), "{done:?}");
    let settings = json_of(&file);
    assert_eq!(settings["version"], 1);
    let entry = |event: &str| settings["hooks"][event][0].clone();
    let command = entry("preToolUse")["command"].as_str().unwrap().to_owned();
    assert!(
        command.contains(" relay --dialect cursor ") && command.ends_with("--if-down block"),
        "{command}"
    );
    assert_eq!(
        (&entry("preToolUse")["failClosed"], &entry("preToolUse")["timeout"]),
        (&json!(true), &json!(600))
    );
    assert_eq!(entry("beforeSubmitPrompt")["failClosed"], true);
    assert_eq!(entry("stop").get("failClosed"), None);
    assert!(home.run(&["connect", "cursor"]).out.contains("as before"));
    home.run(&["disconnect", "cursor"]);
    assert!(!file.exists());

    let own =
        "{\n  // mine\n  \"version\": 1,\n  \"hooks\": { \"stop\": [{ \"command\": \"./stop.sh\" }] }\n}\n";
    home.write(".cursor/hooks.json", own);
    assert!(home.run(&["connect", "cursor"]).out.contains("1 hook of this file stay"));
    let after = fs::read_to_string(&file).unwrap();
    assert!(after.contains("// mine") && after.matches("\"version\"").count() == 1, "{after}");
    home.run(&["disconnect", "cursor"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), own);

    let broken = "{ \"version\": 1, \"hooks\": { \"preToolUse\": {} } }";
    home.write(".cursor/hooks.json", broken);
    let refused = home.run(&["connect", "cursor"]);
    assert!(
        refused.code == Some(1) && refused.err.contains("`hooks.preToolUse` that is not a list"),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), broken);
}

#[test]
fn bare_hooks_are_adopted_and_come_back_to_the_byte() {
    let home = Home::new();
    let file = home.write(".copilot/settings.json", BARE_HOOKS);
    let done = home.run(&["connect", "copilot", "--adopt"]);
    assert!(done.out.contains("3 hooks of Copilot CLI, which hookyard runs now"), "{done:?}");
    let after = fs::read_to_string(&file).unwrap();
    let moved = fs::read_to_string(home.path(".copilot/settings.hookyard.json")).unwrap();
    for hook in ["guard.sh", "second.sh", "stop.sh"] {
        assert!(!after.contains(hook) && moved.contains(hook), "{hook}: {after} {moved}");
    }
    home.run(&["disconnect", "copilot"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), BARE_HOOKS);
    assert!(!home.path(".copilot/settings.hookyard.json").exists());
}

#[test]
fn an_entry_that_a_person_wrote_bare_is_known_and_replaced() {
    let home = Home::new();
    let written = r#"{"hooks":{"PreToolUse":[{"type":"command","bash":"/opt/hookyard relay --dialect copilot","timeoutSec":60}]}}"#;
    let file = home.write(".copilot/settings.json", written);
    home.run(&["connect", "copilot"]);
    let after = json_of(&file);
    assert!(!after.to_string().contains("/opt/hookyard"), "{after}");
    assert_eq!(after["hooks"]["PreToolUse"].as_array().unwrap().len(), 1, "{after}");
}

#[test]
fn a_project_of_copilot_is_connected_by_the_file_for_this_machine_and_only_what_was_made_is_removed() {
    for there in ["shop", "shop/.github", "shop/.github/copilot", "shop/.github/workflows"] {
        for again in [false, true] {
            let home = Home::new();
            fs::create_dir_all(home.path(there)).unwrap();
            home.run(&["connect", "copilot", "--project", "shop"]);
            let file = home.path("shop/.github/copilot/settings.local.json");
            assert!(json_of(&file)["hooks"]["PreToolUse"].is_array());
            if again {
                fs::remove_file(&file).unwrap();
                home.run(&["connect", "copilot", "--project", "shop"]);
            }
            let done = home.run(&["disconnect", "copilot", "--project", "shop"]);
            let below = home.path(there).read_dir().unwrap().count();
            let beside = home.path("shop/.github").read_dir().into_iter().flatten().count();
            let wanted = usize::from(there.contains("/.github/"));
            assert_eq!((below, beside), (0, wanted), "{there}, {again}: {done:?}");
        }
    }
}

/// Connects an agent with such a file of settings and disconnects it again, which leaves the file as it was. Returns the file in
/// between: with entries if it is taken, else as it was, and `why` is said.
fn connected(agent: &str, name: &str, before: &str, is_taken: bool, why: &str) -> String {
    let home = Home::new();
    let file = home.write(name, before);
    let done = home.run(&["connect", agent]);
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(done.err.contains(why), !is_taken, "{agent}: {done:?}");
    assert_eq!(after != before && after.contains(" relay "), is_taken, "{agent}: {after}");
    home.run(&["disconnect", agent]);
    assert_eq!(fs::read_to_string(&file).unwrap(), before, "{agent}");
    after
}

#[test]
fn numbers_beyond_a_double_stay_where_the_agent_takes_them() {
    for (agent, name, is_taken) in [
        ("claude", ".claude/settings.json", true),
        ("qwen", ".qwen/settings.json", true),
        ("gemini", ".gemini/settings.json", true),
        ("copilot", ".copilot/settings.json", true),
        ("codebuddy", ".codebuddy/settings.json", true),
        ("codex", ".codex/hooks.json", false),
    ] {
        let before = "{\"a\": 1e400,\n \"b\": [-1E+999]}";
        let after = connected(agent, name, before, is_taken, "number out of range");
        assert!(after.contains("\"a\": 1e400,\n \"b\": [-1E+999]"), "{agent}: {after}");
    }
}

/// Claude Code, Qwen Code and Copilot CLI skip the mark; Gemini CLI does not start; the others run without their hooks.
#[test]
fn no_entry_is_written_behind_a_byte_order_mark_with_which_the_agent_does_not_read_it() {
    for (agent, name, is_read) in [
        ("claude", ".claude/settings.json", true),
        ("qwen", ".qwen/settings.json", true),
        ("copilot", ".copilot/settings.json", true),
        ("gemini", ".gemini/settings.json", false),
        ("codex", ".codex/hooks.json", false),
        ("codebuddy", ".codebuddy/settings.json", false),
        ("cursor", ".cursor/hooks.json", false),
        ("clawd", ".clawdcode/settings.json", false),
    ] {
        let why = "begins with a byte order mark, with which the agent does not read it: save it without the mark; \
                   it was not changed";
        connected(agent, name, "\u{feff}{\"version\": 1, \"hooks\": {}}", is_read, why);
    }
}

/// Nobody would run them otherwise: hookyard leaves to a connected agent what it runs itself.
#[test]
fn hooks_in_a_file_that_a_connected_agent_does_not_read_stay_with_hookyard() {
    const NESTED: &str =
        "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"exit 2\"}]}]}}";
    const CURSOR: &str = "{\"version\": 1, \"hooks\": {\"preToolUse\": [{\"command\": \"exit 2\"}]}}";
    const COPILOT: &str =
        "{\"version\": 1, \"hooks\": {\"PreToolUse\": [{\"type\": \"command\", \"bash\": \"exit 2\"}]}}";
    for (agent, name, text, before, is_read) in [
        ("claude", ".claude/settings.json", NESTED, "", true),
        ("claude", ".claude/settings.json", NESTED, "\u{feff}", true),
        ("qwen", ".qwen/settings.json", NESTED, "\u{feff}// mine\n", true),
        ("codex", ".codex/hooks.json", NESTED, "", true),
        ("codex", ".codex/hooks.json", NESTED, "\u{feff}", false),
        ("codebuddy", ".codebuddy/settings.json", NESTED, "\u{feff}", false),
        ("cursor", ".cursor/hooks.json", CURSOR, "// mine\n", true),
        ("cursor", ".cursor/hooks.json", CURSOR, "\u{feff}", false),
        ("copilot", ".github/hooks/guard.json", COPILOT, "", true),
        ("copilot", ".github/hooks/guard.json", COPILOT, "\u{feff}", false),
        ("copilot", ".github/hooks/guard.json", COPILOT, "// mine\n", false),
        ("copilot", ".github/copilot/settings.json", COPILOT, "\u{feff}", false),
    ] {
        let home = Home::new();
        home.write(&format!("shop/{name}"), format!("{before}{text}"));
        home.run(&["connect", agent]);
        let listed = home.run(&["list", "--workspace", "shop", "--set", "trust=off"]);
        let hook = listed.out.lines().find(|line| line.contains(".project.")).unwrap();
        assert_eq!(hook.contains("(run by "), is_read, "{agent} {before:?}: {hook}");
        let checked = home.run(&["check", "--workspace", "shop", "--set", "trust=off"]);
        let warning = "until then, its hooks run through hookyard alone";
        assert_eq!(checked.out.contains(warning), !is_read, "{agent} {before:?}: {checked:?}");
    }
}

/// It reads the user's settings with a reader of JavaScript, and a project's with another.
#[test]
fn what_copilot_takes_beside_json_depends_on_the_file() {
    for (text, why) in [
        ("// mine\n{}", "is not valid JSON"),
        ("{/* mine */}", "is not valid JSON"),
        ("{\"a\": 1,}", "is not valid JSON"),
        ("{\"a\": 1e400}", "is not valid JSON"),
        ("\u{feff}{}", "begins with a byte order mark"),
    ] {
        let home = Home::new();
        let user = home.write(".copilot/settings.json", text);
        let project = home.write("shop/.github/copilot/settings.local.json", text);
        for (file, place, is_taken) in [(user, &[][..], true), (project, &["--project", "shop"], false)] {
            let done = home.run(&[&["connect", "copilot"], place].concat());
            let after = fs::read_to_string(&file).unwrap();
            assert_eq!(after != text && after.contains(" relay "), is_taken, "{text}: {done:?}");
            assert_eq!(done.err.contains(why), !is_taken, "{text}: {done:?}");
            home.run(&[&["disconnect", "copilot"], place].concat());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }
}

#[test]
fn the_events_of_an_agent_are_those_of_its_version() {
    for (version, events, note) in [
        (None, "9 events", "its version is not known"),
        (Some("\"2.0.1\""), "9 events", "it is 2.0.1"),
        (Some("\"9.0.0\""), "28 events", ""),
        (Some("\"soon\""), "9 events", "its version is not known"),
        (Some("{"), "9 events", "its version is not known"),
    ] {
        let home = Home::new();
        let program = home.write("bin/claude", "#!/bin/sh\nexit 3\n");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        if let Some(version) = version {
            home.write("bin/package.json", format!("{{\"version\": {version}}}"));
        }
        let done = home.run(&["connect", "claude"]);
        assert!(done.out.contains(events) && done.out.contains(note), "{version:?}: {done:?}");
    }
}

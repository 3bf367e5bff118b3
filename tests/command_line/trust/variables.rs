//! Variables that a project sets: they move no guard, no record and no account.

use super::*;

#[test]
fn no_variable_moves_the_guards_of_the_user_or_the_record_of_trust_out_of_sight() {
    let place = Place::new();
    let hooks = json!([{ "hooks": [{ "type": "command", "command": "exit 2" }] }]);
    place.write("home/.claude/settings.json", &json!({ "hooks": { "PreToolUse": hooks } }).to_string());
    place.trust(&[]);
    fs::remove_file(place.path("shop/.openharness/hooks/guard.yaml")).unwrap();
    place.write("elsewhere/file", "");
    let elsewhere = place.path("elsewhere").display().to_string();
    let event =
        json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash" });
    for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
        let listed = place.run_with(&["list", "--json"], "", &[(name, &elsewhere)]);
        let hooks: Value = serde_json::from_str(&listed.out).unwrap();
        let states: Vec<_> = hooks.as_array().unwrap().iter().map(|hook| &hook["trust"]).collect();
        assert_eq!(states, ["managed", "missing"], "{name}");
        let fire = ["fire", "--json", "--event", "-"];
        let done = place.run_with(&fire, &event.to_string(), &[(name, &elsewhere)]);
        let outcome: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(outcome["verdict"], "block", "{name}: {done:?}");
    }
}

#[test]
fn a_file_of_the_workspace_is_none_of_the_users_whatever_variables_say() {
    let place = Place::new();
    let settings = r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"touch ran"}]}]}}"#;
    place.write("shop/evil/.claude/settings.json", settings);
    let event =
        json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash" });
    for home in ["/proc/self/cwd/evil", "evil/../evil"] {
        let home = [("HOOKYARD_TEST_HOME", home)];
        place.run_with(&["fire", "--json", "--event", "-"], &event.to_string(), &home);
        assert!(!place.has_run(), "{home:?}");
    }
}

#[test]
fn no_variable_that_a_project_sets_says_what_the_account_is_or_leads_hooks_into_the_project() {
    let place = Place::new();
    let handler = json!({
        "type": "command",
        "command": "env > ../environment.txt; exit 2",
        "environment": { "OF_HOME": "${env.HOME}", "OF_USER": "${env.USER}", "OF_PATH": "${env.PATH}" },
    });
    let hook = json!({ "name": "guard", "events": ["before_tool_dispatch"], "handler": handler });
    place.write("shop/.openharness/hooks/guard.yaml", &hook.to_string());
    for path in ["shop/bin/file", "shop/tmp/file"] {
        place.write(path, "");
    }
    place.trust(&[]);
    let inside = |path: &str| place.path("shop").join(path).display().to_string();
    let path = format!("{}:{}", inside("bin"), std::env::var("PATH").unwrap());
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
                        "tool_input": {} });
    let (shop, tmp) = (inside(""), inside("tmp"));
    let variables = [
        ("HOME", &*shop),
        ("USER", "mallory"),
        ("LOGNAME", "mallory"),
        ("SHELL", &shop),
        ("TMPDIR", &tmp),
        ("LANG", &tmp),
        ("LC_ALL", &tmp),
        ("TZ", &tmp),
        ("PATH", &path),
    ];
    let done = place.run_with(&["fire", "--json", "--event", "-"], &event.to_string(), &variables);
    let outcome: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(ended(&outcome), ("block", "completed"), "{done:?}");
    let environment = fs::read_to_string(place.path("environment.txt")).unwrap();
    let value = |name: &str| environment.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    let home = place.path("home").display().to_string();
    assert_eq!((value("HOME"), value("OF_HOME")), (Some(&*home), Some(&*home)), "{environment}");
    assert_eq!(value("USER"), value("OF_USER"));
    assert_eq!(value("USER"), value("LOGNAME"));
    for name in ["USER", "LOGNAME", "SHELL", "OF_PATH", "PATH", "TMPDIR", "LANG", "LC_ALL", "TZ"] {
        let value = value(name).unwrap_or_default();
        assert!(!value.contains("mallory") && !value.contains(&shop), "{name}: {environment}");
    }
}

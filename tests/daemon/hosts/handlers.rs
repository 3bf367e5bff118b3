//! Hooks of agents' settings that run as `handlers` in the settings says.

use super::*;

/// What Claude Code sends before a tool call.
fn tool_call(daemon: &Daemon, session: &str) -> Value {
    json!({ "hook_event_name": "PreToolUse", "session_id": session, "cwd": daemon.path().join("shop"),
            "tool_name": "Bash", "tool_input": {} })
}

/// A settings file of Claude Code with several commands for an event.
fn commands(commands: &[&str]) -> String {
    let hooks: Vec<_> = commands.iter().map(|line| json!({ "type": "command", "command": line })).collect();
    json!({ "hooks": { "PreToolUse": [{ "hooks": hooks }] } }).to_string()
}

#[test]
fn a_hook_of_an_agents_settings_has_the_mode_that_its_name_or_command_has_there() {
    let setup = DaemonSetup::new();
    let here = setup.path().display().to_string();
    let line =
        |name: &str| format!("echo $$ >> {here}/{name}; cat > /dev/null; echo $$ >> {here}/{name}-answered");
    let (named, by_command, other) = (line("named"), line("by-command"), line("other"));
    let handlers = json!({
        "claude.project.PreToolUse.1.1": { "mode": "prespawn" },
        &*by_command: { "mode": "prespawn", "processes": 2 },
        "claude.user.PreToolUse.1.1": { "mode": "worker" },
    });
    let daemon = setup
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings(&format!("handlers: {handlers}"))
        .file("shop/.claude/settings.json", &commands(&[&named, &by_command, &other]))
        .serve();
    let modes: Vec<_> =
        daemon.get("/v1/hooks").as_array().unwrap().iter().map(|hook| hook["mode"].clone()).collect();
    assert_eq!(modes, ["prespawn", "prespawn", "oneshot"]);
    let lines = |name: &str| {
        let text = fs::read_to_string(daemon.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    // The processes of the next event wait.
    daemon.post("/v1/events/claude", &tool_call(&daemon, "first"));
    wait_until("spares wait", || lines("named").len() == 2 && lines("by-command").len() == 3);
    assert_eq!(lines("other").len(), 1);
    daemon.post("/v1/events/claude", &tool_call(&daemon, "second"));
    wait_until("they are used", || lines("named-answered").len() == 2);
    assert_eq!(lines("named-answered")[1], lines("named")[1], "the process that waited answers");
    daemon.finish();
}

#[test]
fn policies_get_stricter_and_never_weaker() {
    let guard = "name: guard\nevents: [before_tool_dispatch]\non_error: deny\non_timeout: deny\nhandler: {type: command, command: 'exit 7'}\n";
    let handlers =
        "{guard: {on_error: ask, on_timeout: ask}, claude.project.PreToolUse.1.1: {on_error: deny}}";
    let verdicts = |handlers: &str, file: &str, text: &str| {
        let daemon = DaemonSetup::new()
            .settings("workspaces: { shop: { root: $DIR/shop } }")
            .settings(&format!("handlers: {handlers}"))
            .file(file, text)
            .serve();
        let answer = daemon.post("/v1/events/claude", &tool_call(&daemon, "s"));
        daemon.finish();
        answer["hookSpecificOutput"]["permissionDecision"].clone()
    };
    let file = "shop/.claude/settings.json";
    assert_eq!(verdicts("{}", file, &commands(&["exit 7"])), Value::Null);
    assert_eq!(verdicts(handlers, file, &commands(&["exit 7"])), "deny");
    assert_eq!(verdicts(handlers, "shop/.openharness/hooks/guard.yaml", guard), "deny");
}

#[test]
fn what_no_hook_can_be_is_a_mistake() {
    for (handlers, expected) in [
        ("{guard: {on_error: ignore}}", "on_error"),
        ("{guard: {mode: fast}}", "mode"),
        ("{guard: {processes: 65}}", "processes"),
        ("{guard: {timeout: 1s}}", "timeout"),
        ("{'': {mode: worker}}", "name or command"),
    ] {
        let setup = DaemonSetup::new();
        let config = setup.path().join("other.yaml");
        fs::write(&config, format!("handlers: {handlers}\n")).unwrap();
        let mut check = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        let output = check
            .args(["check", "--workspace"])
            .arg(setup.path())
            .arg("--config")
            .arg(&config)
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(expected) && said.contains("error"), "{handlers}: {said}");
    }
}

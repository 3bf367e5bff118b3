//! Hooks, and what they start, use the control socket: they may read, and control nothing.

use std::thread;

use super::*;

/// A hook that runs a shell script for every tool call.
fn daemon_with(script: &str) -> Daemon {
    let setup = DaemonSetup::new();
    let program = env!("CARGO_BIN_EXE_hookyard");
    let script = script
        .replace("RELOAD", &format!("{program} reload --socket {}/hookyard.sock", setup.path().display()))
        .replace("CONTROL", &format!("{}/hookyard-control.sock", setup.path().display()))
        .replace("OUT", &format!("{}/out", setup.path().display()));
    setup
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/hook.yaml", &hook("hook", "before_tool_dispatch", &script))
        .serve()
}

/// What the hook's program printed and its exit code, once it has ended.
fn output(daemon: &Daemon) -> String {
    let (text, code) = (daemon.path().join("out"), daemon.path().join("out.code"));
    wait_until("the program of the hook has ended", || code.exists());
    format!("{} exit {}", fs::read_to_string(text).unwrap(), fs::read_to_string(code).unwrap().trim())
}

/// A hook that runs a script, which asks for control, and gets none.
fn assert_no_control(script: &str) {
    let daemon = daemon_with(script);
    thread::scope(|scope| {
        scope.spawn(|| {
            daemon.client().send("POST", "/v1/events", Some(call("shop", "r").to_string().as_bytes()))
        });
        let output = output(&daemon);
        assert!(
            output.contains("the request comes from a hook") && output.ends_with("exit 1"),
            "{script}\n{output}"
        );
        daemon.send("DELETE", "/v1/runs/r", None);
    });
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200, "others have control");
    daemon.finish();
}

#[test]
fn a_hook_and_what_it_starts_have_no_control() {
    for script in [
        "RELOAD >OUT 2>&1; echo $? >OUT.new; mv OUT.new OUT.code",
        // With an environment of its own.
        "env -i RELOAD >OUT 2>&1; echo $? >OUT.new; mv OUT.new OUT.code",
        // Outside the process group, and without its parent.
        "(setsid sh -c ': >OUT.begun; while kill -0 '$$' 2>/dev/null; do sleep 0.01; done; \
         RELOAD >OUT 2>&1; echo $? >OUT.new; mv OUT.new OUT.code' </dev/null >/dev/null 2>&1 &); \
         while [ ! -e OUT.begun ]; do sleep 0.01; done",
        // In the process group, without its parent and with an environment of its own.
        "(env -i sh -c 'RELOAD >OUT 2>&1; echo $? >OUT.new; mv OUT.new OUT.code' \
         </dev/null >/dev/null 2>&1 &); while [ ! -e OUT.code ]; do sleep 0.01; done",
    ] {
        assert_no_control(script);
    }
}

#[test]
#[cfg_attr(hookyard_portable, ignore = "nothing adopts what hooks leave")]
fn what_leaves_its_parents_its_group_and_its_environment_has_no_control() {
    // Its parent is neither the hook nor its child.
    assert_no_control(
        "(env -i setsid sh -c ': >OUT.begun; while kill -0 '$$' 2>/dev/null; do sleep 0.01; done; \
         (setsid env -i sh -c \"RELOAD >OUT 2>&1; echo \\$? >OUT.new; mv OUT.new OUT.code\" &)' </dev/null >/dev/null 2>&1 &); \
         while [ ! -e OUT.begun ]; do sleep 0.01; done",
    );
}

#[test]
fn a_hook_may_read_at_the_control_socket() {
    let program = env!("CARGO_BIN_EXE_hookyard");
    let script = format!("{program} runs --socket CONTROL >OUT 2>&1; echo $? >OUT.new; mv OUT.new OUT.code");
    let daemon = daemon_with(&script);
    daemon.post("/v1/events", &call("shop", "r"));
    let output = output(&daemon);
    assert!(output.contains("before_tool_dispatch") && output.ends_with("exit 0"), "{output}");
    daemon.finish();
}

#[test]
fn a_worker_has_no_control() {
    let setup = DaemonSetup::new();
    let reload = format!(
        "{} reload --socket {}/hookyard.sock",
        env!("CARGO_BIN_EXE_hookyard"),
        setup.path().display()
    );
    let out = format!("{}/out", setup.path().display());
    let command = format!(
        "echo '{{\"hookyard\":1}}'\n{reload} >{out} 2>&1; echo $? >{out}.new; mv {out}.new {out}.code\ncat >/dev/null"
    );
    let handler = json!({ "type": "command", "command": command, "mode": "worker" });
    let hook =
        json!({ "name": "worker", "events": ["before_tool_dispatch"], "handler": handler }).to_string();
    let daemon = setup
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/hook.yaml", &hook)
        .serve();
    thread::scope(|scope| {
        let event = call("shop", "r").to_string();
        let client = daemon.client();
        // The worker starts with its first event, and answers none.
        scope.spawn(move || client.send("POST", "/v1/events", Some(event.as_bytes())));
        let output = output(&daemon);
        assert!(output.contains("the request comes from a hook") && output.ends_with("exit 1"), "{output}");
        daemon.send("DELETE", "/v1/runs/r", None);
    });
    daemon.finish();
}

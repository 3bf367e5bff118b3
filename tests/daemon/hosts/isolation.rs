//! Two workspaces with the same names for everything do not affect each other.

use std::thread;

use super::*;

fn two(setting: DaemonSetup, hook: impl Fn(&str) -> String) -> Daemon {
    setting
        .settings("workspaces: { a: { root: $DIR/a }, b: { root: $DIR/b } }")
        .file("a/.openharness/hooks/guard.yaml", &hook("a"))
        .file("b/.openharness/hooks/guard.yaml", &hook("b"))
        .serve()
}

#[test]
fn hooks_of_the_same_name_answer_for_their_own_workspace() {
    let daemon = two(DaemonSetup::new(), |name| {
        hook("guard", "before_tool_dispatch", &format!("echo {name} >&2; exit 2"))
    });
    for name in ["a", "b"] {
        assert_eq!(daemon.post("/v1/events", &call(name, "r"))["reason"], name);
        let hooks = daemon.get(&format!("/v1/hooks?workspace_id={name}"));
        assert!(hooks.to_string().contains("\"guard\""), "{hooks}");
    }
    daemon::write(&daemon.path().join("a/.openharness/hooks/guard.yaml"), "nonsense");
    daemon.send("POST", "/v1/reload?workspace_id=a", None);
    assert_eq!(daemon.post("/v1/events", &call("b", "r2"))["reason"], "b");
    let broken = daemon.get("/v1/status")["broken"].clone();
    assert_eq!((broken.as_array().unwrap().len(), &broken[0]["id"]), (1, &json!("a")));
}

#[test]
fn a_halt_ends_the_run_of_one_workspace_only() {
    let daemon = two(DaemonSetup::new(), |name| {
        let output = if name == "a" { json!({ "continue": false, "stopReason": "over" }) } else { json!({}) };
        hook("guard", "before_tool_dispatch", &prints(&output))
    });
    assert_eq!(daemon.post("/v1/events", &call("a", "r"))["verdict"], "halt");
    assert_eq!(daemon.post("/v1/events", &call("b", "r"))["verdict"], "proceed");
    assert_eq!(daemon.post("/v1/events", &call("a", "r"))["verdict"], "halt");
    let run = daemon.get("/v1/runs/r?workspace_id=a");
    assert!(run["halted"].is_object(), "{run}");
    assert!(daemon.get("/v1/runs/r?workspace_id=b")["halted"].is_null());
    let several = daemon.send("GET", "/v1/runs/r", None);
    assert_eq!(several.status, 409);
}

#[test]
fn workers_are_not_shared() {
    let daemon = two(DaemonSetup::new(), |_| worker("before_tool_dispatch"));
    let pid = |name: &str, run: &str| daemon.post("/v1/events", &call(name, run))["reason"].clone();
    let (a, b) = (pid("a", "1"), pid("b", "1"));
    assert_ne!(a, b);
    assert_eq!((pid("a", "2"), pid("b", "2")), (a.clone(), b.clone()), "each has a worker that stays");
    assert_eq!(daemon.send("DELETE", "/v1/workspaces/a", None).status, 204);
    gone(a.as_str().unwrap());
    assert_eq!(pid("b", "3"), b);
}

#[test]
fn cancelling_a_run_leaves_the_run_of_the_same_id_in_another_workspace() {
    let setting = DaemonSetup::new();
    let directory = setting.path();
    for name in ["a", "b"] {
        fs::create_dir(directory.join(name)).unwrap();
    }
    let daemon = two(setting, |name| hook("guard", "before_tool_dispatch", &hangs(&directory.join(name))));
    thread::scope(|scope| {
        let a = scope.spawn(|| daemon.post("/v1/events", &call("a", "r")));
        let b = scope.spawn(|| daemon.post("/v1/events", &call("b", "r")));
        let (first, second) = (hanging(&directory.join("a")), hanging(&directory.join("b")));
        assert_eq!(daemon.send("DELETE", "/v1/runs/r", None).status, 409);
        assert_eq!(daemon.send("DELETE", "/v1/runs/r?workspace_id=a", None).status, 200);
        assert_eq!(a.join().unwrap()["verdict"], "halt");
        gone(&first);
        assert!(Path::new("/proc").join(&second).exists(), "the other's hook still runs");
        assert!(!b.is_finished());
        assert_eq!(daemon.send("DELETE", "/v1/runs/r?workspace_id=b", None).status, 200);
        assert_eq!(b.join().unwrap()["verdict"], "halt");
        gone(&second);
    });
}

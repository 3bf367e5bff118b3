//! Workspaces around the one that judges an event: their files count, and their changes too.

use std::{collections::BTreeSet, fmt::Write};

use super::*;

fn event_in(daemon: &Daemon, directory: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
            "cwd": daemon.path().join(directory), "tool_name": "Bash", "tool_input": { "command": "ls" } })
}

fn word_in(daemon: &Daemon, directory: &str) -> String {
    let outcome = daemon.post("/v1/events", &event_in(daemon, directory));
    match outcome["verdict"].as_str() {
        Some("block") => outcome["reason"].as_str().unwrap_or_default().trim().to_owned(),
        _ => "-".to_owned(),
    }
}

#[test]
fn a_nested_directory_shadows_nothing_and_notices_what_changes_around_it() {
    let daemon = DaemonSetup::new()
        .settings("workspace_roots: [$DIR/srv]")
        .file("above/file", "")
        .file("srv/shop/.openharness/hooks/guard.yaml", &guard("guard", "outer"))
        .file("srv/shop/vendor/.openharness/file", "")
        .file("srv/shop/lib/.claude/settings.json", &claude("inner"))
        .file("srv/bare/sub/.openharness/file", "")
        .serve();
    for directory in ["srv/shop/vendor", "srv/shop/lib", "srv/shop"] {
        assert_eq!(word_in(&daemon, directory), "outer", "{directory}");
    }
    assert_eq!(word_in(&daemon, "srv/bare/sub"), "-");
    let file = daemon.path().join("srv/shop/.openharness/hooks/guard.yaml");
    write(&file, &guard("guard", "changed"));
    wait_until("the change counts below", || word_in(&daemon, "srv/shop/vendor") == "changed");
    fs::remove_file(&file).unwrap();
    wait_until("the inner hook decides", || word_in(&daemon, "srv/shop/lib") == "inner");
    // A directory between that had no hooks.
    write(&daemon.path().join("srv/bare/.claude/settings.json"), &claude("new"));
    wait_until("a new outer workspace counts", || word_in(&daemon, "srv/bare/sub") == "new");
    daemon.finish();
}

#[test]
fn a_registered_workspace_surrounds_those_below_it_also_if_it_comes_later() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { sub: { root: $DIR/shop/sub } }")
        .file("shop/.openharness/hooks/guard.yaml", &guard("guard", "outer"))
        .file("shop/sub/.openharness/file", "")
        .serve();
    assert_eq!(word_of(&daemon, "sub"), "-", "nobody has registered the directory above");
    let root = json!({ "root": daemon.path().join("shop") });
    assert_eq!(daemon.send("PUT", "/v1/workspaces/shop", Some(&root)).status, 201);
    assert_eq!(word_of(&daemon, "sub"), "outer");
    assert_eq!(daemon.send("DELETE", "/v1/workspaces/shop", None).status, 204);
    assert_eq!(word_of(&daemon, "sub"), "-");
    daemon.finish();
}

#[test]
fn many_workspaces_of_the_settings_know_of_each_other_in_whatever_order_they_are_loaded() {
    let (mut setup, mut settings) = (DaemonSetup::new(), "workspaces:\n".to_owned());
    for number in 0..12 {
        let outer = guard("guard", &format!("outer-{number}"));
        setup = setup
            .file(&format!("shop-{number}/.openharness/hooks/guard.yaml"), &outer)
            .file(&format!("shop-{number}/sub/deep/file"), "");
        // Those below come before and after the one around them, and the last has its directory.
        for (id, root) in [("a", "/sub"), ("b", ""), ("c", "/sub/deep"), ("d", "/sub/..")] {
            writeln!(settings, "  {id}-{number}: {{ root: $DIR/shop-{number}{root} }}").unwrap();
        }
    }
    let daemon = setup.settings(&format!("{settings}  gone: {{ root: $DIR/gone }}\n")).serve();
    for number in 0..12 {
        for id in ["a", "b", "c"] {
            assert_eq!(word_of(&daemon, &format!("{id}-{number}")), format!("outer-{number}"), "{id}");
        }
    }
    let status = daemon.get("/v1/status");
    let not_loaded =
        status["not_loaded"].as_array().unwrap().iter().map(|named| named["id"].as_str().unwrap());
    let others = (0..12).map(|number| format!("d-{number}")).chain(["gone".to_owned()]);
    assert_eq!(
        not_loaded.collect::<BTreeSet<_>>(),
        others.collect::<Vec<_>>().iter().map(String::as_str).collect()
    );
    daemon.finish();
}

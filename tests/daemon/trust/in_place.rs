//! Scripts that start in the workspace: each start is of what was agreed to.

use super::*;

/// Agrees to the guard, which is to run in the workspace.
fn agree_in_place(daemon: &Daemon) {
    let shown = trust(daemon, &["--in-place", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let agreed = trust(daemon, &["--in-place", "--yes", shown["digest"].as_str().unwrap()]);
    assert!(agreed.status.success(), "{agreed:?}");
}

/// How the guard ended, and why.
fn end(daemon: &Daemon) -> (String, String) {
    let hook = fire(daemon)["hooks"][0].clone();
    (hook["ended"].as_str().unwrap().to_owned(), hook["error"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn what_starts_in_place_is_what_was_agreed_to_without_any_reload() {
    const SCRIPTS: &str = "shop/.openharness/scripts";
    type Change<'c> = &'c dyn Fn(&Path);
    // Each change, what undoes it, and the file that is named.
    let changes: [(Change<'_>, Change<'_>, &str); 7] = [
        (
            &|dir| {
                let script = dir.join(SCRIPTS).join("guard.sh");
                let before = fs::metadata(&script).unwrap().modified().unwrap();
                fs::write(&script, format!("{:width$}", "exit 0 #", width = SCRIPT.len())).unwrap();
                fs::File::options().write(true).open(&script).unwrap().set_modified(before).unwrap();
            },
            &|dir| fs::write(dir.join(SCRIPTS).join("guard.sh"), SCRIPT).unwrap(),
            "guard.sh",
        ),
        (
            &|dir| fs::write(dir.join(SCRIPTS).join("lib.py"), "").unwrap(),
            &|dir| fs::remove_file(dir.join(SCRIPTS).join("lib.py")).unwrap(),
            "lib.py",
        ),
        (
            &|dir| fs::write(dir.join("shop/.openharness/state/env"), "").unwrap(),
            &|dir| fs::remove_file(dir.join("shop/.openharness/state/env")).unwrap(),
            "state/env",
        ),
        (
            &|dir| {
                fs::write(dir.join("shop/.openharness/state/run.txt"), "#!/bin/sh\n").unwrap();
                let program = fs::Permissions::from_mode(0o700);
                fs::set_permissions(dir.join("shop/.openharness/state/run.txt"), program).unwrap();
            },
            &|dir| fs::remove_file(dir.join("shop/.openharness/state/run.txt")).unwrap(),
            "state/run.txt",
        ),
        (
            &|dir| {
                fs::rename(dir.join(SCRIPTS), dir.join("shop/away")).unwrap();
                symlink("../../other", dir.join(SCRIPTS)).unwrap();
            },
            &|dir| {
                fs::remove_file(dir.join(SCRIPTS)).unwrap();
                fs::rename(dir.join("shop/away"), dir.join(SCRIPTS)).unwrap();
            },
            "a link that leads outside",
        ),
        (
            &|dir| fs::rename(dir.join("shop"), dir.join("moved")).unwrap(),
            &|dir| fs::rename(dir.join("moved"), dir.join("shop")).unwrap(),
            "the directory of the workspace is gone",
        ),
        (
            &|dir| {
                fs::rename(dir.join("shop"), dir.join("moved")).unwrap();
                symlink("moved", dir.join("shop")).unwrap();
            },
            &|dir| {
                fs::remove_file(dir.join("shop")).unwrap();
                fs::rename(dir.join("moved"), dir.join("shop")).unwrap();
            },
            "or a link is in its place",
        ),
    ];
    let daemon = in_place_shop(GUARD);
    let dir = daemon.path();
    assert_eq!(end(&daemon).0, "completed");
    for (change, undo, named) in changes {
        change(&dir);
        let (ended, why) = end(&daemon);
        assert!(ended == "untrusted" && why.contains(named), "{named}: {ended}, {why}");
        undo(&dir);
        assert_eq!(end(&daemon).0, "completed", "{named}");
    }
    // What hooks write there, and a file that is only touched, change nothing.
    write(&daemon, "shop/.openharness/state/count.json", "2");
    write(&daemon, "shop/.openharness/guard.log", "2");
    write(&daemon, &format!("{SCRIPTS}/guard.sh"), SCRIPT);
    assert_eq!(end(&daemon).0, "completed");
    daemon.finish();
}

#[test]
fn a_worker_that_starts_in_place_is_what_was_agreed_to() {
    let guard = GUARD.replace("  command:", "  mode: worker\n  command:");
    let daemon = in_place_shop(&guard);
    write(&daemon, "shop/.openharness/scripts/guard.sh", "echo changed >> ran; exit 0\n");
    assert_eq!(end(&daemon).0, "untrusted");
    assert!(!daemon.path().join("shop/ran").exists());
    daemon.finish();
}

/// A daemon that watches no files, and a guard that somebody has agreed to, which runs in the workspace.
fn in_place_shop(guard: &str) -> Daemon {
    let daemon = DaemonSetup::new()
        .enforces_trust()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("state_directory: $DIR/state\nwatch: false")
        .file("shop/.openharness/hooks/guard.yaml", guard)
        .file("shop/.openharness/scripts/guard.sh", SCRIPT)
        .file("shop/.openharness/state/count.json", "1")
        .file("other/guard.sh", "exit 0\n")
        .serve();
    agree_in_place(&daemon);
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    assert_eq!(state(&daemon), "trusted");
    daemon
}

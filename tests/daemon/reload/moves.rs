//! Files, directories and workspaces that are replaced, renamed, added and removed.

use super::*;

#[test]
fn a_file_or_directory_replaced_by_something_else_keeps_its_rules() {
    let daemon = shop(&[(GUARD, &guard("guard", "one"))]);
    let file = daemon.path().join(GUARD);
    let directory = file.parent().unwrap().to_owned();
    let swap = |path: &Path, make: &dyn Fn()| {
        let aside = path.with_extension("aside");
        fs::rename(path, &aside).unwrap();
        make();
        has_errors(&daemon, 1);
        assert_eq!(word_of(&daemon, "shop"), "one");
        let is_directory = path.symlink_metadata().unwrap().is_dir();
        if is_directory { fs::remove_dir(path) } else { fs::remove_file(path) }.unwrap();
        fs::rename(&aside, path).unwrap();
        has_errors(&daemon, 0);
        assert_eq!(word_of(&daemon, "shop"), "one");
    };
    swap(&file, &|| fs::create_dir(&file).unwrap());
    swap(&file, &|| assert!(Command::new("mkfifo").arg(&file).status().unwrap().success()));
    swap(&file, &|| symlink("/etc/passwd", &file).unwrap());
    swap(&directory, &|| fs::write(&directory, "").unwrap());
    swap(&directory, &|| symlink("/etc", &directory).unwrap());
    fs::write(&file, guard("guard", "two")).unwrap();
    becomes(&daemon, "two");
}

#[test]
fn a_workspace_that_is_renamed_away_keeps_its_rules_until_it_is_back() {
    let daemon = shop(&[(GUARD, &guard("guard", "one")), ("home/.gemini/settings.json", "{}"), ("x/y", "")]);
    write(&daemon.path().join("home/.claude/settings.json"), &claude("mine").replace("Bash", "Read"));
    wait_until("the user's hook is there", || hooks(&daemon, "shop") == 2);
    let (root, aside) = (daemon.path().join("shop"), daemon.path().join("aside"));
    fs::rename(&root, &aside).unwrap();
    has_errors(&daemon, 1);
    assert_eq!(hooks(&daemon, "shop"), 2);
    fs::rename(&aside, &root).unwrap();
    has_errors(&daemon, 0);
    fs::write(daemon.path().join(GUARD), guard("guard", "two")).unwrap();
    becomes(&daemon, "two");
    // Another directory may come in its place.
    fs::rename(&root, &aside).unwrap();
    has_errors(&daemon, 1);
    write(&daemon.path().join(GUARD), &guard("guard", "three"));
    becomes(&daemon, "three");
    fs::write(daemon.path().join(GUARD), guard("guard", "four")).unwrap();
    becomes(&daemon, "four");
}

#[test]
fn added_workspaces_are_watched_and_removed_ones_are_not() {
    let setting = DaemonSetup::new().argument("--debuggable").settings("workspace_roots: [$DIR/projects]");
    let daemon = setting
        .file("projects/cart/.openharness/hooks/guard.yaml", &guard("guard", "one"))
        .file("depot/.openharness/hooks/guard.yaml", &guard("guard", "one"))
        .serve();
    let here = daemon.path();
    let body = json!({ "root": here.join("depot") });
    assert_eq!(daemon.send("PUT", "/v1/workspaces/depot", Some(&body)).status, 201);
    fs::write(here.join("depot/.openharness/hooks/guard.yaml"), guard("guard", "two")).unwrap();
    workspace_becomes(&daemon, "depot", "two");
    assert_eq!(daemon.send("DELETE", "/v1/workspaces/depot", None).status, 204);

    // One that an event brings.
    let mut inside = event("");
    inside.as_object_mut().unwrap().remove("workspace_id");
    inside["cwd"] = json!(here.join("projects/cart"));
    let word = || daemon.post("/v1/events", &inside)["reason"].as_str().unwrap_or("-").trim().to_owned();
    assert_eq!(word(), "one");
    fs::write(here.join("projects/cart/.openharness/hooks/guard.yaml"), guard("guard", "two")).unwrap();
    wait_until("the change counts", || word() == "two");

    assert!(watched_files(&daemon).is_none_or(|count| count > 0));
    let id = daemon.get("/v1/workspaces")[0]["id"].as_str().unwrap().replace('/', "%2F");
    assert_eq!(daemon.send("DELETE", &format!("/v1/workspaces/{id}"), None).status, 204);
    wait_until("nothing is watched", || watched_files(&daemon).is_none_or(|count| count == 0));
}

/// How many files and directories the kernel watches for the daemon. The portable form looks at them itself.
fn watched_files(daemon: &Daemon) -> Option<usize> {
    if cfg!(hookyard_portable) {
        return None;
    }
    let fds = fs::read_dir(format!("/proc/{}/fdinfo", daemon.pid())).unwrap();
    let all = fds.filter_map(|fd| fs::read_to_string(fd.ok()?.path()).ok());
    all.map(|text| text.lines().filter(|line| line.starts_with("inotify ")).count()).sum::<usize>().into()
}

#[test]
fn watching_can_be_off() {
    let setting = DaemonSetup::new()
        .argument("--debuggable")
        .settings("watch: false\nworkspaces: { shop: { root: $DIR/shop } }");
    let daemon = setting.file(GUARD, &guard("guard", "one")).serve();
    assert_eq!(daemon.get("/v1/status")["watch"], "off");
    fs::write(daemon.path().join(GUARD), guard("guard", "two")).unwrap();
    assert!(watched_files(&daemon).is_none_or(|count| count == 0), "nothing can tell it of a change");
    assert_eq!(word_of(&daemon, "shop"), "one");
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    assert_eq!(word_of(&daemon, "shop"), "two");
}

#[test]
fn what_was_there_only_while_it_was_read_is_gone_again() {
    let daemon = shop(&[(GUARD, &guard("guard", "one"))]);
    settles(&daemon);
    let passing = daemon.path().join("shop/.openharness/hooks/passing.yaml");
    for _ in 0..3 {
        write(&passing, "name: passing\nevents: [run_failed]\nhandler: { type: command, command: 'true' }\n");
        assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
        assert_eq!(hooks(&daemon, "shop"), 2);
        fs::remove_file(&passing).unwrap();
        wait_until("it is gone", || hooks(&daemon, "shop") == 1);
    }
    let aside = daemon.path().join("shop/aside");
    for _ in 0..3 {
        fs::rename(daemon.path().join(GUARD), &aside).unwrap();
        assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
        assert_eq!(hooks(&daemon, "shop"), 0);
        fs::rename(&aside, daemon.path().join(GUARD)).unwrap();
        wait_until("the guard is back", || hooks(&daemon, "shop") == 1);
    }
}

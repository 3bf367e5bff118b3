//! Guards of a user, and of outer workspaces, whose files cannot be reached or read.

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;
use crate::nobody;

/// Makes a file below a directory unreachable.
type Spoil = fn(&Path);

/// Puts each in the place of the other, so that the daemon sees nothing in between.
fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// Ways in which the file of a user cannot be reached any more, which nobody takes for its removal.
fn unreachable_files() -> Vec<(&'static str, Spoil)> {
    vec![
        ("a link that leads nowhere", |here| {
            fs::remove_file(here.join(OF_USER)).unwrap();
            symlink(here.join("unmounted/settings.json"), here.join(OF_USER)).unwrap();
        }),
        ("a link to itself", |here| {
            fs::remove_file(here.join(OF_USER)).unwrap();
            symlink(here.join(OF_USER), here.join(OF_USER)).unwrap();
        }),
        ("its directory is a link that leads nowhere", |here| {
            symlink("../unmounted", here.join("before")).unwrap();
            exchange(&here.join("home/.claude"), &here.join("before"));
        }),
        ("its directory is a file", |here| {
            fs::write(here.join("before"), "").unwrap();
            exchange(&here.join("home/.claude"), &here.join("before"));
        }),
        ("the home directory is gone", |here| fs::rename(here.join("home"), here.join("before")).unwrap()),
        ("the home directory is a link that leads nowhere", |here| {
            symlink(here.join("unmounted"), here.join("before")).unwrap();
            exchange(&here.join("home"), &here.join("before"));
        }),
    ]
}

#[test]
fn the_guard_of_a_user_stays_when_its_file_cannot_be_reached() {
    for (how, spoil) in unreachable_files() {
        for data in ["data: $DIR/data", "data: null"] {
            let setup = DaemonSetup::new()
                .settings("workspaces: { shop: { root: $DIR/shop } }")
                .settings(data)
                .settings("state_directory: $DIR/state")
                .file("shop/README", "")
                .file(OF_USER, &claude("no"));
            let daemon = setup.enforces_trust().serve();
            assert_eq!(word(&daemon, "Bash"), "no");
            spoil(&daemon.path());
            assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
            assert_eq!(word(&daemon, "Bash"), "no", "{how}, after a reload, {data}");
            assert_eq!(broken_files(&daemon), ["1", "0", "0"], "{how}, {data}");
            assert!(daemon.log().contains("its last good rules stay"), "{how}: {}", daemon.log());
            if data.ends_with("null") {
                daemon.finish();
                continue;
            }
            let daemon = killed(daemon, |_| {}).enforces_trust().serve();
            assert_eq!(word(&daemon, "Bash"), "no", "{how}, after a start");
            assert_eq!(broken_files(&daemon), ["1", "0", "0"], "{how}");
            daemon.finish();
        }
    }
}

/// What may not be looked at is not gone. Root may look at everything, so for root another user runs this test.
#[test]
fn the_guard_of_a_user_stays_when_its_directory_may_not_be_read() {
    const NAME: &str = "last_good::users::the_guard_of_a_user_stays_when_its_directory_may_not_be_read";
    if nobody::has_run(NAME) {
        return;
    }
    for directory in ["home/.claude", "home"] {
        let setup = shop().settings("state_directory: $DIR/state").file(OF_USER, &claude("no"));
        let place = setup.path().join(directory);
        let daemon = setup.enforces_trust().serve();
        assert_eq!(word(&daemon, "Bash"), "no");
        let set_mode = |mode: u32| fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
        set_mode(0o000);
        assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
        // Below an unreadable home, files of other agents may be as well, of which nothing is known.
        let expected = if directory == "home" { "its file is broken" } else { "no" };
        let reloaded = word(&daemon, "Bash");
        assert!(reloaded.contains(expected), "{directory}, after a reload: {reloaded}");
        let daemon = killed(daemon, |_| {}).enforces_trust().serve();
        let restarted = word(&daemon, "Bash");
        assert!(restarted.contains(expected), "{directory}, after a start: {restarted}");
        assert_eq!(broken_files(&daemon)[0], "1", "{directory}");
        set_mode(0o700);
        daemon.finish();
    }
}

/// What leads through the workspace is the workspace's, also where it leads nowhere.
#[test]
fn a_link_into_the_workspace_makes_no_rule_one_of_the_user() {
    let setup = shop().settings("state_directory: $DIR/state").file("shop/dot/settings.json", &claude("no"));
    symlink(setup.path().join("shop/dot"), setup.path().join("home/.claude")).unwrap();
    let mut daemon = setup.enforces_trust().serve();
    assert_eq!(word(&daemon, "Bash"), "-", "nobody has agreed to it");
    let dot = daemon.path().join("shop/dot");
    fs::rename(&dot, daemon.path().join("before")).unwrap();
    for target in [daemon.path().join("unmounted"), dot.clone()] {
        daemon = killed(daemon, |_| symlink(&target, &dot).unwrap()).enforces_trust().serve();
        assert_eq!(word(&daemon, "Bash"), "-", "{}", target.display());
        fs::remove_file(&dot).unwrap();
    }
    daemon.finish();
}

/// A user's file is the same in every workspace.
#[test]
fn the_guard_of_a_user_is_in_force_where_no_workspace_was_before_its_file_broke() {
    let setup = shop().settings("workspace_roots: [$DIR/roots]").file(OF_USER, &claude("no"));
    let daemon = setup.file("roots/README", "").serve();
    assert_eq!(word(&daemon, "Bash"), "no");
    fs::write(daemon.path().join(OF_USER), "{ \"hooks\": ").unwrap();
    wait_until("the mistake is noticed", || broken_files(&daemon) != ["0", "0", "0"]);
    let make = |name: &str| fs::create_dir_all(daemon.path().join(name).join(".openharness/hooks")).unwrap();
    make("roots/one");
    assert_eq!(word_in(&daemon, "roots/one"), "no");
    let daemon = killed(daemon, |here| {
        fs::create_dir_all(here.join("roots/two/.openharness/hooks")).unwrap();
    })
    .serve();
    assert_eq!((word_in(&daemon, "roots/two"), word(&daemon, "Bash")), ("no".into(), "no".into()));
    // Removed on purpose, also where it was not looked for yet.
    let daemon = killed(daemon, |here| fs::remove_file(here.join(OF_USER)).unwrap()).serve();
    assert_eq!((word_in(&daemon, "roots/two"), word(&daemon, "Bash")), ("-".into(), "-".into()));
    daemon.finish();
}

#[test]
fn a_broken_file_of_a_user_of_which_nothing_is_known_blocks_and_says_so() {
    for data in ["data: $DIR/data", "data: null"] {
        let setup = DaemonSetup::new()
            .settings("workspaces: { shop: { root: $DIR/shop } }")
            .settings(data)
            .file("shop/README", "")
            .file(OF_USER, "{ \"hooks\": ");
        let daemon = setup.serve();
        let why = word(&daemon, "Read");
        assert!(why.contains("its file is broken"), "{data}: {why}");
        assert!(daemon.log().contains("nothing is known of the rules that the file had"), "{}", daemon.log());
        assert_eq!(broken_files(&daemon), ["0", "0", "1"]);
        assert_eq!(checked(&daemon).len(), 1, "{data}: {:?}", checked(&daemon));
        // A file without hooks is known to have none.
        fs::write(daemon.path().join(OF_USER), "{}").unwrap();
        wait_until("it is mended", || word(&daemon, "Read") == "-");
        fs::write(daemon.path().join(OF_USER), "{").unwrap();
        for _ in 0..2 {
            assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
            assert_eq!(word(&daemon, "Read"), "-", "{data}");
            assert_ne!(daemon.get("/v1/status")["broken"], json!([]));
        }
        daemon.finish();
    }
}

/// The hook directory of a workspace around another one.
#[test]
fn the_guard_of_an_outer_workspace_stays_when_its_directory_cannot_be_reached() {
    let setup = shop()
        .settings("workspace_roots: [$DIR/roots]")
        .file("roots/outer/.openharness/hooks/guard.yaml", &guard("guard", "no"))
        .file(
            "roots/outer/inner/.openharness/hooks/other.yaml",
            &guard("other", "other").replace("^Bash$", "^None$"),
        );
    let daemon = setup.serve();
    assert_eq!(word_in(&daemon, "roots/outer"), "no");
    assert_eq!(word_in(&daemon, "roots/outer/inner"), "no");
    let daemon = killed(daemon, |here| {
        let directory = here.join("roots/outer/.openharness");
        fs::rename(&directory, here.join("before")).unwrap();
        symlink(here.join("unmounted"), &directory).unwrap();
    })
    .serve();
    assert_eq!(word_in(&daemon, "roots/outer/inner"), "no");
    assert_eq!(word_in(&daemon, "roots/outer"), "no");
    daemon.finish();
}

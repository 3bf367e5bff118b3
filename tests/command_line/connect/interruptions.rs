//! Settings that cannot be changed, are written meanwhile, or whose change is broken off.

use std::{
    fs::{self, File},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    thread,
};

use rustix::{
    fs::{CWD, Mode, mkfifoat},
    process::geteuid,
};
use serde_json::json;

use super::{Home, SETTINGS, json_of};

/// Settings that are not changed, and what is said about them.
#[test]
fn bad_settings_are_left_as_they_are() {
    type Spoil = fn(&Home, &Path);
    let rows: [(&str, Spoil); 15] = [
        ("not valid JSON", |_, file| fs::write(file, "{\"a\": 1").unwrap()),
        ("not valid JSON", |_, file| fs::write(file, "{} // mine").unwrap()),
        ("duplicate key", |_, file| fs::write(file, "{\"a\": 1, \"a\": 1}").unwrap()),
        ("is not a JSON object", |_, file| fs::write(file, "[]").unwrap()),
        ("`hooks` that is not an object", |_, file| fs::write(file, "{\"hooks\": true}").unwrap()),
        ("is not UTF-8", |_, file| fs::write(file, b"{\"a\": \"\xff\"}").unwrap()),
        ("outside of", |_, file| {
            fs::remove_file(file).unwrap();
            symlink("/etc/hostname", file).unwrap();
        }),
        ("outside of", |home, file| {
            fs::remove_file(file).unwrap();
            fs::remove_dir(file.parent().unwrap()).unwrap();
            symlink("/tmp", home.path(".claude")).unwrap();
        }),
        ("settings.json is a link to nowhere/at/all, which cannot be reached", |_, file| {
            fs::remove_file(file).unwrap();
            symlink("nowhere/at/all", file).unwrap();
        }),
        ("settings.json is a link to settings.json, which cannot be reached", |_, file| {
            fs::remove_file(file).unwrap();
            symlink("settings.json", file).unwrap();
        }),
        (".claude is a link to dotfiles/claude, which cannot be reached", |home, file| {
            fs::remove_file(file).unwrap();
            fs::remove_dir(file.parent().unwrap()).unwrap();
            symlink("dotfiles/claude", home.path(".claude")).unwrap();
        }),
        ("is read-only", |_, file| fs::set_permissions(file, fs::Permissions::from_mode(0o440)).unwrap()),
        ("has another name", |home, file| fs::hard_link(file, home.path("twin")).unwrap()),
        ("is not a regular file", |_, file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        }),
        ("is larger than", |_, file| {
            File::options().write(true).open(file).unwrap().set_len((4 << 20) + 1).unwrap();
        }),
    ];
    for (expected, spoil) in rows {
        let home = Home::new();
        let file = home.write(".claude/settings.json", "{\"model\": \"opus\"}");
        spoil(&home, &file);
        let content = || fs::read(&file).ok();
        let before = content();
        let done = home.run(&["connect", "claude"]);
        assert_eq!(done.code, Some(1), "{expected}: {done:?}");
        assert!(done.err.contains(expected), "{expected}: {}", done.err);
        assert!(!done.out.contains("proof"), "{expected}: {}", done.out);
        assert_eq!(content(), before, "{expected}");
        let beside = file.parent().unwrap().join(".settings.json.hookyard-new");
        assert!(!beside.exists(), "{expected}");
    }
}

#[test]
fn settings_that_another_program_writes_meanwhile_are_left_to_it() {
    for (verb, step) in [("connect", "written"), ("connect", "recorded"), ("disconnect", "written")] {
        let home = Home::new();
        let file = home.write(".claude/settings.json", SETTINGS);
        if verb == "disconnect" {
            home.run(&["connect", "claude"]);
        }
        let pause = home.path("pause");
        mkfifoat(CWD, &pause, Mode::RUSR | Mode::WUSR).unwrap();
        let mut command = home.command(&[verb, "claude"]);
        command.env("HOOKYARD_TEST_PAUSE", step).env("HOOKYARD_TEST_PAUSE_AT", &pause);
        let running = thread::spawn(move || command.output().unwrap());
        // Opens once the program waits at the other end.
        let paused = File::options().write(true).open(&pause).unwrap();
        fs::write(&file, "{\"model\": \"sonnet\"}").unwrap();
        drop(paused);
        let done = running.join().unwrap();
        assert_eq!(done.status.code(), Some(1), "{verb} {step}: {done:?}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.contains("was changed meanwhile"), "{verb} {step}: {said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "{\"model\": \"sonnet\"}", "{verb} {step}");
        assert!(!home.path(".claude/.settings.json.hookyard-new").exists(), "{verb} {step}");
        // Again, it works, and what the other program wrote is what comes back.
        assert!(home.run(&["connect", "claude"]).out.contains("9 events"));
        home.run(&["disconnect", "claude"]);
        assert_eq!(json_of(&file), json!({ "model": "sonnet" }), "{verb} {step}");
    }
}

#[test]
fn a_home_that_cannot_be_written_to_is_left_as_it_is() {
    type Spoil = fn(&Home);
    let rows: [(&str, Spoil); 4] = [
        ("state directory is a file", |home| drop(home.write(".local/state", ""))),
        ("state directory is another's", |home| {
            home.write(".local/state/hookyard/x", "");
            let directory = home.path(".local/state/hookyard");
            fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("directory of the agent is a file", |home| drop(home.write(".codex", ""))),
        // Not for root, who may write there.
        ("directory of the agent is read-only", |home| {
            fs::create_dir(home.path(".codex")).unwrap();
            let mode = if geteuid().is_root() { 0o755 } else { 0o500 };
            fs::set_permissions(home.path(".codex"), fs::Permissions::from_mode(mode)).unwrap();
            if geteuid().is_root() {
                fs::create_dir(home.path(".codex/hooks.json")).unwrap();
            }
        }),
    ];
    for (what, spoil) in rows {
        let home = Home::new();
        spoil(&home);
        let done = home.run(&["connect", "codex"]);
        assert!(done.code == Some(1) && done.err.starts_with("error:"), "{what}: {done:?}");
        assert!(done.err.contains("help:"), "{what}: {done:?}");
        assert!(!home.path(".codex/hooks.json").is_file(), "{what}");
        assert!(!done.out.contains("proof"), "{what}: {done:?}");
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "root can write everywhere but in `/sys`")]
fn a_directory_without_the_right_to_write_there_is_named_with_what_to_do() {
    let home = Home::new();
    let project = if geteuid().is_root() {
        Path::new("/sys").to_owned()
    } else {
        fs::create_dir(home.path("shop")).unwrap();
        fs::set_permissions(home.path("shop"), fs::Permissions::from_mode(0o500)).unwrap();
        home.path("shop")
    };
    let name = project.to_str().unwrap();
    let done = home.run(&["connect", "claude", "--project", name]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let said = format!("{name}/.claude/settings.local.json cannot be written");
    let help =
        format!("help: give your account the right to read and write {name}, and run the command again");
    assert!(done.err.contains(&said) && done.err.contains(&help), "{done:?}");
    assert!(!done.out.contains("proof"), "{done:?}");
}

#[test]
fn a_broken_off_connect_leaves_whole_settings_and_is_finished_or_undone_later() {
    for step in ["backed-up", "recorded", "written", "published"] {
        for finish in [true, false] {
            let home = Home::new();
            let file = home.write(".claude/settings.json", SETTINGS);
            let killed =
                home.command(&["connect", "claude"]).env("HOOKYARD_TEST_ABORT", step).output().unwrap();
            assert_eq!(killed.status.code(), None, "{step}: {killed:?}");
            let now = json_of(&file);
            let is_connected = now["hooks"]["Stop"].is_array();
            assert_eq!(is_connected, step == "published", "{step}");
            if finish {
                home.run(&["connect", "claude"]);
                assert!(json_of(&file)["hooks"]["Stop"].is_array(), "{step}");
            }
            let done = home.run(&["disconnect", "claude"]);
            assert_eq!(done.code, Some(0), "{step}: {done:?}");
            assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS, "{step}");
            let left: Vec<_> = file.parent().unwrap().read_dir().unwrap().flatten().collect();
            assert_eq!(left.len(), 1, "{step}: {left:?}");
        }
    }
    let home = Home::new();
    let file = home.write(".claude/settings.json", SETTINGS);
    home.run(&["connect", "claude"]);
    home.command(&["disconnect", "claude"]).env("HOOKYARD_TEST_ABORT", "restored").output().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS);
    assert_eq!(home.run(&["disconnect", "claude"]).code, Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS);
}

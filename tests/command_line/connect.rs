//! `connect` and `disconnect`, on homes of their own.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    thread,
};

use assert_cmd::{Command, cargo::cargo_bin, cargo::cargo_bin_cmd};
use rustix::{
    fs::{CWD, FileType, Mode, mkfifoat, mknodat},
    process::geteuid,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::daemon::{Daemon, DaemonSetup};

/// A home directory with the settings of agents.
struct Home(TempDir);

/// What one run of the program did.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    fn write(&self, below: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = cargo_bin_cmd!("hookyard");
        command.current_dir(self.0.path()).env_remove("HOOKYARD_LOG").env_remove("HOOKYARD_LISTEN_SOCKET");
        command
            .env("HOOKYARD_TEST_HOME", self.path(""))
            .env("HOME", self.path(""))
            .env("XDG_RUNTIME_DIR", self.path(""));
        // No agent is installed there.
        command.env("PATH", self.path("bin")).args(arguments);
        if arguments.first() == Some(&"connect") {
            command.args(["--daemon", "manual"]);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let output = self.command(arguments).output().unwrap();
        Ended {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The files of the state directory, but for locks.
    fn state(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut directories = vec![self.path(".local/state/hookyard")];
        while let Some(directory) = directories.pop() {
            for entry in directory.read_dir().into_iter().flatten().flatten() {
                match entry.path() {
                    path if path.is_dir() => directories.push(path),
                    path if path.extension().is_some_and(|extension| extension == "lock") => {}
                    path => found.push(path),
                }
            }
        }
        found
    }
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o777
}

const SETTINGS: &str = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\"matcher\": \"Bash\", \"hooks\": [{ \"type\": \"command\", \"command\": \"guard.sh\" }]}\n    ]\n  }\n}\n";

#[test]
fn a_connected_agent_has_one_entry_for_each_event_and_disconnecting_restores_every_byte() {
    for before in [
        Some(SETTINGS),
        Some("{}"),
        Some("{\r\n\t\"a\": 1\r\n}"),
        Some("\u{feff}{\"hooks\": {}}\n"),
        Some(""),
        None,
    ] {
        let home = Home::new();
        let file = home.path(".claude/settings.json");
        if let Some(text) = before {
            home.write(".claude/settings.json", text);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        }
        let done = home.run(&["connect", "claude"]);
        // No daemon answers, and nothing is said to be proven.
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.out.contains("no proof") && done.out.contains("9 events"), "{done:?}");
        let after = fs::read_to_string(&file).unwrap();
        let settings: Value = serde_json::from_str(after.trim_start_matches('\u{feff}')).unwrap();
        let entries = settings["hooks"]["PreToolUse"].as_array().unwrap();
        let entry = &entries.last().unwrap()["hooks"][0];
        let command = entry["command"].as_str().unwrap();
        assert!(command.starts_with(cargo_bin("hookyard").to_str().unwrap()), "{command}");
        assert!(
            command.contains(" relay --dialect claude --socket /") && command.ends_with(" --if-down block"),
            "{command}"
        );
        assert_eq!(entry["timeout"], 600);
        assert!(command.contains(" --timeout 590s "), "{command}");
        // A block of it would keep the agent at work.
        let stop = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
        assert!(!stop.contains("--if-down"), "{stop}");
        assert_eq!(mode(&file), if before.is_some() { 0o640 } else { 0o600 });
        assert!(home.state().iter().all(|file| mode(file) == 0o600), "{:?}", home.state());
        // Twice changes nothing.
        let inode = file.metadata().unwrap().ino();
        let again = home.run(&["connect", "claude"]);
        assert!(again.out.contains("as before"), "{again:?}");
        assert_eq!((fs::read_to_string(&file).unwrap(), file.metadata().unwrap().ino()), (after, inode));
        let back = home.run(&["disconnect", "claude"]);
        assert_eq!(back.code, Some(0), "{back:?}");
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), before, "{back:?}");
        assert_eq!(home.state(), [home.path(".local/state/hookyard/connections.json")]);
        assert_eq!(home.run(&["disconnect", "claude"]).code, Some(0));
    }
}

#[test]
fn a_dry_run_shows_a_diff_and_changes_nothing() {
    let home = Home::new();
    let file = home.write(".claude/settings.json", SETTINGS);
    let done = home.run(&["connect", "claude", "--dry-run"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("+    \"Stop\": [") && done.out.contains("@@"), "{}", done.out);
    assert!(!done.out.contains("-    \"PreToolUse\""), "{}", done.out);
    assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS);
    assert_eq!(home.state(), Vec::<PathBuf>::new());
    home.run(&["connect", "claude"]);
    let again = home.run(&["connect", "claude", "--dry-run"]);
    assert!(again.out.contains("nothing would change"), "{again:?}");
    let connected = fs::read_to_string(&file).unwrap();
    let back = home.run(&["disconnect", "claude", "--dry-run"]);
    assert!(back.out.contains("as it was before"), "{back:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), connected);
}

#[test]
fn settings_that_were_changed_since_lose_only_the_entries() {
    let home = Home::new();
    let file = home.write(".claude/settings.json", SETTINGS);
    home.run(&["connect", "claude"]);
    let changed = fs::read_to_string(&file).unwrap().replace("\"opus\"", "\"sonnet\"");
    fs::write(&file, &changed).unwrap();
    let done = home.run(&["disconnect", "claude"]);
    assert!(done.out.contains("was changed since"), "{done:?}");
    let expected = SETTINGS.replace("\"opus\"", "\"sonnet\"");
    assert_eq!(json_of(&file), serde_json::from_str::<Value>(&expected).unwrap());
}

#[test]
fn entries_by_hand_and_of_another_hookyard_are_replaced() {
    let home = Home::new();
    let by_hand = json!({ "hooks": {
        "PreToolUse": [{ "hooks": [{ "type": "command", "command": "hookyard relay --dialect claude" }] }],
        "FileChanged": [{ "hooks": [{ "type": "command", "command": "/old/hookyard relay -d claude" }] }],
        "Stop": [{ "hooks": [
            { "type": "command", "command": "mine.sh" },
            { "type": "command", "command": "'/o/hookyard' relay --dialect=claude" },
        ] }],
    } });
    let file = home.write(".claude/settings.json", by_hand.to_string());
    home.run(&["connect", "claude"]);
    let settings = json_of(&file);
    let text = settings.to_string();
    assert!(!text.contains("/old/hookyard") && !text.contains("/o/hookyard"), "{text}");
    assert_eq!(settings["hooks"]["PreToolUse"].as_array().unwrap().len(), 1);
    // An event that somebody has connected stays so.
    assert!(
        settings["hooks"]["FileChanged"][0]["hooks"][0]["command"].as_str().unwrap().contains("--socket")
    );
    assert_eq!(settings["hooks"]["Stop"][0]["hooks"][0]["command"], "mine.sh");
}

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

#[test]
fn a_project_is_connected_by_the_file_for_this_machine() {
    let home = Home::new();
    fs::create_dir(home.path("shop")).unwrap();
    home.run(&["connect", "claude", "--project", "shop"]);
    let file = home.path("shop/.claude/settings.local.json");
    assert!(json_of(&file)["hooks"]["PreToolUse"].is_array());
    home.run(&["disconnect", "claude", "--project", "shop"]);
    assert!(!home.path("shop/.claude").exists());
}

/// Settings that are not changed, and what is said about them.
#[test]
fn bad_settings_are_left_as_they_are() {
    type Spoil = fn(&Home, &Path);
    let rows: [(&str, Spoil); 13] = [
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
        ("no such file", |_, file| {
            fs::remove_file(file).unwrap();
            symlink("nowhere/at/all", file).unwrap();
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
fn settings_that_a_variable_moves_are_connected_where_they_are() {
    for (agent, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("claude", "HOME", ".claude/settings.json"),
    ] {
        let home = Home::new();
        let elsewhere = tempfile::tempdir().unwrap();
        let elsewhere = elsewhere.path().canonicalize().unwrap();
        let file = elsewhere.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "{ }\n").unwrap();
        let run = |arguments: &[&str]| {
            let output = home.command(arguments).env(variable, &elsewhere).output().unwrap();
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
        };
        let said = run(&["connect", agent]);
        assert!(json_of(&file)["hooks"].is_object(), "{variable}: {said}");
        assert!(!home.path(&format!(".{agent}")).exists(), "{variable}: {said}");
        assert!(run(&["connect", agent]).contains("as before"), "{variable}");
        let found = run(&["doctor", "--json", "--socket", "/nowhere.sock"]);
        assert!(found.contains(" entries") && !found.contains("outside of"), "{variable}: {found}");
        run(&["disconnect", agent]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "{ }\n", "{variable}");
    }
}

#[test]
fn a_relative_path_in_a_variable_moves_nothing() {
    let home = Home::new();
    home.command(&["connect", "claude"]).env("CLAUDE_CONFIG_DIR", "shop/.claude").output().unwrap();
    assert!(home.path(".claude/settings.json").exists() && !home.path("shop").exists());
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
fn agents_that_are_connected_at_the_same_time_are_all_connected() {
    const AGENTS: [&str; 6] = ["claude", "gemini", "codebuddy", "clawd", "codex", "qwen"];
    let home = Home::new();
    let commands: Vec<Command> =
        (0..3).flat_map(|_| AGENTS.map(|agent| home.command(&["connect", agent]))).collect();
    let running = commands.into_iter().map(|mut command| thread::spawn(move || command.output().unwrap()));
    let running: Vec<_> = running.collect();
    for done in running {
        let done = done.join().unwrap();
        assert!(String::from_utf8_lossy(&done.stdout).contains("no proof"), "{done:?}");
    }
    let record = json_of(&home.path(".local/state/hookyard/connections.json"));
    assert_eq!(record["connections"].as_array().unwrap().len(), AGENTS.len(), "{record}");
    let settings = json_of(&home.path(".codex/hooks.json"));
    assert_eq!(settings["hooks"]["PreToolUse"].as_array().unwrap().len(), 1, "{settings}");
    for agent in AGENTS {
        assert_eq!(home.run(&["disconnect", agent]).code, Some(0));
    }
    assert_eq!(home.state(), [home.path(".local/state/hookyard/connections.json")]);
}

#[test]
fn another_hookyard_takes_the_place_of_the_first_one() {
    let home = Home::new();
    let file = home.write(".claude/settings.json", SETTINGS);
    home.run(&["connect", "claude", "--program", "/opt/a/hookyard"]);
    home.run(&["connect", "claude", "--program", "/opt/b/hookyard"]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("/opt/a/") && text.matches("/opt/b/hookyard relay").count() == 9, "{text}");
    home.run(&["disconnect", "claude"]);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        SETTINGS,
        "what was there before the first one comes back"
    );
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
        assert!(!home.path(".codex/hooks.json").is_file(), "{what}");
        assert!(!done.out.contains("proof"), "{what}: {done:?}");
    }
}

#[test]
fn a_link_inside_the_home_is_followed_and_stays() {
    let home = Home::new();
    let real = home.write("dotfiles/claude.json", "{\"model\": \"opus\"}");
    fs::create_dir(home.path(".claude")).unwrap();
    symlink("../dotfiles/claude.json", home.path(".claude/settings.json")).unwrap();
    home.run(&["connect", "claude"]);
    assert!(json_of(&real)["hooks"]["Stop"].is_array());
    assert!(home.path(".claude/settings.json").is_symlink());
    home.run(&["disconnect", "claude"]);
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\"model\": \"opus\"}");
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

#[test]
fn a_record_that_cannot_be_trusted_is_neither_used_nor_overwritten() {
    type Spoil = fn(&Path);
    let spoils: [(&str, Spoil); 15] = [
        ("it is damaged", |file| fs::write(file, "{").unwrap()),
        ("it is damaged", |file| fs::write(file, "").unwrap()),
        ("it is damaged", |file| fs::write(file, &fs::read(file).unwrap()[..60]).unwrap()),
        ("it is damaged", |file| {
            fs::write(file, "{\"version\":1,\"version\":1,\"connections\":[]}").unwrap();
        }),
        ("it is damaged", |file| fs::write(file, "{\"version\":1,\"connections\":[],\"more\":1}").unwrap()),
        ("its version is 9", |file| fs::write(file, "{\"version\":9,\"later\":[]}").unwrap()),
        ("others may read or write it", |file| {
            fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("others may read or write it", |file| {
            fs::set_permissions(file, fs::Permissions::from_mode(0o620)).unwrap();
        }),
        ("others may write to it", |file| {
            fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("it is a symbolic link", |file| {
            fs::rename(file, file.with_extension("old")).unwrap();
            symlink(file.with_extension("old"), file).unwrap();
        }),
        ("it is a symbolic link", |file| {
            let directory = file.parent().unwrap();
            fs::rename(directory, directory.with_extension("old")).unwrap();
            symlink(directory.with_extension("old"), directory).unwrap();
        }),
        ("it has another name", |file| fs::hard_link(file, file.with_extension("twin")).unwrap()),
        ("it is no regular file", |file| {
            fs::remove_file(file).unwrap();
            mknodat(CWD, file, FileType::Fifo, Mode::from(0o600), 0).unwrap();
        }),
        ("it is no regular file", |file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        }),
        // Only root can give a file away.
        ("it belongs to another user", |file| drop(chown(file, Some(65534), None))),
    ];
    for (why, spoil) in spoils {
        if why == "it belongs to another user" && !geteuid().is_root() {
            continue;
        }
        let home = Home::new();
        let file = home.write(".claude/settings.json", SETTINGS);
        home.run(&["connect", "claude"]);
        let connected = fs::read_to_string(&file).unwrap();
        let record = home.path(".local/state/hookyard/connections.json");
        spoil(&record);
        // Reading a FIFO would wait.
        let content = || record.is_file().then(|| fs::read(&record).unwrap());
        let before = content();
        for command in ["connect", "disconnect"] {
            let done = home.run(&[command, "claude"]);
            assert_eq!(done.code, Some(1), "{command}, {why}: {done:?}");
            let is_said =
                done.err.contains("the record of connections cannot be used") && done.err.contains(why);
            assert!(is_said, "{command}, {why}: {done:?}");
            assert_eq!(content(), before, "{command}, {why}");
            assert_eq!(fs::read_to_string(&file).unwrap(), connected, "{command}, {why}");
        }
    }
}

#[test]
fn a_hostile_project_has_nothing_outside_of_it_changed_and_nothing_written_to_the_terminal() {
    type Plant = fn(&Home, &Path);
    let plants: [(&str, Plant); 6] = [
        ("outside of", |home, file| symlink(home.path("outside.json"), file).unwrap()),
        ("outside of", |home, file| {
            fs::remove_dir(file.parent().unwrap()).unwrap();
            fs::create_dir(home.path("elsewhere")).unwrap();
            symlink(home.path("elsewhere"), file.parent().unwrap()).unwrap();
        }),
        ("a hard link", |home, file| fs::hard_link(home.path("outside.json"), file).unwrap()),
        ("not a regular file", |_, file| mknodat(CWD, file, FileType::Fifo, Mode::from(0o600), 0).unwrap()),
        ("not a regular file", |_, file| fs::create_dir(file).unwrap()),
        ("larger than", |_, file| fs::File::create(file).unwrap().set_len(300 << 20).unwrap()),
    ];
    for (why, plant) in plants {
        let home = Home::new();
        let project = home.path("shop\u{1b}[2J\nx");
        let file = project.join(".claude/settings.local.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let outside = home.write("outside.json", "{}");
        plant(&home, &file);
        let project = project.to_str().unwrap();
        for command in ["connect", "disconnect"] {
            let done = home.run(&[command, "claude", "--project", project]);
            let text = [done.out.as_str(), &done.err].concat();
            assert!(!text.contains('\u{1b}'), "{command}, {why}: {text}");
            let is_refused = done.code == Some(1) && done.err.contains(why);
            // A file without entries is left as it is.
            assert!(is_refused || command == "disconnect", "{command}, {why}: {done:?}");
            assert_eq!(fs::read_to_string(&outside).unwrap(), "{}", "{command}, {why}");
            let elsewhere = home.path("elsewhere").read_dir().map(Iterator::count);
            assert_eq!(elsewhere.unwrap_or_default(), 0, "{command}, {why}");
        }
        let done = home.run(&["doctor", "--workspace", project]);
        assert!(!done.out.contains('\u{1b}') && !done.err.contains('\u{1b}'), "{why}: {done:?}");
        assert_eq!(home.state(), Vec::<PathBuf>::new(), "{why}");
    }
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let home = Home::new();
    let file = home.write(".claude/settings.json", SETTINGS);
    let directory = home.path(".local/state/hookyard");
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(home.path("elsewhere"), directory.join("connections.lock")).unwrap();
    let done = home.run(&["connect", "claude"]);
    assert!(done.code == Some(1) && done.err.contains("connections.lock"), "{done:?}");
    assert!(!home.path("elsewhere").exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS);
}

#[test]
fn an_unknown_agent_or_event_is_an_error() {
    let home = Home::new();
    assert_eq!(home.run(&["connect", "emacs"]).code, Some(2));
    let done = home.run(&["connect", "gemini", "--event", "PreToolUse"]);
    assert!(done.code == Some(1) && done.err.contains("its events are SessionStart"), "{done:?}");
    assert_eq!(home.run(&["connect", "claude", "--user", "--project", "."]).code, Some(2));
}

/// A daemon with a project whose Claude settings have a hook, beside one of hookyard.
fn shop() -> DaemonSetup {
    let note = "{\"hooks\":{\"PreToolUse\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"echo SCOPE >> $DIR/ran\"}]}]}}";
    let setup = DaemonSetup::new().settings("workspace_roots: [$DIR/home]");
    let directory = setup.path();
    let hooks = |scope: &str| note.replace("SCOPE", scope).replace("$DIR", directory.to_str().unwrap());
    let guard = format!(
        "name: guard\nevents: [before_tool_dispatch]\nhandler: {{type: command, command: 'echo hookyard >> {}/ran'}}\n",
        directory.display()
    );
    setup
        .file("home/.claude/settings.json", &hooks("user"))
        .file("home/shop/.claude/settings.json", &hooks("project"))
        .file("home/shop/.openharness/hooks/guard.yaml", &guard)
        .file("home/shop/nested/.claude/settings.json", &hooks("nested"))
}

/// Which hooks ran for a tool call in a directory, in a session of a project.
fn ran(daemon: &Daemon, dialect: &str, cwd: &str, project: &str) -> Vec<String> {
    let log = daemon.path().join("ran");
    fs::remove_file(&log).ok();
    let cwd = daemon.path().join(cwd);
    let event = match dialect {
        "gemini" => {
            json!({ "hook_event_name": "BeforeTool", "session_id": "s", "cwd": cwd, "tool_name": "ls", "tool_input": {} })
        }
        _ => {
            json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": cwd, "tool_name": "Bash", "tool_input": {} })
        }
    };
    let mut relay = cargo_bin_cmd!("hookyard");
    relay.args(["relay", "--dialect", dialect, "--socket"]).arg(daemon.socket());
    relay.env("CLAUDE_PROJECT_DIR", daemon.path().join(project)).write_stdin(event.to_string());
    let output = relay.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut ran: Vec<String> =
        fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect();
    ran.sort();
    ran
}

#[test]
fn a_connected_agent_runs_its_own_hooks_and_hookyard_the_others() {
    let daemon = shop().serve();
    assert_eq!(ran(&daemon, "claude", "home/shop", "home/shop"), ["hookyard", "project", "user"]);
    let mut connect = cargo_bin_cmd!("hookyard");
    connect.args(["connect", "claude", "--socket"]).arg(daemon.socket());
    connect.env("HOOKYARD_TEST_HOME", daemon.path().join("home")).env("HOME", daemon.path().join("home"));
    let output = connect.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text.contains("answered PreToolUse"), "{text}");
    assert_eq!(ran(&daemon, "claude", "home/shop", "home/shop"), ["hookyard"]);
    // Nobody else runs them for another agent.
    assert_eq!(ran(&daemon, "gemini", "home/shop", "home/shop"), ["hookyard", "project", "user"]);
    // The agent has not read the settings of a directory that its session went to later.
    assert_eq!(ran(&daemon, "claude", "home/shop/nested", "home/shop"), ["hookyard", "nested"]);
    assert_eq!(ran(&daemon, "claude", "home/shop/nested", "home/shop/nested"), ["hookyard", "project"]);
    let status: Value = daemon.client().ask("GET", "/v1/status", None).unwrap();
    let agents = status["agents"].as_array().unwrap();
    let claude = agents.iter().find(|agent| agent["agent"] == "claude").unwrap();
    assert_eq!(claude["last_event"], "before_tool_dispatch", "{status}");
    let mut disconnect = cargo_bin_cmd!("hookyard");
    disconnect.args(["disconnect", "claude", "--socket"]).arg(daemon.socket());
    let output = disconnect
        .env("HOOKYARD_TEST_HOME", daemon.path().join("home"))
        .env("HOME", daemon.path().join("home"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(ran(&daemon, "claude", "home/shop", "home/shop"), ["hookyard", "project", "user"]);
}

#[test]
fn a_daemon_that_runs_serves_the_directories_of_an_agent_once_it_is_connected() {
    let guard = "name: guard\nevents: [before_tool_dispatch]\nhandler: {type: command, command: 'echo no >&2; exit 2'}\n";
    let daemon = DaemonSetup::new()
        .file("home/shop/.openharness/hooks/guard.yaml", guard)
        .file("elsewhere/.openharness/hooks/guard.yaml", guard)
        .serve();
    let event = |cwd: &str| {
        let cwd = daemon.path().join(cwd);
        let event = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": cwd, "tool_name": "Bash", "tool_input": {} });
        daemon.post("/v1/events/claude?as=process", &event)["stdout"].to_string().contains("deny")
    };
    assert!(!event("home/shop"), "it serves nothing yet");
    let run = |verb: &str, project: &str| {
        let mut command = cargo_bin_cmd!("hookyard");
        command.args([verb, "claude", "--project"]).arg(daemon.path().join(project));
        command
            .arg("--socket")
            .arg(daemon.socket())
            .env("HOOKYARD_TEST_HOME", daemon.path().join("home"))
            .env("HOME", daemon.path().join("home"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    run("connect", "home/shop");
    assert!(event("home/shop"));
    assert!(!event("elsewhere"), "nobody has connected it");
    run("connect", "elsewhere");
    assert!(event("home/shop") && event("elsewhere"));
}

#[test]
fn a_record_inside_a_workspace_takes_no_hook_from_hookyard_there() {
    for (state, expected) in
        [("state", vec!["hookyard"]), ("home/shop/state", vec!["hookyard", "project", "user"])]
    {
        let setup = shop().settings(&format!("state_directory: $DIR/{state}"));
        let (here, directory) = (setup.path(), setup.path().join(state));
        let connection = json!({ "agent": "claude", "reach": "user", "root": here.join("home"),
            "file": here.join("home/.claude/settings.json"), "events": ["PreToolUse"], "written": "", "before": null });
        let record = json!({ "version": 1, "connections": [connection] }).to_string();
        let setup = setup.file(&format!("{state}/connections.json"), &record);
        fs::set_permissions(directory.join("connections.json"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        let daemon = setup.serve();
        assert_eq!(ran(&daemon, "claude", "home/shop", "home/shop"), expected, "{state}");
        daemon.finish();
    }
}

#[test]
fn what_an_agent_would_not_run_stays_with_hookyard() {
    // In Gemini CLI, the project's file switches off the user's hook; hookyard does not obey that.
    let note = |scope: &str| format!("echo {scope} >> $DIR/ran");
    let setup = DaemonSetup::new()
        .settings("workspace_roots: [$DIR/home]\nrequired: [gemini.project.BeforeTool.1.1]");
    let directory = setup.path().to_str().unwrap().to_owned();
    let hooks = |name: &str, more: &str| {
        let command = note(name).replace("$DIR", &directory);
        format!(
            "{{\"hooks\":{{\"BeforeTool\":[{{\"hooks\":[{{\"type\":\"command\",\"name\":\"{name}\",\"command\":\"{command}\"}}]}}]}}{more}}}"
        )
    };
    let daemon = setup
        .file("home/.gemini/settings.json", &hooks("user", ""))
        .file(
            "home/shop/.gemini/settings.json",
            &hooks("project", ",\"hooksConfig\":{\"disabled\":[\"user\"]}"),
        )
        .file("home/other/.gemini/settings.json", "{\"hooks\":{}}")
        .serve();
    let mut connect = cargo_bin_cmd!("hookyard");
    connect.args(["connect", "gemini", "--socket"]).arg(daemon.socket());
    connect.env("HOOKYARD_TEST_HOME", daemon.path().join("home")).env("HOME", daemon.path().join("home"));
    assert_eq!(connect.output().unwrap().status.code(), Some(0));
    let of = |cwd: &str| {
        let log = daemon.path().join("ran");
        fs::remove_file(&log).ok();
        let cwd = daemon.path().join(cwd);
        let event = json!({ "hook_event_name": "BeforeTool", "session_id": "s", "cwd": cwd, "tool_name": "ls", "tool_input": {} });
        let mut relay = cargo_bin_cmd!("hookyard");
        relay.args(["relay", "--dialect", "gemini", "--socket"]).arg(daemon.socket());
        relay.env("GEMINI_PROJECT_DIR", &cwd).write_stdin(event.to_string());
        relay.output().unwrap();
        let mut ran: Vec<String> =
            fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect();
        ran.sort();
        ran
    };
    assert_eq!(of("home/shop"), ["project", "user"]);
    assert_eq!(of("home/other"), Vec::<String>::new());
}

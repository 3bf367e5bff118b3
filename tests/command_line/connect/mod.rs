//! `connect` and `disconnect`, on homes of their own.

mod adoption;
mod agents;
mod hostile_files;
mod interruptions;
mod sessions;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    thread,
};

use assert_cmd::{Command, cargo::cargo_bin, cargo::cargo_bin_cmd};
use serde_json::{Value, json};
use tempfile::TempDir;

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
        // Only where there are command hooks.
        assert_eq!(done.out.contains("`hookyard tune`"), before == Some(SETTINGS), "{done:?}");
        let after = fs::read_to_string(&file).unwrap();
        let settings: Value = serde_json::from_str(after.trim_start_matches('\u{feff}')).unwrap();
        let entries = settings["hooks"]["PreToolUse"].as_array().unwrap();
        let entry = &entries.last().unwrap()["hooks"][0];
        let command = entry["command"].as_str().unwrap();
        // The program that passes events on is beside the other one.
        assert!(command.starts_with(cargo_bin("hookyard-relay").to_str().unwrap()), "{command}");
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
fn a_project_is_connected_by_the_file_for_this_machine() {
    let home = Home::new();
    fs::create_dir(home.path("shop")).unwrap();
    home.run(&["connect", "claude", "--project", "shop"]);
    let file = home.path("shop/.claude/settings.local.json");
    assert!(json_of(&file)["hooks"]["PreToolUse"].is_array());
    home.run(&["disconnect", "claude", "--project", "shop"]);
    assert!(!home.path("shop/.claude").exists());
}

#[test]
fn settings_that_a_variable_moves_are_connected_where_they_are() {
    for (agent, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("copilot", "COPILOT_HOME", "settings.json"),
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
fn agents_that_are_connected_at_the_same_time_are_all_connected() {
    const AGENTS: [&str; 8] =
        ["claude", "gemini", "codebuddy", "clawd", "codex", "qwen", "copilot", "cursor"];
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
fn the_daemon_finds_no_programs_of_the_project_it_was_connected_from() {
    let home = Home::new();
    home.write("src/shop/.git/HEAD", "");
    home.write("src/shop/app/node_modules/.bin/jq", "");
    home.write("src/shop/.venv/bin/jq", "");
    home.write("src/node_modules/.bin/jq", "");
    home.write("bin/jq", "");
    home.write("src/shopping/bin/jq", "");
    symlink(home.path("src/shop/.venv/bin"), home.path("link")).unwrap();
    let connected_from = |directory: &str| {
        let names = ["src/shop/app/node_modules/.bin", "src/node_modules/.bin", "src/shop/.venv/bin", "link"];
        let names = names.iter().chain(&["src/shopping/bin", "bin"]);
        let path = std::env::join_paths(names.map(|name| home.path(name))).unwrap();
        let mut command = home.command(&["connect", "claude"]);
        let ended = command.current_dir(home.path(directory)).env("PATH", path).output().unwrap();
        let record = json_of(&home.path(".local/state/hookyard/connections.json"));
        let found = record["daemon"]["search_path"].as_str().unwrap().to_owned();
        (found.replace(&home.path("").display().to_string(), ""), String::from_utf8(ended.stderr).unwrap())
    };
    let (found, said) = connected_from("src/shop/app");
    assert_eq!(found, "src/shopping/bin:bin");
    assert!(said.contains("hooks find no programs in") && said.contains("src/shop/.venv/bin"), "{said}");
    // What is in another directory is as the user has it, but for packages of npm.
    home.write(".git/HEAD", "");
    let (found, said) = connected_from("");
    assert_eq!(found, "src/shop/.venv/bin:link:src/shopping/bin:bin");
    assert!(said.contains("node_modules/.bin") && !said.contains(".venv"), "{said}");
}

#[test]
fn entries_name_the_small_program_if_it_can_be_run() {
    let home = Home::new();
    let whole = home.write("opt/hookyard", "");
    let small = home.path("opt/hookyard-relay");
    let entries = |name: &str, count: usize| {
        home.run(&["connect", "claude", "--program", whole.to_str().unwrap()]);
        let text = fs::read_to_string(home.path(".claude/settings.json")).unwrap();
        assert_eq!(
            text.matches(&format!("/opt/{name} relay --dialect claude")).count(),
            count,
            "{name}: {text}"
        );
    };
    entries("hookyard", 9);
    fs::write(&small, "").unwrap();
    entries("hookyard", 9);
    fs::set_permissions(&small, fs::Permissions::from_mode(0o755)).unwrap();
    entries("hookyard-relay", 9);
    entries("hookyard", 0);
    fs::remove_file(small).unwrap();
    entries("hookyard", 9);
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
fn an_unknown_agent_or_event_is_an_error() {
    let home = Home::new();
    assert_eq!(home.run(&["connect", "emacs"]).code, Some(2));
    let done = home.run(&["connect", "gemini", "--event", "PreToolUse"]);
    assert!(done.code == Some(1) && done.err.contains("its events are SessionStart"), "{done:?}");
    assert_eq!(home.run(&["connect", "claude", "--user", "--project", "."]).code, Some(2));
}

//! The shell lines, JSON, YAML and links of the README and the documents.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use hookyard::{
    config, dialect,
    model::{DialectName, EventKind, Json, WorkspaceId},
};
use serde_json::Value;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The directories with pages that people read.
const FOLDERS: [&str; 10] = [
    "",
    "config/container",
    "config/fleet",
    "config/packages",
    "config/recordings",
    "config/workers",
    "docs",
    "grafana",
    "tests",
    "tests/cases",
];

/// The pages that people read.
fn pages() -> Vec<String> {
    let mut pages = Vec::new();
    for folder in FOLDERS {
        let before = pages.len();
        for entry in fs::read_dir(repository().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
                pages.push(Path::new(folder).join(name).to_str().unwrap().to_owned());
            }
        }
        assert!(pages.len() > before, "{folder} has no page");
    }
    pages
}

/// The fenced blocks of one language, in order.
fn blocks(file: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(repository().join(file)).unwrap();
    let fence = format!("\n```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

/// Shell lines with `hookyard` in the PATH.
#[allow(clippy::disallowed_methods, reason = "a test runs what the README shows")]
fn shell_of(lines: &str, directory: &Path) -> Command {
    let programs = Path::new(env!("CARGO_BIN_EXE_hookyard")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", lines]).current_dir(directory).env("PATH", path);
    command.env_remove("HOOKYARD_LISTEN_SOCKET");
    command.env("HOOKYARD_TEST_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("home"));
    command
}

/// Runs shell lines; they must succeed, as a person would expect of them.
fn shell(lines: &str, directory: &Path) -> Output {
    let output = shell_of(lines, directory).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{lines}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    output
}

#[test]
fn the_first_hook_is_checked_explained_and_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let blocks = blocks("README.md", "sh");
    let [_, replay, tests, write, check, fire, trust, serve, send] = blocks.as_slice() else {
        panic!("{} shell blocks", blocks.len())
    };
    assert!(replay.starts_with("cargo run -- replay ") && tests == "scripts/test");
    shell(write, directory.path());
    let checked = shell(check, directory.path());
    assert!(String::from_utf8_lossy(&checked.stdout).contains("no-force-push"));
    let mut seen: Value = serde_json::from_slice(&shell(fire, directory.path()).stdout).unwrap();
    let mut shown: Value = serde_json::from_str(&self::blocks("README.md", "json")[0]).unwrap();
    for outcome in [&mut seen, &mut shown] {
        assert!(outcome["decision_id"].take().is_string());
        assert!(outcome["hooks"][0]["duration_ms"].take().is_number());
        // Only where the machine is busy.
        outcome["hooks"][0].as_object_mut().unwrap().remove("queued_ms");
    }
    assert_eq!(seen, shown);
    assert_eq!(trust, "hookyard trust");
    // Outside a terminal, it prints the command that agrees.
    let agree = "$(hookyard trust 2>&1 >shown | sed -n 's/^to agree: //p')";
    shell(agree, directory.path());
    assert!(fs::read_to_string(directory.path().join("shown")).unwrap().contains("no-force-push.sh"));
    a_daemon_is_asked(serve, send, directory.path());
}

/// A home directory whose daemon, if an agent's event has started one, ends with this.
struct Home(tempfile::TempDir);

impl Home {
    fn shell(&self, lines: &str) -> Command {
        let mut command = shell_of(lines, &self.0.path().join("shop"));
        for variable in ["HOME", "XDG_RUNTIME_DIR", "HOOKYARD_TEST_HOME"] {
            command.env(variable, self.0.path());
        }
        command
    }

    /// Its standard output, if it succeeds.
    fn run(&self, lines: &str) -> String {
        let output = self.shell(lines).output().unwrap();
        assert!(output.status.success(), "{lines}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(self.shell("hookyard stop").output());
    }
}

#[test]
fn two_commands_put_a_guard_between_an_agent_and_the_machine() {
    let home = Home(tempfile::tempdir().unwrap());
    fs::create_dir(home.0.path().join("shop")).unwrap();
    let commands = &blocks("README.md", "sh")[0];
    let (new, connect) = commands.split_once('\n').unwrap();
    // Outside a terminal, it prints the command that agrees.
    let written = home.run(new);
    let agree = written.lines().find(|line| line.contains("hookyard trust ")).unwrap();
    home.run(agree);
    // The service manager and the home directory of whoever runs this test are left alone.
    let connected = home.run(&format!("{connect} --daemon on-demand --home {}", home.0.path().display()));
    assert!(connected.contains("answered PreToolUse"), "{connected}");
    home.run("hookyard stop");

    let settings = fs::read(home.0.path().join(".claude/settings.json")).unwrap();
    let settings: Value = serde_json::from_slice(&settings).unwrap();
    let entry = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    let asked = blocks("README.md", "text").into_iter().find(|block| block.starts_with("Run ")).unwrap();
    for (command, runs) in [("ls", true), (asked.split('`').nth(1).unwrap(), false)] {
        let event = serde_json::json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": home.0.path().join("shop"), "tool_name": "Bash",
            "tool_input": { "command": command }, "tool_use_id": "t", "transcript_path": "", "permission_mode": "default",
        });
        let answer = home.run(&format!("{entry} <<'EVENT'\n{event}\nEVENT"));
        let is_denied = answer.contains("\"permissionDecision\":\"deny\"");
        assert_eq!(is_denied, !runs, "{answer}");
        assert_eq!(answer.contains("nobody frobnicates everything here"), !runs, "{answer}");
    }
    home.run(&format!("hookyard disconnect claude --home {}", home.0.path().display()));
    assert!(!home.0.path().join(".claude/settings.json").exists());
}

/// A daemon at work, which ends with this.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts the daemon where the first hook is, and asks it from another terminal.
#[allow(clippy::disallowed_methods, reason = "a test runs what the README shows")]
fn a_daemon_is_asked(serve: &str, send: &str, directory: &Path) {
    if Command::new("curl").arg("--version").output().is_err() {
        return println!("not run: curl is missing");
    }
    let runtime = tempfile::tempdir().unwrap();
    let variable = format!("export XDG_RUNTIME_DIR={}\n", runtime.path().display());
    let mut command = shell_of(&format!("{variable}exec {serve}"), directory);
    let mut daemon = Daemon(command.stderr(Stdio::piped()).spawn().unwrap());
    let log = BufReader::new(daemon.0.stderr.take().unwrap());
    let listens = log.lines().map_while(Result::ok).any(|line| line.contains("listening on "));
    assert!(listens, "the daemon ended");
    let output = String::from_utf8(shell(&format!("{variable}{send}"), directory).stdout).unwrap();
    for shown in
        ["\"verdict\":\"block\"", "force pushes are not allowed here", "1 workspace with 1 hook", "idle"]
    {
        assert!(output.contains(shown), "{shown} is not in\n{output}");
    }
}

#[test]
fn the_readmes_replay_prints_what_the_readme_shows() {
    let replay = blocks("README.md", "sh")[1].replace("cargo run --", "hookyard");
    let directory = tempfile::tempdir().unwrap();
    let missing = ["node", "python3"].into_iter().find(|program| {
        #[allow(clippy::disallowed_methods, reason = "a test looks at its machine")]
        Command::new(program).arg("--version").output().is_err()
    });
    if let Some(program) = missing {
        return println!("not run: {program} is missing");
    }
    let lines = format!("TMPDIR={} {replay}", directory.path().display());
    let output = String::from_utf8(shell(&lines, &repository()).stdout).unwrap();
    for shown in ["dangerous-command-guard", "npm-patcher", "block", "halt", "run_7a02"] {
        assert!(output.contains(shown), "{shown} is not in\n{output}");
    }
}

/// The settings that the docs show, with the workspace of this test among those that may use the model.
fn settings() -> config::Settings {
    let shown =
        blocks("docs/openharness.md", "yaml").into_iter().filter(|block| block.starts_with("models:"));
    let text: String = shown.collect::<Vec<_>>().concat().replace("[shop]", "[shown]");
    let (settings, diagnostics) = config::Settings::from_yaml(&text, Path::new("hookyard.yaml"));
    settings.unwrap_or_else(|| panic!("{diagnostics:?}"))
}

#[test]
fn the_yaml_of_the_docs_loads() {
    let mut settings = settings();
    assert_eq!(settings.models.len(), 1);
    let [audit, ship] = blocks("docs/audit.md", "yaml").try_into().unwrap();
    let (ship, diagnostics) = config::Settings::from_yaml(&ship, Path::new("hookyard.yaml"));
    assert!(diagnostics.is_empty() && ship.is_some_and(|settings| settings.ship.url.is_some()));
    let (audit, diagnostics) = config::Settings::from_yaml(&audit, Path::new("hookyard.yaml"));
    assert!(diagnostics.is_empty() && audit.is_some_and(|settings| settings.audit.to.is_some()));
    let [traces] = blocks("docs/traces.md", "yaml").try_into().unwrap();
    let (traces, diagnostics) = config::Settings::from_yaml(&traces, Path::new("hookyard.yaml"));
    assert!(diagnostics.is_empty() && traces.is_some_and(|settings| settings.traces.endpoint.is_some()));
    let secrets = ["SHOP_KEY", "GUARD_TOKEN", "SMALL_KEY"].map(|name| format!("HOOKYARD_SECRET_{name}"));
    let environment = |name: &str| {
        (name == "HOME" || secrets.iter().any(|secret| secret == name)).then(|| "/home/me".to_owned())
    };
    let [agent] = blocks("docs/openharness.md", "markdown").try_into().unwrap();
    for handler in blocks("docs/openharness.md", "yaml").iter().filter(|block| block.starts_with("handler:"))
    {
        let workspace = tempfile::tempdir().unwrap();
        let home = workspace.path().join(".openharness");
        fs::create_dir_all(home.join("hooks/scripts")).unwrap();
        fs::create_dir_all(home.join("agents")).unwrap();
        fs::write(home.join("agents/reviewer.md"), &agent).unwrap();
        let hook = format!("name: shown\nevents: [before_tool_dispatch]\n{handler}\n");
        fs::write(home.join("hooks/hook.yaml"), hook).unwrap();
        let id = WorkspaceId::new("shown").unwrap();
        settings.workspaces.insert(id.clone(), config::WorkspaceSettings::new(workspace.path()));
        let loaded = config::load_workspace(workspace.path(), Some(id), &settings, &environment);
        assert_eq!(loaded.hooks.len(), 1, "{:?}", loaded.diagnostics);
    }
}

#[test]
fn the_dependencies_shown_are_those_the_example_uses() {
    let shown = &blocks("README.md", "toml")[0];
    let example = &blocks("README.md", "rust")[0];
    for krate in ["hookyard", "tokio", "serde_json"] {
        assert!(
            shown.contains(&format!("\n{krate} = ")) && example.contains(&format!("{krate}::")),
            "{krate}"
        );
    }
}

#[test]
fn the_json_of_the_docs_is_json() {
    for block in pages().iter().flat_map(|file| blocks(file, "json")) {
        Json::parse(&block).unwrap();
    }
}

#[test]
fn every_link_leads_somewhere() {
    for file in pages() {
        let text = fs::read_to_string(repository().join(&file)).unwrap();
        let folder = repository().join(&file).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            assert!(link.starts_with("https://") || folder.join(path).exists(), "{file}: {link}");
        }
    }
}

/// The name by which a link leads to a heading.
fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || "-_ ".contains(*letter);
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(kept)
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

#[test]
fn every_anchor_is_a_heading() {
    for file in pages() {
        let text = fs::read_to_string(repository().join(&file)).unwrap();
        let folder = repository().join(&file).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let Some((path, name)) = link.split_once('#').filter(|(path, _)| !path.starts_with("https://"))
            else {
                continue;
            };
            let page = if path.is_empty() { repository().join(&file) } else { folder.join(path) };
            let page = fs::read_to_string(page).unwrap();
            let mut headings = page.lines().filter(|line| line.starts_with('#'));
            let is_there = headings.any(|line| anchor(line.trim_start_matches('#')) == name);
            assert!(is_there, "{file}: {link} leads to no heading");
        }
    }
}

#[test]
fn the_index_names_every_page() {
    let index = fs::read_to_string(repository().join("docs/README.md")).unwrap();
    for page in
        pages().iter().filter_map(|page| page.strip_prefix("docs/")).filter(|page| *page != "README.md")
    {
        assert!(index.contains(&format!("({page})")), "docs/README.md does not name {page}");
    }
}

#[test]
fn the_table_of_events_is_true() {
    let text = fs::read_to_string(repository().join("docs/dialects.md")).unwrap();
    let (_, table) = text.split_once("| kind | openharness |").unwrap();
    let names = [
        DialectName::OpenHarness,
        DialectName::Claude,
        DialectName::Gemini,
        DialectName::Clawd,
        DialectName::Codex,
        DialectName::Qwen,
        DialectName::Copilot,
        DialectName::Cursor,
        DialectName::Droid,
    ];
    let known = |dialect, event: &str| {
        dialect::named(dialect).kind_of(format!(r#"{{"hook_event_name":"{event}"}}"#).as_bytes())
    };
    let mut events = 0;
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let mut cells = row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', ""));
        let kind = EventKind::from_name(&cells.next().unwrap());
        assert!(kind.is_some(), "{row}");
        for (dialect, cell) in names.iter().zip(cells).filter(|(_, cell)| cell != "–") {
            assert_eq!(known(*dialect, &cell), kind, "{dialect} {cell}");
            if *dialect == DialectName::Claude {
                assert_eq!(known(DialectName::CodeBuddy, &cell), kind, "CodeBuddy {cell}");
            }
            events += 1;
        }
    }
    assert_eq!(
        events,
        10 + 14 + 11 + 11 + 11 + 14 + 13 + 9 + 9,
        "of the 31 of Claude Code, 17 have no kind, 14 of the 28 of CodeBuddy, 3 of the 14 of Codex, and 12 of the 21 of Cursor"
    );
}

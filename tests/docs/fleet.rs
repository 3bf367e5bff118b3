//! The commands of `docs/fleet.md` are run in their order, and a daemon with its settings has the guards in force.
#![allow(clippy::disallowed_methods, reason = "a test runs what the page shows")]

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{daemon::DaemonSetup, static_files::StaticFiles, wait::wait_until};

const PAGE: &str = include_str!("../../docs/fleet.md");

fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("\n```{language}\n");
    let rests: Vec<&str> = PAGE.split(fence.as_str()).skip(1).collect();
    rests.into_iter().map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// Runs lines of the page, and returns what they print.
fn shell(lines: &str, directory: &Path, socket: Option<&Path>) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_hookyard")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    // The daemon of the test listens elsewhere; `doctor` has its findings about agents, of which there are none.
    let at = socket.map(|socket| format!(" --socket {}", socket.display())).unwrap_or_default();
    let lines = lines.replace("hookyard status", &format!("hookyard status{at}"));
    let lines = lines.replace("hookyard doctor", &format!("{{ hookyard doctor{at} || test $? = 1; }}"));
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", &lines]).current_dir(directory).env("PATH", path);
    let output = command.env("HOOKYARD_TEST_HOME", directory.join("home")).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{lines}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_commands_of_the_page_bring_a_guard_into_force() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    fs::create_dir_all(here.join("home")).unwrap();
    let server = StaticFiles::start(&here.join("www"), None);
    let shown = blocks("sh");
    let [keygen, hooks, publish, look, next, rotate] = shown.try_into().unwrap();
    shell(keygen, here, None);
    shell(hooks, here, None);
    let published = shell(publish, here, None);
    assert!(published.contains("acme/guards 1: good") && published.contains("published at"), "{published}");
    let key = fs::read_to_string(here.join("guards.pub")).unwrap();
    let [settings] = blocks("yaml").try_into().unwrap();
    let settings = settings
        .replace("https://hooks.example.com/guards.bundle", &server.url("guards.bundle"))
        .replace("ed25519:<64 hexadecimal digits>", key.trim())
        .replace("poll: 30s", "poll: 100ms");
    let setup = DaemonSetup::new().file("shop/readme", "");
    let daemon =
        setup.settings(&format!("{settings}\nworkspaces: {{ shop: {{ root: $DIR/shop }} }}")).serve();
    let version = || daemon.get("/v1/status")["bundle"]["version"].clone();
    wait_until("the first version is in force", || version() == 1);
    let status = shell(look, here, Some(daemon.socket()));
    assert!(status.contains("acme/guards 1 at level managed: 1 hook, current"), "{status}");
    let verdict = |command: &str| -> Value {
        let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                            "tool_name": "Bash", "tool_input": { "command": command } });
        daemon.post("/v1/events", &event)["verdict"].clone()
    };
    assert_eq!((verdict("ls"), verdict("ssh prod.example.com")), (json!("proceed"), json!("block")));
    let diff = shell(next, here, None);
    assert!(diff.contains("acme/guards 1 -> acme/guards 2") && diff.contains("+ hook no-force"), "{diff}");
    wait_until("the second version is in force", || version() == 2);
    assert_eq!(verdict("git push --force"), json!("block"));
    let rotated = shell(rotate, here, None);
    assert!(rotated.contains("acme/guards 2: good, signed by"), "{rotated}");
    wait_until("the statement with both signatures is taken for what is in force", || {
        daemon.get("/v1/status")["bundle"]["error"].is_null()
    });
    assert_eq!(version(), 2);
    daemon.finish();
}

/// The reasons of the page are those of the metric.
#[test]
fn the_page_has_every_reason() {
    let reasons = [
        "statement",
        "signature",
        "older",
        "name",
        "expired",
        "not_yet",
        "damaged",
        "archive",
        "manifest",
        "min_hookyard",
        "hooks",
        "storage",
    ];
    let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("| `")).collect();
    let shown: Vec<&str> =
        rows.iter().flat_map(|row| row.split(" | ").next().unwrap().split('`').skip(1).step_by(2)).collect();
    assert_eq!(shown, reasons);
}

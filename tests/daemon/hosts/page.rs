//! `docs/hosts.md` works as shown: its programs, shell lines, settings and tables.

use std::{
    net::TcpStream,
    os::unix::{fs::PermissionsExt, net::UnixStream, process::CommandExt},
    process::{Child, Output},
    thread,
};

use hookyard::daemon::Client;
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::*;

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/hosts.md")).unwrap()
}

/// The fenced blocks of one language, in order.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("\n```{language}\n");
    let text = page();
    text.split(&fence).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned()).collect()
}

/// The shell blocks: how it is started, a workspace registered, the stream followed, TCP opened. Those that connect an
/// agent are tried elsewhere.
fn shell() -> [String; 4] {
    let mut blocks = blocks("sh");
    blocks.retain(|block| !block.starts_with("hookyard connect"));
    blocks.try_into().unwrap()
}

/// Whether a program is there to be run.
fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("not run: {program} is missing");
    }
    there
}

/// A person's directory, with a project whose guard blocks force pushes and one whose hook changes commands.
struct Home {
    directory: TempDir,
    /// The daemon, in a process group of its own.
    daemon: Option<Child>,
}

impl Home {
    fn new() -> Self {
        let home = Self { directory: tempfile::tempdir().unwrap(), daemon: None };
        let guard = "grep -q 'git push --force' && echo no force pushes >&2 && exit 2; exit 0";
        home.write("guarded/.openharness/hooks/guard.yaml", &hook("guard", "before_tool_dispatch", guard));
        let patch = json!({ "hookSpecificOutput": { "patch": { "tool_input": { "command": "git push" } } } });
        let patcher = hook("patcher", "before_tool_dispatch", &prints(&patch));
        let patcher = patcher.replacen('{', r#"{"capabilities":["rewrite_tool_request"],"#, 1);
        home.write("patched/.openharness/hooks/patcher.yaml", &patcher);
        home.write("home/file", "");
        home.trust("guarded");
        home.trust("patched");
        home
    }

    fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        daemon::write(&self.path().join(path), text);
    }

    fn command(&self, program: &str, arguments: &[&str], project: &str) -> Command {
        let programs = Path::new(env!("CARGO_BIN_EXE_hookyard")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path().join(project))
            .env("PATH", path)
            .env("XDG_RUNTIME_DIR", self.path())
            .env("HOOKYARD_TEST_HOME", self.path().join("home"))
            .env_remove("HOOKYARD_LISTEN_SOCKET")
            .env_remove("HOOKYARD_LISTEN_CONTROL_SOCKET");
        command
    }

    /// Agrees to the hooks of a project, as a person does before the daemon runs them.
    fn trust(&self, project: &str) {
        let shown = self.command("hookyard", &["trust", "--json"], project).output().unwrap();
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        self.run("hookyard", &["trust", "--yes", shown["digest"].as_str().unwrap()], project);
    }

    /// Starts the daemon with shell lines, and waits until it takes events.
    fn start(&mut self, lines: &str, project: &str) {
        let mut command = self.command("sh", &["-eu", "-c", lines], project);
        self.daemon = Some(command.process_group(0).stderr(Stdio::null()).spawn().unwrap());
        let ready = || self.client().send("GET", "/readyz", None).is_ok_and(|answer| answer.status == 200);
        wait_until("the daemon is ready", ready);
    }

    fn client(&self) -> Client {
        Client::new(self.path().join("hookyard.sock")).timeout(LONGEST_WAIT)
    }

    fn get(&self, path: &str) -> Value {
        daemon::read(&self.client().send("GET", path, None).unwrap())
    }

    /// Runs a program of the page to its end.
    fn run(&self, program: &str, arguments: &[&str], project: &str) -> String {
        let output = self.command(program, arguments, project).output().unwrap();
        let Output { status, stdout, stderr } = output;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(status.success(), "{program}: {}{}", text(&stdout), text(&stderr));
        text(&stdout)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            // It may have ended.
            let _ = kill_process_group(Pid::from_child(daemon), Signal::TERM);
            drop(daemon.wait());
        }
    }
}

#[test]
fn the_programs_of_the_page_obey_the_verdict() {
    let [serve, register, ..] = shell();
    let mut home = Home::new();
    home.start(&serve, "guarded");
    if is_there("curl") {
        let registered: Value =
            serde_json::from_str(&home.run("sh", &["-eu", "-c", &register], "patched")).unwrap();
        assert_eq!((&registered["id"], &registered["hooks"]), (&json!("shop"), &json!(1)));
    } else {
        let body = json!({ "root": home.path().join("patched") }).to_string();
        let control = Client::new(home.path().join("hookyard-control.sock")).timeout(LONGEST_WAIT);
        daemon::read(&control.send("PUT", "/v1/workspaces/shop", Some(body.as_bytes())).unwrap());
    }
    for (language, program, file) in [("js", "node", "host.mjs"), ("python", "python3", "host.py")] {
        let [code, _] = blocks(language).try_into().unwrap();
        assert!(code.lines().count() < 30, "{language}");
        if !is_there(program) {
            continue;
        }
        home.write(file, &code);
        let file = home.path().join(file);
        let run = |project| home.run(program, &[file.to_str().unwrap()], project);
        assert_eq!(run("guarded"), "block no force pushes\n", "{language}");
        let patched = run("patched").replace(['\'', '"'], "");
        assert_eq!(patched.replace("{ ", "{").replace(" }", "}"), "run {command: git push}\n", "{language}");
    }
    let [rust] = blocks("rust").try_into().unwrap();
    assert!(rust.lines().count() < 30);
}

#[test]
fn the_programs_of_the_page_ask_on_lines() {
    let mut home = Home::new();
    let socket = home.path().join("hookyard-lines.sock");
    home.start(&format!("HOOKYARD_LISTEN_LINES={} {}", socket.display(), shell()[0]), "guarded");
    for (language, program, file, none) in
        [("js", "node", "lines.mjs", ""), ("python", "python3", "lines.py", "None")]
    {
        let [_, code] = blocks(language).try_into().unwrap();
        if !is_there(program) {
            continue;
        }
        home.write(file, &code);
        let mut command = home.command(program, &[home.path().join(file).to_str().unwrap()], "guarded");
        let output = command.env("HOOKYARD_LISTEN_LINES", &socket).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(printed, format!("proceed {none}\nblock no force pushes\n"), "{language}: {told}");
        let mut command = home.command(program, &[home.path().join(file).to_str().unwrap()], "guarded");
        let output = command.env("HOOKYARD_LISTEN_LINES", home.path().join("none")).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{language}: without a daemon");
    }
}

#[test]
fn the_programs_of_the_page_report_a_missing_answer() {
    let home = Home::new();
    for (language, program, file) in [("js", "node", "host.mjs"), ("python", "python3", "host.py")] {
        if !is_there(program) {
            continue;
        }
        home.write(file, &blocks(language)[0]);
        let file = home.path().join(file);
        let output = home.command(program, &[file.to_str().unwrap()], "guarded").output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{language}");
    }
}

#[test]
fn an_event_that_nobody_waits_for_is_answered_at_once_and_its_hooks_run_on() {
    let mut home = Home::new();
    home.write(
        "guarded/.openharness/hooks/audit.yaml",
        &hook("audit", "run_completed", "sleep 0.3; echo done > audited"),
    );
    home.trust("guarded");
    home.start(&shell()[0], "guarded");
    let event = blocks("json").into_iter().find(|block| block.contains("\"wait\": false")).unwrap();
    let answer = home.client().send("POST", "/v1/events", Some(event.as_bytes())).unwrap();
    assert_eq!(daemon::read(&answer)["hooks"], json!([]));
    let audited = home.path().join("guarded/audited");
    wait_until("the hook is done", || audited.exists());
}

#[test]
fn the_stream_is_followed() {
    if !is_there("curl") {
        return;
    }
    let [serve, _, stream, _] = shell();
    let mut home = Home::new();
    home.start(&serve, "guarded");
    let mut command = home.command("sh", &["-eu", "-c", &format!("exec {stream}")], "guarded");
    let mut curl = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the stream has its reader", || home.get("/v1/status")["streams"] == 1);
    let mut event = call("guarded", "r");
    event["tool_input"]["command"] = json!("git push --force");
    home.client().send("POST", "/v1/events", Some(event.to_string().as_bytes())).unwrap();
    let mut text = String::new();
    let mut told = std::io::BufReader::new(curl.stdout.take().unwrap());
    while !text.contains("no force pushes") {
        assert_ne!(std::io::BufRead::read_line(&mut told, &mut text).unwrap(), 0, "{text}");
    }
    curl.kill().unwrap();
    curl.wait().unwrap();
    assert!(text.contains("event: invocation") && text.contains("event: outcome"), "{text}");
}

/// What an agent sends about a force push.
fn force_push(event: &str, directory: &Path) -> String {
    json!({ "session_id": "s", "hook_event_name": event, "cwd": directory, "project_dir": directory,
            "transcript_path": "", "tool_name": "Bash", "tool_input": { "command": "git push --force" } })
    .to_string()
}

/// The hook that a page's settings have for their only event, with its name.
fn only_hook(settings: &str) -> (String, Value) {
    let settings: Value = serde_json::from_str(settings).unwrap();
    let events = settings.get("hooks").unwrap_or(&settings);
    let (event, entries) = events.as_object().unwrap().iter().next().unwrap();
    let is_nested = entries[0]["hooks"].is_array();
    (event.clone(), if is_nested { entries[0]["hooks"][0].clone() } else { entries[0].clone() })
}

/// Sends an event as an http hook of Claude Code does, to another port than the page's.
fn posted(http: &Value, address: &str, token: &str, event: &str) -> Value {
    let url = http["url"].as_str().unwrap().strip_prefix("http://127.0.0.1:8787").unwrap();
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    for (name, value) in http["headers"].as_object().into_iter().flatten() {
        assert_eq!(http["allowedEnvVars"], json!(["HOOKYARD_TOKEN"]));
        headers.push((name.clone(), value.as_str().unwrap().replace("$HOOKYARD_TOKEN", token)));
    }
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = ask(TcpStream::connect(address).unwrap(), &format!("POST {url}"), &headers, event);
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

#[test]
fn agents_with_these_settings_are_stopped_by_the_guard() {
    // Those of agents whose daemon is elsewhere are for another page of the tests.
    let is_here = |block: &String| block.contains("\"hooks\"") && !block.contains("--url");
    let settings: Vec<_> = blocks("json").into_iter().filter(is_here).collect();
    let [claude, gemini, codebuddy, clawd, codex, qwen, copilot, cursor, droid, _] =
        settings.try_into().unwrap();
    let mut home = Home::new();
    // Settings of the project as well: hookyard reads them, and must not ask itself.
    home.write("guarded/.claude/settings.json", &claude);
    for (path, text) in [(".gemini", &gemini), (".codebuddy", &codebuddy), (".clawdcode", &clawd)] {
        home.write(&format!("guarded/{path}/settings.json"), text);
    }
    home.write("guarded/.codex/hooks.json", &codex);
    home.write("guarded/.qwen/settings.json", &qwen);
    home.write("guarded/.github/hooks/hookyard.json", &copilot);
    home.write("guarded/.cursor/hooks.json", &cursor);
    home.write("guarded/.factory/hooks.json", &droid);
    home.start(&format!("{} --tcp 127.0.0.1:0", shell()[0]), "guarded");
    let project = home.path().join("guarded");
    let (event, http) = only_hook(&claude);
    let status = home.get("/v1/status");
    let address = status["tcp"].as_str().unwrap();
    let answer = posted(&http, address, "", &force_push(&event, &project));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    let harmless = force_push(&event, &project).replace("--force", "--dry-run");
    assert_eq!(posted(&http, address, "", &harmless), json!({}));
    for settings in [gemini, codebuddy, clawd, codex, qwen, copilot, cursor, droid] {
        let (event, command) = only_hook(&settings);
        let command = command["command"].as_str().unwrap();
        let relay = || {
            let mut relay = home.command("sh", &["-c", command], "guarded");
            relay.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            relay
        };
        let blocked = said(relay(), &force_push(&event, &project));
        assert!(blocked.out.contains("\"deny\"") && blocked.out.contains("no force pushes"), "{blocked:?}");
        let harmless = said(relay(), &force_push(&event, &project).replace("--force", "--dry-run"));
        assert!(harmless.code == Some(0) && !harmless.out.contains("deny"), "{harmless:?}");
    }
}

#[test]
fn tcp_is_opened_with_a_token_and_used_with_it() {
    if !is_there("openssl") {
        return;
    }
    let [_, _, _, open] = shell();
    let mut home = Home::new();
    home.start(&open.replace(":8787", ":0"), "guarded");
    let token = home.path().join("guarded/token");
    assert_eq!(fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    let token = fs::read_to_string(token).unwrap();
    let (event, http) = only_hook(blocks("json").last().unwrap());
    let status = home.get("/v1/status");
    let port = status["tcp"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    let event = force_push(&event, &home.path().join("guarded"));
    let answer = posted(&http, &format!("127.0.0.1:{port}"), token.trim(), &event);
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
}

#[test]
fn every_error_code_on_the_page_exists() {
    fn source(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                source(&path, text);
            } else {
                text.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut text = String::new();
    source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/daemon"), &mut text);
    let page = page();
    let (_, table) = page.split_once("| status | codes |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let codes: Vec<_> =
        rows.filter_map(|row| row.split('|').nth(2)).flat_map(|cell| cell.split(", ")).collect();
    assert!(codes.len() > 15);
    for code in codes {
        let code = code.trim().trim_matches('`');
        assert!(text.contains(&format!("\"{code}\"")), "{code}");
    }
}

#[test]
fn the_default_workspace_is_as_the_page_says() {
    let mut home = Home::new();
    home.start(&shell()[0], "guarded");
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
                        "tool_input": { "command": "git push --force" } });
    let post = |cwd: Option<&str>| {
        let mut event = event.clone();
        if let Some(cwd) = cwd {
            event["cwd"] = json!(home.path().join(cwd));
        }
        let answer = home.client().send("POST", "/v1/events", Some(event.to_string().as_bytes())).unwrap();
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    assert_eq!(
        post(Some("patched"))["error"]["code"],
        "no_workspace",
        "it is not judged by another workspace"
    );
    for cwd in [None, Some("guarded")] {
        assert_eq!(post(cwd)["verdict"], "block", "the only workspace there is: {cwd:?}");
    }
}

#[test]
fn a_signal_lets_running_events_finish() {
    let mut home = Home::new();
    home.write(
        "guarded/.openharness/hooks/slow.yaml",
        &hook("slow", "before_tool_dispatch", "touch began; sleep 0.5"),
    );
    home.trust("guarded");
    home.start(&format!("exec {}", shell()[0]), "guarded");
    let began = home.path().join("guarded/began");
    let client = home.client();
    let event = call("guarded", "r").to_string();
    let pid = Pid::from_child(home.daemon.as_ref().unwrap());
    let answer = thread::scope(|scope| {
        let sent = scope.spawn(|| client.send("POST", "/v1/events", Some(event.as_bytes())).unwrap());
        wait_until("the hook runs", || began.exists());
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
        sent.join().unwrap()
    });
    assert_eq!(daemon::read(&answer)["verdict"], "proceed");
    assert_eq!(home.daemon.as_mut().unwrap().wait().unwrap().code(), Some(0));
    assert!(UnixStream::connect(home.path().join("hookyard.sock")).is_err());
}

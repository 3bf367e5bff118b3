//! The daemon of connected agents: started by the first event that finds none, or by the service manager of the user.
#![allow(clippy::disallowed_methods, reason = "the program is run as agents and people run it")]

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use hookyard::daemon::Client;
use rustix::{
    fs::{FlockOperation, flock},
    process::{Pid, Signal, kill_process},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    daemon::{DaemonSetup, write},
    wait::{LONGEST_WAIT, wait_until},
};

/// Gives up privileges as a sandbox does, and runs a program.
const SANDBOX: &str =
    "import ctypes, os, sys\nctypes.CDLL(None).prctl(38, 1, 0, 0, 0)\nos.execv(sys.argv[1], sys.argv[1:])";

/// Takes a lock, says so, and waits.
const LOCKER: &str = "import fcntl, sys\nlock = open(sys.argv[1], 'w')\nfcntl.flock(lock, fcntl.LOCK_EX)\nprint(flush=True)\nsys.stdin.read()";

/// A home with a project that has a guard. Its daemon ends with it.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let guard = format!(
            "name: guard\nevents: [before_tool_dispatch]\non_error: deny\nhandler:\n  type: command\n  command: 'env > {}; echo no >&2; exit 2'\n",
            home.path("environment").display()
        );
        write(&home.path("home/shop/.openharness/hooks/guard.yaml"), &guard);
        write(&home.path("hookyard.yaml"), "trust: off\n");
        home
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    fn socket(&self) -> PathBuf {
        self.path("hookyard.sock")
    }

    fn state(&self, file: &str) -> PathBuf {
        self.path("home/.local/state/hookyard").join(file)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        command.args(arguments).arg("--socket").arg(self.socket()).current_dir(self.path("home/shop"));
        command.env_remove("HOOKYARD_LOG").stdin(Stdio::null());
        command
    }

    /// Runs a command that reads settings.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        command.arg("--home").arg(self.path("home")).arg("--config").arg(self.path("hookyard.yaml"));
        command.output().unwrap()
    }

    fn connect(&self) {
        let done = self.run(&["connect", "claude", "--daemon", "on-demand"]);
        let out = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        assert!(out.contains("answered PreToolUse") && out.contains("started by the events"), "{out}");
    }

    fn stop(&self) {
        let done = self.command(&["stop"]).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        assert!(!self.socket().exists());
    }

    /// The command that the agent has in its settings.
    fn entry(&self, event: &str) -> String {
        let settings: Value =
            serde_json::from_slice(&fs::read(self.path("home/.claude/settings.json")).unwrap()).unwrap();
        settings["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap().to_owned()
    }

    /// Begins to run the entry for an event, as an agent does.
    fn begin(&self, event: &str, change: impl FnOnce(&mut Command)) -> Child {
        let mut agent = Command::new("sh");
        agent.args(["-c", &self.entry(event)]).env("PROJECT_SECRET", "s3cret").env("HOOKYARD_NODE", "agent");
        agent.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        change(&mut agent);
        let mut agent = agent.spawn().unwrap();
        let event = json!({ "hook_event_name": event, "session_id": "s", "cwd": self.path("home/shop"),
                            "tool_name": "Bash", "tool_input": {}, "tool_use_id": "t" });
        agent.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        agent
    }

    /// The exit code for an event, and what was said.
    fn event(&self, event: &str) -> (Option<i32>, String) {
        answer(self.begin(event, |_| {}))
    }

    fn pid(&self) -> Option<Pid> {
        let status: Value =
            Client::new(self.socket()).timeout(LONGEST_WAIT).ask("GET", "/v1/status", None).ok()?;
        Pid::from_raw(i32::try_from(status["pid"].as_i64()?).ok()?)
    }

    /// How many daemons have listened.
    fn starts(&self) -> usize {
        fs::read_to_string(self.state("daemon.log")).unwrap_or_default().matches("listening on").count()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let Some(pid) = self.pid() else { return };
        kill_process(pid, Signal::KILL).ok();
        wait_until("the daemon has ended", || UnixStream::connect(self.socket()).is_err());
    }
}

/// Whether the agent holds the call back, in its words or by the exit code, for a reason that says this.
fn is_denied((code, said): &(Option<i32>, String), why: &str) -> bool {
    (*code == Some(2) || said.contains("\"permissionDecision\":\"deny\"")) && said.contains(why)
}

fn answer(agent: Child) -> (Option<i32>, String) {
    let done = agent.wait_with_output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_changed_setting_is_said_to_need_a_new_start() {
    let home = Home::new();
    home.connect();
    let mut disable = Command::new(env!("CARGO_BIN_EXE_hookyard"));
    disable.args(["disable", "guard", "--home"]).arg(home.path("home")).arg("--config");
    disable.arg(home.path("hookyard.yaml")).current_dir(home.path("home/shop")).stdin(Stdio::null());
    let done = disable.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success()
            && said.contains("end it with `hookyard stop`, and the next event starts it anew"),
        "{said}"
    );
}

#[test]
fn the_first_event_starts_the_daemon_and_disconnecting_ends_it() {
    let home = Home::new();
    home.connect();
    assert_eq!(home.starts(), 1);
    home.stop();
    // A stop that changes nothing is an error.
    assert_eq!(home.command(&["stop"]).output().unwrap().status.code(), Some(1));
    let given = home.event("PreToolUse");
    assert!(is_denied(&given, "no"), "{given:?}");
    assert_eq!(home.starts(), 2);
    assert_eq!(home.event("Stop"), (Some(0), "{}\n".to_owned()));
    let disconnected = home.run(&["disconnect", "claude"]);
    assert_eq!(disconnected.status.code(), Some(0), "{disconnected:?}");
    wait_until("the daemon has ended", || !home.socket().exists());
    assert!(!home.path("home/.claude").exists());
}

#[test]
fn what_was_blocked_is_shown_afterwards_and_without_a_daemon_it_is_said_how_to_keep_it() {
    let home = Home::new();
    home.connect();
    assert!(is_denied(&home.event("PreToolUse"), "no"));
    let log = |home: &Home| {
        let done = home.command(&["log"]).env("HOOKYARD_TEST_HOME", home.path("home")).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    };
    let (code, out, err) = log(&home);
    assert!(
        code == Some(0) && out.contains("Bash  by guard  in ") && out.ends_with("\n  no\n"),
        "{out}{err}"
    );
    assert!(err.contains("as far back as the daemon remembers; with `audit.to` in its settings"), "{err}");
    home.stop();
    let (code, out, err) = log(&home);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        err.contains("the next event of a connected agent starts it. What a daemon remembers ends with it"),
        "{err}"
    );
    assert!(err.contains("set `audit.to` in ") && err.contains("hookyard.yaml"), "{err}");
    // Its settings name the audit, also while it does not run.
    let settings = format!("trust: off\naudit: {{ to: {} }}\n", home.path("audit.jsonl").display());
    write(&home.path("hookyard.yaml"), &settings);
    assert!(is_denied(&home.event("PreToolUse"), "no"));
    let running = log(&home);
    home.stop();
    let stopped = log(&home);
    assert_eq!(running, stopped);
    let (code, out, err) = running;
    assert!(code == Some(0) && out.contains("by guard") && err.starts_with("from the audit "), "{out}{err}");
}

#[test]
fn nothing_of_the_environment_of_an_agent_reaches_the_daemon() {
    let home = Home::new();
    home.connect();
    home.stop();
    assert!(is_denied(&home.event("PreToolUse"), "no"));
    let status: Value = Client::new(home.socket()).ask("GET", "/v1/status", None).unwrap();
    assert_ne!(status["node"], "agent");
    let environment = fs::read_to_string(home.path("environment")).unwrap();
    assert!(environment.contains("PATH=") && !environment.contains("s3cret"), "{environment}");
}

#[test]
fn two_hundred_events_at_once_start_one_daemon() {
    let home = Home::new();
    home.connect();
    home.stop();
    let agents: Vec<Child> = (0..200).map(|_| home.begin("PreToolUse", |_| {})).collect();
    for agent in agents {
        let given = answer(agent);
        assert!(is_denied(&given, "no") && !given.1.contains("could be asked"), "{given:?}");
    }
    assert_eq!(home.starts(), 2);
}

#[test]
fn a_daemon_that_cannot_start_blocks_with_the_reason_until_it_can() {
    let home = Home::new();
    home.connect();
    home.stop();
    write(&home.path("hookyard.yaml"), "trust: off\nlistens: true\n");
    let agents: Vec<Child> = (0..10).map(|_| home.begin("PreToolUse", |_| {})).collect();
    for agent in agents {
        let given = answer(agent);
        assert!(
            is_denied(&given, "the daemon could not be started: ") && given.1.contains("listens"),
            "{given:?}"
        );
    }
    // Nothing is held back by a stop.
    let (code, said) = home.event("Stop");
    assert!(code == Some(0) && said.contains("going on without hooks"), "{said}");
    write(&home.path("good.yaml"), "trust: off\n");
    let doctor = |config: &str| {
        let mut command = home.command(&["doctor", "--json"]);
        let output = command
            .arg("--home")
            .arg(home.path("home"))
            .arg("--config")
            .arg(home.path(config))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let found = doctor("good.yaml");
    assert!(found.contains("events could not start it"), "{found}");
    write(&home.path("hookyard.yaml"), "trust: off\n");
    assert!(is_denied(&home.event("PreToolUse"), "no"));
    home.stop();
    let found = doctor("good.yaml");
    assert!(found.contains("the next event of an agent starts it"), "{found}");
}

#[test]
fn what_a_dead_daemon_or_a_dead_starter_left_is_in_nobodys_way() {
    let home = Home::new();
    home.connect();
    let pid = home.pid().unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    wait_until("the daemon has ended", || UnixStream::connect(home.socket()).is_err());
    assert!(home.socket().exists(), "a killed daemon leaves its socket");
    assert!(is_denied(&home.event("PreToolUse"), "no"));
    home.stop();
    drop(UnixListener::bind(home.socket()).unwrap());
    let mut locker = Command::new("python3");
    locker.args(["-c", LOCKER]).arg(home.state("daemon-start.lock"));
    let mut locker = locker.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    locker.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let waiting = home.begin("PreToolUse", |_| {});
    locker.kill().unwrap();
    locker.wait().unwrap();
    assert!(is_denied(&answer(waiting), "no"));
    assert_eq!(home.starts(), 3);
}

#[test]
fn an_event_does_not_wait_for_ever_for_another_process_that_starts_the_daemon() {
    let home = Home::new();
    home.connect();
    home.stop();
    let lock = File::options().write(true).open(home.state("daemon-start.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let state = home.state("");
    let mut relay = home.command(&["relay", "--dialect", "claude", "--if-down", "block", "--wait", "100ms"]);
    let mut relay = relay
        .arg("--start")
        .arg(state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    relay.stdin.take().unwrap().write_all(b"{\"hook_event_name\":\"PreToolUse\"}").unwrap();
    let given = answer(relay);
    assert!(is_denied(&given, "no hookyard listens"), "{given:?}");
    assert_eq!(home.starts(), 1);
}

#[test]
#[cfg_attr(hookyard_portable, ignore = "nothing tells that privileges were given up")]
fn an_agent_in_a_sandbox_starts_no_daemon() {
    let home = Home::new();
    home.connect();
    home.stop();
    let entry = home.entry("PreToolUse");
    let sandboxed = home.begin("PreToolUse", |agent| {
        *agent = Command::new("python3");
        agent.args(["-c", SANDBOX, "/bin/sh", "-c", &entry]);
        agent.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    let given = answer(sandboxed);
    assert!(is_denied(&given, "is in a sandbox"), "{given:?}");
    assert_eq!(home.starts(), 1);
}

#[test]
fn a_record_that_others_can_write_starts_nothing() {
    let home = Home::new();
    home.connect();
    home.stop();
    let record = home.state("connections.json");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o666)).unwrap();
    let given = home.event("PreToolUse");
    assert!(is_denied(&given, "others may read or write it"), "{given:?}");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(home.state(""), fs::Permissions::from_mode(0o777)).unwrap();
    let given = home.event("PreToolUse");
    assert!(is_denied(&given, "others may write to it"), "{given:?}");
    assert_eq!(home.starts(), 1);
}

#[test]
fn an_idle_daemon_ends_and_one_at_work_goes_on() {
    let slow = "name: slow\nevents: [before_tool_dispatch]\nhandler: {type: command, command: 'until test -e $DIR/go; do sleep 0.1; done; exit 2'}\n";
    let setup = DaemonSetup::new().settings("run_idle: 100ms").argument("--exit-when-idle=200ms");
    let slow = slow.replace("$DIR", setup.path().to_str().unwrap());
    let setup = setup.settings("workspaces: { shop: { root: $DIR/shop } }");
    let mut daemon = setup.file("shop/.openharness/hooks/slow.yaml", &slow).spawn();
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash", "tool_input": {} });
    wait_until("the daemon listens", || UnixStream::connect(daemon.socket()).is_ok());
    let client = daemon.client();
    let asked = std::thread::spawn(move || {
        client.send("POST", "/v1/events", Some(event.to_string().as_bytes())).unwrap()
    });
    wait_until("the hook runs", || daemon.processes().len() > 1);
    let begun = tokio::time::Instant::now();
    wait_until("it has been at work for five times as long", || begun.elapsed().as_millis() > 1000);
    assert!(!daemon.has_ended(), "{}", daemon.log());
    fs::write(daemon.path().join("go"), "").unwrap();
    assert_eq!(asked.join().unwrap().status, 200);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert!(daemon.log().contains("stopping after a time without events"), "{}", daemon.log());
}

/// A service manager that answers, and notes what it is asked.
const SYSTEMCTL: &str = "#!/bin/sh\necho \"$@\" >> \"$0.log\"\n";

#[test]
fn where_the_service_manager_answers_it_gets_units_of_the_user() {
    let home = Home::new();
    let systemctl = home.path("bin/systemctl");
    write(&systemctl, SYSTEMCTL);
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |verb: &str| {
        let mut command = home.command(&[verb, "claude"]);
        command
            .arg("--home")
            .arg(home.path("home"))
            .env("PATH", format!("{}:/usr/bin:/bin", home.path("bin").display()));
        command.output().unwrap()
    };
    let asked = || {
        let log = fs::read_to_string(home.path("bin/systemctl.log")).unwrap_or_default();
        fs::remove_file(home.path("bin/systemctl.log")).ok();
        log
    };
    let done = run("connect");
    // This one opens no sockets.
    assert!(String::from_utf8_lossy(&done.stdout).contains("no proof"), "{done:?}");
    let socket_unit = home.path("home/.config/systemd/user/hookyard.socket");
    let service_unit = home.path("home/.config/systemd/user/hookyard.service");
    let text = fs::read_to_string(&socket_unit).unwrap();
    assert!(text.contains(&format!("ListenStream={}\n", home.socket().display())), "{text}");
    let text = fs::read_to_string(&service_unit).unwrap();
    assert!(text.contains("ExecStart=\"/") && text.contains("serve --socket"), "{text}");
    assert!(!home.entry("PreToolUse").contains("--start"), "{}", home.entry("PreToolUse"));
    let log = asked();
    assert!(log.contains("--user daemon-reload\n--user enable --now hookyard.socket\n"), "{log}");
    run("connect");
    assert!(!asked().contains("daemon-reload"), "nothing has changed");
    assert_eq!(run("disconnect").status.code(), Some(0));
    assert!(asked().contains("--user disable --now hookyard.socket\n"));
    assert!(!socket_unit.exists() && !service_unit.exists());
    // Units of somebody else stay.
    write(&service_unit, "[Service]\n");
    let done = run("connect");
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    assert_eq!(run("disconnect").status.code(), Some(0));
    assert_eq!(fs::read_to_string(&service_unit).unwrap(), "[Service]\n");
}

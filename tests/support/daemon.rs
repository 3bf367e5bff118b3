//! The real program as a daemon in a directory of its own, killed with its test if it must be.

#![allow(clippy::disallowed_methods, reason = "the program is started as its users start it")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use hookyard::daemon::{Client, ClientResponse, default_control_socket};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    trust,
    wait::{LONGEST_WAIT, wait_until},
};

/// A daemon that is about to be started.
pub(crate) struct DaemonSetup {
    directory: Arc<TempDir>,
    settings: String,
    socket: PathBuf,
    launcher: Vec<String>,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    trust: TrustMode,
    stdout: Stdio,
    open_files: Option<u32>,
}

/// Whether the daemon runs hooks without the trust of a person.
#[derive(PartialEq)]
enum TrustMode {
    Off,
    Enforced,
}

/// A daemon at work.
pub(crate) struct Daemon {
    child: Child,
    directory: Arc<TempDir>,
    socket: PathBuf,
    /// What it was started with.
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Default for DaemonSetup {
    fn default() -> Self {
        Self::new()
    }
}

impl DaemonSetup {
    /// A directory with a home that has no hooks.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("home")).expect("a home");
        Self {
            directory: Arc::new(directory),
            settings: String::new(),
            socket: "hookyard.sock".into(),
            launcher: Vec::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
            trust: TrustMode::Off,
            stdout: Stdio::null(),
            open_files: None,
        }
    }

    /// The directory that everything is in, without symbolic links.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("a directory")
    }

    /// Writes a file below the directory, with those above it.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        write(&self.path().join(path), text);
        self
    }

    /// Lines for the settings file; `$DIR` is the directory.
    pub(crate) fn settings(mut self, text: &str) -> Self {
        self.settings.push_str(&text.replace("$DIR", self.path().to_str().expect("a plain path")));
        self.settings.push('\n');
        self
    }

    /// The socket, by its path below the directory.
    pub(crate) fn socket(mut self, path: &str) -> Self {
        self.socket = path.into();
        self
    }

    /// A program that starts the daemon, by its words. The program and its arguments follow them.
    pub(crate) fn launcher(mut self, words: &[&str]) -> Self {
        self.launcher = words.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// A flag of `serve`.
    pub(crate) fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// A variable of its environment.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Has it run only the hooks that a person trusts.
    pub(crate) fn enforces_trust(mut self) -> Self {
        self.trust = TrustMode::Enforced;
        self
    }

    /// Where its standard output goes.
    pub(crate) fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = stdout.into();
        self
    }

    /// How many files it may open.
    pub(crate) fn open_files(mut self, number: u32) -> Self {
        self.open_files = Some(number);
        self
    }

    /// Starts the daemon, and waits until it takes events.
    pub(crate) fn serve(self) -> Daemon {
        let daemon = self.spawn();
        // Not `/readyz`, which also says whether all workspaces are loaded.
        daemon.wait_until("the daemon is ready", || {
            let status = daemon.client().send("GET", "/v1/status", None);
            status.is_ok_and(|status| status.status == 200 && read(&status)["phase"] == "ready")
        });
        daemon
    }

    /// Starts the daemon, and does not wait.
    pub(crate) fn spawn(self) -> Daemon {
        let Self {
            directory,
            settings,
            socket,
            launcher,
            mut arguments,
            variables,
            trust,
            stdout,
            open_files,
        } = self;
        if trust == TrustMode::Off {
            arguments.splice(0..0, trust::OFF.iter().map(|word| (*word).to_owned()));
        }
        let here = directory.path().canonicalize().expect("a directory");
        fs::write(here.join("hookyard.yaml"), settings).expect("a settings file");
        let socket = here.join(socket);
        let mut command = program(&launcher, open_files);
        command.env("HOOKYARD_TEST_HOME", here.join("home")).envs(variables.clone()).stdout(stdout);
        let child = start(command, &here, &socket, &arguments);
        Daemon { child, directory, socket, arguments, variables }
    }
}

impl Daemon {
    /// The directory that everything is in, without symbolic links.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().expect("a directory")
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path().join("log")).unwrap_or_default()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.socket).timeout(LONGEST_WAIT)
    }

    /// The default path of its control socket.
    pub(crate) fn control_socket(&self) -> PathBuf {
        default_control_socket(&self.socket)
    }

    /// A client that may control it.
    pub(crate) fn control(&self) -> Client {
        Client::new(self.control_socket()).timeout(LONGEST_WAIT)
    }

    /// Asks for something, at the control socket where that is needed.
    pub(crate) fn send(&self, method: &str, path: &str, body: Option<&Value>) -> ClientResponse {
        let body = body.map(|body| body.to_string().into_bytes());
        let controls = ["PUT", "DELETE"].contains(&method) || path.starts_with("/v1/reload");
        let client = if controls { self.control() } else { self.client() };
        client.send(method, path, body.as_deref()).expect("an answer")
    }

    /// Asks for something that is there, and reads the answer.
    pub(crate) fn get(&self, path: &str) -> Value {
        read(&self.send("GET", path, None))
    }

    /// Sends an event, and reads the answer.
    pub(crate) fn post(&self, path: &str, event: &Value) -> Value {
        read(&self.send("POST", path, Some(event)))
    }

    /// The TCP address it listens on as well.
    pub(crate) fn tcp(&self) -> String {
        self.get("/v1/status")["tcp"].as_str().expect("an address").to_owned()
    }

    /// The processes in its directory, itself among them.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let here = self.path();
        let entries = fs::read_dir("/proc").expect("processes").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        // The directory of the daemon itself can be read by root alone.
        let is_here = |pid: &u32| {
            fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory.starts_with(&here))
                || (*pid == self.pid() && is_running(*pid))
        };
        pids.filter(is_here).collect()
    }

    /// Ends it as its users do, and sees to it that nothing is left of it.
    pub(crate) fn finish(mut self) {
        self.signal(Signal::TERM);
        assert_eq!(self.wait().code(), Some(0), "{}", self.log());
        wait_until("nothing is left", || self.processes().is_empty());
        assert!(!self.socket.exists() && !self.control_socket().exists());
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("a process to signal");
    }

    /// Waits for its end. The directory stays.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LONGEST_WAIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < deadline, "the daemon did not end:\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until a condition holds, and fails with the log if that did not grow for a minute.
    fn wait_until(&self, what: &str, condition: impl Fn() -> bool) {
        let mut deadline = Instant::now() + LONGEST_WAIT;
        let mut log = 0;
        while !condition() {
            let length = self.log().len();
            if length != log {
                log = length;
                deadline = Instant::now() + LONGEST_WAIT;
            }
            assert!(Instant::now() < deadline, "waited a minute for this: {what}\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// Starts another daemon that is to take over from this one.
    pub(crate) fn replace(&self) -> Self {
        self.replace_with(&[])
    }

    /// The same with more arguments.
    pub(crate) fn replace_with(&self, more: &[&str]) -> Self {
        let more = more.iter().map(|word| (*word).to_owned());
        let mut arguments: Vec<_> = self.arguments.iter().cloned().chain(more).collect();
        arguments.push("--replace".to_owned());
        let mut command = program(&[], None);
        let variables = self.variables.clone();
        command.env("HOOKYARD_TEST_HOME", self.path().join("home")).envs(variables.clone());
        let child = start(command, &self.path(), &self.socket, &arguments);
        arguments.pop();
        let directory = Arc::clone(&self.directory);
        Self { child, directory, socket: self.socket.clone(), arguments, variables }
    }

    /// What it was started in, to start another daemon there. It must have ended.
    pub(crate) fn again(mut self) -> DaemonSetup {
        assert!(self.child.try_wait().expect("a child").is_some(), "the daemon still runs");
        let directory = Arc::clone(&self.directory);
        let settings = fs::read_to_string(directory.path().join("hookyard.yaml")).expect("a settings file");
        let (socket, stdout) = (self.socket.clone(), Stdio::null());
        DaemonSetup {
            directory,
            settings,
            socket,
            launcher: Vec::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
            trust: TrustMode::Off,
            stdout,
            open_files: None,
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Both fail only if it has just ended.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Whether a process exists and is no zombie.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']))
}

/// Starts the program as a daemon in a directory, with a log there.
fn start(mut command: Command, here: &Path, socket: &Path, arguments: &[String]) -> Child {
    let log = fs::File::options().create(true).append(true).open(here.join("log")).expect("a log");
    command
        .arg("serve")
        .args(["--config".as_ref(), here.join("hookyard.yaml").as_os_str()])
        .args(["--socket".as_ref(), socket.as_os_str()])
        .args(["--log", "human"])
        .args(arguments)
        .current_dir(here)
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("the daemon starts")
}

/// The program, which may open so many files, as an argument of its launcher.
fn program(launcher: &[String], open_files: Option<u32>) -> Command {
    let program = env!("CARGO_BIN_EXE_hookyard");
    if let Some((first, rest)) = launcher.split_first() {
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        return command;
    }
    let Some(number) = open_files else { return Command::new(program) };
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {number}; exec \"$0\" \"$@\""), program]);
    command
}

/// The JSON of an answer that is no error.
pub(crate) fn read(answer: &ClientResponse) -> Value {
    let text = String::from_utf8_lossy(&answer.body);
    assert!((200..300).contains(&answer.status), "status {}: {text}", answer.status);
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Writes a file, with the directories above it.
pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, text).expect("a file");
}

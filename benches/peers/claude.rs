//! Tool calls of Claude Code with one hook: run by itself, and through hookyard in each way that there is. Sessions with and
//! without the hook take turns; what counts is the time that it adds to a call.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{process::Command, time::timeout};

use super::{
    daemon::Daemon,
    median,
    model::Model,
    programs::{self, environment},
    unmeasured,
};

/// The sessions of each way, in turns.
const ROUNDS: usize = 9;

/// The tool calls of a session.
const CALLS: usize = 25;

/// The calls at the beginning of a session, which load what the others use.
const FIRST: usize = 4;

/// What no session takes.
const LONGEST: Duration = Duration::from_mins(3);

/// The hook of all ways. Counts its runs, so that a way without it is noticed.
const GUARD: &str = "#!/bin/sh
read -r event
printf . >> \"${0%/*}/ran\"
case $event in *secret*) echo 'secrets stay unread' >&2; exit 2;; esac
";

/// How a tool call comes to the hook.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// There is no hook.
    None,
    /// Claude Code starts it.
    Directly,
    /// A hook of the type `http` asks the daemon, which starts it.
    Http,
    /// The command `hookyard-relay` asks the daemon.
    Relay,
    /// A command in Python asks the daemon.
    Lines,
}

const THROUGH: [(Way, &str); 3] = [
    (Way::Http, "over http"),
    (Way::Relay, "by `hookyard-relay`"),
    (Way::Lines, "over lines, asked by a command in Python"),
];

/// What all sessions use.
struct Place {
    claude: PathBuf,
    python: Result<PathBuf, programs::Missing>,
    directory: TempDir,
    daemon: Daemon,
}

/// Prints the rows.
pub(crate) async fn print() {
    let what = "what one hook adds to a tool call of Claude Code";
    let claude = match programs::claude() {
        Ok(found) => found.path,
        Err(missing) => return unmeasured(what, &missing),
    };
    let place = Place::new(claude).await;
    let mut ways = vec![Way::None, Way::Directly, Way::Http, Way::Relay];
    if place.python.is_ok() {
        ways.push(Way::Lines);
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for round in 0..ROUNDS {
        for turn in 0..ways.len() {
            // Another way begins each round.
            let way = (turn + round) % ways.len();
            times[way].push(place.session(ways[way]).await);
        }
    }
    let added =
        |way: usize| median(times[way].iter().zip(&times[0]).map(|(with, without)| with - without).collect());
    let (bare, directly) = (median(times[0].clone()), added(1));
    println!("| tool call of Claude Code (`Read`) without a hook | – | {bare:.1} ms | – | – |");
    for (number, (way, name)) in THROUGH.into_iter().enumerate() {
        let row = format!("{what}, through hookyard {name}");
        match &place.python {
            Err(missing) if way == Way::Lines => unmeasured(&row, missing),
            _ => {
                let through = added(number + 2);
                let ratio = directly / through;
                println!(
                    "| {row} | +{through:.1} ms | run by itself: +{directly:.1} ms | {ratio:.2} × | – |"
                );
            }
        }
    }
}

impl Place {
    async fn new(claude: PathBuf) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path();
        for name in ["project", "home/.claude"] {
            fs::create_dir_all(root.join(name)).expect("a directory");
        }
        fs::write(root.join("project/small"), "small\n").expect("a file");
        let guard = root.join("guard.sh");
        fs::write(&guard, GUARD).expect("a file");
        fs::set_permissions(&guard, fs::Permissions::from_mode(0o755)).expect("a program");
        let hooks = settings(&command(&guard.display().to_string()));
        let daemon = Daemon::start(&root.join("project"), ".claude/settings.json", &hooks).await;
        let python = programs::python().map(|found| found.path);
        Self { claude, python, directory, daemon }
    }

    /// What the agent has for its hook.
    fn hook(&self, way: Way) -> Option<Value> {
        let root = self.directory.path();
        match way {
            Way::None => None,
            Way::Directly => Some(command(&root.join("guard.sh").display().to_string())),
            Way::Http => {
                Some(json!({ "type": "http", "url": format!("{}/v1/events/claude", self.daemon.address()) }))
            }
            Way::Relay => {
                let (program, socket) = (env!("CARGO_BIN_EXE_hookyard-relay"), self.daemon.socket());
                let socket = socket.display();
                Some(command(&format!("{program} relay --dialect claude --socket {socket} --if-down block")))
            }
            Way::Lines => {
                let python = self.python.as_ref().ok()?.display();
                let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/lines.py");
                let (script, socket) = (script.display(), self.daemon.lines());
                Some(command(&format!("{python} -I -S {script} {}", socket.display())))
            }
        }
    }

    /// The median time of the calls of one session, in milliseconds.
    async fn session(&self, way: Way) -> f64 {
        let root = self.directory.path();
        let text = self.hook(way).map_or_else(|| "{}".to_owned(), |hook| settings(&hook));
        fs::write(root.join("home/.claude/settings.json"), text).expect("a file");
        let ran = root.join("ran");
        fs::write(&ran, "").expect("a file");
        let model = Model::start(root.join("project/small").display().to_string(), CALLS).await;
        let mut agent = Command::new(&self.claude);
        agent.args(["--dangerously-skip-permissions", "--model", "mock", "-p", "go"]);
        agent.current_dir(root.join("project")).env_clear().envs(environment());
        agent.env("HOME", root.join("home")).env("ANTHROPIC_BASE_URL", &model.address);
        // A sandbox is what root needs to work without permissions.
        agent.envs([("ANTHROPIC_API_KEY", "mock"), ("IS_SANDBOX", "1"), ("DISABLE_AUTOUPDATER", "1")]);
        agent.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        agent.stdin(Stdio::null()).kill_on_drop(true);
        let done =
            timeout(LONGEST, agent.output()).await.expect("a session of minutes").expect("Claude Code");
        let calls = model.calls();
        let runs = fs::read(&ran).expect("a file").len();
        let wanted = if way == Way::None { 0 } else { CALLS };
        assert!(
            done.status.success() && (calls.len(), runs) == (CALLS, wanted),
            "{} calls, {runs} runs: {done:?}",
            calls.len()
        );
        median(calls[FIRST..].iter().map(|call| call.as_secs_f64() * 1e3).collect())
    }
}

fn command(line: &str) -> Value {
    json!({ "type": "command", "command": line })
}

/// A settings file of Claude Code with a hook on the tool that the model calls.
fn settings(hook: &Value) -> String {
    json!({ "hooks": { "PreToolUse": [{ "matcher": "Read", "hooks": [hook] }] } }).to_string()
}

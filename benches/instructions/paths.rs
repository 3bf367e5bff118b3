//! The paths whose instructions are counted, each as an event takes it.

use std::{fs, hint::black_box, sync::Arc, time::Duration};

use hookyard::{
    Orchestrator,
    config::{Settings, TrustPolicy, WorkspaceSettings},
    daemon::Daemon,
    dialect,
    model::{Conclusion, DialectName, EventKind, Outcome, Reply, WorkspaceId},
    registry::Snapshot,
    run::{Course, Progress, next_decision_id},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    runtime::Runtime,
};

use super::common::{hooks, orchestrator, place, tool_event, with_hook};

pub(crate) const NAMES: &[&str] = &[
    "plan",
    "plan-10000-hooks",
    "course",
    "dialect-claude",
    "dialect-gemini",
    "dispatch-native",
    "dispatch-1000-runs",
    "dispatch-rule",
    "lines",
];

/// Paths with more of what an event has nothing to do with, and the path that they must be as short as.
pub(crate) const GROWN: &[(&str, &str)] =
    &[("plan-10000-hooks", "plan"), ("dispatch-1000-runs", "dispatch-native")];

const CLAUDE: &str = r#"{"session_id":"2e33567b-38f8-490d-90a2-7441e58efc66","transcript_path":"/home/dev/.claude/projects/-srv-shop/2e33567b.jsonl","cwd":"/srv/shop","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"toolu_msg_8z4y2bzy4g","tool_input":{"command":"npm run lint -- --fix","description":"Lint the shop and mend what can be mended","timeout":120000}}"#;

const GEMINI: &str = r#"{"session_id":"2e33567b-38f8-490d-90a2-7441e58efc66","transcript_path":"/home/dev/.gemini/tmp/2e33567b/chats/session.json","cwd":"/srv/shop","hook_event_name":"BeforeTool","timestamp":"2026-01-02T03:04:05.678Z","tool_name":"run_shell_command","tool_input":{"command":"npm run lint -- --fix","description":"Lint the shop and mend what can be mended"}}"#;

const EVENT: &str = r#"{"event":"before_tool_dispatch","session_id":"session-1","run_id":"run-1","workspace_id":"shop","tool_name":"Bash","tool_input":{"command":"npm run lint -- --fix","description":"Lint the shop and mend what can be mended"}}"#;

const RULE: &str = "name: no-force\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler:\n  type: rule\n  \
                    deny: shell.commands(tool.input.command).exists(c, c.name == 'git' && c.has_flag('force', 'f'))\n";

/// How often a path is taken before its instructions are counted, and how often while they are.
const WARM_UP: u64 = 200;
pub(crate) const COUNTED: u64 = 1000;

/// Takes a path.
pub(crate) fn take(path: &str) {
    match path {
        "plan" => plan(1_000),
        "plan-10000-hooks" => plan(10_000),
        "course" => course(),
        "dialect-claude" => native(DialectName::Claude, CLAUDE),
        "dialect-gemini" => native(DialectName::Gemini, GEMINI),
        "dispatch-native" => dispatch_native(0),
        "dispatch-1000-runs" => dispatch_native(1_000),
        "dispatch-rule" => {
            let runtime = runtime();
            let (workspace, orchestrator) = runtime.block_on(with_hook(RULE, Settings::default()));
            dispatch(&runtime, &orchestrator);
            drop(workspace);
        }
        "lines" => lines(),
        other => panic!("there is no path `{other}`"),
    }
}

/// Repeats the rounds of a path.
fn repeat(mut rounds: impl FnMut(u64)) {
    rounds(WARM_UP);
    counted(|| rounds(COUNTED));
}

/// What is counted. Its name tells valgrind so.
#[inline(never)]
fn counted(work: impl FnOnce()) {
    work();
    // Not a jump out of this function.
    black_box(());
}

/// One thread, so that nothing depends on who is faster.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The hooks of an event, five of so many.
fn plan(loaded: usize) {
    let mut all = hooks(loaded, "^tool_#$");
    all.splice(..5, hooks(5, "^Bash$"));
    let snapshot = Snapshot::new(1, place(), all);
    let event = tool_event(1);
    repeat(|rounds| {
        for _ in 0..rounds {
            assert_eq!(black_box(snapshot.plan(black_box(&event))).steps().len(), 5);
        }
    });
}

/// Five hooks one after the other, with what they are told, and the outcome.
fn course() {
    let event = Arc::new(tool_event(1));
    let snapshot = Arc::new(Snapshot::new(1, place(), hooks(5, "Bash")));
    repeat(|rounds| {
        for _ in 0..rounds {
            let plan = snapshot.plan(&event);
            let (mut course, mut progress) = Course::begin(Arc::clone(&event), plan, Arc::clone(&snapshot));
            while let Progress::Run(steps) = progress {
                progress = Progress::Done;
                for step in steps {
                    black_box(course.envelope(step));
                    progress = course.conclude(step, Conclusion::ran(Ok(Reply::proceed()), Duration::ZERO));
                }
            }
            black_box(course.into_outcome(next_decision_id()));
        }
    });
}

/// An event as an agent writes it, and an answer as it reads it.
fn native(name: DialectName, event: &str) {
    let dialect = dialect::named(name);
    let outcome = Outcome::proceed(next_decision_id(), EventKind::BeforeToolDispatch, 1);
    repeat(|rounds| {
        for _ in 0..rounds {
            let read = dialect.read_event(black_box(event.as_bytes())).expect("an event");
            black_box(dialect.write_response(&read, black_box(&outcome)));
        }
    });
}

/// Five hooks for each event, while so many other runs are open.
fn dispatch_native(others: usize) {
    let runtime = runtime();
    let orchestrator = runtime.block_on(orchestrator(5, "Bash"));
    for run in 2..others + 2 {
        runtime.block_on(orchestrator.dispatch(tool_event(run))).expect("an outcome");
    }
    dispatch(&runtime, &orchestrator);
}

/// Events of one run, from the library's front door to their outcomes.
fn dispatch(runtime: &Runtime, orchestrator: &Orchestrator) {
    let take = async |rounds| {
        for _ in 0..rounds {
            black_box(orchestrator.dispatch(tool_event(1)).await.expect("an outcome"));
        }
    };
    repeat(|rounds| runtime.block_on(take(rounds)));
}

/// Events that no hook wants, through the socket of lines of a daemon, one after the other; with the client, which does
/// little.
fn lines() {
    let place = tempfile::tempdir().expect("a directory");
    let shop = place.path().join("shop");
    fs::create_dir(&shop).expect("a directory");
    let mut settings =
        Settings { trust: TrustPolicy::Off, home: Some(place.path().into()), ..Settings::default() };
    settings.watch = false;
    settings.listen.socket = Some(place.path().join("socket"));
    settings.listen.lines = Some(place.path().join("lines"));
    settings.workspaces.insert(WorkspaceId::new("shop").expect("an id"), WorkspaceSettings::new(&shop));
    let runtime = runtime();
    let daemon = runtime.block_on(Daemon::start(settings, &|_| None)).expect("a daemon");
    let connected = runtime.block_on(UnixStream::connect(daemon.lines().expect("a socket of lines")));
    let mut stream = BufReader::new(connected.expect("a connection"));
    let mut take = async |rounds| {
        let mut answer = String::new();
        for round in 0..rounds {
            let line = format!("{{\"id\":{round},\"event\":{EVENT}}}\n");
            stream.write_all(line.as_bytes()).await.expect("sent");
            answer.clear();
            stream.read_line(&mut answer).await.expect("an answer");
            assert!(answer.contains("proceed"), "{answer}");
        }
    };
    repeat(|rounds| runtime.block_on(take(rounds)));
    runtime.block_on(daemon.stop(Duration::from_mins(1)));
}

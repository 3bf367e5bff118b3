//! The paths whose instructions are counted, each as an event takes it. None goes through the daemon, which does not start
//! under valgrind: rustix reads where the kernel's own code for clocks is, and valgrind hides it.

use std::{hint::black_box, sync::Arc, time::Duration};

use hookyard::{
    Orchestrator,
    config::Settings,
    dialect,
    model::{Conclusion, DialectName, EventKind, Outcome, Reply},
    registry::Snapshot,
    run::{Course, Progress, next_decision_id},
};
use tokio::runtime::Runtime;

use super::common::{hooks, orchestrator, place, tool_event, with_hook};

pub(crate) const NAMES: &[&str] =
    &["plan", "course", "dialect-claude", "dialect-gemini", "dispatch-native", "dispatch-rule"];

const CLAUDE: &str = r#"{"session_id":"2e33567b-38f8-490d-90a2-7441e58efc66","transcript_path":"/home/dev/.claude/projects/-srv-shop/2e33567b.jsonl","cwd":"/srv/shop","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"toolu_msg_8z4y2bzy4g","tool_input":{"command":"npm run lint -- --fix","description":"Lint the shop and mend what can be mended","timeout":120000}}"#;

const GEMINI: &str = r#"{"session_id":"2e33567b-38f8-490d-90a2-7441e58efc66","transcript_path":"/home/dev/.gemini/tmp/2e33567b/chats/session.json","cwd":"/srv/shop","hook_event_name":"BeforeTool","timestamp":"2026-01-02T03:04:05.678Z","tool_name":"run_shell_command","tool_input":{"command":"npm run lint -- --fix","description":"Lint the shop and mend what can be mended"}}"#;

const RULE: &str = "name: no-force\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler:\n  type: rule\n  \
                    deny: shell.commands(tool.input.command).exists(c, c.name == 'git' && c.has_flag('force', 'f'))\n";

/// Takes a path so often.
pub(crate) fn take(path: &str, rounds: u64) {
    match path {
        "plan" => plan(rounds),
        "course" => course(rounds),
        "dialect-claude" => native(DialectName::Claude, CLAUDE, rounds),
        "dialect-gemini" => native(DialectName::Gemini, GEMINI, rounds),
        "dispatch-native" => {
            let runtime = runtime();
            dispatch(&runtime, &runtime.block_on(orchestrator(5, "Bash")), rounds);
        }
        "dispatch-rule" => {
            let runtime = runtime();
            let (workspace, orchestrator) = runtime.block_on(with_hook(RULE, Settings::default()));
            dispatch(&runtime, &orchestrator, rounds);
            drop(workspace);
        }
        other => panic!("there is no path `{other}`"),
    }
}

/// One thread, so that nothing depends on who is faster.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The hooks of an event, five of many.
fn plan(rounds: u64) {
    let mut all = hooks(1_000, "^tool_#$");
    all.splice(..5, hooks(5, "^Bash$"));
    let snapshot = Snapshot::new(1, place(), all);
    let event = tool_event(1);
    for _ in 0..rounds {
        assert_eq!(black_box(snapshot.plan(black_box(&event))).steps().len(), 5);
    }
}

/// Five hooks one after the other, with what they are told, and the outcome.
fn course(rounds: u64) {
    let event = Arc::new(tool_event(1));
    let snapshot = Arc::new(Snapshot::new(1, place(), hooks(5, "Bash")));
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
}

/// An event as an agent writes it, and an answer as it reads it.
fn native(name: DialectName, event: &str, rounds: u64) {
    let dialect = dialect::named(name);
    let outcome = Outcome::proceed(next_decision_id(), EventKind::BeforeToolDispatch, 1);
    for _ in 0..rounds {
        let read = dialect.read_event(black_box(event.as_bytes())).expect("an event");
        black_box(dialect.write_response(&read, black_box(&outcome)));
    }
}

/// Events of one run, from the library's front door to their outcomes.
fn dispatch(runtime: &Runtime, orchestrator: &Orchestrator, rounds: u64) {
    runtime.block_on(async {
        for _ in 0..rounds {
            black_box(orchestrator.dispatch(tool_event(1)).await.expect("an outcome"));
        }
    });
}

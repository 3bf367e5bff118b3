//! The modes `oneshot`, `prespawn` and `worker` answer alike; spare processes.

use super::*;

/// The example hooks, as far as what they are written in is installed.
pub(super) fn examples() -> Vec<(&'static str, String)> {
    let examples = [("python3", "guard.py"), ("node", "guard.mjs"), ("jq", "guard.sh")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed =
        |program: &str| std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    let command = |(program, file): (&'static str, &str)| {
        let start = if program == "jq" { "sh" } else { program };
        (program, format!("exec {start} {}", root().join("config/workers/examples").join(file).display()))
    };
    examples.into_iter().filter(|(program, _)| installed(program)).map(command).collect()
}

#[tokio::test]
async fn the_example_hooks_answer_alike_in_every_mode() {
    for (program, command) in examples() {
        for mode in MODES {
            let fixture = Fixture::of(&command, &format!("mode: {mode}")).await;
            for _ in 0..2 {
                let (good, bad) = (fixture.ask("ls").await, fixture.ask("rm -rf /").await);
                assert_eq!((ended(&good), good.verdict), ((Ended::Completed, ""), Verdict::Proceed));
                assert_eq!((ended(&bad), bad.verdict), ((Ended::Completed, ""), Verdict::Block));
                assert_eq!(reason(&bad), "this would remove everything", "{program} {mode}");
            }
        }
    }
}

/// Hooks of the SDKs that return what JSON has no form for if a command is odd, and the name of their process otherwise.
const ODD: [(&str, &str); 2] = [
    (
        "python3",
        "import os, sys\nsys.path.insert(0, '{sdks}/python')\nfrom hookyard_worker import serve\n\n\n\
         def hook(envelope):\n    odd = envelope['tool_input']['command'] == 'odd'\n    \
         return {'reason': {1}} if odd else {'decision': 'block', 'reason': str(os.getpid())}\n\n\nserve(hook)\n",
    ),
    (
        "node",
        "import { serve } from '{sdks}/javascript/hookyard-worker.mjs';\nconst loop = {};\nloop.loop = loop;\n\
         serve(({ tool_input: { command } }) =>\n  \
         command === 'odd' ? loop : { decision: 'block', reason: String(process.pid) });\n",
    ),
];

#[tokio::test]
async fn an_answer_that_json_has_no_form_for_fails_one_event_of_its_worker() {
    let sdks = root().join("config/workers").display().to_string();
    let installed: Vec<_> = examples().into_iter().map(|(program, _)| program).collect();
    for (program, hook) in ODD.into_iter().filter(|(program, _)| installed.contains(program)) {
        let fixture = Fixture::of(&format!("exec {program} ./hook.mjs"), "mode: worker").await;
        fs::write(fixture.workspace.path().join("hook.mjs"), hook.replace("{sdks}", &sdks)).unwrap();
        let worker = pid_of(&fixture.ask("fine").await);
        let odd = fixture.ask("odd").await;
        let (ended, error) = ended(&odd);
        assert!(ended == Ended::Failed && error.contains("TypeError"), "{program}: {odd:?}");
        assert_eq!(pid_of(&fixture.ask("fine").await), worker, "{program}: another worker");
    }
}

/// The modes that every script of the SDKs runs in.
const MODES: [&str; 3] = ["oneshot", "prespawn", "worker"];

/// A hook that blocks in the name of its process, after it has said on a line of `started.txt` that it runs.
const WAITER: &str =
    r#"echo $$ >> started.txt; read -r envelope; echo "{\"decision\":\"block\",\"reason\":\"$$\"}""#;

fn pid_of(outcome: &Outcome) -> u32 {
    reason(outcome).parse().unwrap_or_else(|_| panic!("{outcome:?}"))
}

#[tokio::test]
async fn spares_wait_for_their_event_and_serve_one() {
    let fixture = Fixture::of(WAITER, "mode: prespawn\n  spares: 2").await;
    let mut seen = vec![pid_of(&fixture.ask("fine").await)];
    for served in 1..5 {
        // One for each event so far, and two that wait.
        fixture.lines("started.txt", served + 2).await;
        let started = fs::read_to_string(fixture.workspace.path().join("started.txt")).unwrap();
        let pid = pid_of(&fixture.ask("fine").await);
        assert!(started.lines().any(|line| line == pid.to_string()), "{pid} was not there before its event");
        assert!(!seen.contains(&pid), "{pid} served twice");
        seen.push(pid);
    }
    assert!(fixture.orchestrator.shutdown(LONG).await);
    let left =
        child_processes::gone(|process| process.alive() && runs_in(process, fixture.workspace.path())).await;
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_spare_of_a_changed_script_is_not_used() {
    let fixture = Fixture::of("sh ./script.sh", "mode: prespawn").await;
    let script = fixture.workspace.path().join("script.sh");
    let write = |reason: &str| {
        let answer = json!({ "decision": "block", "reason": reason }).to_string();
        fs::write(&script, format!("echo $$ >> started.txt\nread -r envelope\necho '{answer}'\n")).unwrap();
    };
    write("old");
    assert_eq!(reason(&fixture.ask("fine").await), "old");
    fixture.lines("started.txt", 2).await;
    write("changed");
    assert_eq!(reason(&fixture.ask("fine").await), "changed");
}

#[tokio::test]
async fn a_spare_that_did_not_wait_is_not_used() {
    let hook = r#"echo "{\"decision\":\"block\",\"reason\":\"$HOOKYARD_EVENT\"}"; echo $$ >> started.txt"#;
    let fixture = Fixture::of(hook, "mode: prespawn").await;
    for served in 1..=8 {
        assert_eq!(reason(&fixture.ask("fine").await), "before_tool_dispatch");
        // A spare for each of the first three events; none is started any more after those.
        fixture.lines("started.txt", served + served.min(3)).await;
    }
    let started = fs::read_to_string(fixture.workspace.path().join("started.txt")).unwrap();
    assert_eq!(started.lines().count(), 8 + 3, "{started}");
}

/// Asks about an event in the trace of this number.
async fn ask_in_trace(fixture: &Fixture, command: &str, number: u64) -> (String, String) {
    let trace = format!("00-0af7651916cd43dd8448eb211c80319c-{number:016x}-01");
    let mut event = event("run", &json!({ "command": command }).to_string());
    event.trace = Some(trace.parse().unwrap());
    let outcome = timeout(LONG, fixture.orchestrator.dispatch(event)).await.unwrap().unwrap();
    (reason(&outcome).to_owned(), trace)
}

#[tokio::test]
async fn a_worker_is_told_the_trace_with_each_event() {
    let fixture = Fixture::worker("good", "").await;
    for number in 1..=2 {
        let (reply, trace) = ask_in_trace(&fixture, "trace", number).await;
        assert_eq!(reply, format!("{trace} none"));
    }
    assert_eq!(reason(&fixture.ask("trace").await), "none none");
    assert_eq!(worker_of(&fixture.ask("fine").await).1, 4, "one worker is told all of them");
}

#[tokio::test]
async fn a_spare_serves_an_event_of_any_trace_and_is_told_none() {
    let hook = r#"echo $$ >> started.txt; read -r envelope; echo "{\"decision\":\"block\",\"reason\":\"${TRACEPARENT-none}\"}""#;
    let fixture = Fixture::of(hook, "mode: prespawn").await;
    let (reply, trace) = ask_in_trace(&fixture, "fine", 1).await;
    assert_eq!(reply, trace, "the first event finds no spare");
    for number in 2..=4 {
        fixture.lines("started.txt", usize::try_from(number).unwrap()).await;
        assert_eq!(ask_in_trace(&fixture, "fine", number).await.0, "none");
    }
}

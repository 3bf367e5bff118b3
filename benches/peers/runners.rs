//! What runs hooks beside hookyard: Gemini CLI's hook system, and plain loops that start a process for each hook.

use std::{
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hookyard::{Orchestrator, config::Settings, config::TrustPolicy, model::Outcome};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, task::JoinSet, time::Instant};

use super::{
    Compared, alternate,
    common::{self, tool_event},
    daemon::Daemon,
    host::Host,
    programs::{self, Found, Missing, environment},
    unmeasured,
};

/// The hooks that run at once where processes are started.
const AT_ONCE: usize = 16;

/// The events of a round in which each starts a process.
const SPAWNS: usize = 160;

/// The events of a round in which each starts Node.
const STARTS_OF_NODE: usize = 32;

/// The events of a round in which nothing is started.
const CALLS: usize = 4_000;

/// The same where the hooks are functions of a program in Rust, which would be done with fewer too soon to be measured.
const MANY_CALLS: usize = 100_000;

/// The runs at once of a host in whose process the hooks are.
const RUNS: usize = 64;

/// One hook that does nothing, in the agent's own settings file, which both read, and in a file of hookyard's.
const GEMINI_FILE: &str = ".gemini/settings.json";
const GEMINI_HOOKS: &str =
    r#"{"hooks":{"BeforeTool":[{"hooks":[{"type":"command","name":"hook","command":"true"}]}]}}"#;
const OWN_FILE: &str = ".openharness/hooks/hook.yaml";
const OWN_HOOK: &str =
    "name: nothing\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: 'true'\n";

/// A guard in Node, as a command and as the example that it is.
fn guard(node: &Found) -> String {
    let root = env!("CARGO_MANIFEST_DIR");
    format!("{} {root}/config/workers/examples/guard.mjs", node.path.display())
}

/// A host in Rust whose workspace has one hook file.
async fn with_file(file: &str, text: &str) -> (TempDir, Orchestrator) {
    let place = tempfile::tempdir().expect("a directory");
    let (home, workspace) = (place.path().join("home"), place.path().join("workspace"));
    let file = workspace.join(file);
    std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
    std::fs::create_dir(&home).expect("a directory");
    std::fs::write(file, text).expect("a file");
    let settings = Settings { home: Some(home), ..Settings::default() };
    let builder = Orchestrator::builder().settings(settings).trust(TrustPolicy::Off);
    (place, builder.workspace(workspace).start().await.expect("an orchestrator"))
}

async fn of_guard(node: &Found, mode: &str) -> (TempDir, Orchestrator) {
    let handler = format!("type: command\n  command: {}\n  mode: {mode}\n", guard(node));
    let text = format!("name: guard\nevents: [before_tool_dispatch]\nhandler:\n  {handler}");
    with_file(OWN_FILE, &text).await
}

/// So many calls in all, so many of them at once; returns how many were made in a second.
async fn rate<F: Future<Output = ()> + Send + 'static>(
    number: usize,
    at_once: usize,
    one: impl Fn(usize) -> F + Clone + Send + 'static,
) -> f64 {
    let taken = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..at_once {
        let (taken, one) = (Arc::clone(&taken), one.clone());
        tasks.spawn(async move {
            while taken.fetch_add(1, Ordering::Relaxed) < number {
                one(task).await;
            }
        });
    }
    tasks.join_all().await;
    number as f64 / begun.elapsed().as_secs_f64()
}

/// The rate at which hookyard runs the hooks of tool calls, each of which has to succeed.
async fn dispatch(orchestrator: &Orchestrator, hooks: usize, number: usize, at_once: usize) -> f64 {
    let orchestrator = orchestrator.clone();
    let one = move |run: usize| {
        let orchestrator = orchestrator.clone();
        async move {
            let outcome = orchestrator.dispatch(tool_event(run)).await.expect("an outcome");
            assert!(has_run(&outcome, hooks), "{outcome:?}");
        }
    };
    rate(number, at_once, one).await
}

fn has_run(outcome: &Outcome, hooks: usize) -> bool {
    outcome.hooks.len() == hooks && outcome.hooks.iter().all(|hook| hook.error.is_none())
}

/// What `hookyard` and a peer do in a second, as a row.
fn print(what: &str, peer: &str, goal: &str, compared: &Compared) {
    let Compared { ours, peers, ratio } = compared;
    println!("| {what} | {ours:.0}/s | {peer}: {peers:.0}/s | {ratio:.1} × | {goal} |");
}

/// Command hooks under Gemini CLI's hook system.
pub(crate) async fn gemini() {
    const WHAT: &str = "command hook `true`, 16 at once";
    let (node, package) = match needed() {
        Ok(found) => found,
        Err(missing) => return unmeasured(&format!("{WHAT}, beside Gemini CLI"), &missing),
    };
    let project = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(project.path(), GEMINI_FILE, GEMINI_HOOKS).await;
    let guard_line = guard(&node);
    let lines = daemon.lines();
    let arguments = [project.path(), &package.path, &lines];
    let mut host = Host::start(&node.path, "host.mjs", &arguments, Some(&guard_line)).await;
    let host = &mut host;

    let (_same, same) = with_file(GEMINI_FILE, GEMINI_HOOKS).await;
    let ours = async |_: &mut Host| dispatch(&same, 1, SPAWNS, AT_ONCE).await;
    let peer = async |host: &mut Host| host.rate("command", SPAWNS, AT_ONCE).await;
    let compared = alternate(host, ours, peer).await;
    print(
        &format!("{WHAT}, the same `{GEMINI_FILE}`: both start `bash`"),
        "Gemini CLI",
        "≥ 9 ×, where spawning allows",
        &compared,
    );

    let ours = async |_: &mut Host| rate(SPAWNS, AT_ONCE, |_| bare_bash()).await;
    let compared = alternate(host, ours, peer).await;
    print("as much as spawning allows: no hook system, only `bash -c true`", "Gemini CLI", "–", &compared);

    let (_own, own) = with_file(OWN_FILE, OWN_HOOK).await;
    let ours = async |_: &mut Host| dispatch(&own, 1, SPAWNS, AT_ONCE).await;
    let compared = alternate(host, ours, peer).await;
    print(&format!("{WHAT}, in hookyard's own file: `sh` beside `bash`"), "Gemini CLI", "–", &compared);

    let (_program, program) = with_file(OWN_FILE, &OWN_HOOK.replace("'true'", "/bin/true")).await;
    let ours = async |_: &mut Host| dispatch(&program, 1, SPAWNS, AT_ONCE).await;
    let of_program = async |host: &mut Host| host.rate("program", SPAWNS, AT_ONCE).await;
    let compared = alternate(host, ours, of_program).await;
    print("the same with the program `/bin/true`, which needs no shell", "Gemini CLI", "–", &compared);

    let ours = async |host: &mut Host| host.rate("lines", SPAWNS, AT_ONCE).await;
    let compared = alternate(host, ours, peer).await;
    print(&format!("{WHAT}, the agent in Node asks the daemon over lines"), "Gemini CLI", "–", &compared);

    let peer = async |host: &mut Host| host.rate("guard", STARTS_OF_NODE, AT_ONCE).await;
    for (mode, number) in [("oneshot", STARTS_OF_NODE), ("worker", CALLS)] {
        let (_place, guarded) = of_guard(&node, mode).await;
        let ours = async |_: &mut Host| dispatch(&guarded, 1, number, AT_ONCE).await;
        let compared = alternate(host, ours, peer).await;
        print(&format!("guard in Node, 16 at once, in mode `{mode}`"), "Gemini CLI", "–", &compared);
    }
}

/// Hooks in the process of the host.
pub(crate) async fn runtime() {
    const WHAT: &str = "5 hooks in the process of the host";
    let (node, package) = match needed() {
        Ok(found) => found,
        Err(missing) => return unmeasured(&format!("{WHAT}, beside Gemini CLI"), &missing),
    };
    let project = tempfile::tempdir().expect("a directory");
    let ours = common::orchestrator(5, "Bash").await;
    for (at_once, how) in [(1, "one event after the other"), (RUNS, "64 events at once")] {
        let ours = async |(): &mut ()| dispatch(&ours, 5, MANY_CALLS, at_once).await;
        // What telemetry would send piles up in the process, so each round has a new one, which is warmed up.
        let peer = async |(): &mut ()| {
            let arguments = [project.path(), &package.path];
            let mut host = Host::start(&node.path, "host.mjs", &arguments, Some("true")).await;
            host.rate("runtime", CALLS, at_once).await;
            host.rate("runtime", CALLS, at_once).await
        };
        let compared = alternate(&mut (), ours, peer).await;
        print(&format!("{WHAT}, {how}"), "Gemini CLI", "≥ 20 ×", &compared);
    }
}

fn needed() -> Result<(Found, Found), Missing> {
    Ok((programs::node()?, programs::gemini()?))
}

/// A process for each hook, without a hook system.
pub(crate) async fn loops() {
    let project = tempfile::tempdir().expect("a directory");
    let (_own, own) = with_file(OWN_FILE, OWN_HOOK).await;
    let no_package = Path::new("-");
    let hosts = [
        ("Node", "host.mjs", programs::node(), vec![project.path(), no_package]),
        ("Python", "host.py", programs::python(), vec![project.path()]),
    ];
    for (language, script, interpreter, arguments) in hosts {
        let peer = format!("plain loop in {language}");
        let what = "command hook `true`, 16 at once";
        let interpreter = match interpreter {
            Ok(found) => found.path,
            Err(missing) => {
                unmeasured(&format!("{what}, beside a {peer}"), &missing);
                continue;
            }
        };
        let mut host = Host::start(&interpreter, script, &arguments, None).await;
        let ours = async |_: &mut Host| dispatch(&own, 1, SPAWNS, AT_ONCE).await;
        let peers = async |host: &mut Host| host.rate("plain", SPAWNS, AT_ONCE).await;
        let compared = alternate(&mut host, ours, peers).await;
        print(what, &peer, "–", &compared);
    }
}

/// The least that starts the shell of Gemini CLI's hooks and takes what it says.
async fn bare_bash() {
    let mut command = tokio::process::Command::new("/bin/bash");
    command.args(["-c", "true"]).env_clear().envs(environment());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("a process");
    // `true` may be gone before it is told anything.
    drop(child.stdin.take().expect("a pipe").write_all(&[b' '; 300]).await);
    let done = child.wait_with_output().await.expect("a process that ends");
    assert!(done.status.success());
}

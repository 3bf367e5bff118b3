//! What rules cost: beside a native closure that does the same, and beside the same guard as a script.

use std::{fmt::Write as _, path::Path};

use hdrhistogram::Histogram;
use hookyard::{
    NativeHook, Orchestrator,
    config::TrustPolicy,
    model::{Event, EventKind, Json, Reply, Target},
};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{PAIRS, common::tool_event, median, rate};

/// The events of one round.
const ROUND: u64 = 5_000;

/// The events of each run in one round where a rate counts.
const EACH: usize = 2_000;

/// A condition that reads the name of the tool and the command.
const PLAIN: &str = "tool.name == 'Bash' && tool.input.command.contains('--force')";

/// A condition about the commands of a line.
const SHELL: &str = "shell.commands(tool.input.command).exists(c, c.name == 'git' && c.args[0] == 'push' && \
                     c.has_flag('force', 'f'))";

/// A line as agents write them.
const LINE: &str =
    "cd /srv/shop && git -c user.name=x commit -m 'fix: prices' 2>&1 | tail -5; npm run lint -- --fix";

/// Prints the rows.
pub(crate) async fn print() {
    one_rule().await;
    commands_of_a_line().await;
    links_of_a_line().await;
    many_on_one_event().await;
    few_of_many().await;
    loading().await;
    #[cfg(feature = "rego")]
    one_policy().await;
    many_runs().await;
    scripts().await;
}

/// An event of a tool call whose payload has about 1 KiB.
fn event_of(command: &str) -> Event {
    let mut event = tool_event(1);
    let input = serde_json::json!({ "command": command, "description": "d".repeat(900), "timeout": 120_000 });
    event.targets.set(Target::ToolInput, Json::parse(&input.to_string()).expect("JSON"));
    event
}

fn rule(name: &str, matcher: &str, condition: &str) -> String {
    format!(
        "name: {name}\nevents: [before_tool_dispatch]\nmatcher: {matcher}\nhandler:\n  type: rule\n  deny: {}\n\
         on_error: deny\n",
        serde_json::Value::from(condition)
    )
}

fn workspace(hooks: impl IntoIterator<Item = (String, String)>) -> TempDir {
    let workspace = tempfile::tempdir().expect("a directory");
    let folder = workspace.path().join(".openharness/hooks");
    std::fs::create_dir_all(&folder).expect("a directory");
    for (name, text) in hooks {
        std::fs::write(folder.join(format!("{name}.yaml")), text).expect("a file");
    }
    workspace
}

async fn start(workspace: &Path) -> Orchestrator {
    let builder = Orchestrator::builder().trust(TrustPolicy::Off).workspace(workspace);
    builder.start().await.expect("an orchestrator")
}

/// A native hook that does what a closure says.
async fn native(judge: fn(&str) -> bool) -> Orchestrator {
    let hook = NativeHook::inline("native", [EventKind::BeforeToolDispatch], move |draft| {
        let input = draft.target(Target::ToolInput).map(Json::as_str).unwrap_or_default();
        let input: serde_json::Value = serde_json::from_str(input).map_err(|e| e.to_string())?;
        let is_denied = judge(input["command"].as_str().unwrap_or_default());
        Ok(if is_denied { Reply::block("no") } else { Reply::proceed() })
    });
    Orchestrator::builder().native_hook(hook).start().await.expect("an orchestrator")
}

/// The median time of one dispatch, in nanoseconds, for a task of the runtime.
async fn p50(orchestrator: &Orchestrator, event: &Event, events: u64) -> f64 {
    let (orchestrator, event) = (orchestrator.clone(), event.clone());
    let task = tokio::spawn(async move {
        let mut times = Histogram::<u64>::new(3).expect("a histogram");
        for _ in 0..events {
            let event = event.clone();
            let begun = Instant::now();
            let outcome = orchestrator.dispatch(event).await.expect("an outcome");
            let time = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            assert!(outcome.hooks.iter().all(|hook| hook.error.is_none()), "{outcome:?}");
            times.record(time).expect("a histogram grows with its values");
        }
        times.value_at_quantile(0.5) as f64
    });
    task.await.expect("a median")
}

/// The median of the medians of one orchestrator and of its floor, measured alternately.
async fn beside(of: &Orchestrator, floor: &Orchestrator, event: &Event) -> (f64, f64) {
    let (mut own, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        own.push(p50(of, event, ROUND).await);
        floors.push(p50(floor, event, ROUND).await);
    }
    (median(own), median(floors))
}

async fn one_rule() {
    let event = event_of("npm run lint");
    let files = workspace([("rule".to_owned(), rule("rule", "^Bash$", PLAIN))]);
    let with_rule = start(files.path()).await;
    let empty = super::common::orchestrator(1, "Bash").await;
    let (own, floor) = beside(&with_rule, &empty, &event).await;
    let above = own - floor;
    println!(
        "| one rule on a 1 KiB event | p50 {own:.0} ns | empty native hook: {floor:.0} ns | +{above:.0} ns | ≤ +3 µs |"
    );
    let same = native(|command| command.contains("--force")).await;
    let (own, floor) = beside(&with_rule, &same, &event).await;
    println!(
        "| one rule on a 1 KiB event | p50 {own:.0} ns | native closure that does the same: {floor:.0} ns | {:.2} | – |",
        own / floor
    );
}

/// The same in Rego.
#[cfg(feature = "rego")]
async fn one_policy() {
    const POLICY: &str = "name: rego\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler:\n  type: rego\n  inline: |\n    package guard\n    \
                          deny contains \"no\" if {\n      input.tool_name == \"Bash\"\n      \
                          contains(input.tool_input.command, \"--force\")\n    }\non_error: deny\non_timeout: deny\n";
    let event = event_of("npm run lint");
    let files = workspace([("rego".to_owned(), POLICY.to_owned())]);
    let with_policy = start(files.path()).await;
    let files = workspace([("rule".to_owned(), rule("rule", "^Bash$", PLAIN))]);
    let with_rule = start(files.path()).await;
    let (own, floor) = beside(&with_policy, &with_rule, &event).await;
    println!(
        "| one Rego policy on a 1 KiB event | p50 {own:.0} ns | the same as a rule: {floor:.0} ns | {:.1} | – |",
        own / floor
    );
}

async fn commands_of_a_line() {
    let event = event_of(LINE);
    let files = workspace([("rule".to_owned(), rule("rule", "^Bash$", SHELL))]);
    let with_rule = start(files.path()).await;
    let empty = super::common::orchestrator(1, "Bash").await;
    let (own, floor) = beside(&with_rule, &empty, &event).await;
    let above = own - floor;
    println!(
        "| `shell.commands` of a line with 5 commands | p50 {own:.0} ns | empty native hook: {floor:.0} ns | +{above:.0} ns | ≤ +10 µs |"
    );
}

/// The links of a command's words are looked up before the rule is asked.
async fn links_of_a_line() {
    const LED: &str = "shell.resolved(tool.input.command, workspace.root).exists(c, c.writes.exists(w, w.contains('/.git/'))) || \
                       path.touches(tool.input.description, '/etc')";
    let event = event_of(LINE);
    let files = workspace([("rule".to_owned(), rule("rule", "^Bash$", LED))]);
    let with_rule = start(files.path()).await;
    let empty = super::common::orchestrator(1, "Bash").await;
    let (own, floor) = beside(&with_rule, &empty, &event).await;
    let above = own - floor;
    println!(
        "| where the words of a line lead, looked up on the disk | p50 {own:.0} ns | empty native hook: {floor:.0} ns | +{above:.0} ns | – |"
    );
}

/// Conditions that differ, half of them about commands.
fn condition(number: usize) -> String {
    if number.is_multiple_of(2) {
        format!(
            "shell.commands(tool.input.command).exists(c, c.name == 'program-{number}' && c.has_flag('force', 'f'))"
        )
    } else {
        format!("tool.name == 'Bash' && tool.input.command.contains('--flag-{number}')")
    }
}

/// A hook with rules of these numbers.
fn rule_list(name: &str, matcher: &str, numbers: std::ops::Range<usize>) -> String {
    let mut list = format!(
        "name: {name}\nevents: [before_tool_dispatch]\nmatcher: {matcher}\nhandler:\n  type: rule\n  rules:\n"
    );
    for number in numbers {
        let condition = serde_json::Value::from(condition(number));
        let _infallible = writeln!(list, "    - deny: {condition}");
    }
    list + "on_error: deny\n"
}

/// A thousand rules in two hundred hooks, of which the first has the matcher `first` and the others `others`.
fn thousand_rules(first: &str, others: impl Fn(usize) -> String) -> TempDir {
    workspace((0..200).map(|hook| {
        let name = format!("rules-{hook}");
        let matcher = if hook == 0 { first.to_owned() } else { others(hook) };
        (name.clone(), rule_list(&name, &matcher, 5 * hook..5 * (hook + 1)))
    }))
}

async fn many_on_one_event() {
    let event = event_of(LINE);
    let named = |number: usize| {
        let name = format!("rule-{number}");
        (name.clone(), rule(&name, "^Bash$", &condition(number)))
    };
    let files = workspace((0..40).map(named));
    let with_rules = start(files.path()).await;
    let empty = super::common::orchestrator(40, "Bash").await;
    let (own, floor) = beside(&with_rules, &empty, &event).await;
    println!(
        "| 40 hooks with rules on one event | p50 {own:.0} ns | 40 empty native hooks: {floor:.0} ns | {:.2} | ≤ 60 µs |",
        own / floor
    );
    let files = workspace([("rules".to_owned(), rule_list("rules", "^Bash$", 0..40))]);
    let with_list = start(files.path()).await;
    let (own, floor) = beside(&with_list, &empty, &event).await;
    println!(
        "| one hook with 40 rules on one event | p50 {own:.0} ns | 40 empty native hooks: {floor:.0} ns | {:.2} | ≤ 60 µs |",
        own / floor
    );
}

async fn few_of_many() {
    let event = event_of(LINE);
    let files = thousand_rules("^Bash$", |hook| format!("^tool_{hook}$"));
    let with_rules = start(files.path()).await;
    let empty = super::common::orchestrator(5, "Bash").await;
    let (own, floor) = beside(&with_rules, &empty, &event).await;
    println!(
        "| 1,000 rules of which 5 match | p50 {own:.0} ns | 5 empty native hooks: {floor:.0} ns | {:.2} | ≤ 25 µs |",
        own / floor
    );
}

async fn loading() {
    let files = thousand_rules("^Bash$", |_| "^Bash$".to_owned());
    let commands = workspace((0..200).map(|number| {
        let name = format!("rules-{number}");
        let text = format!(
            "name: {name}\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: \"true\"\n"
        );
        (name, text)
    }));
    let (mut own, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        own.push(time_to_start(files.path()).await);
        floor.push(time_to_start(commands.path()).await);
    }
    let (own, floor) = (median(own), median(floor));
    println!(
        "| loading 1,000 rules in 200 files | {own:.1} ms | 200 command hooks: {floor:.1} ms | {:.2} | ≤ 150 ms |",
        own / floor
    );
}

async fn time_to_start(workspace: &Path) -> f64 {
    let begun = Instant::now();
    let orchestrator = start(workspace).await;
    let time = begun.elapsed().as_secs_f64() * 1e3;
    let hooks = orchestrator.snapshot(None).expect("a snapshot").hooks().len();
    assert_eq!(hooks, 200);
    time
}

async fn many_runs() {
    let files = workspace([("rule".to_owned(), rule("rule", "^Bash$", PLAIN))]);
    let with_rule = start(files.path()).await;
    let same = native(|command| command.contains("--force")).await;
    let (mut own, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        own.push(speed(&with_rule).await);
        floor.push(speed(&same).await);
    }
    let (own, floor) = (median(own), median(floor));
    println!(
        "| one rule, 64 runs at once | {own:.0} events/s | native closure that does the same: {floor:.0}/s | {:.2} | ≥ 200,000/s |",
        own / floor
    );
}

async fn speed(orchestrator: &Orchestrator) -> f64 {
    let one = |run: usize| {
        let orchestrator = orchestrator.clone();
        async move {
            let event = Event { run_id: tool_event(run).run_id, ..event_of("npm run lint") };
            for _ in 0..EACH {
                orchestrator.dispatch(event.clone()).await.expect("an outcome");
            }
        }
    };
    rate(EACH, one).await
}

/// The same guard in languages of scripts, a process for each event.
const SCRIPTS: [(&str, &str, &str); 3] = [
    (
        "sh",
        "exec sh .openharness/hooks/scripts/guard",
        "if grep -q -e '--force'; then echo no >&2; exit 2; fi\n",
    ),
    (
        "Node",
        "exec node .openharness/hooks/scripts/guard",
        "const event = JSON.parse(require('fs').readFileSync(0));\n\
         if (event.tool_input.command.includes('--force')) { console.error('no'); process.exit(2); }\n",
    ),
    (
        "Python",
        "exec python3 .openharness/hooks/scripts/guard",
        "import json, sys\nif '--force' in json.load(sys.stdin)['tool_input']['command']:\n    sys.exit(2)\n",
    ),
];

/// The same guard as a worker in Node.
const NODE_WORKER: &str = "import { serve } from './hookyard-worker.mjs';\n\
     serve(({ tool_input }) => tool_input.command.includes('--force') ? { decision: 'block', reason: 'no' } : undefined);\n";

async fn scripts() {
    let event = event_of("npm run lint");
    let files = workspace([("rule".to_owned(), rule("rule", "^Bash$", PLAIN))]);
    let with_rule = start(files.path()).await;
    for (language, command, script) in SCRIPTS {
        let files = scripted(command, "guard", script);
        let with_script = start(files.path()).await;
        let (own, floor) = rule_beside(&with_rule, &with_script, 10, &event).await;
        let (shown, times) = (floor / 1e6, floor / own);
        println!(
            "| a rule | p50 {own:.0} ns | the same in {language}, oneshot: {shown:.1} ms | 1/{times:.0} | Node: ≤ 1/5,000 |"
        );
    }
    let files =
        scripted("exec node .openharness/hooks/scripts/guard.mjs\n  mode: worker", "guard.mjs", NODE_WORKER);
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/workers/javascript/hookyard-worker.mjs");
    std::fs::copy(sdk, files.path().join(".openharness/hooks/scripts/hookyard-worker.mjs")).expect("a copy");
    let with_worker = start(files.path()).await;
    // Its first event starts it.
    p50(&with_worker, &event, 1).await;
    let (own, floor) = rule_beside(&with_rule, &with_worker, ROUND, &event).await;
    println!(
        "| a rule | p50 {own:.0} ns | the same in Node, worker: {:.0} µs | 1/{:.0} | – |",
        floor / 1e3,
        floor / own
    );
}

/// A workspace whose only hook is a script.
fn scripted(command: &str, file: &str, script: &str) -> TempDir {
    let text = format!(
        "name: script\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler:\n  type: command\n  command: {command}\n\
         on_error: deny\n"
    );
    let files = workspace([("script".to_owned(), text)]);
    let folder = files.path().join(".openharness/hooks/scripts");
    std::fs::create_dir_all(&folder).expect("a directory");
    std::fs::write(folder.join(file), script).expect("a file");
    files
}

/// The time of an event with a rule, and with the same guard as a script that gets so many events a round, by turns.
async fn rule_beside(rule: &Orchestrator, script: &Orchestrator, events: u64, event: &Event) -> (f64, f64) {
    let (mut own, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        own.push(p50(rule, event, ROUND).await);
        floor.push(p50(script, event, events).await);
    }
    (median(own), median(floor))
}

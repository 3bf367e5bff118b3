//! The SDKs of Python and Node: whatever a hook gets, returns, prints or raises, its worker goes on.

use std::{collections::HashSet, io::Write, process::Stdio};

use super::{modes::examples, *};

/// A hook that blocks with its process, the length of the text it gets in characters, and how often it ran.
struct SdkHook {
    program: &'static str,
    serve: &'static str,
    source: &'static str,
}

const PYTHON_HOOK: &str = "import os, subprocess, sys
sys.path.insert(0, '{sdks}/python')
from hookyard_worker import serve
count = 0
def hook(envelope):
    global count
    count += 1
    command, text = envelope['tool_input']['command'], envelope['tool_input'].get('text', '')
    if command == 'raise': raise ValueError('x' * 100000)
    if command == 'exit': sys.exit(3)
    if command == 'nothing': return None
    if command == 'print':
        print('{\"hookyard\":1}')
        subprocess.run(['echo', 'louder'], check=True)
        assert subprocess.run(['cat'], capture_output=True).stdout == b''
    return {'decision': 'block', 'reason': f'{os.getpid()} {len(text)} {count}', 'system_message': text}
";

const NODE_HOOK: &str = "import { serve } from '{sdks}/javascript/hookyard-worker.mjs';
let count = 0;
function hook({ tool_input: { command, text = '' } }) {
  count += 1;
  if (command === 'raise') throw new Error('x'.repeat(100000));
  if (command === 'exit') throw new Error('SystemExit');
  if (command === 'nothing') return;
  if (command === 'print') console.log('{\"hookyard\":1}');
  return { decision: 'block', reason: `${process.pid} ${[...text].length} ${count}`, system_message: text };
}
";

const HOOKS: [SdkHook; 5] = [
    SdkHook { program: "python3", serve: "serve(hook)", source: PYTHON_HOOK },
    SdkHook { program: "python3", serve: "serve(hook, threads=4)", source: PYTHON_HOOK },
    SdkHook { program: "node", serve: "serve(hook)", source: NODE_HOOK },
    SdkHook { program: "node", serve: "serve(async (envelope) => hook(envelope))", source: NODE_HOOK },
    SdkHook {
        program: "node",
        serve: "serve((envelope, signal) => hook(envelope, signal.aborted))",
        source: NODE_HOOK,
    },
];

fn installed() -> impl Iterator<Item = &'static SdkHook> {
    let programs: Vec<_> = examples().into_iter().map(|(program, _)| program).collect();
    HOOKS.iter().filter(move |hook| programs.contains(&hook.program))
}

impl SdkHook {
    fn script(&self) -> String {
        let sdks = root().join("config/workers").display().to_string();
        format!("{}{}\n", self.source.replace("{sdks}", &sdks), self.serve)
    }

    async fn fixture(&self) -> Fixture {
        let fixture = Fixture::of(&format!("exec {} ./hook.mjs", self.program), "mode: worker").await;
        fs::write(fixture.workspace.path().join("hook.mjs"), self.script()).unwrap();
        fixture
    }
}

/// The process, the length of the text and the number of the event in a reason.
fn answered(outcome: &Outcome) -> (u32, usize, usize) {
    let words: Vec<usize> = reason(outcome).split(' ').map_while(|word| word.parse().ok()).collect();
    let [pid, length, count] = words[..] else { panic!("{outcome:?}") };
    (u32::try_from(pid).unwrap(), length, count)
}

#[tokio::test]
async fn a_hook_of_an_sdk_gets_any_text_and_none_ends_its_worker() {
    let long = "é\u{1f600}".repeat(50_000);
    let texts = ["", "a\u{2028}b\u{2029}c\u{85}d", "\u{0}\u{1f}\\\"\u{7f}", "\u{1f600}", &long];
    for hook in installed() {
        let fixture = hook.fixture().await;
        let (pid, _, mut count) = answered(&fixture.ask("fine").await);
        for text in texts {
            let input = json!({ "command": "fine", "text": text }).to_string();
            count += 1;
            let expected = (pid, text.chars().count(), count);
            assert_eq!(answered(&fixture.ask_as("run", input).await), expected, "{}: {text:.20}", hook.serve);
        }
        assert_eq!(answered(&fixture.ask("print").await).0, pid, "{}", hook.serve);
        assert_eq!(fixture.ask("nothing").await.verdict, Verdict::Proceed);
        for (command, error) in [("raise", "Error: xxx"), ("exit", "SystemExit")] {
            let outcome = fixture.ask(command).await;
            let (end, found) = ended(&outcome);
            assert!(
                end == Ended::Failed && found.contains(error) && found.len() < 600,
                "{}: {found}",
                hook.serve
            );
        }
        assert_eq!(answered(&fixture.ask("fine").await), (pid, 0, count + 5), "{}", hook.serve);
    }
}

#[tokio::test]
async fn each_event_of_many_at_once_is_served_once() {
    for hook in installed() {
        let fixture = hook.fixture().await;
        let (pid, _, first) = answered(&fixture.ask("fine").await);
        let runs: Vec<_> = (0..64).map(|run| format!("run-{run}")).collect();
        let mut counts = HashSet::new();
        for round in 0..20 {
            let asked = runs.iter().enumerate().map(async |(number, run)| {
                let input = json!({ "command": "fine", "text": "x".repeat(number) }).to_string();
                (number, fixture.ask_as(run, input).await)
            });
            for (number, outcome) in join_all(asked).await {
                let (by, length, count) = answered(&outcome);
                assert_eq!((by, length), (pid, number), "{} in round {round}", hook.serve);
                // Threads count together what they count at once.
                assert!(counts.insert(count) || hook.serve.contains("threads"), "{count} twice");
            }
        }
        assert!(counts.iter().all(|count| *count > first), "{}", hook.serve);
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "its input comes in pieces that hookyard would not write")]
fn a_line_may_come_in_pieces_and_with_others() {
    // A line is several reads of a pipe long, which end within lines and within characters.
    let text = "é\u{2028}".repeat(30_000);
    let event = |id: usize| json!({ "id": id.to_string(), "envelope": { "tool_input": { "command": "fine", "text": text } } });
    let events: Vec<_> = (0..6).map(|id| event(id).to_string()).collect();
    let lines = events.join("\n") + "\n{\"ping\":1}\n{\"cancel\":\"4\"}\n";
    for hook in installed() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("hook.mjs");
        fs::write(&script, hook.script()).unwrap();
        let mut worker = std::process::Command::new(hook.program)
            .arg(&script)
            .env("HOOKYARD_WORKER", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = worker.stdin.take().unwrap();
        let lines = lines.clone();
        let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
        let mut stdout = std::io::BufReader::new(worker.stdout.take().unwrap());
        let mut seen = HashSet::new();
        // The hello, six answers and a pong; whatever the order.
        for _ in 0..8 {
            let mut line = String::new();
            std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            let kind = ["hookyard", "pong"].into_iter().find(|key| message.get(key).is_some());
            if kind.is_none() {
                assert_eq!(message["output"]["system_message"], text, "{}: {line}", hook.serve);
            }
            seen.insert(kind.map_or_else(|| message["id"].to_string(), str::to_owned));
        }
        assert_eq!(seen.len(), 8, "{}: {seen:?}", hook.serve);
        writer.join().unwrap();
        assert!(worker.wait().unwrap().success(), "{}", hook.serve);
    }
}

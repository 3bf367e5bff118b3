//! Rules in a daemon: changes of them and of the files that they read take effect, mistakes do not, and what they have counted
//! outlives a kill.

use serde_json::{Value, json};

use crate::restart::{killed_and_started, saved};
use crate::support::daemon::{Daemon, DaemonSetup, write};
use crate::support::wait::wait_until;

const FILE: &str = "shop/.openharness/hooks/guard.yaml";

/// A rule that denies what a file names, with a word.
fn guard(word: &str) -> String {
    format!(
        "name: guard\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler:\n  type: rule\n  \
         facts: {{ denied: .openharness/denied.txt }}\n  \
         deny: shell.commands(tool.input.command).exists(c, c.name in facts.denied)\n  \
         reason: '\"{word}\"'\non_error: deny\n"
    )
}

/// A rule that halts at the third denial.
const STRIKES: &str = "name: strikes\nevents: [before_tool_dispatch]\nmatcher: ^Push$\nhandler:\n  type: rule\n  \
                       halt: run.count(\"push\") > 2\n  deny: 'true'\non_error: deny\n";

fn setup() -> DaemonSetup {
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file(FILE, &guard("one"))
        .file("shop/.openharness/denied.txt", "# programs\nfrob\n")
        .file("shop/.openharness/hooks/strikes.yaml", STRIKES)
}

fn outcome(daemon: &Daemon, run: &str, tool: &str, input: &Value) -> Value {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
                        "tool_name": tool, "tool_input": input });
    daemon.post("/v1/events", &event)
}

/// What a command is blocked with; `-` if it is not.
fn word_of(daemon: &Daemon, command: &str) -> String {
    let outcome = outcome(daemon, "r", "Bash", &json!({ "command": command }));
    match outcome["verdict"].as_str() {
        Some("block") => outcome["reason"].as_str().unwrap_or_default().to_owned(),
        _ => "-".to_owned(),
    }
}

fn becomes(daemon: &Daemon, command: &str, word: &str) {
    wait_until(&format!("`{command}` gets `{word}`"), || word_of(daemon, command) == word);
}

fn errors(daemon: &Daemon) -> Value {
    daemon.get("/v1/workspaces/shop")["errors"].clone()
}

#[test]
fn a_changed_rule_takes_effect_and_a_mistake_keeps_the_last_one() {
    let daemon = setup().serve();
    assert_eq!(word_of(&daemon, "sudo fr\"\"ob x"), "one");
    assert_eq!(word_of(&daemon, "echo frob"), "-");
    let file = daemon.path().join(FILE);
    write(&file, &guard("two"));
    becomes(&daemon, "frob", "two");
    write(&file, &guard("three").replace("facts.denied)", "facts.deny)"));
    wait_until("the mistake is known", || errors(&daemon) == 1);
    assert_eq!(word_of(&daemon, "frob"), "two");
    assert_eq!(word_of(&daemon, "echo frob"), "-");
    write(&file, &guard("four"));
    becomes(&daemon, "frob", "four");
    assert_eq!(errors(&daemon), 0);
}

#[test]
fn a_changed_file_of_facts_takes_effect() {
    let daemon = setup().serve();
    let file = daemon.path().join("shop/.openharness/denied.txt");
    assert_eq!(word_of(&daemon, "nicate"), "-");
    write(&file, "frob\nnicate\n");
    becomes(&daemon, "nicate", "one");
    std::fs::remove_file(&file).unwrap();
    wait_until("it is known that the file is gone", || errors(&daemon) == 1);
    assert_eq!(word_of(&daemon, "nicate"), "one", "the last good rules stay");
}

#[test]
fn an_event_without_what_a_guard_reads_is_blocked() {
    let daemon = setup().serve();
    for input in [json!({}), json!({ "command": ["frob"] }), json!({ "command": null })] {
        let outcome = outcome(&daemon, "r", "Bash", &input);
        assert_eq!(outcome["verdict"], "block", "{input}: {outcome}");
        assert_eq!(outcome["hooks"][0]["ended"], "failed", "{input}: {outcome}");
    }
}

#[test]
fn what_a_rule_has_counted_outlives_a_kill() {
    let daemon = setup().settings("data: $DIR/data").serve();
    let verdict = |daemon: &Daemon, run: &str| outcome(daemon, run, "Push", &json!({}))["verdict"].clone();
    assert_eq!(verdict(&daemon, "r"), "block");
    assert_eq!(verdict(&daemon, "r"), "block");
    saved(&daemon);
    let daemon = killed_and_started(daemon);
    assert_eq!(verdict(&daemon, "other"), "block", "each run has counts of its own");
    assert_eq!(verdict(&daemon, "r"), "halt");
}

#[test]
fn an_event_that_takes_a_guard_too_many_steps_is_blocked() {
    // Only `on_error` says what a failure is.
    let long = "name: long\nevents: [before_tool_dispatch]\nmatcher: ^Long$\nhandler:\n  type: rule\n  \
                deny: tool.input.text.contains(\"frob\")\non_error: deny\n";
    let daemon = setup().file("shop/.openharness/hooks/long.yaml", long).serve();
    let answer = |length: usize| outcome(&daemon, "r", "Long", &json!({ "text": "a".repeat(length) }));
    assert_eq!(answer(1 << 20)["verdict"], "proceed");
    let outcome = answer(14 << 20);
    assert_eq!(outcome["verdict"], "block", "{outcome}");
    assert_eq!(outcome["hooks"][0]["ended"], "timed_out", "{outcome}");
}

#[test]
fn searches_for_patterns_are_bounded_in_time() {
    const UNDECIDED: &str = "timed_out";
    let conditions = [
        (r#"tool.input.text.matches("1[01]{100}x")"#, UNDECIDED),
        (r#"tool.input.text.matches("1[01]{3000}[xy]")"#, UNDECIDED),
        (r#"tool.input.text.matches("(?:1[01]{900})+x|y")"#, UNDECIDED),
        (r#"tool.input.lines.exists(l, l.matches("1[01]{400}x"))"#, UNDECIDED),
        (r#"glob(tool.input.text, "*1????????????????????????????????????????????x")"#, UNDECIDED),
        // What needs few states is found in any length.
        (r#"tool.input.lines.all(l, l.matches("^(?:0|1){40}"))"#, "block"),
        (r#"tool.input.text.matches("(?i)[a-z_]+key\\s*=|0{8}")"#, "block"),
        (r#"tool.input.text.matches("[01]{1,200}x")"#, "proceed"),
        (r#"tool.input.text.matches("\\bpassword\\b")"#, "proceed"),
        // And others in a shorter text.
        (r#"tool.input.text.first(10000).matches("1[01]{100}x")"#, "proceed"),
        (r#"tool.input.text.first(10000).matches("1[01]{100}[01]")"#, "block"),
    ];
    let mut daemon = DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }");
    for (at, (condition, _)) in conditions.iter().enumerate() {
        let rule = json!({ "name": format!("guard-{at}"), "events": ["before_tool_dispatch"], "matcher": format!("^T{at}$"),
                           "handler": { "type": "rule", "deny": condition }, "on_error": "deny" });
        daemon = daemon.file(&format!("shop/.openharness/hooks/{at}.yaml"), &rule.to_string());
    }
    let daemon = daemon.serve();
    let input = json!({ "text": random_bits(900_000), "lines": vec![random_bits(4000); 400] });
    for (at, (condition, wanted)) in conditions.iter().enumerate() {
        let outcome = outcome(&daemon, "r", &format!("T{at}"), &input);
        let hook = &outcome["hooks"][0];
        assert_eq!(outcome["verdict"] == "proceed", *wanted == "proceed", "{condition}: {outcome}");
        assert_eq!(hook["ended"] == UNDECIDED, *wanted == UNDECIDED, "{condition}: {outcome}");
        if *wanted == UNDECIDED {
            assert!(hook["error"].as_str().unwrap().contains("the rule takes too many steps"), "{outcome}");
        }
    }
    daemon.finish();
}

/// A text of zeros and ones in which no long part is there twice.
fn random_bits(length: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state & 1 == 1 { '1' } else { '0' }
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn a_pack_that_is_added_for_the_user_is_in_force_at_once_in_every_workspace() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }\nworkspace_roots: [$DIR/other]")
        .file("shop/notes.txt", "nothing\n")
        .file("other/notes.txt", "nothing\n")
        .enforces_trust()
        .serve();
    let command = |place: &str| {
        json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
                "tool_input": { "command": "rm -rf /" }, "cwd": daemon.path().join(place) })
    };
    assert_eq!(daemon.post("/v1/events", &command("shop"))["verdict"], "proceed");
    let mut add = assert_cmd::cargo::cargo_bin_cmd!("hookyard");
    add.env("HOOKYARD_TEST_HOME", daemon.path().join("home")).current_dir(daemon.path());
    add.args(["add", "dangerous-commands", "--user"]).assert().success();
    for place in ["shop", "other"] {
        wait_until("it is in force", || daemon.post("/v1/events", &command(place))["verdict"] == "block");
    }
    daemon.finish();
}

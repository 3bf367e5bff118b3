//! What runs: the files that were agreed to, from a private copy, and what becomes of guards that are modified or gone.

use std::{
    os::unix::fs::symlink,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

#[test]
fn what_was_agreed_to_runs_from_a_private_copy() {
    let place = Place::new();
    let shown = place.run(&["trust"]);
    assert_eq!(shown.code, 1, "{shown:?}");
    for text in ["guard.sh", "lib.sh", "runs from a private copy", "sh .openharness/hooks/scripts/guard.sh"] {
        assert!(shown.out.contains(text), "{text}: {}", shown.out);
    }
    let command = shown.err.lines().find_map(|line| line.strip_prefix("to agree: hookyard ")).unwrap();
    let agreed = place.run(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(agreed.code, 0, "{agreed:?}");
    assert_eq!(place.state(), "trusted");
    let outcome = place.fire();
    assert_eq!(ended(&outcome), ("block", "completed"));
    assert_eq!(outcome["reason"], "not on my watch");
    let ran = fs::read_to_string(place.path("shop/ran")).unwrap();
    assert!(Path::new(ran.trim()).starts_with(place.path("home/.local/state/hookyard/trees")), "{ran}");
    assert_eq!(place.run(&["trust"]).code, 0);
}

#[test]
fn a_guard_that_runs_from_a_private_copy_may_become_a_rule() {
    let place = Place::new();
    fs::remove_dir_all(place.path("shop/.openharness")).unwrap();
    place.write(
        "shop/.claude/hooks/push.sh",
        "cmd=$(jq -r '.tool_input.command // empty')\nif [[ $cmd == *'git push'*'--force'* ]]; then\n  exit 2\nfi\n",
    );
    let command = "bash \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/push.sh";
    let hook = json!({ "matcher": "Bash", "hooks": [{ "type": "command", "command": command }] });
    place.write("shop/.claude/settings.json", &json!({ "hooks": { "PreToolUse": [hook] } }).to_string());
    place.trust(&[]);
    assert_eq!(place.state(), "trusted");
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
                        "tool_input": { "command": "git push --force" } });
    place.write("shop/session.jsonl", &event.to_string());
    let tuned = place.json(&["tune", "--rounds", "5", "--json", "--events", "session.jsonl"]);
    assert_eq!(tuned["rules"].as_array().map(Vec::len), Some(1), "{tuned}");
    let converted = place.run(&["convert", "--from", "claude", "--to", "openharness", "--rules"]);
    assert!(converted.out.contains("type: rule"), "{converted:?}");
}

/// A file outside that was read once would be in the private copy, where a sandbox lets hooks read it.
#[test]
fn no_file_outside_is_agreed_to_while_a_link_is_swapped_in() {
    const OUTSIDE: &str = "echo what is outside\n";
    let place = Place::new();
    let digest = || place.json(&["trust", "--json"])["digest"].as_str().unwrap().to_owned();
    let guard = "shop/.openharness/hooks/scripts/guard.sh";
    let inside = digest();
    place.write(guard, OUTSIDE);
    let outside = digest();
    place.write(guard, SCRIPT);
    place.write("outside/guard.sh", OUTSIDE);
    place.write(
        "outside/lib.sh",
        &fs::read_to_string(place.path("shop/.openharness/hooks/scripts/lib.sh")).unwrap(),
    );
    symlink(place.path("outside"), place.path("shop/link")).unwrap();
    assert!(inside != outside && digest() == inside);
    let stop = AtomicBool::new(false);
    let (scripts, link) = (place.path("shop/.openharness/hooks/scripts"), place.path("shop/link"));
    let (mut whole, mut refused) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &scripts, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..100 {
            let found = digest();
            whole += usize::from(found == inside);
            refused += usize::from(found != inside && found != outside);
            if found == outside {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(whole + refused, 100, "a file outside was read");
}

#[test]
fn the_private_copy_can_be_read_in_a_sandbox() {
    let place = Place::new();
    place.trust(&[]);
    let outcome = place.fire_with("Bash", &["--set", "sandbox.project.filesystem=read_only"]);
    assert_eq!(ended(&outcome), ("block", "completed"));
    assert!(outcome["reason"].as_str().unwrap().contains("not on my watch"), "{outcome}");
}

#[test]
fn a_guard_that_is_modified_or_gone_counts_as_it_was_agreed_to() {
    let changes: [(&str, Change<'_>); 7] = [
        ("modified", &|place| place.write("shop/.openharness/hooks/scripts/guard.sh", "exit 0\n")),
        ("modified", &|place| place.write("shop/.openharness/hooks/scripts/lib.sh", "ran() { :; }\n")),
        ("modified", &|place| {
            let milder = GUARD.replace("deny", "ignore").replace("^Bash$", "^Nothing$");
            place.write("shop/.openharness/hooks/guard.yaml", &milder);
        }),
        ("modified", &|place| place.write("shop/.openharness/hooks/guard.yaml", "name: guard\nevents: [")),
        ("missing", &|place| fs::remove_file(place.path("shop/.openharness/hooks/guard.yaml")).unwrap()),
        ("missing", &|place| {
            fs::remove_dir_all(place.path("shop/.openharness")).unwrap();
            place.write("shop/.claude/settings.json", "{}");
        }),
        ("missing", &|place| fs::remove_dir_all(place.path("shop/.openharness")).unwrap()),
    ];
    for (number, (state, change)) in changes.into_iter().enumerate() {
        let place = Place::new();
        place.trust(&[]);
        change(&place);
        assert_eq!(place.state(), state, "change {number}");
        let outcome = place.fire();
        assert_eq!(ended(&outcome), ("block", "untrusted"), "change {number}: {outcome}");
        assert!(!place.has_run());
        assert_eq!(place.run(&["check"]).code, 1, "change {number}");
        assert_eq!(
            place.fire_with("Read", &[])["verdict"],
            "proceed",
            "its matcher decides: change {number}"
        );
    }
}

#[test]
fn a_hook_that_was_no_guard_fails_open_with_a_note() {
    let place = Place::new();
    place.write("shop/.openharness/hooks/guard.yaml", &GUARD.replace("on_error: deny\n", ""));
    place.trust(&[]);
    place.write("shop/.openharness/hooks/scripts/guard.sh", "exit 0\n");
    let outcome = place.fire();
    assert_eq!(ended(&outcome), ("proceed", "untrusted"));
    let note = outcome["notes"][0]["text"].as_str().unwrap();
    assert!(note.contains("`guard` did not run") && note.contains("scripts/guard.sh"), "{note}");
}

#[test]
fn a_damaged_copy_or_record_is_not_used() {
    let place = Place::new();
    place.trust(&[]);
    let state = place.path("home/.local/state/hookyard");
    let copy = fs::read_dir(state.join("trees")).unwrap().next().unwrap().unwrap().path();
    let script = copy.join(".openharness/hooks/scripts/guard.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(&script, "exit 0\n").unwrap();
    assert_eq!(ended(&place.fire()), ("block", "untrusted"));
    fs::write(state.join("trust.json"), "{").unwrap();
    assert_eq!(place.state(), "untrusted");
    let checked = place.run(&["check"]);
    assert!(checked.code == 1 && checked.out.contains("it is damaged"), "{checked:?}");
    let digest = "0".repeat(64);
    assert_eq!(place.run(&["trust", "--yes", &digest]).code, 1);
    assert_eq!(fs::read_to_string(state.join("trust.json")).unwrap(), "{");
    fs::remove_file(place.path("shop/.openharness/hooks/guard.yaml")).unwrap();
    let checked = place.run(&["check"]);
    assert!(
        checked.code == 1 && checked.out.contains("it is damaged"),
        "nobody knows what is missing: {checked:?}"
    );
}

#[test]
fn scripts_of_agents_settings_are_copied_with_their_directory() {
    let place = Place::new();
    fs::remove_dir_all(place.path("shop/.openharness/hooks")).unwrap();
    let command = "sh \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh";
    let hooks = json!([{ "matcher": "Bash", "hooks": [{ "type": "command", "command": command }] }]);
    place.write("shop/.claude/settings.json", &json!({ "hooks": { "PreToolUse": hooks } }).to_string());
    place.write("shop/.claude/hooks/guard.sh", SCRIPT);
    place.write("shop/.claude/hooks/lib.sh", "ran() { echo \"$0\" >> ran; }\n");
    place.trust(&[]);
    assert_eq!(ended(&place.fire()), ("block", "completed"));
    assert!(fs::read_to_string(place.path("shop/ran")).unwrap().contains("/state/hookyard/trees/"));
    place.write("shop/.claude/hooks/lib.sh", "ran() { exit 0; }\n");
    assert_eq!(place.state(), "modified");
}

//! The table `handlers` in settings files.

use std::path::Path;

use super::super::handlers::edit::{HandlerChange, key_text, with_handlers};
use crate::config::HandlerMode;

fn with(text: &str, modes: &[(&str, HandlerMode)]) -> Option<String> {
    let changes = modes.iter().map(|(name, mode)| ((*name).to_owned(), HandlerChange::Mode(*mode)));
    with_handlers(text, Path::new("hookyard.yaml"), &changes.collect())
}

#[test]
fn modes_are_merged_and_the_rest_stays() {
    let guard = [("guard", HandlerMode::Prespawn)];
    for (before, after) in [
        ("", "handlers:\n  guard:\n    mode: prespawn\n"),
        ("# only this", "# only this\nhandlers:\n  guard:\n    mode: prespawn\n"),
        ("watch: false\r\n", "watch: false\r\nhandlers:\r\n  guard:\r\n    mode: prespawn\r\n"),
        ("\u{feff}watch: false\n", "\u{feff}watch: false\nhandlers:\n  guard:\n    mode: prespawn\n"),
        ("handlers: {} # none\n", "handlers:\n  guard:\n    mode: prespawn # none\n"),
        ("handlers:\n  guard: {}\n", "handlers:\n  guard:\n    mode: prespawn\n"),
        (
            "handlers:\n    # of b\n    b: { mode: worker }\nwatch: true\n",
            "handlers:\n    guard:\n      mode: prespawn\n    # of b\n    b: { mode: worker }\nwatch: true\n",
        ),
        (
            "handlers:\n  guard:\n    # one\n    max_concurrency: 1\n",
            "handlers:\n  guard:\n    mode: prespawn\n    # one\n    max_concurrency: 1\n",
        ),
        (
            "handlers:\n  guard:\n    mode: oneshot # why\n    processes: 2\n",
            "handlers:\n  guard:\n    mode: prespawn # why\n    processes: 2\n",
        ),
        (
            "handlers: { guard: { max_concurrency: 1 } }",
            "handlers: { guard: { \"mode\": \"prespawn\", max_concurrency: 1 } }",
        ),
        (
            "handlers: { b: { mode: worker } }",
            "handlers: { \"guard\": { \"mode\": \"prespawn\" }, b: { mode: worker } }",
        ),
        (
            "{ \"watch\": false }",
            "{ \"handlers\": { \"guard\": { \"mode\": \"prespawn\" } }, \"watch\": false }",
        ),
    ] {
        assert_eq!(with(before, &guard).as_deref(), Some(after), "{before:?}");
        assert_eq!(with(after, &guard).as_deref(), Some(after), "{before:?}");
    }
}

#[test]
fn several_hooks_and_commands_are_merged() {
    let command = "exec node \"$HOME/x.mjs\" # a: b";
    let modes = [("b", HandlerMode::Worker), (command, HandlerMode::Prespawn), ("no", HandlerMode::Oneshot)];
    let after = with("watch: false\n", &modes).unwrap();
    for key in
        ["  b:\n    mode: worker", r#"  "exec node \"$HOME/x.mjs\" # a: b":"#, "  \"no\":\n    mode: oneshot"]
    {
        assert!(after.contains(key), "{key} in {after}");
    }
    assert_eq!(with(&after, &modes), Some(after));
}

#[test]
fn what_cannot_be_changed_safely_is_left_alone() {
    let guard = [("guard", HandlerMode::Prespawn)];
    for text in ["watch: false\n...\n", "handlers: 3", "  watch: false\n", "unknown: 1\n"] {
        assert_eq!(with(text, &guard), None, "{text:?}");
    }
}

#[test]
fn keys_are_quoted_where_yaml_would_read_something_else() {
    for (name, text) in
        [("a.b-c_1", "a.b-c_1"), ("yes", "\"yes\""), ("1", "\"1\""), ("a b", "\"a b\""), ("", "\"\"")]
    {
        assert_eq!(key_text(name), text);
    }
}

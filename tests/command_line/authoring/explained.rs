//! What is shown of rules and policies: which expression decides, from which values, and no secret.

use std::fs;

use serde_json::{Value, json};

use crate::authoring::{
    run,
    skeletons::{empty, fire, in_order, new},
};

#[test]
fn what_a_rule_decides_from_is_shown() {
    let workspace = empty();
    let report = new(workspace.path(), &["my-guard", "--type", "rule", "--json"]).json();
    let mut event = report["event"].clone();
    event["tool_input"]["command"] = json!("frobnicate --everything --key AKIAIOSFODNN7EXAMPLE");
    let explained = run(workspace.path(), &["explain", "--event", "-", "--json"], &event.to_string()).json();
    let deny = &explained["rules"][0]["expressions"][0];
    assert_eq!(
        (&deny["key"], &deny["result"], &deny["decides"]),
        (&json!("deny"), &json!("true"), &json!(true))
    );
    let shown = json!([{ "of": "commands", "value": "[\"frobnicate --everything --key [redacted aws-access-key]\"]" }]);
    assert_eq!(deny["values"], shown);
    let plain = run(workspace.path(), &["explain", "--event", "-"], &event.to_string());
    assert!(plain.out.contains("deny is true: commands.exists(c,"), "{}", plain.out);
    assert!(plain.out.contains("commands = [\"frobnicate --everything"), "{}", plain.out);
    let fired = run(workspace.path(), &["fire", "--event", "-", "--json", "--trace"], &event.to_string());
    assert_eq!(fired.json()["verdict"], "block");
    assert!(fired.err.contains("deny is true: commands.exists(c,"), "{}", fired.err);
    assert!(!(fired.err + &plain.out).contains("AKIAIOSFODNN7EXAMPLE"));
}

#[test]
fn parts_of_secrets_are_not_shown_whatever_a_rule_makes_of_them() {
    let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ3sT5vW7xY9zA1bC3dE5");
    let workspace = empty();
    let mut event = new(workspace.path(), &["my-guard", "--type", "rule", "--json"]).json()["event"].clone();
    event["tool_input"]["command"] = json!(format!("deploy --key {token} now"));
    for (made, is_hidden) in [
        ("tool.input.command", false),
        ("tool.input.command.upperAscii()", true),
        ("tool.input.command.replace('_', '-')", true),
        ("tool.input.command.replace('ghp_', '')", true),
        ("tool.input.command.split('5')", true),
        ("tool.input.command.first(40)", true),
        ("tool.input.command.first(6)", false),
        ("size(tool.input.command)", false),
    ] {
        let rule = json!({ "name": "my-guard", "events": ["before_tool_dispatch"], "on_error": "deny", "handler":
            { "type": "rule", "let": { "made": made }, "deny": "string(size(string(made))) != ''", "reason": "string(made)" } });
        let rule = if made.contains("split") {
            rule.to_string().replace("string(made)", "made.join('-')")
        } else {
            rule.to_string()
        };
        fs::write(workspace.path().join(".openharness/hooks/my-guard.yaml"), rule).unwrap();
        let explained =
            run(workspace.path(), &["explain", "--event", "-", "--set", "trust=off"], &event.to_string());
        assert!(explained.out.contains("deny is true"), "{made}: {}{}", explained.out, explained.err);
        assert_eq!(
            explained.out.contains("[hidden: it has a part of a secret]"),
            is_hidden,
            "{made}: {}",
            explained.out
        );
        let letters = explained.out.to_lowercase();
        assert!(!letters.contains("ab3de5gh") && !letters.contains("7jk9mn1pq"), "{made}: {}", explained.out);
    }
}

#[test]
fn a_name_that_uses_names_twice_is_shown_as_soon_as_any() {
    let workspace = empty();
    let event = new(workspace.path(), &["my-guard", "--type", "rule", "--json"]).json()["event"].clone();
    let next = |of: usize| (format!("x{}", of + 1), json!(format!("has(tool.input.a) ? x{of} : x{of}")));
    let mut names: serde_json::Map<String, Value> = (10..70).map(next).collect();
    names.insert("x10".to_owned(), json!("tool.input.command"));
    let rule = json!({ "name": "my-guard", "events": ["before_tool_dispatch"], "on_error": "deny", "handler":
        { "type": "rule", "let": names, "deny": "x70 != ''" } });
    fs::write(workspace.path().join(".openharness/hooks/my-guard.yaml"), rule.to_string()).unwrap();
    let explained =
        run(workspace.path(), &["explain", "--event", "-", "--set", "trust=off"], &event.to_string());
    assert!(explained.out.contains("x70 = \"frobnicate"), "{}{}", explained.out, explained.err);
}

#[test]
fn a_secret_in_the_text_of_a_rule_is_not_shown() {
    let workspace = empty();
    let event = new(workspace.path(), &["my-guard", "--type", "rule", "--json"]).json()["event"].to_string();
    let rule = "name: literal\nevents: [before_tool_dispatch]\nhandler: { type: rule, deny: 'tool.input.command != \"AKIAIOSFODNN7EXAMPLE\"' }\non_error: deny\n";
    fs::write(workspace.path().join(".openharness/hooks/my-guard.yaml"), rule).unwrap();
    let fired =
        run(workspace.path(), &["fire", "--event", "-", "--json", "--trace", "--trust-workspace"], &event);
    assert_eq!(fired.json()["verdict"], "block", "{}", fired.err);
    assert!(fired.err.contains("[redacted aws-access-key]"), "{}", fired.err);
    assert!(!fired.err.contains("AKIAIOSFODNN7EXAMPLE"), "{}", fired.err);
}

#[cfg(feature = "rego")]
#[test]
fn a_policy_guards_and_shows_what_decides() {
    let workspace = empty();
    let report = new(workspace.path(), &["my-guard", "--type", "rego", "--json"]).json();
    in_order(workspace.path(), &[]);
    let mut event = report["event"].clone();
    let fired = run(workspace.path(), &["fire", "--event", "-", "--json", "--trace"], &event.to_string());
    let outcome = fired.json();
    assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("my-guard")), "{outcome}");
    assert_eq!(outcome["reason"], "my-guard: nobody frobnicates everything here");
    assert!(fired.err.contains("data.hooks.p_my_guard.deny"), "{}", fired.err);
    let explained = run(workspace.path(), &["explain", "--event", "-", "--json"], &event.to_string()).json();
    let deny = &explained["rules"][0]["expressions"][0];
    assert_eq!((&deny["key"], &deny["decides"]), (&json!("deny"), &json!(true)), "{explained}");
    event["tool_input"]["command"] = json!("ls");
    assert_eq!(fire(workspace.path(), &event, &[])["verdict"], "proceed");
}

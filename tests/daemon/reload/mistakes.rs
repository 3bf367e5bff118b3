//! Files with mistakes keep the rules they had.

use super::*;

/// Puts a file in the place of another: nobody reads it half written, when it would be empty and valid.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

#[test]
fn a_broken_file_keeps_its_rules_and_others_change() {
    let daemon = shop(&[
        (GUARD, &guard("guard", "one")),
        ("shop/.openharness/hooks/zebra.yaml", &guard("zebra", "z-one").replace("Bash", "Read")),
    ]);
    let hooks_in = daemon.path().join("shop/.openharness/hooks");
    fs::write(hooks_in.join("guard.yaml"), BROKEN).unwrap();
    fs::write(hooks_in.join("zebra.yaml"), guard("zebra", "z-two").replace("Bash", "Read")).unwrap();
    has_errors(&daemon, 1);
    assert_eq!(word_of(&daemon, "shop"), "one");
    let mut read = event("shop");
    read["tool_name"] = json!("Read");
    assert_eq!(daemon.post("/v1/events", &read)["reason"].as_str().unwrap().trim(), "z-two");

    // It is told.
    let broken = &daemon.get("/v1/status")["broken"][0];
    assert_eq!((&broken["id"], &broken["errors"]), (&json!("shop"), &json!(1)));
    assert_eq!(broken["kept"], json!([hooks_in.join("guard.yaml")]));
    wait_until("it is counted", || metric(&daemon, "hookyard_config_last_reload_successful") == "0");
    assert_eq!(
        log_lines(&daemon, &["ERROR", "guard.yaml", "its last good rules stay"]),
        1,
        "{}",
        daemon.log()
    );

    // Another mistake in another file does not repeat the first.
    fs::write(hooks_in.join("zebra.yaml"), BROKEN).unwrap();
    has_errors(&daemon, 2);
    assert_eq!(log_lines(&daemon, &["ERROR", "guard.yaml"]), 1);
    fs::write(hooks_in.join("zebra.yaml"), guard("zebra", "z").replace("Bash", "Read")).unwrap();
    has_errors(&daemon, 1);

    fs::write(hooks_in.join("guard.yaml"), guard("guard", "two")).unwrap();
    becomes(&daemon, "two");
    wait_until("all is well", || metric(&daemon, "hookyard_config_last_reload_successful") == "1");
    assert_eq!(daemon.get("/v1/status")["broken"], json!([]));
    assert_eq!(log_lines(&daemon, &["INFO", "guard.yaml", "no longer broken"]), 1, "{}", daemon.log());

    fs::write(hooks_in.join("guard.yaml"), "").unwrap();
    has_errors(&daemon, 1);
    assert_eq!(word_of(&daemon, "shop"), "two");
    fs::remove_file(hooks_in.join("guard.yaml")).unwrap();
    becomes(&daemon, "-");
    has_errors(&daemon, 0);
}

#[test]
fn a_file_with_mistakes_at_the_start_costs_its_hooks_only() {
    let daemon = shop(&[(GUARD, &guard("guard", "one")), ("shop/.openharness/hooks/bad.yaml", BROKEN)]);
    assert_eq!((word_of(&daemon, "shop"), errors(&daemon, "shop")), ("one".to_owned(), 1));
    assert_eq!(log_lines(&daemon, &["ERROR", "bad.yaml", "not loaded"]), 1, "{}", daemon.log());
    assert_eq!(metric(&daemon, "hookyard_config_last_reload_successful"), "0");
    fs::remove_file(daemon.path().join("shop/.openharness/hooks/bad.yaml")).unwrap();
    wait_until("all is well", || metric(&daemon, "hookyard_config_last_reload_successful") == "1");
    assert_eq!(errors(&daemon, "shop"), 0);
}

#[test]
fn a_workspace_stays_what_it_was_while_its_settings_are_broken() {
    const OWN: &str = "shop/.openharness/settings.yaml";
    let daemon = shop(&[
        (GUARD, &guard("guard", "one")),
        (OWN, "kind: chat\n"),
        ("shop/.claude/settings.json", &claude("claude")),
    ]);
    let own = daemon.path().join(OWN);
    assert_eq!(word_of(&daemon, "shop"), "-");
    for broken in ["kind: [\n", "kind: project\nno_such_key: 1\n"] {
        replace(&own, broken);
        has_errors(&daemon, 1);
        assert_eq!(word_of(&daemon, "shop"), "-", "{broken}");
        // Registering what is there already changes nothing.
        let body = json!({ "root": daemon.path().join("shop") });
        assert_eq!(daemon.send("PUT", "/v1/workspaces/shop", Some(&body)).status, 200);
        assert_eq!(word_of(&daemon, "shop"), "-", "{broken}");
        replace(&own, "kind: chat\n");
        has_errors(&daemon, 0);
    }
    replace(&own, "dialects: [claude]\n");
    becomes(&daemon, "claude");
    replace(&own, "dialects: [openharness]\nkind: nonsense\n");
    has_errors(&daemon, 1);
    assert_eq!(word_of(&daemon, "shop"), "claude");
    // What is taken away from a sound file meanwhile goes.
    fs::write(daemon.path().join("shop/.claude/settings.json"), "{}").unwrap();
    becomes(&daemon, "-");
    fs::remove_file(&own).unwrap();
    becomes(&daemon, "one");
}

#[test]
fn a_renamed_hook_goes_while_something_else_is_broken() {
    let daemon =
        shop(&[(GUARD, &guard("guard", "one")), ("shop/.openharness/settings.yaml", "kind: project\n")]);
    fs::write(daemon.path().join("shop/.openharness/settings.yaml"), BROKEN).unwrap();
    fs::write(daemon.path().join(GUARD), guard("watchman", "two")).unwrap();
    becomes(&daemon, "two");
    // A load that had begun before may have read the settings as they were.
    has_errors(&daemon, 1);
    assert_eq!(hooks(&daemon, "shop"), 1);
}

#[test]
fn a_broken_file_of_the_user_keeps_its_rules_everywhere() {
    let setting = DaemonSetup::new()
        .file("home/.claude/settings.json", &claude("mine"))
        .settings("workspaces: { shop: { root: $DIR/shop }, depot: { root: $DIR/depot } }");
    fs::create_dir(setting.path().join("shop")).unwrap();
    fs::create_dir(setting.path().join("depot")).unwrap();
    let daemon = setting.serve();
    let file = daemon.path().join("home/.claude/settings.json");
    fs::write(&file, "{ \"hooks\": ").unwrap();
    for workspace in ["shop", "depot"] {
        wait_until("the mistake is noticed", || errors(&daemon, workspace) == 1);
        assert_eq!(word_of(&daemon, workspace), "mine");
    }
    fs::write(&file, claude("yours")).unwrap();
    workspace_becomes(&daemon, "shop", "yours");
    workspace_becomes(&daemon, "depot", "yours");
}

/// A hook that has an agent decide. There is no model, so every event fails, which denies it.
const ASKS: &str = "name: asks\nevents: [before_tool_dispatch]\non_error: deny\nhandler:\n  type: agent\n  agent: x\n  \
                    task: { file: prompts/task.md }\n";

const AGENT: &str = "---\nmodel_ref: m\ntools: []\n---\nYou decide.\n";

#[test]
fn a_hook_stays_while_a_file_it_refers_to_is_broken() {
    let setting = DaemonSetup::new()
        .settings("models: { m: { api: anthropic, model: m-1, key: k } }")
        .settings("workspaces: { shop: { root: $DIR/shop } }");
    let daemon = setting
        .file("shop/.openharness/hooks/asks.yaml", ASKS)
        .file("shop/.openharness/agents/x.md", AGENT)
        .file("shop/prompts/task.md", "Is this right?")
        .serve();
    let details = daemon.get("/v1/workspaces/shop");
    assert_eq!((&details["errors"], &details["hooks"]), (&json!(0), &json!(1)), "{details:#}");
    for (path, sound) in
        [("shop/.openharness/agents/x.md", AGENT), ("shop/prompts/task.md", "Is this right?")]
    {
        let file = daemon.path().join(path);
        fs::write(&file, "").unwrap();
        has_errors(&daemon, 1);
        assert_eq!(hooks(&daemon, "shop"), 1, "{path}");
        fs::write(&file, sound).unwrap();
        has_errors(&daemon, 0);
        fs::remove_file(&file).unwrap();
        has_errors(&daemon, 1);
        assert_eq!(hooks(&daemon, "shop"), 1, "{path}");
        // Also a file that is not there is awaited.
        write(&file, sound);
        has_errors(&daemon, 0);
        assert_eq!(hooks(&daemon, "shop"), 1, "{path}");
    }
}

#[test]
fn a_hook_moved_out_of_a_file_that_breaks_is_loaded_once() {
    let daemon = shop(&[(GUARD, &guard("guard", "one"))]);
    let hooks_in = daemon.path().join("shop/.openharness/hooks");
    fs::write(hooks_in.join("other.yaml"), guard("guard", "two")).unwrap();
    // Two files claim the name: the rule that was there stays.
    has_errors(&daemon, 2);
    assert_eq!((word_of(&daemon, "shop"), hooks(&daemon, "shop")), ("one".to_owned(), 1));
    fs::write(hooks_in.join("guard.yaml"), BROKEN).unwrap();
    becomes(&daemon, "two");
    // The file is empty for a moment, which is another mistake.
    has_errors(&daemon, 1);
    assert_eq!(hooks(&daemon, "shop"), 1);
    fs::remove_file(hooks_in.join("guard.yaml")).unwrap();
    has_errors(&daemon, 0);
    assert_eq!((word_of(&daemon, "shop"), hooks(&daemon, "shop")), ("two".to_owned(), 1));
}

//! What a hook gets and reaches besides its own files.

use super::*;

#[test]
fn what_a_hook_gets_is_shown_however_it_is_spelt() {
    let place = Place::new();
    let guard = r#"{"name": "guard", "events": ["before_tool_dispatch"], "handler": {"type": "command",
        "command": "true", "environment": {"A": "$\u007benv.NOT_SET}", "B": "\u0024{secrets.k}"}}}"#;
    place.write("shop/.openharness/hooks/guard.yaml", guard);
    let hook = json!({ "type": "http", "url": "https://guard.example/", "headers": { "X-Key": "$FIRST ${SECOND} $THIRD" },
                       "allowedEnvVars": ["FIRST", "SECOND"] });
    let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } });
    place.write("shop/.claude/settings.json", &settings.to_string());
    let shown = place.run(&["trust"]).out;
    for line in ["  environment: NOT_SET\n", "  secrets: k\n", "  environment: FIRST, SECOND\n"] {
        assert!(shown.contains(line), "{line:?}: {shown}");
    }
}

#[test]
fn nothing_that_a_hook_refers_to_is_looked_up_before_somebody_has_agreed_to_it() {
    let place = Place::new();
    let secrets = place.path("home/secrets");
    fs::create_dir(&secrets).unwrap();
    let guard = GUARD.replace("sh .openharness/hooks/scripts/guard.sh", "'test \"$KEY\" = value && exit 2'");
    place.write(
        "shop/.openharness/hooks/guard.yaml",
        &format!("{guard}  environment: {{ KEY: '${{secrets.key}}' }}\n"),
    );
    let settings = format!("secrets.dir={}", secrets.display());
    let with = ["--set", settings.as_str()];
    // There is no such secret, and nobody has looked.
    let checked = place.run(&[&["check"], &with[..]].concat());
    assert!(checked.code == 0 && !checked.out.contains("secret `key`"), "{checked:?}");
    assert_eq!(place.state(), "untrusted");
    place.trust(&with);
    let checked = place.run(&[&["check"], &with[..]].concat());
    assert!(checked.code == 1 && checked.out.contains("secret `key` not found"), "{checked:?}");
    assert_eq!(ended(&place.fire_with("Bash", &with)), ("block", "untrusted"));
    place.write("home/secrets/key", "value\n");
    fs::set_permissions(secrets.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(place.run(&[&["check"], &with[..]].concat()).code, 0);
    assert_eq!(ended(&place.fire_with("Bash", &with)), ("block", "completed"));
}

#[test]
fn what_a_command_reaches_outside_is_shown_and_in_place_is_agreed_to_by_name() {
    let place = Place::new();
    place.write("shop/.openharness/hooks/scripts/guard.sh", "echo \"$0\" >> ran; exit 2\n");
    place.write(
        "shop/.openharness/hooks/lint.yaml",
        "name: lint\nevents: [run_completed]\nhandler: { type: command, command: npm run lint }\n",
    );
    let shown = place.run(&["trust"]).out;
    assert!(
        shown.contains("not covered by this trust: `npm` runs what files of the workspace say"),
        "{shown}"
    );
    place.trust(&["--in-place"]);
    assert_eq!(ended(&place.fire()), ("block", "completed"));
    assert_eq!(fs::read_to_string(place.path("shop/ran")).unwrap(), ".openharness/hooks/scripts/guard.sh\n");
    place.write("shop/.openharness/hooks/scripts/guard.sh", "exit 0\n");
    assert_eq!(ended(&place.fire()), ("block", "untrusted"));
}

#[test]
fn a_command_that_reaches_a_script_in_another_way_is_trusted_in_part() {
    for command in [
        "X=src/a.sh; sh $X",
        "bash -lc 'sh src/a.sh'",
        "timeout 5 sh -c 'sh src/a.sh'",
        "BASH_ENV=src/a.sh bash .openharness/hooks/scripts/guard.sh",
        "sh /proc/self/cwd/src/a.sh",
        "sh linked/../a.sh",
    ] {
        let place = Place::new();
        let guard = json!({ "type": "command", "command": command });
        let hook = json!({ "name": "guard", "events": ["before_tool_dispatch"], "handler": guard });
        place.write("shop/.openharness/hooks/guard.yaml", &hook.to_string());
        place.write("shop/src/a.sh", "exit 2\n");
        place.write("shop/src/sub/b.sh", "");
        std::os::unix::fs::symlink("src/sub", place.path("shop/linked")).unwrap();
        let shown = place.run(&["trust"]).out;
        assert!(shown.contains("  not covered by this trust: "), "{command}: {shown}");
        place.trust(&[]);
        let listed = place.json(&["list", "--json"]);
        assert_eq!(listed[0]["trust"], "trusted");
        assert!(listed[0]["not_covered"][0].is_string(), "{command}: {listed}");
        assert!(place.run(&["list"]).out.contains("trusted, in part"), "{command}");
        let checked = place.run(&["check"]);
        assert!(checked.code == 0 && checked.out.contains("does not cover all of it"), "{checked:?}");
        let record = fs::read_to_string(place.path("home/.local/state/hookyard/trust.json")).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        assert_eq!(record["records"][0]["record"]["outside"], listed[0]["not_covered"]);
    }
}

#[test]
fn a_program_that_links_out_of_the_workspace_is_trusted_by_name() {
    let place = Place::new();
    let command = ".venv/bin/python .openharness/hooks/scripts/guard.py";
    place.write(
        "shop/.openharness/hooks/guard.yaml",
        &GUARD.replace("sh .openharness/hooks/scripts/guard.sh", command),
    );
    place.write("shop/.openharness/hooks/scripts/guard.py", "import sys\nsys.exit(2)\n");
    fs::create_dir_all(place.path("shop/.venv/bin")).unwrap();
    std::os::unix::fs::symlink("/bin/sh", place.path("shop/.venv/bin/python")).unwrap();
    let shown = place.run(&["trust"]).out;
    assert!(shown.contains("`.venv/bin/python` is a link to `"), "{shown}");
    place.trust(&[]);
    assert_eq!(place.state(), "trusted");
    let script = place.json(&["list", "--json"])[0]["command"].as_str().unwrap().to_owned();
    assert!(script.starts_with(".venv/bin/python '") && script.contains("/hookyard/trees/"), "{script}");
    fs::remove_file(place.path("shop/.venv/bin/python")).unwrap();
    std::os::unix::fs::symlink("/bin/cat", place.path("shop/.venv/bin/python")).unwrap();
    assert_eq!(place.state(), "modified");
}

//! `hookyard add`.

use std::fs;

use serde_json::json;

use super::{Place, pack_names, packs};

const DELETIONS: &str = "shop/.openharness/hooks/dangerous-deletions.yaml";
const GIT: &str = "shop/.openharness/hooks/git-safety.yaml";

#[test]
fn a_pack_that_is_added_is_in_force_and_adding_it_again_changes_nothing() {
    let place = Place::new();
    assert_eq!(place.verdict("shop", "rm -rf /"), "proceed");
    let done = place.run(&["add", "dangerous-commands", "dangerous-commands"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert_eq!(done.out.matches("wrote").count(), 2, "{done:?}");
    assert_eq!(place.verdict("shop", "sudo  'rm' -rf /"), "block");
    assert_eq!(place.verdict("shop", "ls"), "proceed");
    let before = place.read(DELETIONS);
    let again = place.run(&["add", "dangerous-commands", "--json"]);
    assert_eq!(again.code, 0, "{again:?}");
    let files = again.json()["files"].clone();
    for file in files.as_array().unwrap() {
        assert_eq!((&file["change"], &file["in_force"]), (&json!("unchanged"), &json!(true)), "{file}");
    }
    assert_eq!(files.as_array().unwrap().len(), 2);
    assert_eq!(place.read(DELETIONS), before);
    assert!(before.starts_with("# Pack dangerous-commands of hookyard "), "{before}");
    let checked = place.run(&["check", "--strict"]);
    assert_eq!(checked.code, 0, "{checked:?}");
}

#[test]
fn every_pack_of_the_directory_is_in_the_program_and_loads_without_a_warning() {
    let place = Place::new();
    let listed = place.run(&["add", "--list", "--json"]).json();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|pack| pack["name"].as_str().unwrap()).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, pack_names());
    let done = place.run(&[&["add"], names.as_slice()].concat());
    assert_eq!(done.code, 0, "{done:?}");
    let checked = place.run(&["check", "--strict", "--json"]);
    assert_eq!((checked.code, &checked.json()["diagnostics"]), (0, &json!([])), "{checked:?}");
    for pack in listed.as_array().unwrap() {
        let directory = packs().join(pack["name"].as_str().unwrap());
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let mut hooks: Vec<String> = entries
            .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        hooks.sort();
        assert_eq!(pack["hooks"], json!(hooks));
    }
}

#[test]
fn exceptions_are_kept_and_have_to_be_trusted() {
    let place = Place::new();
    assert_eq!(place.run(&["add", "git-safety"]).code, 0);
    let own = place.read(GIT).replace("exceptions: '[]'", "exceptions: '[\"git push -f origin wip\"]'");
    place.write(GIT, &own);
    // It was a guard: until somebody has agreed to the change, its events are blocked.
    assert_eq!(place.verdict("shop", "git push -f origin wip"), "block");
    let again = place.run(&["add", "git-safety"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.out.contains("not trusted") && again.out.contains("hookyard trust"), "{again:?}");
    assert_eq!(place.read(GIT), own);
    let digest = place.run(&["trust", "--json"]).json()["digest"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["trust", "--yes", &digest]).code, 0);
    assert_eq!(place.verdict("shop", "git push -f origin wip"), "proceed");
    assert_eq!(place.verdict("shop", "git push -f origin main"), "block");
    assert_eq!(place.run(&["add", "git-safety", "--replace"]).code, 0);
    assert_eq!(place.read(GIT), own);
}

#[test]
fn an_edited_copy_is_told_and_stays_until_it_is_replaced() {
    let place = Place::new();
    assert_eq!(place.run(&["add", "git-safety"]).code, 0);
    let whole = place.read(GIT);
    let edited = whole.replace("forced-push", "force").replace("exceptions: '[]'", "exceptions: '[\"ls\"]'");
    place.write(GIT, &edited);
    let again = place.run(&["add", "git-safety", "--json"]);
    assert_eq!((again.code, &again.json()["files"][0]["change"]), (1, &json!("edited")), "{again:?}");
    assert_eq!(place.read(GIT), edited);
    let told = place.run(&["add", "git-safety"]);
    assert!(told.out.contains("was edited") && told.out.contains("--replace"), "{told:?}");
    // The exceptions of a file that nobody here has agreed to are nobody's.
    let replaced = place.run(&["add", "git-safety", "--replace", "--json"]);
    assert_eq!(replaced.json()["files"][0]["change"], "replaced");
    assert_eq!(place.read(GIT), whole.replace("exceptions: '[]'", "exceptions: '[\"ls\"]'"));
    assert_eq!(replaced.code, 1, "{replaced:?}");
    place.write(GIT, &whole.replace("forced-push", "force"));
    assert_eq!(place.run(&["add", "git-safety", "--replace"]).code, 0);
    assert_eq!(place.read(GIT), whole);
    assert_eq!(place.verdict("shop", "git push --force"), "block");
}

#[test]
fn a_copy_of_another_version_is_told_and_renewed_with_its_exceptions() {
    let place = Place::new();
    // What another version had, as it wrote it.
    let body = "name: git-safety\nevents: [before_tool_dispatch]\nhandler:\n  type: rule\n  let:\n    exceptions: '[\"ls\"]'\n  deny: '!(tool.name in exceptions)'\n";
    let without = body.replace("    exceptions: '[\"ls\"]'", "exceptions");
    let digest = sha256(without.trim_end());
    let head = format!("# Pack git-safety of hookyard 0.0.9, {}; change `exceptions` alone\n", &digest[..16]);
    place.write(GIT, &format!("{head}{body}"));
    let told = place.run(&["add", "git-safety"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.out.contains("another version"), "{told:?}");
    let renewed = place.run(&["add", "git-safety", "--replace"]);
    assert!(place.read(GIT).contains("exceptions: '[\"ls\"]'"), "{renewed:?}");
    assert!(place.read(GIT).contains("forced-push"));
    // Nobody here had agreed to the exception.
    assert_eq!(renewed.code, 1, "{renewed:?}");
}

#[test]
fn what_would_switch_a_guard_off_is_refused_before_anything_is_written() {
    let place = Place::new();
    let twin = "name: git-safety\nevents: [run_completed]\nhandler: { type: command, command: cat }\n";
    place.write("shop/.openharness/hooks/mine.yaml", twin);
    let done = place.run(&["add", "dangerous-commands", "git-safety"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("mine.yaml") && done.err.contains("neither runs"), "{done:?}");
    assert!(!place.path(GIT).exists() && !place.path(DELETIONS).exists());
    fs::remove_file(place.path("shop/.openharness/hooks/mine.yaml")).unwrap();
    std::os::unix::fs::symlink("/etc/hosts", place.path(GIT)).unwrap();
    let done = place.run(&["add", "git-safety"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("is a link"), "{done:?}");
}

#[test]
fn a_guard_that_is_not_loaded_is_no_success() {
    let place = Place::new();
    place.write("shop/.openharness/settings.yaml", "kind: chat\n");
    let done = place.run(&["add", "git-safety", "--json"]);
    assert_eq!((done.code, &done.json()["files"][0]["in_force"]), (1, &json!(false)), "{done:?}");
}

#[test]
fn no_hook_adds_hooks_and_unknown_packs_are_usage_errors() {
    let place = Place::new();
    assert_eq!(place.run(&["add", "git-saftey"]).code, 2);
    assert_eq!(place.run(&["add"]).code, 2);
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("hookyard");
    let inside = command
        .current_dir(place.path("shop"))
        .env("HOOKYARD_HOOK", "1")
        .env("HOOKYARD_TEST_HOME", place.path("home"));
    let output = inside.args(["add", "git-safety"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!place.path(GIT).exists());
}

#[test]
fn other_hooks_keep_the_trust_that_they_have_and_get_none() {
    let place = Place::new();
    let hook = "name: other\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: sh .openharness/hooks/scripts/x.sh\n";
    place.write("shop/.openharness/hooks/other.yaml", hook);
    place.write("shop/.openharness/hooks/scripts/x.sh", "exit 0\n");
    assert_eq!(place.run(&["add", "git-safety"]).code, 0);
    let state = |name: &str| {
        let hooks = place.run(&["list", "--json"]).json();
        let hook = hooks.as_array().unwrap().iter().find(|hook| hook["name"] == name).unwrap().clone();
        hook["trust"].as_str().unwrap().to_owned()
    };
    assert_eq!((state("other").as_str(), state("git-safety").as_str()), ("untrusted", "trusted"));
    let digest = place.run(&["trust", "--json"]).json()["digest"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["trust", "--yes", &digest]).code, 0);
    assert_eq!(place.run(&["add", "secrets"]).code, 0);
    assert_eq!((state("other").as_str(), state("git-safety").as_str()), ("trusted", "trusted"));
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    let digits = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>();
    digits.concat()
}

#[test]
fn a_pack_of_the_user_guards_every_workspace_and_none_switches_it_off() {
    let place = Place::new();
    place.write("shop/.openharness/settings.yaml", "disabled: [dangerous-deletions]\n");
    place.write("shop/.openharness/hooks/dangerous-deletions.yaml", "name: dangerous-deletions\nevents: [before_tool_dispatch]\nhandler: { type: command, command: 'true' }\n");
    fs::create_dir_all(place.path("other/.openharness/hooks")).unwrap();
    let done = place.run_at_home(&["add", "dangerous-commands", "--user"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    assert!(done.out.contains(".config/hookyard/.openharness/hooks/dangerous-deletions.yaml"), "{done:?}");
    for workspace in ["shop", "other"] {
        assert_eq!(place.verdict(workspace, "rm -rf /"), "block", "{workspace}");
        assert_eq!(place.verdict(workspace, "ls"), "proceed", "{workspace}");
    }
    let again = place.run_at_home(&["add", "dangerous-commands", "--user", "--json"]).json();
    assert!(again["files"].as_array().unwrap().iter().all(|file| file["change"] == "unchanged"), "{again}");
    let listed = place.run_at_home(&["add", "--list", "--user", "--json"]).json();
    let pack = listed.as_array().unwrap().iter().find(|pack| pack["name"] == "dangerous-commands");
    assert_eq!(pack.unwrap()["workspace"], "current");
    let both = place.run_at_home(&["add", "git-safety", "--user", "--workspace", "shop"]);
    assert_eq!(both.code, 2, "{both:?}");
}

const SHOWS_ROOT: &str = "name: where\nevents: [before_tool_dispatch]\nhandler:\n  type: rule\n  deny: 'true'\n  reason: \
     'workspace.root + (path.within(tool.input.command, workspace.root) ? \" has it\" : \" has it not\")'\n";

/// What a hook of the user says of a path.
fn said(place: &Place, arguments: &[&str], path: &str) -> String {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
        "tool_name": "Bash", "tool_input": { "command": path } });
    let arguments = [&["fire", "--json", "--trust-workspace", "--event", "-"], arguments].concat();
    let done = place.run_in("shop", &arguments, &event.to_string());
    done.json()["reason"].as_str().unwrap_or_else(|| panic!("{done:?}")).to_owned()
}

#[test]
fn rules_of_the_user_speak_of_the_workspace_of_the_event() {
    let place = Place::new();
    place.write("home/.config/hookyard/.openharness/hooks/where.yaml", SHOWS_ROOT);
    let shop = place.path("shop").to_string_lossy().into_owned();
    assert_eq!(said(&place, &[], &format!("{shop}/a")), format!("{shop} has it"));
    assert_eq!(said(&place, &[], "a"), format!("{shop} has it"));
    assert_eq!(said(&place, &[], "/etc"), format!("{shop} has it not"));
}

#[test]
fn a_workspace_is_known_by_the_names_that_people_gave_it() {
    let place = Place::new();
    // By what is written: a path that only leads into the workspace is `path.within` it under any name.
    let written = SHOWS_ROOT.replace(
        "path.within(tool.input.command, workspace.root)",
        "path.normalize(tool.input.command, workspace.root).startsWith(workspace.root + \"/\")",
    );
    place.write("shop/.openharness/hooks/where.yaml", &written);
    std::os::unix::fs::symlink(place.path("shop"), place.path("link")).unwrap();
    std::os::unix::fs::symlink(place.path("."), place.path("above")).unwrap();
    let [shop, link, above] =
        ["shop", "link", "above"].map(|name| place.path(name).to_string_lossy().into_owned());
    let is_known = |arguments: &[&str], path: &str| said(&place, arguments, path) == format!("{shop} has it");
    assert!(!is_known(&[], &format!("{link}/a")));
    let declared = format!("workspaces={{shop: {{root: {link}}}}}");
    assert!(is_known(&["--set", &declared], &format!("{link}/a")));
    assert!(!is_known(&["--set", &declared], &format!("{link}/../a")));
    let roots = format!("workspace_roots=[{above}]");
    assert!(is_known(&["--set", &roots], &format!("{above}/shop/a")));
    let home = format!("home={above}");
    assert!(is_known(&["--set", &home], &format!("{above}/shop/a")));
}

#[test]
fn nothing_takes_the_guards_of_the_user_out_of_force_without_a_word() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let place = Place::new();
    assert_eq!(place.run_at_home(&["add", "dangerous-commands", "--user"]).code, 0);
    let own = place.path("home/.config/hookyard");
    for directory in [own.clone(), own.join(".openharness")] {
        for mode in [0o777, 0o700] {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(place.verdict("shop", "rm -rf /"), "block", "{directory:?} with {mode:o}");
            assert_eq!(place.verdict("shop", "ls"), "proceed", "{directory:?} with {mode:o}");
        }
    }
    let former = place.path("home/former");
    fs::rename(&own, &former).unwrap();
    assert_eq!(place.verdict("shop", "ls"), "block", "it is gone");
    fs::create_dir_all(place.path("shop/fake/.openharness/hooks")).unwrap();
    for fake in [place.path("shop/fake"), former.clone(), place.path("nowhere")] {
        symlink(&fake, &own).unwrap();
        assert_eq!(place.verdict("shop", "ls"), "block", "a link to {fake:?}");
        assert_eq!(place.verdict("home", "ls"), "block", "a link to {fake:?}");
        fs::remove_file(&own).unwrap();
    }
    fs::rename(&former, &own).unwrap();
    assert_eq!(place.verdict("shop", "ls"), "proceed");
    let hook = own.join(".openharness/hooks/dangerous-deletions.yaml");
    fs::remove_file(hook).unwrap();
    assert_eq!(place.verdict("shop", "ls"), "block", "a file is gone");
    let workspace = own.to_string_lossy().into_owned();
    let revoked = place.run_at_home(&["trust", "--workspace", &workspace, "--revoke", "dangerous-deletions"]);
    assert_eq!(revoked.code, 0, "{revoked:?}");
    assert_eq!(place.verdict("shop", "ls"), "proceed");
}

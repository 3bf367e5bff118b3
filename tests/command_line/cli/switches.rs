//! `enable` and `disable`, and the settings file of the user.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use super::*;

const RULES: &str = ".config/hookyard/hookyard.yaml";

/// A workspace in the home directory of a user.
struct User {
    directory: TempDir,
}

impl User {
    fn new() -> Self {
        let directory = shop();
        fs::create_dir(directory.path().join("home")).unwrap();
        Self { directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("home").join(RULES)
    }

    fn writes(&self, text: &str) {
        fs::create_dir_all(self.file().parent().unwrap()).unwrap();
        fs::write(self.file(), text).unwrap();
    }

    fn run(&self, arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Done {
        let mut command = program(self.directory.path());
        command.args(without_trust(arguments)).args(["--home", "home"]).envs(variables.iter().copied());
        let output = command.write_stdin(input).output().unwrap();
        Done {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn verdict(&self) -> Value {
        let done = self.run(&["fire", "--event", "-", "--json"], &[], &tool("rm -rf /"));
        done.json()["verdict"].clone()
    }
}

#[test]
fn a_hook_is_switched_off_and_on_in_the_settings_of_the_user() {
    let user = User::new();
    assert_eq!(user.verdict(), "block");
    let off = user.run(&["disable", "guard"], &[], "");
    assert_eq!((off.code, off.out.as_str()), (0, ""), "{}", off.err);
    assert!(off.err.contains("`guard` is now switched off in"), "{}", off.err);
    assert!(off.err.contains("hookyard serve --replace"), "{}", off.err);
    assert_eq!(fs::read_to_string(user.file()).unwrap(), "handlers:\n  guard:\n    enabled: false\n");
    assert_eq!(fs::metadata(user.file()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(user.verdict(), "proceed");
    let listed = user.run(&["list"], &[], "").out;
    assert!(listed.contains("guard (disabled by `handlers` in the settings)"), "{listed}");
    let checked = user.run(&["check"], &[], "");
    assert!(
        checked.out.contains("the guard `guard` is switched off by `handlers` in the settings"),
        "{}",
        checked.out
    );
    assert!(checked.out.contains("hookyard enable guard"), "{}", checked.out);
    let again = user.run(&["disable", "guard"], &[], "");
    assert!(again.code == 0 && again.err.contains("is already switched off"), "{}", again.err);
    let on = user.run(&["enable", "guard"], &[], "");
    assert_eq!(on.code, 0, "{}", on.err);
    assert_eq!(fs::read_to_string(user.file()).unwrap(), "handlers:\n  guard:\n    enabled: true\n");
    assert_eq!(user.verdict(), "block");
}

#[test]
fn what_a_settings_file_says_besides_stays() {
    let user = User::new();
    let before = "# mine\nwatch: false # why\nhandlers:\n  npm: { mode: oneshot }\n";
    fs::write(user.directory.path().join("s.yaml"), before).unwrap();
    let done = user.run(&["disable", "npm", "--config", "s.yaml"], &[], "");
    assert_eq!(done.code, 0, "{}", done.err);
    let after = "# mine\nwatch: false # why\nhandlers:\n  npm: { \"enabled\": false, mode: oneshot }\n";
    assert_eq!(fs::read_to_string(user.directory.path().join("s.yaml")).unwrap(), after);
    assert!(!user.file().exists());
}

#[test]
fn a_hook_that_is_not_there_or_stays_off_is_an_error() {
    let user = User::new();
    for command in ["enable", "disable"] {
        let done = user.run(&[command, "gaurd"], &[], "");
        assert_eq!(done.code, 1, "{}", done.err);
        assert!(done.err.contains("there is no hook `gaurd`"), "{}", done.err);
        let inside = user.run(&[command, "guard"], &[("HOOKYARD_HOOK", "1")], "");
        assert!(inside.code == 1 && inside.err.contains("a hook cannot switch hooks"), "{}", inside.err);
    }
    assert!(!user.file().exists());
    let off = hook("off", "before_tool_dispatch", "exit 2", "enabled: false");
    fs::write(user.directory.path().join(".openharness/hooks/off.yaml"), off).unwrap();
    let done = user.run(&["enable", "off"], &[], "");
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.err.contains("`off` stays disabled by `enabled: false` in its own file"), "{}", done.err);
    // An entry of a hook that is gone can be taken back.
    user.writes("handlers: { gone: { enabled: false } }");
    assert_eq!(user.run(&["enable", "gone"], &[], "").code, 0);
}

#[test]
fn the_events_of_a_required_hook_that_is_switched_off_are_blocked() {
    let user = User::new();
    user.writes("required: [guard]\n");
    let done = user.run(&["disable", "guard"], &[], "");
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("its events are blocked"), "{}", done.err);
    assert_eq!(user.verdict(), "block");
}

#[test]
fn a_command_as_it_is_written_names_a_hook_too() {
    let user = User::new();
    user.writes("handlers: { \"cat >/dev/null\": { enabled: false } }");
    let rows = user.run(&["list", "--json"], &[], "").json();
    let audit = rows.as_array().unwrap().iter().find(|row| row["name"] == "audit").unwrap();
    assert_eq!(
        (&audit["enabled"], &audit["disabled_by"]),
        (&json!(false), &json!("`handlers` in the settings"))
    );
}

#[test]
fn the_settings_file_of_the_user_is_read_unless_another_one_is_named() {
    let user = User::new();
    user.writes("handlers: { guard: { enabled: false } }");
    assert_eq!(user.verdict(), "proceed");
    fs::write(user.directory.path().join("s.yaml"), "watch: false\n").unwrap();
    let named = user.run(&["fire", "--event", "-", "--json", "--config", "s.yaml"], &[], &tool("rm -rf /"));
    assert_eq!(named.json()["verdict"], "block");
    user.writes("handlers: 7\n");
    let wrong = user.run(&["fire", "--event", "-", "--json"], &[], &tool("ls"));
    assert_eq!((wrong.code, wrong.out.as_str()), (1, ""), "{}", wrong.err);
    assert!(wrong.err.contains("hookyard.yaml:1"), "{}", wrong.err);
}

#[test]
fn a_settings_file_of_the_user_that_cannot_be_trusted_is_an_error() {
    let user = User::new();
    user.writes("watch: false\n");
    fs::set_permissions(user.file(), fs::Permissions::from_mode(0o666)).unwrap();
    let open = user.run(&["list"], &[], "");
    assert!(
        open.code == 1 && open.err.contains("can be written by others; run `chmod go-w`"),
        "{}",
        open.err
    );
    fs::remove_file(user.file()).unwrap();
    std::os::unix::fs::symlink("nowhere", user.file()).unwrap();
    let dangling = user.run(&["list"], &[], "");
    assert!(dangling.code == 1 && dangling.err.contains("cannot be read"), "{}", dangling.err);
}

/// A project can set the variables of what an agent starts.
#[test]
fn variables_name_the_settings_file_for_serve_and_check_alone() {
    let user = User::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let settings_in = |directory: &Path| {
        fs::create_dir_all(directory.join("hookyard")).unwrap();
        let file = directory.join("hookyard/hookyard.yaml");
        fs::write(&file, "handlers: { guard: { enabled: false } }").unwrap();
        file
    };
    let other = settings_in(elsewhere.path());
    let by_file = [("HOOKYARD_CONFIG", other.to_str().unwrap())];
    let by_directory = [("XDG_CONFIG_HOME", elsewhere.path().to_str().unwrap())];
    for variables in [by_file, by_directory] {
        let checked = user.run(&["check"], &variables, "");
        assert!(checked.out.contains("the guard `guard` is switched off"), "{variables:?}: {}", checked.out);
        let fired = user.run(&["fire", "--event", "-", "--json"], &variables, &tool("rm -rf /"));
        assert_eq!(fired.json()["verdict"], "block", "{variables:?}");
        let said = format!("{}: only `serve` and `check`", variables[0].0);
        assert!(
            fired.err.contains("only `serve` and `check` find their settings file by it"),
            "{said}: {}",
            fired.err
        );
    }
    let of_project = settings_in(&user.directory.path().join("vendor"));
    let set_by_project = user.run(&["check"], &[("HOOKYARD_CONFIG", of_project.to_str().unwrap())], "");
    assert_eq!((set_by_project.code, set_by_project.out.as_str()), (1, ""));
    assert!(
        set_by_project.err.contains("which a variable names, is in the workspace"),
        "{}",
        set_by_project.err
    );
    let relative = user.run(&["check"], &[("HOOKYARD_CONFIG", "vendor/hookyard/hookyard.yaml")], "");
    assert!(relative.code == 1 && relative.err.contains("is no absolute path"), "{}", relative.err);
    // Where the variable says the usual place, it is the usual file.
    fs::create_dir_all(user.directory.path().join("home/.config")).unwrap();
    let usual = user.directory.path().canonicalize().unwrap().join("home/.config");
    let checked = user.run(&["check"], &[("XDG_CONFIG_HOME", usual.to_str().unwrap())], "");
    assert_eq!(checked.code, 0, "{}", checked.err);
    let gone = user.run(&["check"], &[("HOOKYARD_CONFIG", "/nowhere/hookyard.yaml")], "");
    assert!(gone.code == 1 && gone.err.contains("/nowhere/hookyard.yaml"), "{}", gone.err);
}

//! `bundle`: what it makes is the same each time, what may not be in a bundle is refused, and a change is shown.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::{Value, json};
use tempfile::TempDir;

const RULE: &str = "name: NAME\nevents: [before_tool_dispatch]\non_error: deny\n\
                    handler: {type: rule, deny: tool.name == 'x', reason: \"'no'\"}\n";

struct Place(TempDir);

struct Done {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Place {
    /// A workspace and a pack.
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("home/file", "");
        place.write("guards/core/.openharness/hooks/core.yaml", &RULE.replace("NAME", "core"));
        place.write("guards/pack/rule.yaml", &RULE.replace("NAME", "packed"));
        place.write("guards/pack/cases/attempts.yaml", "cases: []\n");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Done {
        let mut command = cargo_bin_cmd!("hookyard");
        command
            .current_dir(self.path("."))
            .env_remove("HOOKYARD_LOG")
            .env("HOOKYARD_TEST_HOME", self.path("home"));
        let output = command.args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Done { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn good(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, Some(0), "{arguments:?}: {}{}", done.out, done.err);
        done.out
    }

    /// What a build says that fails.
    fn refused(&self) -> String {
        let done = self.build(9, "refused.tar.gz");
        assert_eq!(done.code, Some(1), "{}{}", done.out, done.err);
        assert!(!self.path("refused.tar.gz").exists());
        done.err
    }

    fn build(&self, version: u32, output: &str) -> Done {
        let version = version.to_string();
        let arguments = ["bundle", "build", "guards", "--name", "acme/guards", "--version", &version];
        self.run(&[&arguments[..], &["--expires", "2100-01-01T00:00:00Z", "--output", output]].concat())
    }
}

#[test]
fn the_same_files_make_the_same_archive() {
    let place = Place::new();
    assert_eq!(place.build(1, "one.tar.gz").code, Some(0));
    // Neither owner nor time nor mode beyond that of a program counts, nor what version control and Python leave.
    let other = Place::new();
    fs::set_permissions(other.path("guards/pack/rule.yaml"), fs::Permissions::from_mode(0o600)).unwrap();
    other.write("guards/.git/HEAD", "x");
    other.write("guards/core/__pycache__/x.pyc", "x");
    assert_eq!(other.build(1, "two.tar.gz").code, Some(0));
    let [one, two] = [place.path("one.tar.gz"), other.path("two.tar.gz")].map(|path| fs::read(path).unwrap());
    assert_eq!(one, two);
    assert_eq!(place.build(2, "one.tar.gz").code, Some(0));
    assert_ne!(fs::read(place.path("one.tar.gz")).unwrap(), one);
}

#[test]
fn what_may_not_be_in_a_bundle_is_refused_with_its_name() {
    let place = Place::new();
    let remove = |name: &str| fs::remove_file(place.path(name)).unwrap();
    symlink("/etc/passwd", place.path("guards/core/link")).unwrap();
    assert!(place.refused().contains("guards/core/link cannot be in a bundle: it is a symbolic link"));
    remove("guards/core/link");
    place.write("guards/core/caf\u{e9}", "");
    assert!(place.refused().contains("names have ASCII letters"));
    remove("guards/core/caf\u{e9}");
    place.write("guards/Core/x", "");
    assert!(place.refused().contains("collide"));
    fs::remove_dir_all(place.path("guards/Core")).unwrap();
    place.write("guards/core/hooks/lost.yaml", &RULE.replace("NAME", "lost"));
    assert!(place.refused().contains("is a hook file that no workspace would load"));
    remove("guards/core/hooks/lost.yaml");
    place.write("guards/core/.claude/settings.json", "{}");
    assert!(place.refused().contains("is a settings file of an agent"));
    remove("guards/core/.claude/settings.json");
    place.write("guards/pack/twin.yaml", &RULE.replace("NAME", "core"));
    assert!(place.refused().contains("two of its hooks are called `core`"));
    place.write("guards/pack/twin.yaml", "name: twin\nevents: [no_such]\nhandler: {type: rule}\n");
    assert!(place.refused().contains("pack/.openharness/hooks/twin.yaml:2"));
    remove("guards/pack/twin.yaml");
    assert_eq!(place.build(1, "good.tar.gz").code, Some(0));
}

#[test]
fn no_hook_file_is_left_out_in_silence() {
    let flow = "{name: lost, events: [before_tool_dispatch], handler: {type: rule, deny: 'true', reason: \"'no'\"}}\n";
    let lost = RULE.replace("NAME", "lost");
    // A directory with one file, and how the build ends: with its hook, or with an error that has these words.
    let loaded = [
        ("key in quotes", lost.replace("events:", "\"events\":")),
        ("room before the colon", lost.replace("events:", "events :")),
        ("a mapping in a line", flow.to_owned()),
        ("a byte order mark", format!("\u{feff}{lost}")),
    ];
    for (what, text) in loaded {
        let place = Place::new();
        place.write("guards/more/lost.yaml", &text);
        let done = place.build(1, "x.tar.gz");
        assert!(done.code == Some(0) && done.out.contains("3 hooks"), "{what}: {}{}", done.out, done.err);
    }
    let json = r#"{"name": "lost", "events": ["before_tool_dispatch"], "handler": {"type": "rule"}}"#;
    let refused = [
        ("guards/more/lost.yaml", lost.replace("events:", "event:"), "`events` is missing"),
        ("guards/more/lost.yaml", lost.replace("handler:", "handlers:"), "`handler` is missing"),
        ("guards/more/lost.yaml", format!("{lost}  x\n"), "lost.yaml:"),
        ("guards/more/lost.json", json.to_owned(), "no workspace would load"),
        ("guards/core/.openharness/hooks/lost.json", json.to_owned(), "no workspace would load"),
        ("guards/core/.openharness/hooks/lost.YAML", lost.clone(), "no workspace would load"),
        ("guards/core/.openharness/hook/lost.yaml", flow.to_owned(), "no workspace would load"),
    ];
    for (file, text, words) in refused {
        let place = Place::new();
        place.write(file, &text);
        let said = place.refused();
        assert!(said.contains(words), "{file}: {said}");
    }
    // Data is data.
    let place = Place::new();
    place.write("guards/core/data/list.json", "{\"tools\": []}");
    place.write("guards/core/data/list.yaml", "tools: []\n");
    assert_eq!(place.build(1, "x.tar.gz").code, Some(0));
}

#[test]
fn a_change_is_shown_by_hooks_and_by_lines() {
    let place = Place::new();
    place.build(1, "one.tar.gz");
    place.write("guards/pack/rule.yaml", &RULE.replace("NAME", "packed").replace("'x'", "'y'"));
    place.write("guards/core/.openharness/hooks/new.yaml", &RULE.replace("NAME", "new"));
    fs::remove_file(place.path("guards/pack/cases/attempts.yaml")).unwrap();
    place.build(2, "two.tar.gz");
    let diff = place.run(&["bundle", "diff", "one.tar.gz", "two.tar.gz"]);
    assert_eq!(diff.code, Some(1));
    for line in [
        "acme/guards 1 -> acme/guards 2",
        "+ hook new",
        "~ hook packed",
        "- file pack/cases/attempts.yaml",
        "-handler: {type: rule, deny: tool.name == 'x', reason: \"'no'\"}",
        "+handler: {type: rule, deny: tool.name == 'y', reason: \"'no'\"}",
    ] {
        assert!(diff.out.lines().any(|shown| shown == line), "{line}: {}", diff.out);
    }
    let report = place.run(&["bundle", "diff", "one.tar.gz", "two.tar.gz", "--json"]).out;
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["hooks"], json!({ "added": ["new"], "removed": [], "changed": ["packed"] }));
    assert_eq!(place.run(&["bundle", "diff", "one.tar.gz", "one.tar.gz"]).code, Some(0));
}

#[test]
fn keys_are_private_and_several_sign() {
    let place = Place::new();
    place.build(1, "one.tar.gz");
    let keys: Vec<String> =
        ["a", "b"].map(|name| place.good(&["bundle", "keygen", name]).trim().to_owned()).into();
    assert_eq!(fs::metadata(place.path("a")).unwrap().permissions().mode() & 0o777, 0o600);
    let again = place.run(&["bundle", "keygen", "a"]);
    assert!(again.code == Some(1) && again.err.contains("is there already"), "{}", again.err);
    let verify = |key: &str| place.run(&["bundle", "verify", "one.tar.gz", "--key", key]);
    assert!(verify(&keys[0]).err.contains("nobody has signed"));
    fs::set_permissions(place.path("a"), fs::Permissions::from_mode(0o644)).unwrap();
    let open = place.run(&["bundle", "sign", "one.tar.gz", "--key", "a"]);
    assert!(open.code == Some(1) && open.err.contains("is open to others"), "{}", open.err);
    fs::set_permissions(place.path("a"), fs::Permissions::from_mode(0o600)).unwrap();
    place.good(&["bundle", "sign", "one.tar.gz", "--key", "a"]);
    assert_eq!((verify(&keys[0]).code, verify(&keys[1]).code), (Some(0), Some(1)));
    place.good(&["bundle", "sign", "one.tar.gz", "--key", "b"]);
    assert_eq!((verify(&keys[0]).code, verify(&keys[1]).code), (Some(0), Some(0)));
    let newer =
        ["bundle", "build", "guards", "--name", "acme/guards", "--version", "3", "--expires", "never"];
    place.good(&[&newer[..], &["--min-hookyard", "99.0", "--output", "newer.tar.gz"]].concat());
    place.good(&["bundle", "sign", "newer.tar.gz", "--key", "a"]);
    let newer = place.run(&["bundle", "verify", "newer.tar.gz", "--key", &keys[0]]);
    assert!(newer.code == Some(1) && newer.err.contains("it needs hookyard 99.0 or later"), "{}", newer.err);
    // A signature is of one archive.
    place.build(2, "one.tar.gz");
    let other = verify(&keys[0]);
    assert!(other.code == Some(1) && other.err.contains("is about another archive"), "{}", other.err);
}

#[test]
fn whoever_publishes_what_no_machine_takes_is_told() {
    let place = Place::new();
    place.good(&["bundle", "keygen", "key"]);
    let push = |version: u32| {
        assert_eq!(place.build(version, "x.tar.gz").code, Some(0));
        fs::remove_file(place.path("x.tar.gz.sig")).ok();
        place.good(&["bundle", "sign", "x.tar.gz", "--key", "key"]);
        place.run(&["bundle", "push", "x.tar.gz", "x.bundle"])
    };
    let first = push(5);
    assert_eq!((first.code, first.err.as_str()), (Some(0), ""));
    assert_eq!(place.run(&["bundle", "push", "x.tar.gz", "x.bundle"]).err, "", "the same once more");
    let older = push(4);
    assert_eq!(older.code, Some(0), "{}", older.err);
    assert!(
        older.err.contains("acme/guards 5 was published there; machines that have it do not take this one")
    );
    assert_eq!(push(6).err, "");
    let left = fs::read_dir(place.path(".")).unwrap().flatten();
    assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().ends_with(".new")));
    let words = ["bundle", "build", "guards", "--name", "acme/guards", "--version", "7"];
    let old = [
        "--not-before",
        "2019-01-01T00:00:00Z",
        "--expires",
        "2020-01-01T00:00:00Z",
        "--output",
        "old.tar.gz",
    ];
    assert_eq!(place.run(&[&words[..], &old].concat()).code, Some(0));
    place.good(&["bundle", "sign", "old.tar.gz", "--key", "key"]);
    let expired = place.run(&["bundle", "push", "old.tar.gz", "x.bundle"]).err;
    assert!(expired.contains("machines do not take it now: it expired at 2020-01-01T00:00:00Z"), "{expired}");
}

#[test]
fn commands_show_the_bundle_and_do_not_switch_its_hooks_off() {
    let place = Place::new();
    let key = place.good(&["bundle", "keygen", "key"]);
    place.write("shop/.openharness/hooks/core.yaml", &RULE.replace("NAME", "core").replace("'x'", "'own'"));
    place.write("hookyard.yaml", &format!("bundle: {{keys: [\"{}\"]}}\ntrust: off\n", key.trim()));
    let at = ["--config", "hookyard.yaml", "--workspace", "shop"];
    let run = |command: &[&str]| place.run(&[command, &at].concat());
    let missing = run(&["check"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.out.contains("no signed bundle has been taken yet"), "{}", missing.out);
    place.build(1, "one.tar.gz");
    place.good(&["bundle", "sign", "one.tar.gz", "--key", "key"]);
    place.good(&["bundle", "install", "one.tar.gz", "--config", "hookyard.yaml"]);
    let list = run(&["list"]).out;
    assert_eq!(list.matches("managed (acme/guards 1)").count(), 2, "{list}");
    let rows: Value = serde_json::from_str(&run(&["list", "--json"]).out).unwrap();
    let names: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["core", "packed", "core.nested-1"], "the bundle has the name, and comes first");
    assert_eq!(rows[0]["bundle"], json!({ "name": "acme/guards", "version": 1 }));
    place.write(
        "event.json",
        &json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
                                       "tool_name": "x", "tool_input": {} })
        .to_string(),
    );
    let explained = run(&["explain", "--event", "event.json"]).out;
    assert!(explained.contains("[managed (acme/guards 1)]"), "{explained}");
    let checked = run(&["check"]);
    assert!(checked.out.contains("the bundle acme/guards 1 is in force since"), "{}", checked.out);
    let disabled = run(&["disable", "core"]);
    assert_eq!(disabled.code, Some(1));
    assert!(disabled.err.contains("`core` is of the signed bundle acme/guards 1"), "{}", disabled.err);
    place.write(
        "hookyard.yaml",
        &format!(
            "bundle: {{keys: [\"{}\"]}}\ntrust: off\nhandlers: {{core: {{enabled: false}}}}\n",
            key.trim()
        ),
    );
    let checked = run(&["check"]).out;
    assert!(checked.contains("`handlers` in the settings cannot switch off `core`"), "{checked}");
    let fired: Value = serde_json::from_str(&run(&["fire", "--event", "event.json"]).out).unwrap();
    assert_eq!((&fired["verdict"], &fired["by"]), (&json!("block"), &json!("core")));
}

//! Bad hook files and workspaces, as data: every directory in `tests/cases/bad` is one, with what loading it
//! says in `expected.txt`. What cannot be checked in, such as pipes and huge files, is made here.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use hookyard::{
    config::{LoadedWorkspace, Settings, WorkspaceKind, load_workspace},
    dialect::{HookRules, Located, Surroundings, UnixSockets, UnsafeVariables, read_hook},
    model::{Model, Secret, SecretText, Severity, WorkspaceId},
};
use proptest::prelude::*;
use tempfile::TempDir;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/bad");

/// How long anything may take to load: far more than it does, far less than a hang.
const BOUND: Duration = Duration::from_secs(20);

fn environment(name: &str) -> Option<String> {
    match name {
        "PATH" => Some("/bin:/usr/bin".to_owned()),
        "HOME" => Some("/home/user".to_owned()),
        _ => None,
    }
}

/// The settings of every case: a model to ask, one of other workspaces, and one whose key is not there.
const SETTINGS: &str = "models:
  small: { api: openai, base_url: 'http://127.0.0.1:9', model: m }
  elsewhere: { api: anthropic, model: m, workspaces: [shop] }
  keyless: { api: anthropic, model: m, key: '${secrets.NOPE}' }
";

fn load(root: &Path) -> LoadedWorkspace {
    let begun = std::time::SystemTime::now();
    let settings = Settings::from_yaml(SETTINGS, Path::new("hookyard.yaml")).0.unwrap();
    // The id of a workspace stands in messages, and that of a directory in use by one test is another each time.
    let id = WorkspaceId::new("case").unwrap();
    let loaded = load_workspace(root, Some(id), &settings, &environment);
    assert!(begun.elapsed().unwrap() < BOUND, "loading took too long");
    loaded
}

/// The diagnostics as `expected.txt` has them.
fn told(loaded: &LoadedWorkspace) -> String {
    let mut text = String::new();
    let root = format!("{}/", loaded.place.root.display());
    for d in &loaded.diagnostics {
        let file = d.file.strip_prefix(loaded.place.root.join(".openharness")).unwrap_or(&d.file);
        let severity = format!("{:?}", d.severity).to_lowercase();
        let help = d.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{severity} {} {}:{}:{} {}{help}",
            d.code,
            file.display(),
            d.line,
            d.column,
            d.message
        );
    }
    let mut text = text.replace(&root, "");
    let names: Vec<_> = loaded.hooks.iter().map(|hook| hook.name.as_str()).collect();
    let _ = writeln!(text, "loaded: {}", if names.is_empty() { "nothing".into() } else { names.join(" ") });
    text
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A workspace of a case: its `hooks`, `settings.yaml` and so on, or its one `hook.yaml`.
fn workspace_of(case: &Path) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join(".openharness");
    if case.join("hook.yaml").exists() {
        fs::create_dir_all(home.join("hooks")).unwrap();
        fs::copy(case.join("hook.yaml"), home.join("hooks/hook.yaml")).unwrap();
    } else {
        copy(case, &home);
        fs::remove_file(home.join("expected.txt")).ok();
    }
    root
}

#[test]
fn every_bad_workspace_gets_its_diagnostics() {
    let mut wrong = BTreeMap::new();
    let mut cases: Vec<PathBuf> = fs::read_dir(CASES).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 40, "only {} cases", cases.len());
    for case in cases {
        let root = workspace_of(&case);
        let found = told(&load(root.path()));
        let expected_file = case.join("expected.txt");
        if std::env::var_os("UPDATE_CASES").is_some() {
            fs::write(&expected_file, &found).unwrap();
        }
        let expected = fs::read_to_string(&expected_file).unwrap_or_default();
        if found != expected {
            wrong.insert(case, format!("expected:\n{expected}found:\n{found}"));
        }
    }
    let name = |case: &Path| case.file_name().unwrap().display().to_string();
    let report: Vec<String> = wrong
        .iter()
        .map(|(case, text)| {
            format!(
                "{}
{text}",
                name(case)
            )
        })
        .collect();
    assert!(
        report.is_empty(),
        "{}",
        report.join(
            "
"
        )
    );
}

const GOOD: &str =
    "name: good\nevents: [before_tool_dispatch]\nhandler: { type: command, command: 'true' }\n";

/// A workspace with a good hook and the given others.
fn workspace(files: &[(&str, Vec<u8>)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let hooks = root.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join("good.yaml"), GOOD).unwrap();
    for (name, bytes) in files {
        fs::write(hooks.join(name), bytes).unwrap();
    }
    root
}

fn hooks(root: &TempDir) -> PathBuf {
    root.path().join(".openharness/hooks")
}

/// Checks that a workspace gives one error with these words, and still loads its good hook.
fn refused(root: &TempDir, code: &str, words: &str) {
    let loaded = load(root.path());
    let text = told(&loaded);
    assert!(text.ends_with("loaded: good\n"), "{text}");
    let errors: Vec<_> = loaded.diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 1, "{text}");
    assert_eq!(errors[0].code, code, "{text}");
    assert!(text.contains(words), "{words} in {text}");
    assert!(text.len() < 2000 && !text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
}

#[test]
fn huge_and_hostile_files_are_refused_quickly() {
    let repeat = |text: &str, times| text.repeat(times).into_bytes();
    let bomb = |base: &str| {
        let mut text = format!("a0: &a0 [{base}]\n");
        for level in 1..20 {
            let alias = format!("*a{},", level - 1).repeat(10);
            let _ = writeln!(text, "a{level}: &a{level} [{alias}]");
        }
        text.into_bytes()
    };
    let wide = format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(50_000), "*a,".repeat(40_000));
    let cases: Vec<(&str, Vec<u8>, &str, &str)> = vec![
        ("large", repeat("# comment\n", 30_000), "too-large", "larger than the 262144 bytes allowed"),
        ("deep-flow", repeat("[", 10_000), "", ""),
        ("deepest-flow", repeat("[", 262_000), "", ""),
        (
            "deep-closed",
            format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes(),
            "too-deep",
            "nested",
        ),
        ("deep-mappings", repeat("{a: ", 60_000), "", ""),
        ("deep-block", repeat("- ", 10_000), "too-deep", "nested too deeply"),
        ("documents", repeat("---\na: 1\n", 1_025), "several-documents", "more than one document"),
        ("bomb", bomb("x,x"), "aliases", "stand for too much"),
        ("wide-bomb", wide.into_bytes(), "aliases", "stand for too much"),
        ("cycle", b"a: &a [*a]\n".to_vec(), "", ""),
        (
            "keys",
            (10_000..35_000).map(|i| format!("k{i}: 1\n")).collect::<Vec<_>>().concat().into_bytes(),
            "",
            "",
        ),
        ("latin-1", b"name: caf\xe9\n".to_vec(), "not-utf8", "invalid byte at offset 9"),
        ("nul", b"name: a\0b\n".to_vec(), "yaml-syntax", "1:8 the character U+0000 is not allowed"),
        ("escape", b"name: a\x1b[31m\n".to_vec(), "yaml-syntax", "1:8 the character U+001B is not allowed"),
        ("binary", vec![0x7f, b'E', b'L', b'F', 0, 0, 0xff], "not-utf8", "not UTF-8"),
    ];
    for (name, bytes, code, words) in cases {
        let root = workspace(&[("bad.yaml", bytes)]);
        if code.is_empty() {
            let loaded = load(root.path());
            assert!(loaded.diagnostics.iter().any(|d| d.severity == Severity::Error), "{name}");
            assert!(loaded.diagnostics.len() <= 21, "{name}");
            assert_eq!(loaded.hooks.len(), 1, "{name}");
        } else {
            refused(&root, code, words);
        }
    }
}

#[test]
fn a_300_mb_file_is_refused_by_its_size() {
    let root = workspace(&[]);
    fs::File::create(hooks(&root).join("bad.yaml")).and_then(|file| file.set_len(300 << 20)).unwrap();
    refused(&root, "too-large", "larger than the 262144 bytes allowed");
}

#[test]
fn a_pipe_is_refused_without_waiting() {
    let root = workspace(&[]);
    let path = hooks(&root).join("bad.yaml");
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    refused(&root, "unreadable", "bad.yaml:0:0 the file is not a regular file");
}

#[test]
fn a_directory_is_refused() {
    let root = workspace(&[]);
    fs::create_dir(hooks(&root).join("bad.yaml")).unwrap();
    refused(&root, "unreadable", "is not a regular file");
}

#[test]
fn a_device_is_refused() {
    let root = workspace(&[]);
    symlink("/dev/zero", hooks(&root).join("bad.yaml")).unwrap();
    refused(&root, "unreadable", "is a symbolic link");
}

#[test]
fn a_linked_file_is_refused_and_not_shown() {
    let root = workspace(&[]);
    let secret = root.path().join("secret");
    fs::write(&secret, "root:HUSH:0:0\n").unwrap();
    symlink(&secret, hooks(&root).join("bad.yaml")).unwrap();
    refused(&root, "unreadable", "is a symbolic link");
    assert!(!told(&load(root.path())).contains("HUSH"));
}

#[test]
fn a_dangling_link_is_refused() {
    let root = workspace(&[]);
    symlink("/nowhere/at/all", hooks(&root).join("bad.yaml")).unwrap();
    refused(&root, "unreadable", "is a symbolic link");
}

#[test]
fn an_unreadable_file_is_refused() {
    let root = workspace(&[("bad.yaml", GOOD.into())]);
    let path = hooks(&root).join("bad.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        return; // The superuser reads everything.
    }
    refused(&root, "unreadable", "cannot be read: permission denied");
}

#[test]
fn linked_directories_may_not_lead_outside() {
    let outside = workspace(&[]);
    let root = tempfile::tempdir().unwrap();
    symlink(outside.path().join(".openharness"), root.path().join(".openharness")).unwrap();
    let loaded = load(root.path());
    assert_eq!(loaded.hooks.len(), 0);
    assert!(told(&loaded).contains("symbolic link that leads outside the workspace"), "{}", told(&loaded));

    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join(".openharness")).unwrap();
    symlink(hooks(&outside), root.path().join(".openharness/hooks")).unwrap();
    let loaded = load(root.path());
    assert_eq!(loaded.hooks.len(), 0);
    assert!(told(&loaded).contains("symbolic link that leads outside the workspace"), "{}", told(&loaded));
}

#[test]
fn a_linked_directory_inside_the_workspace_is_followed() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("common")).unwrap();
    fs::create_dir(root.path().join(".openharness")).unwrap();
    fs::write(root.path().join("common/good.yaml"), GOOD).unwrap();
    symlink("../common", root.path().join(".openharness/hooks")).unwrap();
    assert_eq!(told(&load(root.path())), "loaded: good\n");
}

#[test]
fn ten_thousand_files_are_capped() {
    let root = workspace(&[]);
    for i in 0..10_000 {
        let text = GOOD.replace("good", &format!("h{i:05}"));
        fs::write(hooks(&root).join(format!("h{i:05}.yaml")), text).unwrap();
    }
    let loaded = load(root.path());
    assert_eq!(loaded.hooks.len(), 512);
    assert_eq!(loaded.diagnostics.len(), 1);
    assert_eq!(loaded.diagnostics[0].code, "too-many-files");
    assert!(loaded.diagnostics[0].message.starts_with("10001 hook files"));
}

#[test]
fn large_files_have_a_bound_together() {
    let root = workspace(&[]);
    let comment = format!("# {}\n", "x".repeat(250_000));
    for i in 0..80 {
        let text = GOOD.replace("good", &format!("h{i:02}")) + &comment;
        fs::write(hooks(&root).join(format!("h{i:02}.yaml")), text).unwrap();
    }
    let loaded = load(root.path());
    assert_eq!(loaded.hooks.len(), 1 + (16 << 20) / 250_000);
    assert!(told(&loaded).contains("not loaded: hook files may have 16777216 bytes together"));
}

#[test]
fn at_most_twenty_mistakes_of_a_file_are_told() {
    let text = (0..50).map(|i| format!("key{i}: 1\n")).collect::<Vec<_>>().concat();
    let root = workspace(&[("bad.yaml", text.into())]);
    let loaded = load(root.path());
    assert_eq!(loaded.diagnostics.len(), 21);
    assert!(told(&loaded).contains("33 more mistakes in this file"), "{}", told(&loaded));
}

#[test]
fn windows_line_ends_and_byte_order_marks_are_accepted() {
    let text = format!("\u{feff}{}", GOOD.replace("good", "windows").replace('\n', "\r\n"));
    let root = workspace(&[("windows.yml", text.into())]);
    assert_eq!(told(&load(root.path())), "loaded: good windows\n");
    let bad = "name: bad\r\nevents: [before_tool_dispatch]\r\nhandlr: {}\r\n";
    let root = workspace(&[("bad.yaml", bad.into())]);
    assert!(
        told(&load(root.path())).contains("bad.yaml:3:1 unknown key `handlr`"),
        "{}",
        told(&load(root.path()))
    );
}

#[test]
fn hidden_and_other_files_are_no_hook_files() {
    let root = workspace(&[
        (".hidden.yaml", b"{".to_vec()),
        ("notes.txt", b"{".to_vec()),
        ("x.yaml~", b"{".to_vec()),
    ]);
    assert_eq!(told(&load(root.path())), "loaded: good\n");
}

#[test]
fn a_workspace_that_is_not_there_is_an_error() {
    let loaded = load(Path::new("/nowhere/at/all"));
    assert_eq!(loaded.diagnostics[0].code, "unreadable");
    let root = tempfile::tempdir().unwrap();
    assert_eq!(told(&load(root.path())), "loaded: nothing\n");
    assert_eq!(load(root.path()).kind, WorkspaceKind::Project);
}

#[test]
fn long_arguments_are_refused() {
    let one = format!(
        "name: a\nevents: [run_failed]\nhandler: {{ type: command, command: \"true {}\" }}\n",
        "x".repeat(140_000)
    );
    let root = workspace(&[("bad.yaml", one.into())]);
    refused(&root, "too-large", "at most 131071 are allowed");
    let many = format!(
        "x: &x \"{}\"\nname: a\nevents: [run_failed]\nhandler: {{ type: command, args: [\"true\", *x, *x] }}\n",
        "x".repeat(120_000)
    );
    let root = workspace(&[("bad.yaml", many.into())]);
    assert_eq!(load(root.path()).hooks.len(), 1);
    let huge = "y".repeat(600_000);
    let environment = |name: &str| if name == "BIG" { Some(huge.clone()) } else { environment(name) };
    let text = "name: a\nevents: [run_failed]\nhandler: { type: command, command: 'true', \
                environment: { A: '${env.BIG}', B: '${env.BIG}' } }\n";
    let root = workspace(&[("bad.yaml", text.into())]);
    let loaded = load_workspace(root.path(), None, &Settings::default(), &environment);
    assert!(told(&loaded).contains("at most 1048576 are allowed"), "{}", told(&loaded));
}

#[test]
fn programs_that_are_missing_leave_the_hook_loaded() {
    let text = "name: guard\nevents: [before_tool_dispatch]\non_error: deny\nhandler: { type: command, args: [no-such-program] }\n";
    let root = workspace(&[("guard.yaml", text.into())]);
    let loaded = load(root.path());
    let told = told(&loaded);
    assert!(
        told.contains("warning program hooks/guard.yaml:4:34 `no-such-program` was not found in PATH"),
        "{told}"
    );
    assert!(told.ends_with("loaded: good guard\n"), "{told}");
}

/// A machine on which nothing is.
struct Nowhere;

impl Surroundings for Nowhere {
    fn variable(&self, _: &str) -> Option<SecretText> {
        None
    }

    fn secret(&self, name: &str) -> Result<Secret, (String, String)> {
        Err((format!("there is no secret `{name}`"), String::new()))
    }

    fn directory(&self, relative: &str) -> Located {
        Located::Missing(relative.into(), "is not there".into())
    }

    fn program(&self, name: &str, _: &Path) -> Located {
        Located::Missing(name.into(), "is not there".into())
    }

    fn text_file(&self, relative: &str) -> Result<String, String> {
        Err(format!("`{relative}` is not there"))
    }

    fn agent_file(&self, name: &str) -> Result<(PathBuf, Vec<u8>), (String, String)> {
        Err((format!("there is no agent `{name}`"), String::new()))
    }

    fn model(&self, reference: &str) -> Result<Model, (String, String)> {
        Err((format!("there is no model `{reference}`"), String::new()))
    }
}

/// Text that is almost a hook file.
fn almost_a_hook() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("name: a"),
        Just("events: [before_tool_dispatch]"),
        Just("handler:"),
        Just("  type: command"),
        Just("  command: x"),
        Just("matcher: \"(\""),
        Just("\n"),
        Just("\r\n"),
        Just("  "),
        Just("- "),
        Just("? "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just(": "),
        Just("&a "),
        Just("*a"),
        Just("!!x "),
        Just("!x "),
        Just("---\n"),
        Just("...\n"),
        Just("'"),
        Just("\""),
        Just("|\n"),
        Just("# "),
        Just("%TAG"),
        Just("\u{2028}"),
        Just("\u{feff}"),
        Just("é"),
        Just("<<: "),
        Just("null"),
        Just("1e999"),
        Just("\t"),
    ];
    prop::collection::vec(
        prop_oneof![4 => word.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)],
        0..40,
    )
    .prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn no_text_breaks_the_reader(text in almost_a_hook()) {
        let settings = Settings::default();
        let rules = HookRules {
            default_timeout: settings.default_timeout,
            max_timeout: settings.max_timeout,
            unsafe_variables: UnsafeVariables::Refused,
            unix_sockets: UnixSockets::Refused,
        };
        let (hook, diagnostics) = read_hook(text.as_bytes(), Path::new("a.yaml"), &rules, &Nowhere);
        let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
        prop_assert_eq!(hook.is_none(), errors > 0);
        for diagnostic in &diagnostics {
            prop_assert!(diagnostic.line <= text.lines().count() + 1, "{}", diagnostic);
            prop_assert!(!diagnostic.to_string().chars().any(char::is_control), "{}", diagnostic);
        }
    }
}

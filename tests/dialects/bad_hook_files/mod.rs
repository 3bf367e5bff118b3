//! Hook files and workspaces with mistakes: as data in `tests/cases/bad-hook-files`, and what cannot be data.

mod file_races;
mod unusual_files;

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use hookyard::{
    config::{LoadedWorkspace, Settings, load_workspace},
    model::{Severity, WorkspaceId},
};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::support::cases::{Comparison, Files, case_files, write_files};

/// How long anything may take to load: far more than it does, far less than a hang.
const BOUND: Duration = Duration::from_mins(1);

fn environment(name: &str) -> Option<String> {
    match name {
        "PATH" => Some("/bin:/usr/bin".to_owned()),
        "HOME" => Some("/home/user".to_owned()),
        _ => None,
    }
}

/// The settings of every case: a model to ask, one of other workspaces, and one whose key is not there.
const SETTINGS: &str = "trust: off
http: { allow: ['127.0.0.1:8080'] }
models:
  small: { api: openai, base_url: 'http://127.0.0.1:9', model: m }
  elsewhere: { api: anthropic, model: m, workspaces: [shop] }
  keyless: { api: anthropic, model: m, key: '${secrets.NOPE}' }
";

fn load(root: &Path) -> LoadedWorkspace {
    let started = processor_time();
    let settings = Settings::from_yaml(SETTINGS, Path::new("hookyard.yaml")).0.unwrap();
    // The id of a workspace stands in messages, and that of a directory in use by one test is another each time.
    let id = WorkspaceId::new("case").unwrap();
    let loaded = load_workspace(root, Some(id), &settings, &environment);
    assert!(processor_time().saturating_sub(started) < BOUND, "loading took too long");
    loaded
}

/// What this thread has used: waiting for a busy machine is no part of it.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec.try_into().unwrap(), used.tv_nsec.try_into().unwrap())
}

/// The diagnostics as the cases have them, and the names of the hooks that load.
fn diagnostics_of(loaded: &LoadedWorkspace) -> String {
    let mut text = String::new();
    let root = format!("{}/", loaded.workspace.root.display());
    for d in &loaded.diagnostics {
        let file = d.file.strip_prefix(loaded.workspace.root.join(".openharness")).unwrap_or(&d.file);
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

/// A workspace with mistakes in its files, and what loading it reports.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BadHookFileCase {
    name: String,
    about: String,
    files: Files,
    expect: String,
}

#[test]
fn every_bad_workspace_gets_its_diagnostics() {
    compare("bad-hook-files", 147);
}

#[cfg(feature = "rego")]
#[test]
fn every_bad_policy_gets_its_diagnostics() {
    compare("bad-rego", 24);
}

fn compare(folder: &str, at_least: usize) {
    let mut comparison = Comparison::default();
    for file in case_files::<BadHookFileCase>(folder) {
        let computed = |case: &BadHookFileCase| {
            let root = tempfile::tempdir().unwrap();
            write_files(&case.files, root.path());
            BadHookFileCase { expect: diagnostics_of(&load(root.path())), ..case.clone() }
        };
        let cases: Vec<_> = file.cases.iter().map(computed).collect();
        comparison.compare(&file, &cases);
    }
    comparison.finish(at_least);
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
    let text = diagnostics_of(&loaded);
    assert!(text.ends_with("loaded: good\n"), "{text}");
    let errors: Vec<_> = loaded.diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 1, "{text}");
    assert_eq!(errors[0].code, code, "{text}");
    assert!(text.contains(words), "{words} in {text}");
    assert!(text.len() < 2000 && !text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
}

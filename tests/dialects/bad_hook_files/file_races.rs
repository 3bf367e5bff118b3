//! A directory of the workspace is swapped for a link to one outside while the workspace is loaded, and names of
//! files that are hard to read or to show.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::SystemTime,
};

use hookyard::model::Severity;
use tempfile::TempDir;

use super::{BOUND, diagnostics_of, hooks, load, workspace};

/// Stands in every file outside.
const MARKER: &str = "HUSH";

/// How many times a workspace is loaded at least.
const LOADS: usize = 500;

const CLAUDE: &str = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"echo WORD"}]}]}}"#;

/// What is in a workspace, with a word that says whose it is.
fn write_all(root: &Path, word: &str) {
    let files = [
        (
            ".openharness/hooks/a.yaml",
            "name: WORD\nevents: [run_failed]\nhandler: { type: command, command: 'true' }\n",
        ),
        (".openharness/hooks/broken.yaml", "name: a\nevents: [WORD]\n"),
        (
            ".openharness/hooks/ask.yaml",
            "name: ask\nevents: [before_tool_dispatch]\nhandler: { type: prompt, model_ref: small, prompt: { file: prompts/p.md } }\n",
        ),
        (
            ".openharness/hooks/agent.yaml",
            "name: agent\nevents: [before_tool_dispatch]\nhandler: { type: agent, agent: judge, task: { file: prompts/p.md } }\n",
        ),
        (".openharness/agents/judge.md", "---\nmodel_ref: small\n---\nYou are WORD.\n"),
        (".openharness/settings.yaml", "kind: WORD\n"),
        ("prompts/p.md", "The word is WORD.\n"),
        (".claude/settings.json", CLAUDE),
    ];
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.replace("WORD", word)).unwrap();
    }
}

/// Swaps a directory for a link to another one and back, until told to stop.
fn swap(inside: &Path, outside: &Path, stop: &AtomicBool) {
    let away = inside.with_extension("away");
    let link = inside.with_extension("link");
    while !stop.load(Ordering::Relaxed) {
        symlink(outside, &link).unwrap();
        fs::rename(inside, &away).unwrap();
        fs::rename(&link, inside).unwrap();
        fs::remove_file(inside).unwrap();
        fs::rename(&away, inside).unwrap();
    }
}

fn never_shows_what_is_outside(directory: &str) {
    let outside = tempfile::tempdir().unwrap();
    write_all(outside.path(), MARKER);
    let root = tempfile::tempdir().unwrap();
    write_all(root.path(), "inside");
    let stop = AtomicBool::new(false);
    let inside = root.path().join(directory);
    let target = outside.path().join(directory);
    let (mut whole, mut refused, mut loads) = (0, 0, 0);
    thread::scope(|scope| {
        scope.spawn(|| swap(&inside, &target, &stop));
        let started = SystemTime::now();
        while (loads < LOADS || whole == 0 || refused == 0) && started.elapsed().unwrap_or_default() < BOUND {
            let loaded = load(root.path());
            let all = format!("{loaded:?}");
            if all.contains(MARKER) {
                stop.store(true, Ordering::Relaxed);
                panic!("{directory}: {all}");
            }
            loads += 1;
            whole += usize::from(loaded.hooks.len() == 4);
            refused += usize::from(diagnostics_of(&loaded).contains("outside the workspace"));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(whole > 0 && refused > 0, "{directory}: of {loads} loads, {whole} whole and {refused} refused");
}

#[test]
fn the_directory_of_a_workspace_is_swapped_while_it_is_loaded() {
    never_shows_what_is_outside(".openharness");
}

#[test]
fn the_directory_of_hook_files_is_swapped_while_it_is_loaded() {
    never_shows_what_is_outside(".openharness/hooks");
}

#[test]
fn the_directory_of_agents_is_swapped_while_it_is_loaded() {
    never_shows_what_is_outside(".openharness/agents");
}

#[test]
fn the_directory_of_prompts_is_swapped_while_it_is_loaded() {
    never_shows_what_is_outside("prompts");
}

#[test]
fn the_directory_of_an_agents_settings_is_swapped_while_it_is_loaded() {
    never_shows_what_is_outside(".claude");
}

/// A workspace whose settings file of an agent is elsewhere in it.
fn with_linked_settings(target: impl FnOnce(&Path) -> PathBuf) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for folder in [".claude", "config"] {
        fs::create_dir(root.path().join(folder)).unwrap();
    }
    fs::write(root.path().join("config/claude.json"), CLAUDE).unwrap();
    let target = target(&root.path().canonicalize().unwrap());
    symlink(target, root.path().join(".claude/settings.json")).unwrap();
    root
}

#[test]
fn settings_files_may_be_links_that_stay_in_the_workspace() {
    let relative = with_linked_settings(|_| "../config/claude.json".into());
    let absolute = with_linked_settings(|root| root.join("config/claude.json"));
    for root in [relative, absolute] {
        assert_eq!(diagnostics_of(&load(root.path())), "loaded: claude.project.Stop.1.1\n");
    }
}

#[test]
fn links_through_proc_lead_nowhere() {
    let root =
        with_linked_settings(|root| Path::new("/proc/self/root").join(root.strip_prefix("/").unwrap()));
    let loaded = load(root.path());
    assert!(loaded.hooks.is_empty());
    assert_eq!(loaded.diagnostics.len(), 1, "{}", diagnostics_of(&loaded));
}

#[test]
fn names_of_files_are_taken_as_they_are() {
    let names: [&[u8]; 7] = [
        b"line\nbreak.yaml",
        b"\x1b[2J.yaml",
        b"caf\xe9.yaml",
        b"\xff\xfe.yaml",
        "\u{202e}lmay.yaml".as_bytes(),
        b" .yaml",
        &[&[b'x'; 250][..], b".yaml"].concat(),
    ];
    let root = workspace(&[]);
    for (number, name) in names.iter().enumerate() {
        let text =
            format!("name: h{number}\nevents: [run_failed]\nhandler: {{ type: command, command: 'true' }}\n");
        fs::write(hooks(&root).join(OsStr::from_bytes(name)), text).unwrap();
    }
    let loaded = load(root.path());
    assert_eq!(loaded.hooks.len(), 1 + names.len(), "{}", diagnostics_of(&loaded));
    assert!(loaded.diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error));
}

#[test]
fn only_files_that_exist_count_as_read() {
    let hook = "name: a\nevents: [before_tool_dispatch]\nhandler: { type: agent, agent: revewer, task: { inline: x } }\n";
    let root = workspace(&[("a.yaml", hook.into())]);
    let loaded = load(root.path());
    let agent = root.path().canonicalize().unwrap().join(".openharness/agents/revewer.md");
    assert!(!loaded.files.contains(&agent), "{:?}", loaded.files);
    assert_eq!(loaded.missing_files, [agent]);
}

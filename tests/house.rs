//! The rules of the house: who may import whom, what a file begins with, and how long it may be. Exceptions
//! stand here with their reasons.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The floors from the ground up. A module imports from lower floors and from its own folder.
const FLOORS: [&[&str]; 9] = [
    &["model"],
    &["dialect", "registry", "telemetry"],
    &["config", "handler"],
    &["pool"],
    &["run"],
    &["supervisor"],
    &["orchestrator"],
    &["daemon"],
    &["cli"],
];

/// Imports between two modules of one floor.
const SIDEWAYS: [(&str, &str, &str); 1] = [(
    "registry",
    "telemetry",
    "a snapshot resolves the metric handles of its hooks once, not at every event",
)];

/// The most lines of a file, its tests aside.
const LONGEST_FILE: usize = 400;

/// Longer files.
const LONG_FILES: [(&str, usize, &str); 1] =
    [("src/model/event.rs", 450, "the table of event kinds and what an event consists of are read together")];

/// The most lines of a function.
const LONGEST_FUNCTION: usize = 60;

/// Native field names outside the dialects.
const NATIVE_ELSEWHERE: [(&str, &str, &str); 1] = [(
    "src/handler/models/anthropic.rs",
    "tool_use_id",
    "the protocol of a model's maker, which has a word in common with a dialect of the same maker",
)];

struct Source {
    path: String,
    module: String,
    text: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(below: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(below).expect("a readable folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn files(folders: &[&str]) -> Vec<Source> {
    let mut paths = Vec::new();
    for folder in folders {
        rust_files(&root().join(folder), &mut paths);
    }
    let source = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a readable file");
        let path = path.strip_prefix(root()).expect("below the root").display().to_string();
        let module = path.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default().to_owned();
        Source { path, module, text }
    };
    paths.into_iter().map(source).collect()
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// The lines before a file's own tests.
fn without_tests(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines()
}

/// The modules a file reaches through `crate::`, also those in the braces of one `use crate::{…}`.
fn imports(text: &str) -> Vec<String> {
    let code: String = without_tests(text)
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for (start, _) in code.match_indices("crate::") {
        let rest = &code[start + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0;
            let mut name = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => found.push(std::mem::take(&mut name)),
                    _ if depth == 0 => name.push(c),
                    _ => {}
                }
            }
            found.push(name);
        } else {
            found.push(rest.to_owned());
        }
    }
    let head = |name: String| {
        name.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("").to_owned()
    };
    found.into_iter().map(head).filter(|name| !name.is_empty()).collect()
}

/// How many folders a `super::super::` climbs at most.
fn highest_climb(text: &str) -> usize {
    let climb = |rest: &str| rest.split("::").take_while(|part| part.trim() == "super").count();
    without_tests(text)
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.match_indices("super").map(move |(start, _)| climb(&line[start..])))
        .max()
        .unwrap_or(0)
}

#[test]
fn modules_import_from_lower_floors_only() {
    let mut wrong = Vec::new();
    for source in
        files(&["src"]).iter().filter(|source| source.path.matches('/').count() > 1 || source.module != "lib")
    {
        let Some(own) = floor(&source.module) else { continue };
        for module in imports(&source.text) {
            let allowed = module == source.module
                || SIDEWAYS.iter().any(|(from, to, _)| *from == source.module && *to == module)
                || floor(&module).is_some_and(|other| other < own);
            if !allowed && floor(&module).is_some() {
                wrong.push(format!("{} imports {module}", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn super_stays_within_the_folder() {
    let mut wrong = Vec::new();
    for source in files(&["src"]) {
        // `src/a/b.rs` may climb to `a`; `mod.rs` is one level higher than its neighbours.
        let depth = source.path.matches('/').count() - usize::from(source.path.ends_with("/mod.rs"));
        if floor(&source.module).is_some() && highest_climb(&source.text) > depth.saturating_sub(1) {
            wrong.push(source.path);
        }
    }
    assert!(wrong.is_empty(), "these climb out of their module with `super`:\n{}", wrong.join("\n"));
}

#[test]
fn every_module_has_a_floor() {
    for source in files(&["src"]) {
        let known = ["lib", "main"].contains(&source.module.as_str()) || floor(&source.module).is_some();
        assert!(known, "{} has no floor; add it to the table", source.path);
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent: Vec<_> = files(&["src", "tests", "benches"])
        .into_iter()
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| source.path)
        .collect();
    assert!(silent.is_empty(), "these do not open with `//!`:\n{}", silent.join("\n"));
}

#[test]
fn files_are_short() {
    for source in files(&["src"]) {
        let lines = without_tests(&source.text).count();
        let limit = LONG_FILES
            .iter()
            .find(|(path, ..)| *path == source.path)
            .map_or(LONGEST_FILE, |(_, limit, _)| *limit);
        assert!(lines <= limit, "{} has {lines} lines; split it by role", source.path);
    }
}

#[test]
fn functions_are_short() {
    for source in files(&["src"]) {
        let lines: Vec<_> = without_tests(&source.text).collect();
        for (start, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let indent = line.len() - code.len();
            let is_function = code.split("fn ").next().is_some_and(|before| before.len() < 20)
                && (code.contains("fn ") && !code.starts_with("//") && !code.starts_with('"'))
                && !code.ends_with(';');
            if !is_function {
                continue;
            }
            let closing = |other: &&str| {
                other.starts_with('}') && indent == 0 || **other == format!("{}}}", " ".repeat(indent))
            };
            let length = lines[start..].iter().position(closing).unwrap_or(0);
            assert!(length <= LONGEST_FUNCTION, "{}:{}: {length} lines; split it", source.path, start + 1);
        }
    }
}

#[test]
fn native_field_names_stay_in_the_dialects() {
    let native = [
        "hookSpecificOutput",
        "stopReason",
        "hookEventName",
        "additionalContext",
        "systemMessage",
        "llm_request",
        "toolConfig",
        "tool_use_id",
    ];
    for source in files(&["src"]).iter().filter(|source| source.module != "dialect") {
        for (number, line) in without_tests(&source.text).enumerate() {
            let excused = |name: &&&str| {
                NATIVE_ELSEWHERE.iter().any(|(file, word, _)| *file == source.path && *word == **name)
            };
            let spoken =
                native.iter().filter(|name| line.contains(&format!("\"{name}"))).find(|name| !excused(name));
            assert!(spoken.is_none(), "{}:{}: {spoken:?} belongs in dialect/", source.path, number + 1);
        }
    }
}

#[test]
fn the_rules_can_be_broken() {
    let text =
        "use crate::{\n    model::{Event, Json},\n    run::Course,\n};\nfn f() { crate::cli::main() }\n";
    assert_eq!(imports(text), ["model", "run", "cli"]);
    assert_eq!(highest_climb("use super::super::super::x;\n// super::super::super::super::y\n"), 3);
}

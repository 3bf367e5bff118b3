//! The rules of the house: which layer may import which, what a file begins with, how long it may be, and that
//! nothing goes round in circles. Exceptions stand here with their reasons.

mod imports;
mod names;
mod outlets;
mod package;
mod platform;
mod public_api;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use imports::{Imports, circles};
use source::{Source, parse, root, rust_files, shown, sources};

/// The layers from the bottom up. A module imports from lower layers and from its own folder.
const LAYERS: [&[&str]; 11] = [
    &["model"],
    &["bundle", "platform", "rule"],
    &["dialect", "registry", "root_dir", "telemetry"],
    &["config", "handler", "store"],
    &["pool"],
    &["run"],
    &["supervisor"],
    &["orchestrator"],
    &["testing"],
    &["daemon"],
    &["cli"],
];

/// Types with a namesake.
const NAMESAKES: [(&str, &str); 1] = [("Tracer", "one for builds with traces and one for those without")];

/// The most lines of a file, its tests aside.
const LONGEST_FILE: usize = 400;

/// Longer files.
const LONG_FILES: [(&str, usize, &str); 1] =
    [("src/model/event.rs", 450, "the table of event kinds and what an event consists of are read together")];

/// The most lines of a function.
const LONGEST_FUNCTION: usize = 60;

/// What decides without waiting or asking anybody: a function of its arguments.
const PURE: [&str; 18] = [
    "src/bundle/changes.rs",
    "src/bundle/hex.rs",
    "src/bundle/manifest.rs",
    "src/bundle/path.rs",
    "src/bundle/statement.rs",
    "src/bundle/time.rs",
    "src/bundle/verify.rs",
    "src/config/bundle/standing.rs",
    "src/daemon/bundle/schedule.rs",
    "src/model/",
    "src/rule/",
    "src/dialect/",
    "src/registry/",
    "src/run/course.rs",
    "src/run/settlement.rs",
    "src/run/verdict_merge.rs",
    "src/store/pending.rs",
    "src/store/record.rs",
];

/// What such code does not name: reading a clock, files, processes, sockets, threads, runtimes, recorders.
const IMPURE: [&str; 15] = [
    ".elapsed()",
    "Instant::now",
    "SystemTime::now",
    "metrics::",
    "ractor::",
    "reqwest::",
    "std::env::",
    "std::fs::",
    "std::io::",
    "std::net::",
    "std::process::",
    "std::thread::",
    "telemetry::",
    "tokio::",
    "tracing::",
];

/// A moment is data; only asking for the present one is not.
const PURE_ALL_THE_SAME: &str = "tokio::time::Instant";

/// Native field names outside the dialects.
const NATIVE_ELSEWHERE: [(&str, &str, &str); 2] = [
    ("src/cli/new/templates.rs", "systemMessage", "the scripts that `new` writes answer as hooks do"),
    (
        "src/handler/models/anthropic.rs",
        "tool_use_id",
        "the protocol of a model's maker, which has a word in common with a dialect of the same maker",
    ),
];

/// Fails with all that is wrong, one a line.
fn assert_none(rule: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{rule}:\n{}", wrong.join("\n"));
}

fn layer_number(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn may_import(from: &str, to: &str) -> bool {
    let (Some(own), Some(other)) = (layer_number(from), layer_number(to)) else { return true };
    from == to || other < own
}

/// The imports of a crate that go up or sideways.
fn forbidden_imports(sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    let imports = Imports::new(sources);
    for source in sources {
        let named = imports.named_by(source).into_iter().map(|file| &sources[file]);
        let forbidden = named.filter(|other| !may_import(source.layer(), other.layer()));
        wrong.extend(forbidden.map(|other| format!("{} imports {}", source.path, other.path)));
    }
    wrong
}

/// The circles among the files of each layer.
fn circles_inside(sources: &[Source]) -> Vec<String> {
    let imports = Imports::new(sources);
    let edges: Vec<_> = sources.iter().map(|source| imports.named_by(source)).collect();
    let mut layers: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for (file, source) in sources.iter().enumerate() {
        layers.entry(source.layer()).or_default().insert(file);
    }
    let mut found = Vec::new();
    for files in layers.values() {
        for circle in circles(&edges, files) {
            let paths: Vec<_> = circle.iter().map(|file| sources[*file].path.as_str()).collect();
            found.push(paths.join(" \u{21c4} "));
        }
    }
    found
}

/// Names of shared types that stand more than once.
fn repeated_types(sources: &[Source]) -> Vec<String> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in sources {
        // The other form has the same names; `platform` compares them.
        if source.path.starts_with(platform::PORTABLE) {
            continue;
        }
        for shared in &source.shared_types {
            places.entry(shared.name.clone()).or_default().push(format!("{}:{}", source.path, shared.line));
        }
    }
    places.retain(|name, places| places.len() > 1 && !NAMESAKES.iter().any(|(known, _)| known == name));
    places.iter().map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
}

#[test]
fn modules_import_from_lower_layers_only() {
    assert_none("a module imports from lower layers and its own folder", &forbidden_imports(sources()));
}

#[test]
fn files_of_a_layer_do_not_import_each_other_in_circles() {
    assert_none("move what both need into a third file", &circles_inside(sources()));
}

#[test]
fn every_module_has_a_layer() {
    let homeless =
        sources().iter().filter(|source| source.layer() != "" && layer_number(source.layer()).is_none());
    let wrong: Vec<_> = homeless.map(|source| source.path.clone()).collect();
    assert_none("these have no layer; add them to the table", &wrong);
}

#[test]
fn a_type_that_is_shared_has_a_name_of_its_own() {
    assert_none("qualify what repeats", &repeated_types(sources()));
}

#[test]
fn pure_code_names_nothing_impure() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| is_pure(&source.path)) {
        for (number, line) in source.lines().enumerate() {
            let impure = impurities(line).map(|name| format!("{}:{}: {name}", source.path, number + 1));
            wrong.extend(impure);
        }
    }
    assert_none("plain functions of their arguments ask no clock, file, process or runtime", &wrong);
}

/// Whether a file may name nothing impure. Tests measure and start threads.
fn is_pure(path: &str) -> bool {
    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
    !is_test && PURE.iter().any(|pure| path.starts_with(pure))
}

/// What a line of code names that no pure code may.
fn impurities(line: &str) -> impl Iterator<Item = &'static str> {
    let code = line.split("//").next().unwrap_or_default().replace(PURE_ALL_THE_SAME, "Instant");
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    IMPURE.into_iter().filter(move |name| {
        code.match_indices(name).any(|(start, _)| !code[..start].ends_with(is_word) || name.starts_with('.'))
    })
}

#[test]
fn every_file_says_what_it_is_for() {
    let silent = |folder: &str| {
        rust_files(folder).into_iter().filter(|path| {
            let text = std::fs::read_to_string(path).expect("a readable file");
            !text.starts_with("//! ")
        })
    };
    let wrong: Vec<_> =
        ["src", "tests", "benches"].into_iter().flat_map(silent).map(|path| shown(&path)).collect();
    assert_none("these do not open with `//!`", &wrong);
}

#[test]
fn files_are_short() {
    let mut wrong = Vec::new();
    for source in sources() {
        let lines = source.lines().count();
        let exception = LONG_FILES.iter().find(|(path, ..)| *path == source.path);
        if lines > exception.map_or(LONGEST_FILE, |(_, limit, _)| *limit) {
            wrong.push(format!("{}: {lines} lines", source.path));
        }
    }
    assert_none("split these by role", &wrong);
}

#[test]
fn functions_are_short() {
    let mut wrong = Vec::new();
    for source in sources() {
        let long = source.functions.iter().filter(|function| function.lines > LONGEST_FUNCTION);
        wrong.extend(
            long.map(|it| format!("{}:{}: {} has {} lines", source.path, it.line, it.name, it.lines)),
        );
    }
    assert_none("split these", &wrong);
}

#[test]
fn log_fields_are_plain_values() {
    let mut wrong = Vec::new();
    for source in sources() {
        for call in source.text.split("tracing::").skip(1) {
            let is_log = ["error!(", "warn!(", "info!(", "debug!(", "trace!("]
                .iter()
                .any(|name| call.starts_with(name));
            let call = call.split(';').next().unwrap_or_default();
            if is_log && has_debug_field(call) {
                wrong.push(format!("{}: {call}", source.path));
            }
        }
    }
    assert_none("a field of a log line is a plain text or number, without `?`", &wrong);
}

/// Whether a call of a log macro writes a field with `?`, as `Debug` does.
fn has_debug_field(call: &str) -> bool {
    let mut pairs = call.chars().zip(call.chars().skip(1)).zip(call.chars().skip(2));
    pairs.any(|((before, sign), after)| {
        sign == '?' && (before == '(' || before.is_whitespace()) && (after.is_alphabetic() || after == '_')
    })
}

#[test]
fn a_debug_field_is_seen() {
    for call in ["warn!(?pause, \"x\")", "warn!(a, b = ?c, \"x\")", "warn!(\n    ?_a,\n)"] {
        assert!(has_debug_field(call), "{call}");
    }
    for call in ["warn!(%pause, \"is it? so\")", "warn!(a = b()?.c, \"x\")"] {
        assert!(!has_debug_field(call), "{call}");
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
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.layer() != "dialect") {
        for (number, line) in source.lines().enumerate() {
            let excused = |name: &&&str| {
                NATIVE_ELSEWHERE.iter().any(|(file, word, _)| *file == source.path && *word == **name)
            };
            let spoken = native.iter().filter(|name| line.contains(&format!("\"{name}")));
            let spoken = spoken.filter(|name| !excused(name));
            wrong.extend(spoken.map(|name| format!("{}:{}: {name}", source.path, number + 1)));
        }
    }
    assert_none("these belong in dialect/", &wrong);
}

/// The words of a text in backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_path_that_the_architecture_names_exists() {
    let mut wrong = Vec::new();
    for document in ["src/lib.rs", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root().join(document)).expect(document);
        let prose = text.replace("```", "");
        for path in code_spans(&prose).filter(|span| is_path(span)) {
            let there = ["", "src/"].iter().any(|above| root().join(above).join(path).exists());
            if !there {
                wrong.push(format!("{document}: {path}"));
            }
        }
    }
    assert_none("these paths do not exist", &wrong);
}

/// Whether a code span is the path of a file or folder of the repository.
fn is_path(span: &str) -> bool {
    let is_plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let folders = ["src/", "tests/", "docs/", "config/", "benches/", "grafana/", "scripts/", "examples/"];
    is_plain
        && (Path::new(span).extension().is_some_and(|end| end == "rs")
            || folders.iter().any(|folder| span.starts_with(folder)))
}

#[test]
fn the_architecture_shows_the_layers_as_they_are_checked() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let mut shown: Vec<(usize, String)> = Vec::new();
    for row in text.lines().filter_map(|line| line.strip_prefix("| ")) {
        let mut cells = row.split('|').map(str::trim);
        let Some(number) = cells.next().and_then(|cell| cell.parse().ok()) else { continue };
        let module = cells.next().and_then(|cell| code_spans(cell).next()).expect("a module in backticks");
        shown.push((number, module.trim_end_matches('/').to_owned()));
    }
    let mut checked = Vec::new();
    for (number, layer) in LAYERS.iter().enumerate() {
        checked.extend(layer.iter().map(|module| (number, (*module).to_owned())));
    }
    shown.sort();
    checked.sort();
    assert_eq!(shown, checked, "the table of layers in ARCHITECTURE.md is not the one that is checked");
}

/// A crate of three files for the rules to find fault with.
fn faulty_crate() -> Vec<Source> {
    let lib = "pub mod model;\npub mod run;\npub use run::Course;";
    let model = "use crate::Course;\npub struct Event(Course);";
    let run = "mod a;\nmod b;\npub use a::Course;";
    let a = "use super::b::Step;\npub struct Course(Step);\npub const NAME: &str = \"a\";\npub(crate) struct Event;";
    let b = "pub(super) struct Step;\nimpl Step { fn f() { println!(\"{}\", super::a::NAME) } }\n\
        #[cfg(test)]\nmod tests { use crate::cli::X; }";
    [("lib", lib), ("model/mod", model), ("run/mod", run), ("run/a", a), ("run/b", b)]
        .map(|(path, text)| parse(&format!("src/{path}.rs"), text.to_owned()))
        .into()
}

#[test]
fn an_import_through_a_re_export_of_the_root_is_seen() {
    assert_eq!(forbidden_imports(&faulty_crate()), ["src/model/mod.rs imports src/run/a.rs"]);
}

#[test]
fn a_circle_through_a_macro_is_seen() {
    assert_eq!(circles_inside(&faulty_crate()), ["src/run/a.rs \u{21c4} src/run/b.rs"]);
}

#[test]
fn a_repeated_type_is_seen() {
    assert_eq!(repeated_types(&faulty_crate()), ["Event: src/model/mod.rs:2, src/run/a.rs:4"]);
}

#[test]
fn reading_a_clock_is_told_from_keeping_a_moment() {
    let found = |line| impurities(line).collect::<Vec<_>>();
    assert_eq!(found("let now = tokio::time::Instant::now();"), ["Instant::now"]);
    assert_eq!(found("since.elapsed() // Instant::now"), [".elapsed()"]);
    assert!(found("fn begin(now: tokio::time::Instant, my_tokio: u8) {}").is_empty());
}

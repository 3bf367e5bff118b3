//! What each pack stops and lets pass, by the cases beside it, and the tables about that in its README.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Place, pack_names, packs};

/// The fewest attempts, and the fewest harmless calls, of a pack.
const FEWEST: usize = 60;

/// Between these lines of a README stands what the cases say.
const BEGIN: &str = "<!-- From the cases; see CONTRIBUTING.md -->\n";
const END: &str = "<!-- end -->\n";

/// Set it to write the tables anew.
const UPDATE: &str = "UPDATE_CASES";

/// The kinds of case files.
const KINDS: [&str; 4] = ["attempts", "missed", "harmless", "false-alarms"];

/// The cases of a pack by their kind: the name, and whether a person is asked.
type PackCases = BTreeMap<&'static str, Vec<(String, bool)>>;

fn case_file(pack: &str, kind: &str) -> PathBuf {
    packs().join(pack).join("cases").join(format!("{kind}.yaml"))
}

/// Runs all cases of a pack, and checks that each is of its kind.
fn run(pack: &str) -> PackCases {
    let place = Place::new();
    let added = place.run(&["add", pack]);
    assert_eq!(added.code, 0, "{added:?}");
    let mut cases = PackCases::new();
    for kind in KINDS {
        let file = case_file(pack, kind);
        if !file.exists() {
            continue;
        }
        let done = place.run(&["test", "--json", file.to_str().unwrap()]);
        let report = done.json();
        let failed: Vec<String> = report["cases"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|case| case["passed"] != true)
            .map(|case| format!("{}: {} {}", case["name"], case["differences"], case["error"]))
            .collect();
        assert!(failed.is_empty(), "{pack}, {kind}:\n{}", failed.join("\n"));
        let of_kind = report["cases"].as_array().unwrap().iter().map(|case| checked(pack, kind, case));
        cases.insert(kind, of_kind.collect());
    }
    cases
}

/// Checks that a case is of its kind, whatever it expects itself.
fn checked(pack: &str, kind: &str, case: &Value) -> (String, bool) {
    let name = case["name"].as_str().unwrap().to_owned();
    let outcome = &case["outcome"];
    for hook in outcome["hooks"].as_array().unwrap() {
        assert_eq!(hook["ended"], "completed", "{pack}, {kind}, {name}: {hook}");
    }
    let is_asked = outcome["verdict"] == "ask";
    let is_changed = outcome["notes"].is_array() || outcome["patched"].is_object();
    let is_stopped = is_asked || outcome["verdict"] == "block" || is_changed;
    assert_eq!(is_stopped, matches!(kind, "attempts" | "false-alarms"), "{pack}, {kind}, {name}: {outcome}");
    (name, is_asked)
}

/// What a README says about the cases.
fn table(cases: &PackCases) -> String {
    let of = |kind: &str| cases.get(kind).map_or(&[][..], Vec::as_slice);
    let [attempts, missed, harmless, alarms] = KINDS.map(of);
    let asked = |cases: &[(String, bool)]| cases.iter().filter(|(_, is_asked)| *is_asked).count();
    let mut text = String::from(
        "| | cases | stopped | of these, a person is asked | let pass |\n| --- | --- | --- | --- | --- |\n",
    );
    for (what, stopped, passed) in [("attempts", attempts, missed), ("harmless", alarms, harmless)] {
        let all = stopped.len() + passed.len();
        writeln!(text, "| {what} | {all} | {} | {} | {} |", stopped.len(), asked(stopped), passed.len())
            .unwrap();
    }
    for (what, cases) in [("Attempts that are missed", missed), ("False alarms", alarms)] {
        if cases.is_empty() {
            writeln!(text, "\n{what}: none of the cases.").unwrap();
            continue;
        }
        writeln!(text, "\n{what}:\n").unwrap();
        for (name, _) in cases {
            writeln!(text, "- {}", code(name)).unwrap();
        }
    }
    text
}

/// A text as code in Markdown.
fn code(text: &str) -> String {
    let text = text.replace('\n', " ⏎ ");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

fn readme_is_true(pack: &str, cases: &PackCases) {
    let file = packs().join(pack).join("README.md");
    let text = fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{}{END}{after}", table(cases));
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&file, &expected).unwrap();
    }
    assert!(text == expected || std::env::var_os(UPDATE).is_some(), "{}: run with {UPDATE}=1", shown(&file));
}

fn shown(file: &Path) -> String {
    file.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap_or(file).display().to_string()
}

fn pack_is_as_its_cases_say(pack: &str) {
    let cases = run(pack);
    for kind in ["attempts", "harmless"] {
        assert!(cases[kind].len() >= FEWEST, "{pack}: {} {kind}", cases[kind].len());
    }
    readme_is_true(pack, &cases);
}

macro_rules! packs {
    ($($test:ident $name:literal;)*) => {
        $(#[test]
        fn $test() {
            pack_is_as_its_cases_say($name);
        })*

        #[test]
        fn every_pack_has_a_test() {
            let mut tested = vec![$($name),*];
            tested.sort_unstable();
            assert_eq!(tested, pack_names());
        }
    };
}

packs! {
    dangerous_commands "dangerous-commands";
    git_safety "git-safety";
    network "network";
    packages "packages";
    production "production";
    prompt_injection "prompt-injection";
    protected_paths "protected-paths";
    secrets "secrets";
}

//! The dialects of agents with settings files, as data. Each folder of `tests/cases/<dialect>` is one case: settings
//! files, scripts, and `case.json` with events of a host and what each is answered. `UPDATE_CASES=1` writes the
//! answers anew, to be read before they are kept.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use hookyard::{
    Orchestrator,
    config::Settings,
    dialect::named,
    model::{Diagnostic, DialectName, Event, Outcome},
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// A workspace and the directories around it, made of the files of a case.
struct Bench {
    directory: TempDir,
}

impl Bench {
    fn of(case: &Path, dialect: DialectName) -> Self {
        let bench = Self { directory: tempfile::tempdir().unwrap() };
        for folder in ["workspace", "home", "system"] {
            fs::create_dir(bench.path(folder)).unwrap();
        }
        let settings = if dialect == DialectName::Claude { ".claude" } else { ".codebuddy" };
        for entry in fs::read_dir(case).unwrap() {
            let from = entry.unwrap().path();
            let name = from.file_name().unwrap().to_str().unwrap();
            let to = match name {
                "case.json" | "expected.txt" => continue,
                "managed.json" => "system/claude-code/managed-settings.json".to_owned(),
                "user.json" => format!("home/{settings}/settings.json"),
                "project.json" => format!("workspace/{settings}/settings.json"),
                "local.json" => format!("workspace/{settings}/settings.local.json"),
                "own.yaml" => "workspace/.openharness/settings.yaml".to_owned(),
                name if name.ends_with(".yaml") => format!("workspace/.openharness/hooks/{name}"),
                name => format!("workspace/{name}"),
            };
            let to = bench.path(&to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(&from, &to).unwrap();
            fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
        }
        bench
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(below)
    }

    fn settings(&self) -> Settings {
        Settings {
            home: Some(self.path("home")),
            system_directory: Some(self.path("system")),
            ..Settings::default()
        }
    }

    async fn start(&self) -> Orchestrator {
        let builder = Orchestrator::builder().workspace(self.path("workspace"));
        builder.settings(self.settings()).start().await.unwrap()
    }

    /// A text without the places of this one run.
    fn plain(&self, text: &str) -> String {
        text.replace(self.directory.path().canonicalize().unwrap().to_str().unwrap(), "$DIR")
    }
}

fn cases(below: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(below);
    let mut cases: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn updating() -> bool {
    std::env::var_os("UPDATE_CASES").is_some()
}

/// What is worth telling of an outcome.
fn told(outcome: &Outcome) -> Value {
    let mut told = serde_json::to_value(outcome).unwrap();
    let fields = told.as_object_mut().unwrap();
    for field in ["decision_id", "snapshot_version", "event"] {
        fields.remove(field);
    }
    if fields["suppress_output"] == json!(false) {
        fields.remove("suppress_output");
    }
    for hook in fields["hooks"].as_array_mut().unwrap() {
        let hook = hook.as_object_mut().unwrap();
        hook.remove("duration_ms");
        hook.remove("handler");
    }
    told
}

fn answer(host: DialectName, event: &Event, outcome: &Outcome) -> Value {
    let answer = named(host).write_answer(event, outcome);
    let mut told = Map::new();
    let stdout = serde_json::from_str(&answer.stdout).unwrap_or(Value::String(answer.stdout));
    told.insert("stdout".into(), stdout);
    if answer.exit_code != 0 || !answer.stderr.is_empty() {
        told.insert("stderr".into(), answer.stderr.into());
        told.insert("exit_code".into(), answer.exit_code.into());
    }
    Value::Object(told)
}

fn messages(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|d| format!("{}: {d}", format!("{:?}", d.severity).to_lowercase())).collect()
}

/// The case with everything that is computed in it.
async fn computed(folder: &Path, dialect: DialectName, case: &Map<String, Value>) -> Map<String, Value> {
    let bench = Bench::of(folder, dialect);
    let orchestrator = bench.start().await;
    let host = match case.get("host").and_then(Value::as_str) {
        Some(name) => DialectName::ALL.iter().copied().find(|known| known.as_str() == name).unwrap(),
        None => dialect,
    };
    let mut found = case.clone();
    let report = orchestrator.load_reports().into_values().next().unwrap();
    if report.diagnostics.is_empty() {
        found.remove("diagnostics");
    } else {
        found.insert("diagnostics".into(), messages(&report.diagnostics).into());
    }
    let mut answers = Vec::new();
    for event in case["events"].as_array().unwrap() {
        let event = orchestrator.read(host, event.to_string().as_bytes()).unwrap();
        let outcome = orchestrator.dispatch(event.clone()).await.unwrap();
        let mut both = json!({ "outcome": told(&outcome), "answer": answer(host, &event, &outcome) });
        let seen = bench.path("workspace/told.json");
        if let Ok(text) = fs::read_to_string(&seen) {
            both["told"] = serde_json::from_str(&text).unwrap_or(Value::String(text));
            fs::remove_file(seen).unwrap();
        }
        answers.push(both);
    }
    found.insert("expected".into(), answers.into());
    orchestrator.shutdown(std::time::Duration::from_secs(5)).await;
    let text = bench.plain(&serde_json::to_string(&found).unwrap());
    serde_json::from_str(&text).unwrap()
}

async fn hold(dialect: DialectName) {
    let cases = cases(dialect.as_str());
    assert!(cases.len() >= 40, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for folder in cases {
        let file = folder.join("case.json");
        let case: Map<String, Value> = serde_json::from_str(&fs::read_to_string(&file).unwrap())
            .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let found = computed(&folder, dialect, &case).await;
        if updating() {
            fs::write(&file, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
        } else if found != case {
            let (found, case) = (Value::Object(found), Value::Object(case));
            wrong.push(format!("{}\nexpected: {case:#}\nfound: {found:#}\n", folder.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_case_of_claude_holds() {
    hold(DialectName::Claude).await;
}

#[tokio::test]
async fn every_case_of_codebuddy_holds() {
    hold(DialectName::CodeBuddy).await;
}

/// Each folder of `bad-settings` has a settings file with mistakes, and what is said of them.
#[tokio::test]
async fn bad_settings_cost_the_entry_they_are_in() {
    let mut wrong = Vec::new();
    for folder in cases("bad-settings") {
        let bench = Bench::of(&folder, DialectName::Claude);
        let orchestrator = bench.start().await;
        let report = orchestrator.load_reports().into_values().next().unwrap();
        let mut lines = messages(&report.diagnostics);
        let snapshot = orchestrator.snapshot(None).unwrap();
        lines.extend(snapshot.hooks().iter().map(|known| format!("loaded: {}", known.hook.name)));
        let found = bench.plain(&lines.join("\n")) + "\n";
        let file = folder.join("expected.txt");
        if updating() {
            fs::write(&file, &found).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if found != expected {
            wrong.push(format!("{}\nexpected:\n{expected}found:\n{found}", folder.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

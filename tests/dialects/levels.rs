//! Levels only add: for every switch of every dialect at every level, which hooks remain. The table is data, in
//! `tests/cases/levels`.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use hookyard::{
    Orchestrator,
    config::{DialectSelection, Settings, TrustPolicy, WorkspaceKind, WorkspaceSettings},
    model::{DialectName, WorkspaceId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::cases::{Comparison, case_files};

/// Every level that a dialect has, with a hook each: the path below the test's directory, and the native event.
const FILES: [(&str, &str); 9] = [
    ("system/claude-code/managed-settings.json", "PreToolUse"),
    ("home/.claude/settings.json", "PreToolUse"),
    ("workspace/.claude/settings.json", "PreToolUse"),
    ("workspace/.claude/settings.local.json", "PreToolUse"),
    ("home/.codebuddy/settings.json", "PreToolUse"),
    ("system/gemini-cli/settings.json", "BeforeTool"),
    ("home/.gemini/settings.json", "BeforeTool"),
    ("home/.clawdcode/settings.json", "PreToolUse"),
    ("workspace/.clawdcode/settings.json", "PreToolUse"),
];

/// A hook file of the workspace that fails closed.
const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\non_error: deny\n\
                     handler: { type: command, command: 'exit 0' }\n";

/// A switch at one level, and what remains of the hooks of all levels.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelCase {
    name: String,
    about: String,
    /// What is merged into files of agents, by their paths.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    merge: BTreeMap<String, Value>,
    /// The workspace's own settings file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    own: Option<String>,
    /// Files of a workspace that is nested in this one, by their paths. If there are any, its hooks are shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    nested: BTreeMap<String, String>,
    /// `kind` and `dialects` of the workspace in the operator's settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operator: Option<OperatorSettings>,
    /// `levels.allow_disable` of the operator's settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    allow_disable: Vec<String>,
    expect: String,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperatorSettings {
    #[serde(default)]
    chat: bool,
    #[serde(default)]
    dialects: Option<Vec<String>>,
}

#[tokio::test]
async fn a_switch_reaches_its_own_level_and_lower_ones() {
    let mut comparison = Comparison::default();
    for file in case_files::<LevelCase>("levels") {
        let mut cases = Vec::new();
        for case in &file.cases {
            cases.push(LevelCase { expect: effect_of(case).await, ..case.clone() });
        }
        comparison.compare(&file, &cases);
    }
    comparison.finish(20);
}

/// The hooks that are off and on, by their names, and what the load reports.
async fn effect_of(case: &LevelCase) -> String {
    let directory = tempfile::tempdir().unwrap();
    write_levels(&directory, case);
    let root = directory.path().canonicalize().unwrap();
    let mut settings = Settings {
        home: Some(root.join("home")),
        system_directory: Some(root.join("system")),
        trust: TrustPolicy::Off,
        ..Settings::default()
    };
    settings.levels.allow_disable.clone_from(&case.allow_disable);
    let orchestrator = Orchestrator::builder().settings(settings).workspaces_later().start().await.unwrap();
    let mut workspace = WorkspaceSettings::new(root.join("workspace"));
    if let Some(operator) = &case.operator {
        workspace.kind = operator.chat.then_some(WorkspaceKind::Chat);
        let dialects = operator.dialects.iter().flatten().map(|name| dialect(name));
        workspace.dialects = operator.dialects.is_some().then(|| DialectSelection::Only(dialects.collect()));
    }
    let mut id = WorkspaceId::new("shop").unwrap();
    let mut report = orchestrator.register(&id, workspace).await.unwrap();
    if !case.nested.is_empty() {
        id = WorkspaceId::new("nested").unwrap();
        let nested = WorkspaceSettings::new(root.join("workspace/nested"));
        report = orchestrator.register(&id, nested).await.unwrap();
    }
    let snapshot = orchestrator.snapshot(Some(&id)).unwrap();
    let mut text = String::new();
    for known in snapshot.hooks() {
        let state = if known.hook.enabled { "on " } else { "off" };
        let _ = writeln!(text, "{state} {}", known.hook.name);
    }
    for diagnostic in &report.diagnostics {
        let _ = writeln!(text, "{} {diagnostic}", diagnostic.code);
    }
    orchestrator.shutdown(std::time::Duration::ZERO).await;
    text.replace(root.to_str().unwrap(), "$DIR")
}

fn dialect(name: &str) -> DialectName {
    *DialectName::ALL.iter().find(|known| known.as_str() == name).unwrap()
}

fn write_levels(directory: &TempDir, case: &LevelCase) {
    let root = directory.path();
    for (path, event) in FILES {
        // A command of its own, so that no two hooks count as one.
        let command = format!("exit 0 # {path}");
        let hook = json!({ "type": "command", "name": path, "command": command });
        let mut content = json!({ "hooks": { event: [{ "hooks": [hook] }] } });
        if let Some(more) = case.merge.get(path) {
            merge(&mut content, more);
        }
        write(&root.join(path), &content.to_string());
    }
    for (path, content) in case.merge.iter().filter(|(path, _)| FILES.iter().all(|(known, _)| known != path))
    {
        write(&root.join(path), &content.to_string());
    }
    write(&root.join("workspace/.openharness/hooks/guard.yaml"), GUARD);
    for (path, text) in &case.nested {
        write(&root.join("workspace/nested").join(path), text);
    }
    if let Some(own) = &case.own {
        write(&root.join("workspace/.openharness/settings.yaml"), own);
    }
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

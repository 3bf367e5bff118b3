//! The schemas as they are printed and shipped, and what they say of the examples and the bad cases.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use jsonschema::Validator;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    authoring::{files, repository, run},
    support::cases::{Files, case_files},
};

/// The schemas, each with the file it is shipped in.
pub(crate) const NAMES: [(&str, &str); 6] = [
    ("hook-file", "openharness-hook.schema.json"),
    ("settings", "hookyard-settings.schema.json"),
    ("event", "canonical-event.schema.json"),
    ("outcome", "canonical-outcome.schema.json"),
    ("agent", "openharness-agent.schema.json"),
    ("scenario", "hookyard-scenario.schema.json"),
];

/// A schema as it is printed.
pub(crate) fn printed(name: &str) -> &'static Value {
    static PRINTED: OnceLock<Value> = OnceLock::new();
    let all = PRINTED.get_or_init(|| run(&repository(), &["schema", "--json"], "").json());
    &all[name]
}

/// The validator of a schema.
fn validator(name: &str) -> &'static Validator {
    static VALIDATORS: OnceLock<BTreeMap<&str, Validator>> = OnceLock::new();
    let made = |(name, _)| (name, jsonschema::validator_for(printed(name)).unwrap());
    &VALIDATORS.get_or_init(|| NAMES.into_iter().map(made).collect())[name]
}

/// What a schema has against a value.
pub(crate) fn objections(name: &str, value: &Value) -> Vec<String> {
    let describe = |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
    validator(name).iter_errors(value).map(describe).collect()
}

/// A YAML file as an editor's validator sees it, or `None` if it is none, or has what JSON has not.
fn yaml(path: &Path) -> Option<Value> {
    yaml_text(&fs::read_to_string(path).ok()?)
}

fn yaml_text(text: &str) -> Option<Value> {
    if text.contains(".inf") || text.contains(".nan") {
        return None;
    }
    serde_yaml::from_str(text).ok()
}

#[test]
fn each_schema_is_sound_and_of_the_draft() {
    for (name, _) in NAMES {
        let schema = printed(name);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        jsonschema::meta::validate(schema).unwrap();
    }
}

#[test]
fn what_is_shipped_is_what_is_printed() {
    for (name, file) in NAMES {
        let shown = run(&repository(), &["schema", name], "");
        assert_eq!((shown.code, shown.err.as_str()), (0, ""), "{name}");
        let path = repository().join("config/schema").join(file);
        let shipped = fs::read_to_string(&path).unwrap_or_default();
        assert!(shipped == shown.out, "{file} is not what is printed");
        assert_eq!(serde_json::from_str::<Value>(&shipped).unwrap(), *printed(name));
    }
}

#[test]
fn several_schemas_print_as_an_object_and_none_as_a_list() {
    let several = run(&repository(), &["schema", "agent", "event"], "").json();
    let names: Vec<&String> = several.as_object().unwrap().keys().collect();
    assert_eq!(names, ["agent", "event"]);
    let list = run(&repository(), &["schema"], "");
    assert_eq!(list.code, 0);
    assert!(NAMES.iter().all(|(name, _)| list.out.contains(name)), "{}", list.out);
    let unknown = run(&repository(), &["schema", "hok-file"], "");
    assert_eq!((unknown.code, unknown.out.as_str()), (2, ""));
    assert!(unknown.err.contains("hook-file"), "{}", unknown.err);
}

/// The properties without a description, by their paths.
fn silent(schema: &Value, path: &str, found: &mut Vec<String>) {
    match schema {
        Value::Object(keys) => {
            for (key, inner) in keys {
                let path = format!("{path}/{key}");
                if key == "properties"
                    && !path.contains("/if/")
                    && !path.contains("/then/")
                    && !path.contains("/dependentSchemas/")
                {
                    for (name, property) in inner.as_object().unwrap() {
                        if property["description"].as_str().is_none_or(str::is_empty) {
                            found.push(format!("{path}/{name}"));
                        }
                    }
                }
                silent(inner, &path, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| silent(item, path, found)),
        _ => {}
    }
}

#[test]
fn every_property_is_described() {
    for (name, _) in NAMES {
        let mut found = Vec::new();
        silent(printed(name), name, &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}

#[test]
fn the_example_hooks_and_agents_validate() {
    let hooks: Vec<PathBuf> = files(&repository().join("config/workspaces"), &[".yaml", ".yml"])
        .into_iter()
        .filter(|path| path.parent().unwrap().ends_with(".openharness/hooks"))
        .collect();
    assert!(hooks.len() >= 17, "{hooks:?}");
    for path in hooks {
        assert_eq!(
            objections("hook-file", &yaml(&path).unwrap()),
            Vec::<String>::new(),
            "{}",
            path.display()
        );
    }
    for path in files(&repository().join("config/workspaces"), &["agents/reviewer.md"]) {
        assert_eq!(
            objections("agent", &keys_of(&fs::read_to_string(&path).unwrap()).unwrap()),
            Vec::<String>::new(),
            "{}",
            path.display()
        );
    }
}

#[test]
fn variables_of_the_environment_validate_where_they_are_replaced() {
    let hook = |name: &str, url: &str| json!({ "name": name, "events": ["before_tool_dispatch"], "handler": { "type": "http", "url": url } });
    let good = [
        hook("a-${env.USER}", "http://${env.HOST}:8080/x?y=${env.KEY}"),
        hook("${env.NAME}", "${env.ADDRESS}"),
        hook("a", "${env.ADDRESS}/hook"),
    ];
    for hook in good {
        assert_eq!(objections("hook-file", &hook), Vec::<String>::new(), "{hook}");
    }
    let bad = [
        hook("a-${secrets.KEY}", "http://h/x"),
        hook("a", "http://h/${secrets.KEY}"),
        hook("a ${env.USER}", "http://h/x"),
        hook("a", "ftp://${env.HOST}"),
        hook("a", "${env.ADDRESS} x"),
    ];
    for hook in bad {
        assert_eq!(objections("hook-file", &hook).len(), 1, "{hook}");
    }
}

/// The keys of an agent's file.
fn keys_of(text: &str) -> Option<Value> {
    let text = text.replace("\r\n", "\n");
    let keys = text.strip_prefix("---\n")?.split("\n---").next()?.to_owned();
    serde_yaml::from_str(&keys).ok()
}

/// Bad cases whose hook files validate all the same, and why no schema can help it.
const UNSEEN: [(&str, &[&str]); 12] = [
    (
        "what an expression or a file says, only one who reads it knows",
        &[
            "rule-unknown-name",
            "rule-unknown-variable",
            "rule-unknown-function",
            "rule-unknown-field",
            "rule-of-other-events",
            "rule-wrong-operand",
            "rule-no-condition",
            "rule-a-list-as-condition",
            "rule-never-equal",
            "rule-one-equals-sign",
            "rule-curly-quotes",
            "rule-look-alike-name",
            "rule-bad-pattern",
            "rule-unknown-pattern",
            "rule-bad-glob",
            "rule-too-deep",
            "rule-too-costly",
            "rule-too-deep-brackets",
            "rule-unclosed",
            "rule-in-a-block",
            "rule-recursive-let",
            "rule-patch-without-capability",
            "rule-patch-of-nothing",
            "rule-facts-missing",
            "rule-facts-unknown",
            "rule-facts-no-json",
        ],
    ),
    (
        "it is about another file, or one that is not there",
        &[
            "agent-model-unknown",
            "agent-missing",
            "agent-mistakes",
            "agent-unclosed",
            "agent-without-keys",
            "agent-without-role",
            "copies",
            "dialects-silence-guard",
            "duplicate-names",
            "prompt-file-empty",
            "prompt-file-is-directory",
            "prompt-file-missing",
            "prompt-file-not-utf8",
        ],
    ),
    (
        "it is about the settings, the environment or the secrets of a machine",
        &[
            "environment-everywhere",
            "environment-secret",
            "environment-references",
            "environment-refused",
            "five-mistakes/hooks/e-slow.yaml",
            "http",
            "http-unix",
            "prompt-model-forbidden",
            "prompt-model-unknown",
            "prompt-model-without-key",
            "prompt-without-model",
        ],
    ),
    (
        "where a program is depends on the directory it is run in",
        &["args-outside", "guard-missing-program", "guard-missing-script"],
    ),
    (
        "whether text is a regular expression, only one who compiles it knows",
        &[
            "five-mistakes/hooks/c-audit.yaml",
            "matcher-deep",
            "matcher-error-in-the-middle",
            "matcher-many-groups",
            "matcher-open-bracket",
            "matcher-too-large",
        ],
    ),
    (
        "a pattern does not read the comments and separators of a shell",
        &[
            "command-only-ampersand",
            "command-only-comment",
            "command-only-comment-lines",
            "command-only-semicolon",
            "command-separators-and-comment",
        ],
    ),
    ("a bound of numbers does not know how fine a clock is", &["timeout-tiny"]),
    ("a pattern does not count as high as a port", &["http-port"]),
    ("which address is this machine's own, a pattern cannot say in full", &["http-loop"]),
    ("a pattern does not count bytes of a part", &["http-unix-long"]),
    ("YAML readers of editors tell of it themselves", &["key-twice", "key-twice-inside"]),
    (
        "tags are gone once YAML is read",
        &["python-tag", "python-tag-on-mapping", "tag-directive", "verbatim-tag"],
    ),
];

fn is_unseen(name: &str) -> bool {
    let mut known = UNSEEN.iter().flat_map(|(_, names)| names.iter());
    known.any(|known| *known == name || name.split('/').next() == Some(known))
}

/// A workspace with mistakes in its files.
#[derive(Deserialize)]
struct BadHookFileCase {
    name: String,
    files: Files,
    expect: String,
}

impl BadHookFileCase {
    /// The codes of the errors of a file.
    fn codes(&self, file: &str) -> Vec<&str> {
        let errors = self.expect.lines().filter_map(|line| line.strip_prefix("error "));
        let code = |error: &'_ str| error.split(' ').nth(1).unwrap().split(':').next().unwrap().to_owned();
        let of_file = errors.filter(|error| code(error).ends_with(file));
        of_file.map(|error| error.split(' ').next().unwrap()).collect()
    }
}

fn bad_cases() -> Vec<BadHookFileCase> {
    case_files("bad-hook-files").into_iter().flat_map(|file| file.cases).collect()
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let mut wrong = Vec::new();
    let mut refused = 0;
    for case in bad_cases() {
        for (path, content) in &case.files {
            let file = path.strip_prefix(".openharness/").unwrap();
            if !file.starts_with("hooks/") {
                continue;
            }
            let name = format!("{}/{file}", case.name);
            let codes = case.codes(file);
            let Some(value) = yaml_text(&String::from_utf8(content.bytes()).unwrap()) else {
                assert!(!codes.is_empty() || case.name == "chat", "{name} is no YAML");
                continue;
            };
            let objections = objections("hook-file", &value);
            if codes.is_empty() && !objections.is_empty() {
                wrong.push(format!("{name} loads, but: {objections:?}"));
            } else if !codes.is_empty() && objections.is_empty() != is_unseen(&name) {
                wrong.push(format!("{name} {codes:?}: {objections:?}"));
            }
            refused += usize::from(!codes.is_empty() && !objections.is_empty());
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(refused > 60, "{refused}");
}

#[test]
fn bad_agents_are_refused() {
    let cases = bad_cases();
    let agent = |name: &str, path: &str| {
        let case = cases.iter().find(|case| case.name == name).unwrap();
        keys_of(&String::from_utf8(case.files[path].bytes()).unwrap()).unwrap()
    };
    let good = agent("agent-good", ".openharness/agents/reviewer.md");
    assert_eq!(objections("agent", &good), Vec::<String>::new());
    let found = objections("agent", &agent("agent-mistakes", ".openharness/agents/wrong.md")).join("\n");
    for expected in ["/tools/1", "/tools/2", "/max_turns", "descripton"] {
        assert!(found.contains(expected), "{expected} in {found}");
    }
    assert!(!objections("agent", &json!({ "tools": "grep" })).is_empty());
    let of_openharness = agent("agent-of-the-engine", ".openharness/agents/reviewer.md");
    let found = objections("agent", &of_openharness);
    assert!(found.len() == 1 && found[0].contains("colour"), "{found:?}");
}

#[test]
fn recorded_events_validate() {
    // Claude's session is told in Claude's words, which are not canonical.
    for file in ["openharness", "handlers"] {
        let recording = repository().join(format!("config/recordings/{file}-session.jsonl"));
        let lines = fs::read_to_string(recording).unwrap();
        let mut events = 0;
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            let event: Value = serde_json::from_str(line).unwrap();
            assert_eq!(objections("event", &event), Vec::<String>::new(), "{line}");
            events += 1;
        }
        assert!(events >= 3, "{file}");
    }
}

#[test]
fn outcomes_validate() {
    let workspace = repository().join("config/workspaces/openharness");
    let event =
        json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash" });
    for command in ["rm -rf /", "npm install left-pad", "ls"] {
        let mut event = event.clone();
        event["tool_input"] = json!({ "command": command });
        let fired = run(&workspace, &["fire", "--event", "-", "--json"], &event.to_string());
        assert_eq!(objections("outcome", &fired.json()), Vec::<String>::new(), "{}", fired.out);
    }
    assert!(!objections("outcome", &json!({ "verdict": "maybe" })).is_empty());
}

#[test]
fn the_shipped_settings_validate() {
    for file in
        ["config/hookyard.yaml", "config/container/hookyard.yaml", "config/workspaces/handlers/hookyard.yaml"]
    {
        let settings = yaml(&repository().join(file)).unwrap();
        assert_eq!(objections("settings", &settings), Vec::<String>::new(), "{file}");
    }
}

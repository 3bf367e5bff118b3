//! The files that are made from the table of settings: the JSON Schema, the settings file with all defaults, and the
//! reference page. Compiled for tests only, which write and check them.

use std::{fmt::Write, fs, path::Path};

use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::{
    described::{DescribedKeys, KeyDescription, KeyShape, ValueForm},
    table::Settings,
};

/// The longest line of the settings file, in characters.
const WIDTH: usize = 100;

/// The line of the reference page above the generated part.
const MARKER: &str = "<!-- The rest is generated from src/config/settings/table.rs. -->";

/// The head of the settings file.
const YAML_HEAD: &str = "\
# yaml-language-server: $schema=schema/hookyard-settings.schema.json
#
# Every setting of hookyard at its default. A key that is left out has its default.
# Durations have a unit: ms, s, m or h. So have sizes: B, KiB, MiB or GiB.
# Generated from src/config/settings/table.rs. The reference is docs/settings.md.
";

/// JSON whose keys keep their order.
enum Ordered {
    Object(Vec<(String, Ordered)>),
    Plain(Json),
}

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Object(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
            Self::Plain(value) => value.serialize(serializer),
        }
    }
}

fn json_schema(keys: &[KeyDescription]) -> String {
    let draft = json!("https://json-schema.org/draft/2020-12/schema");
    let about = "The settings of hookyard. A key that is left out has its default.";
    let mut schema = vec![
        ("$schema".to_owned(), Ordered::Plain(draft)),
        ("title".to_owned(), Ordered::Plain(json!("hookyard settings"))),
        ("description".to_owned(), Ordered::Plain(json!(about))),
    ];
    schema.extend(object_schema(keys));
    serde_json::to_string_pretty(&Ordered::Object(schema)).unwrap() + "\n"
}

/// The keywords for a mapping with these keys.
fn object_schema(keys: &[KeyDescription]) -> Vec<(String, Ordered)> {
    let properties = keys.iter().map(|key| (key.name.to_owned(), Ordered::Object(key_schema(key)))).collect();
    let is_required = |key: &&KeyDescription| matches!(key.shape, KeyShape::Value { default: None, .. });
    let required: Vec<&str> = keys.iter().filter(is_required).map(|key| key.name).collect();
    let mut schema = vec![
        ("type".to_owned(), Ordered::Plain(json!("object"))),
        ("properties".to_owned(), Ordered::Object(properties)),
    ];
    if !required.is_empty() {
        schema.push(("required".to_owned(), Ordered::Plain(json!(required))));
    }
    schema.push(("additionalProperties".to_owned(), Ordered::Plain(json!(false))));
    schema
}

fn key_schema(key: &KeyDescription) -> Vec<(String, Ordered)> {
    let mut schema = vec![("description".to_owned(), Ordered::Plain(json!(sentences(key))))];
    match &key.shape {
        KeyShape::Section(keys) => schema.extend(object_schema(keys)),
        KeyShape::Entries { names, keys } => {
            schema.push(("type".to_owned(), Ordered::Plain(json!("object"))));
            schema.push(("propertyNames".to_owned(), Ordered::Plain(names.clone())));
            schema.push(("additionalProperties".to_owned(), Ordered::Object(object_schema(keys))));
            schema.push(("default".to_owned(), Ordered::Plain(json!({}))));
        }
        KeyShape::Value { form, default } => {
            let keywords = form.schema.iter();
            schema.extend(keywords.map(|(name, value)| ((*name).to_owned(), Ordered::Plain(value.clone()))));
            schema.extend(default.clone().map(|default| ("default".to_owned(), Ordered::Plain(default))));
            let example = key.example.map(|example| json!([serde_yaml::from_str::<Json>(example).unwrap()]));
            schema.extend(example.map(|examples| ("examples".to_owned(), Ordered::Plain(examples))));
        }
    }
    schema
}

/// The description of a key, and how its value is written.
fn sentences(key: &KeyDescription) -> String {
    match &key.shape {
        KeyShape::Value { form: ValueForm { hint: Some(hint), .. }, .. } => format!("{} {hint}", key.about),
        _ => key.about.clone(),
    }
}

fn settings_file(keys: &[KeyDescription]) -> String {
    let mut text = YAML_HEAD.to_owned();
    for key in keys {
        text.push('\n');
        write_key(key, 0, &mut text);
    }
    text
}

fn write_key(key: &KeyDescription, indent: usize, text: &mut String) {
    let margin = " ".repeat(indent);
    for line in wrapped(&key.about, WIDTH - indent - 2) {
        writeln!(text, "{margin}# {line}").unwrap();
    }
    match &key.shape {
        KeyShape::Section(keys) => {
            writeln!(text, "{margin}{}:", key.name).unwrap();
            for key in keys {
                write_key(key, indent + 2, text);
            }
        }
        KeyShape::Entries { keys, .. } => {
            writeln!(text, "{margin}{}: {{}}", key.name).unwrap();
            let mut example = format!("  {}:\n", key.example.unwrap());
            for key in keys {
                write_example(key, &mut example);
            }
            for line in example.lines() {
                writeln!(text, "#{line}").unwrap();
            }
        }
        KeyShape::Value { default, .. } => {
            if let Some(example) = key.example {
                writeln!(text, "{margin}# Example: {example}").unwrap();
            }
            writeln!(text, "{margin}{}: {}", key.name, yaml(default.as_ref().unwrap())).unwrap();
        }
    }
}

/// Writes a key of an entry with its example, or else its default.
fn write_example(key: &KeyDescription, text: &mut String) {
    let KeyShape::Value { default, .. } = &key.shape else { panic!("{} is nested too deeply", key.name) };
    for line in wrapped(&key.about, WIDTH - 7) {
        writeln!(text, "    # {line}").unwrap();
    }
    let value = key.example.map_or_else(|| yaml(default.as_ref().unwrap()), str::to_owned);
    writeln!(text, "    {}: {value}", key.name).unwrap();
}

/// A value on one line; none of the defaults needs quotes.
fn yaml(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The tables of the reference page.
fn reference(keys: &[KeyDescription]) -> String {
    let mut text = String::from("\n## Top-level keys\n");
    table(
        &keys.iter().filter(|key| matches!(key.shape, KeyShape::Value { .. })).collect::<Vec<_>>(),
        &mut text,
    );
    for key in keys {
        write_section(key, key.name, &mut text);
    }
    text
}

fn write_section(key: &KeyDescription, path: &str, text: &mut String) {
    let (heading, keys) = match &key.shape {
        KeyShape::Value { .. } => return,
        KeyShape::Section(keys) => (path.to_owned(), keys),
        KeyShape::Entries { keys, .. } => (format!("{path}.NAME"), keys),
    };
    writeln!(text, "\n## `{heading}`\n\n{}", key.about).unwrap();
    let values: Vec<_> = keys.iter().filter(|key| matches!(key.shape, KeyShape::Value { .. })).collect();
    if !values.is_empty() {
        table(&values, text);
    }
    for key in keys {
        write_section(key, &format!("{path}.{}", key.name), text);
    }
}

fn table(keys: &[&KeyDescription], text: &mut String) {
    text.push_str("\n| key | type | default | description |\n| --- | --- | --- | --- |\n");
    for key in keys {
        let KeyShape::Value { form, default } = &key.shape else { continue };
        let default =
            default.as_ref().map_or("required".to_owned(), |default| format!("`{}`", yaml(default)));
        let example = key.example.map_or(String::new(), |example| format!(" Example: `{example}`"));
        writeln!(text, "| `{}` | {} | {default} | {}{example} |", key.name, form.label, key.about).unwrap();
    }
}

mod tests {
    use super::*;
    use crate::dialect::Document;

    /// Compares a generated file with the one in the tree, or writes it.
    fn check(path: &str, text: &str) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        if std::env::var_os("UPDATE_CASES").is_some() {
            fs::write(&file, text).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        let command = "UPDATE_CASES=1 cargo test --lib settings::generated";
        assert!(kept == text, "{path} is not what the settings say; `{command}` writes it");
    }

    #[test]
    fn the_json_schema_is_up_to_date() {
        check(
            "config/schema/hookyard-settings.schema.json",
            &json_schema(&Settings::default().describe_keys()),
        );
    }

    #[test]
    fn the_settings_file_is_up_to_date() {
        check("config/hookyard.yaml", &settings_file(&Settings::default().describe_keys()));
    }

    #[test]
    fn the_reference_page_is_up_to_date() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
        let page = fs::read_to_string(page).unwrap();
        let (head, _) = page.split_once(MARKER).unwrap();
        let tables = reference(&Settings::default().describe_keys());
        check("docs/settings.md", &format!("{head}{MARKER}\n{tables}"));
    }

    #[test]
    fn the_settings_file_fits_its_width() {
        let text = settings_file(&Settings::default().describe_keys());
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > WIDTH).collect();
        assert_eq!(long, Vec::<&str>::new());
    }

    #[test]
    fn every_description_is_a_sentence() {
        fn visit(keys: &[KeyDescription]) {
            for key in keys {
                assert!(key.about.ends_with('.') && !key.about.contains("  "), "{}", key.name);
                match &key.shape {
                    KeyShape::Section(keys) | KeyShape::Entries { keys, .. } => visit(keys),
                    KeyShape::Value { .. } => {}
                }
            }
        }
        visit(&Settings::default().describe_keys());
    }

    #[test]
    fn the_settings_file_and_its_examples_are_read_without_a_diagnostic() {
        let text = settings_file(&Settings::default().describe_keys());
        let read = |text: &str| {
            let (settings, diagnostics) = Settings::from_yaml(text, Path::new("hookyard.yaml"));
            assert_eq!(diagnostics, []);
            settings.unwrap()
        };
        assert_eq!(read(&text), Settings::default());
        let with_entries = text.replace(": {}", ":").replace("\n#  ", "\n  ");
        let settings = read(&with_entries);
        assert_eq!((settings.workspaces.len(), settings.models.len()), (1, 1));
        for key in Settings::default().describe_keys() {
            check_examples(key.name, &key);
        }
    }

    fn check_examples(path: &str, key: &KeyDescription) {
        match (&key.shape, key.example) {
            (KeyShape::Section(keys), _) => {
                for inner in keys {
                    check_examples(&format!("{path}.{}", inner.name), inner);
                }
            }
            (KeyShape::Value { .. }, Some(example)) => {
                let mut flag = vec![(path.to_owned(), example.to_owned())];
                // Nothing is taken from an address without a key.
                if path == "bundle.url" {
                    let key = format!("[\"ed25519:{}\"]", "0".repeat(64));
                    flag.push(("bundle.keys".to_owned(), key));
                }
                let (_, diagnostics) = Settings::layered(None, std::iter::empty::<(String, String)>(), &flag);
                assert_eq!(diagnostics, [], "{path}: {example}");
            }
            _ => {}
        }
    }

    #[test]
    fn the_settings_file_has_every_key() {
        let text = settings_file(&Settings::default().describe_keys());
        let document = Document::parse(text.as_bytes(), Path::new("hookyard.yaml")).unwrap();
        let root = document.root().unwrap();
        for path in Settings::key_paths() {
            let mut mapping = Some(root.clone());
            for key in path.split('.') {
                let value = mapping.as_ref().and_then(|mapping| mapping.get(key));
                assert!(value.is_some(), "{path}");
                mapping = value.and_then(|value| value.as_mapping());
            }
        }
    }
}

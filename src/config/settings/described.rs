//! Descriptions of keys for the generated files. Compiled for tests only, which write and check those files.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::{
    keys::{KeyType, NamedEntry, ValueType},
    value_types::{NullIsDefault, Required},
};

/// A key as the generated files have it.
pub(super) struct KeyDescription {
    pub(super) name: &'static str,
    /// A sentence or two in Markdown.
    pub(super) about: String,
    /// A value as a settings file has it.
    pub(super) example: Option<&'static str>,
    pub(super) shape: KeyShape,
}

/// What stands at a key.
pub(super) enum KeyShape {
    Section(Vec<KeyDescription>),
    /// Mappings under names of the file's own.
    Entries {
        /// A JSON Schema of the names.
        names: Json,
        keys: Vec<KeyDescription>,
    },
    Value {
        form: ValueForm,
        /// `None` for a key that must be there.
        default: Option<Json>,
    },
}

/// What a value may be.
pub(super) struct ValueForm {
    /// The type, for the reference page.
    pub(super) label: String,
    /// How a value is written, where the type does not say it: a sentence.
    pub(super) hint: Option<&'static str>,
    /// The keywords of its JSON Schema, in order.
    pub(super) schema: Vec<(&'static str, Json)>,
}

impl ValueForm {
    pub(super) fn new<const N: usize>(label: &str, schema: [(&'static str, Json); N]) -> Self {
        Self { label: label.to_owned(), hint: None, schema: schema.into() }
    }

    pub(super) fn text(label: &str, pattern: &str) -> Self {
        Self::new(label, [("type", json!("string")), ("pattern", json!(pattern))])
    }

    pub(super) fn words(words: &[&str]) -> Self {
        let label = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        Self::new(&label, [("enum", json!(words))])
    }

    pub(super) fn or_null(mut self) -> Self {
        for (keyword, value) in &mut self.schema {
            match (*keyword, value) {
                ("type", only @ Json::String(_)) => *only = json!([only.take(), "null"]),
                ("enum", Json::Array(words)) => words.push(Json::Null),
                ("anyOf", Json::Array(choices)) => choices.push(json!({ "type": "null" })),
                _ => {}
            }
        }
        Self { label: format!("{} or `null`", self.label), ..self }
    }
}

/// Keys that can be described, with the values they have here as their defaults.
pub(super) trait DescribedKeys {
    fn describe_keys(&self) -> Vec<KeyDescription>;
}

/// The type of a key that can be described.
pub(super) trait DescribedKey: KeyType {
    fn describe(default: &Self::Field) -> KeyShape;
}

/// Entries whose names can be described.
pub(super) trait DescribedEntry: NamedEntry + DescribedKeys {
    /// A JSON Schema of the names.
    fn names() -> Json;
}

/// The type of a value that can be described.
pub(super) trait DescribedValue: ValueType {
    fn form() -> ValueForm;

    /// A value as JSON and YAML have it.
    fn show(field: &Self::Field) -> Json;
}

impl<T: DescribedValue> DescribedKey for T {
    fn describe(default: &Self::Field) -> KeyShape {
        KeyShape::Value { form: T::form(), default: Some(T::show(default)) }
    }
}

impl<T: DescribedValue> DescribedKey for Required<T> {
    fn describe(_: &T::Field) -> KeyShape {
        KeyShape::Value { form: T::form(), default: None }
    }
}

impl<T: DescribedValue> DescribedKey for NullIsDefault<T> {
    fn describe(default: &T::Field) -> KeyShape {
        KeyShape::Value { form: T::form().or_null(), default: Some(T::show(default)) }
    }
}

impl<T: DescribedEntry> DescribedKey for BTreeMap<T::Name, T> {
    fn describe(_: &Self) -> KeyShape {
        KeyShape::Entries { names: T::names(), keys: T::declared().describe_keys() }
    }
}

impl<T: DescribedValue> DescribedValue for Option<T> {
    fn form() -> ValueForm {
        T::form().or_null()
    }

    fn show(field: &Option<T::Field>) -> Json {
        field.as_ref().map_or(Json::Null, T::show)
    }
}

impl<T: DescribedValue> DescribedValue for Vec<T> {
    fn form() -> ValueForm {
        let item = T::form();
        let items: serde_json::Map<_, _> =
            item.schema.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)).collect();
        let label = format!("list of {}", item.label);
        ValueForm {
            hint: item.hint,
            ..ValueForm::new(&label, [("type", json!("array")), ("items", items.into())])
        }
    }

    fn show(field: &Vec<T::Field>) -> Json {
        field.iter().map(T::show).collect()
    }
}

//! What a file of the workspace has that a rule was loaded with.

use super::{
    budget::Budget,
    json_tree::{JsonNode, JsonRef},
};
use crate::model::Json;

/// What a file has, under the name that rules use.
pub(super) struct FileFact {
    pub(super) name: Box<str>,
    json: Json,
    tree: JsonNode,
}

impl FileFact {
    pub(super) fn new(name: &str, json: Json) -> Self {
        Self { name: name.into(), tree: JsonNode::of(json.as_str()), json }
    }

    /// Calls with its strings.
    pub(super) fn each_text(&self, each: &mut dyn FnMut(&str)) {
        fn strings(value: &serde_json::Value, each: &mut dyn FnMut(&str)) {
            match value {
                serde_json::Value::String(text) => each(text),
                serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, each)),
                serde_json::Value::Object(fields) => fields.values().for_each(|value| strings(value, each)),
                _ => {}
            }
        }
        if let Ok(value) = self.json.read() {
            strings(&value, each);
        }
    }

    /// Its value. Each level is taken apart once for all events.
    pub(super) fn value<'a>(&'a self, budget: &'a Budget) -> JsonRef<'a> {
        JsonRef::new(self.json.as_str(), &self.tree, budget)
    }
}

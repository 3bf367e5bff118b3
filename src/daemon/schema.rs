//! JSON Schemas of API bodies, and the helpers to write them next to their types.

use serde_json::{Map, Value, json};

/// A schema with a name: an entry of `components.schemas` in the `OpenAPI` document.
#[derive(Debug)]
pub(super) struct Component {
    pub(super) name: &'static str,
    pub(super) schema: ComponentSchema,
}

/// Where the schema of a component comes from.
#[derive(Debug)]
pub(super) enum ComponentSchema {
    /// Built by a function next to the type.
    Built(fn() -> Value),
    /// The text of a JSON Schema file, with its definitions in `$defs`.
    File(&'static str),
}

impl Component {
    pub(super) const fn built(name: &'static str, schema: fn() -> Value) -> Self {
        Self { name, schema: ComponentSchema::Built(schema) }
    }

    pub(super) const fn file(name: &'static str, text: &'static str) -> Self {
        Self { name, schema: ComponentSchema::File(text) }
    }

    /// A reference to this component.
    pub(super) fn reference(&self) -> Value {
        json!({ "$ref": format!("#/components/schemas/{}", self.name) })
    }

    /// A reference to this component with a description of its own.
    pub(super) fn described(&self, description: &str) -> Value {
        let mut schema = self.reference();
        schema["description"] = description.into();
        schema
    }
}

/// An object with these properties, all required except the `optional` ones.
pub(super) fn object<const N: usize>(
    description: &str,
    properties: [(&str, Value); N],
    optional: &[&str],
) -> Value {
    let required: Vec<&str> =
        properties.iter().map(|(name, _)| *name).filter(|name| !optional.contains(name)).collect();
    let properties: Map<String, Value> =
        properties.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({ "type": "object", "description": description, "properties": properties, "required": required })
}

/// A string.
pub(super) fn string(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// A string or null.
pub(super) fn optional_string(description: &str) -> Value {
    json!({ "type": ["string", "null"], "description": description })
}

/// Yes or no.
pub(super) fn boolean(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

/// A list of strings.
pub(super) fn strings(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

/// An integer of at least 0.
pub(super) fn unsigned(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

/// An integer of at least 0 with an `OpenAPI` format such as `int64`.
pub(super) fn unsigned_as(format: &str, description: &str) -> Value {
    let mut schema = unsigned(description);
    schema["format"] = format.into();
    schema
}

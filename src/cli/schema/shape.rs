//! Generation of the JSON Schemas, and schemas of strings that several of them share.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, generate::SchemaSettings, json_schema, transform::transform_subschemas};
use serde_json::{Map, Value};

use crate::model::{AgentTool, Capability, Ended, EventKind, FailurePolicy, HttpMethod, Target, Verdict};

/// A schema in which a key may be missing but not `null`.
pub(super) fn generate<T: JsonSchema>() -> Schema {
    let mut schema = with_nulls::<T>();
    without_null(&mut schema);
    schema
}

/// A schema in which an optional key may also be `null`.
pub(super) fn with_nulls<T: JsonSchema>() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    tidy(&mut schema);
    schema
}

/// Removes the line breaks of doc comments, and number formats that only Rust has.
fn tidy(schema: &mut Schema) {
    schema.remove("format");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    transform_subschemas(&mut tidy, schema);
}

/// Removes `null` from optional keys.
pub(super) fn without_null(schema: &mut Schema) {
    if let Some(object) = schema.as_object_mut() {
        strip_null(object);
    }
    transform_subschemas(&mut without_null, schema);
}

fn strip_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(words)) = object.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    let is_null = |schema: &Value| schema["type"] == "null";
    if let Some(Value::Array(choices)) = object.get_mut("anyOf")
        && choices.iter().any(is_null)
    {
        choices.retain(|choice| !is_null(choice));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            object.extend(only);
        }
    }
}

/// A string that is one of these words.
pub(super) fn one_of(words: impl IntoIterator<Item = &'static str>) -> Schema {
    let words: Vec<&str> = words.into_iter().collect();
    json_schema!({ "type": "string", "enum": words })
}

/// Declares types whose schema is a string with constraints.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $schema:expr;)*) => {$(
        $(#[$doc])*
        pub(in crate::cli) struct $name(String);

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    )*};
}

texts! {
    /// The name of a hook, which may have variables of the environment in it.
    HookName = json_schema!({ "type": "string", "pattern": r"^([A-Za-z0-9._-]|\$\{env\.[A-Za-z_][A-Za-z0-9_]*\}){1,64}$" });
    /// A time, which may be none.
    WaitingTime = json_schema!({ "type": "string", "pattern": r"^(0s|(?=.*[1-9])\d+(\.\d*)?\s*(ms|s|m|h))$" });
    /// A time that is not none.
    LastingTime = json_schema!({ "type": "string", "pattern": r"^(?=.*[1-9])\d+(\.\d*)?\s*(ms|s|m|h)$" });
    /// How events of an open loop are spread.
    ArrivalName = one_of(["constant", "poisson"]);
    /// The name of an agent, which is that of its file.
    AgentName = json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$" });
    /// Text that is not blank.
    SomeText = json_schema!({ "type": "string", "pattern": r"\S" });
    /// An argument of a program, without NUL.
    Argument = json_schema!({ "type": "string", "pattern": r"^[^\x00]*$" });
    /// A line for the shell.
    ShellLine = json_schema!({ "type": "string", "pattern": r"^[^\x00]*[^\s\x00][^\x00]*$" });
    /// A regular expression.
    Pattern = json_schema!({ "type": "string", "minLength": 1, "maxLength": 16384, "not": { "const": "*" } });
    /// An expression in CEL.
    CelExpression = json_schema!({ "type": "string", "minLength": 1, "maxLength": 8192 });
    /// A path inside the workspace.
    InsidePath = json_schema!({ "type": "string", "not": { "pattern": r"^(/|\.\./|\.\.$)" } });
    /// An address that hooks may call, without user and password. It may have variables of the environment in it.
    HookAddress = json_schema!({
        "type": "string",
        "pattern": r"^([Hh][Tt][Tt][Pp][Ss]?://([^\s\x00-\x1f\\@$/?#]|\$\{env\.[A-Za-z_][A-Za-z0-9_]*\})+([/?#]([^\s\x00-\x1f\\$]|\$\{env\.[A-Za-z_][A-Za-z0-9_]*\})*)?|\$\{env\.[A-Za-z_][A-Za-z0-9_]*\}([^\s\x00-\x1f\\@$]|\$\{env\.[A-Za-z_][A-Za-z0-9_]*\})*|unix:/([^\s\x00-\x1f\\$:]*[^\s\x00-\x1f\\$:/]):/[^\s\x00-\x1f\\$]*)$",
    });
    /// The value of a header, on one line.
    HeaderValue = json_schema!({ "type": "string", "pattern": r"^[^\x00-\x08\x0a-\x1f\x7f]*$" });
    /// An id of a host.
    Id = json_schema!({ "type": "string", "pattern": r"^[^\x00-\x1f\x7f-\x9f]{1,256}$" });
    /// Any JSON value.
    Anything = json_schema!({});

    /// Every kind of event.
    AnyEvent = one_of(EventKind::ALL.iter().map(|kind| kind.as_str()));
    /// Every capability, by each of its names.
    HookCapability = one_of(
        Capability::ALL.into_iter().map(Capability::as_str).chain(Capability::ALIASES.map(|(alias, _)| alias)),
    );
    /// What a failure counts as.
    Policy = one_of(FailurePolicy::ALL.map(FailurePolicy::as_str));
    /// The methods of http handlers.
    Method = one_of(HttpMethod::ALL.map(HttpMethod::as_str));
    /// The tools of agents.
    Tool = one_of(AgentTool::ALL.map(AgentTool::as_str));
    /// What a host should do.
    AnyVerdict = one_of(Verdict::ALL.map(Verdict::as_str));
    /// How an invocation ended.
    AnyEnd = one_of(Ended::ALL.map(Ended::as_str));
    /// The parts of a payload that hooks may patch.
    AnyTarget = one_of(Target::ALL.map(Target::as_str));
}

/// A text, inline or in a file.
#[derive(JsonSchema)]
#[schemars(rename = "Text", deny_unknown_fields, extend("oneOf" = [{ "required": ["inline"] }, { "required": ["file"] }]))]
pub(super) struct TextSchema {
    /// The text.
    inline: Option<SomeText>,
    /// A UTF-8 file with the text, at most 256 KiB: a path relative to the workspace's root.
    file: Option<InsidePath>,
}

/// Variables or headers by their names.
pub(super) type NamedMap<T> = BTreeMap<String, T>;

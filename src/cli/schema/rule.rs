//! Schema of rules in hook files: expressions in CEL.

use schemars::JsonSchema;
use serde_json::Value;

use super::shape::{CelExpression, InsidePath, NamedMap};

/// Rules that judge the event inside hookyard, in microseconds. The first one that decides counts.
#[derive(JsonSchema)]
#[schemars(rename = "RuleHandler", deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["rules"] },
    { "anyOf": [
        { "required": ["halt"] }, { "required": ["deny"] }, { "required": ["ask"] }, { "required": ["allow"] },
        { "required": ["context"] }, { "required": ["message"] }, { "required": ["patch"] },
    ] },
]))]
pub(super) struct RuleHandlerSchema {
    /// `rule`: expressions in CEL.
    #[schemars(extend("const" = "rule"))]
    r#type: Value,
    /// Files of the workspace whose contents rules use as `facts.NAME`: the lines of a text file, or the value of a
    /// `.json` file. They are read when the hook is loaded, and again when they change.
    #[schemars(extend("maxProperties" = 32, "propertyNames" = { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }))]
    facts: Option<NamedMap<InsidePath>>,
    /// Several rules, in place of one.
    #[schemars(length(min = 1, max = 256))]
    rules: Option<Vec<RuleSchema>>,
    /// Named expressions, each of which may use those before it.
    #[schemars(extend("propertyNames" = { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }))]
    r#let: Option<NamedMap<CelExpression>>,
    /// Ends the run if it is true.
    halt: Option<CelExpression>,
    /// Blocks the event if it is true.
    deny: Option<CelExpression>,
    /// Asks a person if it is true.
    ask: Option<CelExpression>,
    /// Lets the event go on without asking a person if it is true.
    allow: Option<CelExpression>,
    /// Why it decides so: an expression that is a string, or null.
    reason: Option<CelExpression>,
    /// A note for the model: an expression that is a string, or null.
    context: Option<CelExpression>,
    /// A note for the person: an expression that is a string, or null.
    message: Option<CelExpression>,
    /// What parts of the event become, by the target: an expression, or null for no change. Needs the capability.
    patch: Option<NamedMap<CelExpression>>,
}

/// One of several rules.
#[derive(JsonSchema)]
#[schemars(rename = "Rule", deny_unknown_fields)]
#[schemars(extend("anyOf" = [
    { "required": ["halt"] }, { "required": ["deny"] }, { "required": ["ask"] }, { "required": ["allow"] },
    { "required": ["context"] }, { "required": ["message"] }, { "required": ["patch"] },
]))]
struct RuleSchema {
    /// What the rule is called in reasons and messages.
    name: Option<String>,
    /// Named expressions of this rule alone.
    #[schemars(extend("propertyNames" = { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }))]
    r#let: Option<NamedMap<CelExpression>>,
    /// Ends the run if it is true.
    halt: Option<CelExpression>,
    /// Blocks the event if it is true.
    deny: Option<CelExpression>,
    /// Asks a person if it is true.
    ask: Option<CelExpression>,
    /// Lets the event go on without asking a person if it is true.
    allow: Option<CelExpression>,
    /// Why it decides so: an expression that is a string, or null.
    reason: Option<CelExpression>,
    /// A note for the model: an expression that is a string, or null.
    context: Option<CelExpression>,
    /// A note for the person: an expression that is a string, or null.
    message: Option<CelExpression>,
    /// What parts of the event become, by the target: an expression, or null for no change. Needs the capability.
    patch: Option<NamedMap<CelExpression>>,
}

//! Schema of Rego policies in hook files.

use schemars::JsonSchema;
use serde_json::Value;

use super::shape::InsidePath;

/// Policies in Rego that judge the event inside hookyard. Needs a build with the feature `rego`.
#[derive(JsonSchema)]
#[schemars(rename = "RegoHandler", deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["file"] }, { "required": ["inline"] }]))]
pub(super) struct RegoHandlerSchema {
    /// `rego`: policies in Rego.
    #[schemars(extend("const" = "rego"))]
    r#type: Value,
    /// Files of the workspace: a policy, or a list of policies (`.rego`) and of documents for `data` (`.json`). They are read
    /// when the hook is loaded, and again when they change. Alternative: `inline`.
    file: Option<PolicyFiles>,
    /// A policy. Alternative: `file`.
    #[schemars(length(min = 1))]
    inline: Option<String>,
    /// The dialect whose form of the event is `input`. Default: that of the host.
    input: Option<InputForm>,
    /// Whether a built-in that is given a wrong value fails the policy; otherwise it has no value, as in OPA. Default: true.
    #[schemars(extend("default" = true))]
    strict_builtin_errors: Option<bool>,
}

/// One file, or a list of them.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
enum PolicyFiles {
    /// One policy.
    One(InsidePath),
    /// Policies and documents.
    Several(#[schemars(length(min = 1, max = 32))] Vec<InsidePath>),
}

/// The dialects that write events for hooks.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
enum InputForm {
    OpenHarness,
    Claude,
    Gemini,
    CodeBuddy,
    Clawd,
    Codex,
    Qwen,
    Copilot,
    Cursor,
    Droid,
}

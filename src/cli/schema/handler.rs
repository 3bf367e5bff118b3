//! Schema of a hook file's `handler`: six types, each with its own keys; and of an agent's file.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{
    rego::RegoHandlerSchema,
    rule::RuleHandlerSchema,
    shape::{self, NamedMap, TextSchema},
};
use crate::model::HandlerKind;

/// A handler of one of the six types. Not an enum: with `if` on its `type`, editors report what is wrong with a
/// handler much better than with `oneOf`.
pub(super) struct HandlerSchema;

impl JsonSchema for HandlerSchema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Handler".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let shapes = [
            (HandlerKind::Command, generator.subschema_for::<CommandHandlerSchema>()),
            (HandlerKind::Http, generator.subschema_for::<HttpHandlerSchema>()),
            (HandlerKind::Prompt, generator.subschema_for::<PromptHandlerSchema>()),
            (HandlerKind::Agent, generator.subschema_for::<AgentHandlerSchema>()),
            (HandlerKind::Rule, generator.subschema_for::<RuleHandlerSchema>()),
            (HandlerKind::Rego, generator.subschema_for::<RegoHandlerSchema>()),
        ];
        let types: Vec<&str> = shapes.iter().map(|(kind, _)| kind.as_str()).collect();
        let rules: Vec<Value> = shapes.iter().map(|(kind, shape)| rule(*kind, shape)).collect();
        json_schema!({
            "type": "object",
            "required": ["type"],
            "properties": {
                "type": {
                    "description": "The handler: a program, a web server, a question to a language model, a \
                                    task for an agent, rules, or policies in Rego.",
                    "enum": types,
                },
            },
            "allOf": rules,
        })
    }
}

fn rule(kind: HandlerKind, shape: &Schema) -> Value {
    let is_it = json!({ "required": ["type"], "properties": { "type": { "const": kind.as_str() } } });
    json!({ "if": is_it, "then": shape })
}

/// Requires a mode for a key.
fn only_in(mode: &str) -> Value {
    json!({ "required": ["mode"], "properties": { "mode": { "const": mode } } })
}

fn modes(schema: &mut Schema) {
    let of_workers = ["workers", "max_requests", "max_idle_seconds", "max_age_seconds", "max_rss_mib"];
    let rules = of_workers.into_iter().map(|key| (key, "worker")).chain([("spares", "prespawn")]);
    let rules = rules.map(|(key, mode)| (key.to_owned(), only_in(mode)));
    schema.insert("dependentSchemas".to_owned(), Value::Object(rules.collect()));
}

/// A program that gets the event as JSON on standard input. Exit code 0: standard output is the answer, or empty;
/// 2: block, with standard error as the reason; any other: the hook failed.
#[derive(JsonSchema)]
#[schemars(rename = "CommandHandler", deny_unknown_fields, transform = modes)]
#[schemars(extend("oneOf" = [{ "required": ["command"] }, { "required": ["args"] }]))]
struct CommandHandlerSchema {
    /// `command`: a program.
    #[schemars(extend("const" = "command"))]
    r#type: Value,
    /// Timeout per event, in seconds, fractions allowed; at most the setting `max_timeout`. Default: the setting
    /// `default_timeout`, 60.
    #[schemars(extend("default" = 60, "exclusiveMinimum" = 0))]
    timeout_seconds: Option<f64>,
    /// Maximum number of concurrent invocations of the hook, over all runs. Default: the size of its pool.
    #[schemars(range(min = 1))]
    max_concurrency: Option<i64>,
    /// A line for `/bin/sh`, run in the workspace's root or in `cwd`. Alternative: `args`.
    command: Option<shape::ShellLine>,
    /// A program and its arguments, without a shell. Alternative: `command`.
    #[schemars(length(min = 1))]
    args: Option<Vec<shape::Argument>>,
    /// Working directory: a path relative to the workspace's root and inside it. Default: the root.
    #[schemars(extend("default" = "."))]
    cwd: Option<shape::InsidePath>,
    /// Environment variables, in addition to the few that it inherits from hookyard. `${env.NAME}` and
    /// `${secrets.NAME}` are replaced.
    #[schemars(extend("propertyNames" = { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" }))]
    environment: Option<NamedMap<shape::Argument>>,
    /// Restrictions of the process. The settings of hookyard may restrict it further.
    sandbox: Option<SandboxSchema>,
    /// How the process is started. `oneshot`: one process per event; `prespawn`: one process per event, started in
    /// advance; `worker`: one process for many events, over the worker protocol. Default: oneshot.
    #[schemars(extend("default" = "oneshot"))]
    mode: Option<ModeSchema>,
    /// With `mode: prespawn`: number of processes that wait, 1 to 64. Default: 1.
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    spares: Option<i64>,
    /// With `mode: worker`: maximum number of processes, 1 to 64. Default: 1.
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    workers: Option<i64>,
    /// With `mode: worker`: replace a process after this many events. Default: 10000.
    #[schemars(range(min = 1), extend("default" = 10000))]
    max_requests: Option<i64>,
    /// With `mode: worker`: stop a process after this many seconds without events. Default: 60.
    #[schemars(range(min = 1, max = 31_622_400), extend("default" = 60))]
    max_idle_seconds: Option<i64>,
    /// With `mode: worker`: replace a process after this many seconds. Default: no limit.
    #[schemars(range(min = 1, max = 31_622_400))]
    max_age_seconds: Option<i64>,
    /// With `mode: worker`: replace a process that uses more memory than this, in MiB. Default: no limit.
    #[schemars(range(min = 1))]
    max_rss_mib: Option<i64>,
}

/// What a program's process may do.
#[derive(JsonSchema)]
#[schemars(rename = "Sandbox", deny_unknown_fields, inline)]
#[schemars(extend("dependentSchemas" = {
    "write": { "required": ["filesystem"], "properties": { "filesystem": { "not": { "const": "any" } } } },
}))]
struct SandboxSchema {
    /// `any` file, `workspace` to read the system's programs and read and write the workspace, or `read_only` to read
    /// both. Default: any.
    #[schemars(extend("default" = "any"))]
    filesystem: Option<FilesystemSchema>,
    /// Directories that may be written: paths relative to the workspace's root and inside it.
    write: Option<Vec<shape::InsidePath>>,
    /// `any` network, or `none` to refuse all sockets. Default: any.
    #[schemars(extend("default" = "any"))]
    network: Option<NetworkSchema>,
    /// Limits of each process.
    limits: Option<SandboxLimitsSchema>,
    /// Whether the hook fails where the sandbox cannot be enforced. Default: false.
    #[schemars(extend("default" = false))]
    require: Option<bool>,
}

/// Which files a process may use.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
enum FilesystemSchema {
    Any,
    Workspace,
    ReadOnly,
}

/// Whether a process may use the network.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
enum NetworkSchema {
    Any,
    None,
}

/// Limits of a process.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, inline)]
struct SandboxLimitsSchema {
    /// Processor time, in seconds.
    #[schemars(range(min = 1, max = 31_622_400))]
    cpu_seconds: Option<i64>,
    /// Memory for data, in MiB.
    #[schemars(range(min = 1, max = 1_048_576))]
    memory_mib: Option<i64>,
    /// Open files.
    #[schemars(range(min = 1, max = 1_048_576))]
    files: Option<i64>,
    /// Processes and threads of the user that hooks run as, all others of that user included. Root has no such limit.
    #[schemars(range(min = 1, max = 1_048_576))]
    processes: Option<i64>,
    /// Size of a file that the process writes, in MiB.
    #[schemars(range(min = 1, max = 1_048_576))]
    file_size_mib: Option<i64>,
}

/// How a program's process is started.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
enum ModeSchema {
    Oneshot,
    Prespawn,
    Worker,
}

/// A request to a web server, with the event as its body. Status 200 to 299: the body is the answer, or empty; any
/// other: the hook failed.
#[derive(JsonSchema)]
#[schemars(rename = "HttpHandler", deny_unknown_fields)]
struct HttpHandlerSchema {
    /// `http`: a request to a web server.
    #[schemars(extend("const" = "http"))]
    r#type: Value,
    /// Timeout per event, in seconds, fractions allowed; at most the setting `max_timeout`. Default: the setting
    /// `default_timeout`, 60.
    #[schemars(extend("default" = 60, "exclusiveMinimum" = 0))]
    timeout_seconds: Option<f64>,
    /// Maximum number of concurrent invocations of the hook, over all runs. Default: the size of its pool.
    #[schemars(range(min = 1))]
    max_concurrency: Option<i64>,
    /// Address: `http://` or `https://`, without user or password; with the setting `allow_unix_sockets`
    /// also `unix:/path/to.sock:/route`.
    url: shape::HookAddress,
    /// Method. A `GET` has no body, so the server does not get the event. Default: POST.
    #[schemars(extend("default" = "POST"))]
    method: Option<shape::Method>,
    /// Headers. `${env.NAME}` and `${secrets.NAME}` are replaced.
    #[schemars(extend("propertyNames" = { "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" }))]
    headers: Option<NamedMap<shape::HeaderValue>>,
}

/// A question to a language model. The model gets the event with it, and answers with one JSON object.
#[derive(JsonSchema)]
#[schemars(rename = "PromptHandler", deny_unknown_fields)]
struct PromptHandlerSchema {
    /// `prompt`: a question to a language model.
    #[schemars(extend("const" = "prompt"))]
    r#type: Value,
    /// Timeout per event, in seconds, fractions allowed; at most the setting `max_timeout`. Default: the setting
    /// `default_timeout`, 60.
    #[schemars(extend("default" = 60, "exclusiveMinimum" = 0))]
    timeout_seconds: Option<f64>,
    /// Maximum number of concurrent invocations of the hook, over all runs. Default: the size of its pool.
    #[schemars(range(min = 1))]
    max_concurrency: Option<i64>,
    /// The question: `inline`, or in a `file`.
    prompt: TextSchema,
    /// The model, by its name under `models` in the settings.
    model_ref: Option<String>,
}

/// A task for an agent: a language model that may read the workspace before it answers with one JSON object.
#[derive(JsonSchema)]
#[schemars(rename = "AgentHandler", deny_unknown_fields)]
struct AgentHandlerSchema {
    /// `agent`: a task for an agent.
    #[schemars(extend("const" = "agent"))]
    r#type: Value,
    /// Timeout per event, in seconds, fractions allowed; at most the setting `max_timeout`. Default: the setting
    /// `default_timeout`, 60.
    #[schemars(extend("default" = 60, "exclusiveMinimum" = 0))]
    timeout_seconds: Option<f64>,
    /// Maximum number of concurrent invocations of the hook, over all runs. Default: the size of its pool.
    #[schemars(range(min = 1))]
    max_concurrency: Option<i64>,
    /// The agent, by the name of its file: `.openharness/agents/NAME.md`.
    agent: shape::AgentName,
    /// The task: `inline`, or in a `file`.
    task: TextSchema,
}

/// An agent for hooks of type `agent`. These keys are the front matter, between two lines `---`; its role follows.
#[derive(JsonSchema)]
#[schemars(title = "Keys of an agent's file", deny_unknown_fields)]
pub(super) struct AgentSchema {
    /// The model, by its name under `models` in the settings. Default: `default`.
    #[schemars(extend("default" = "default"))]
    model_ref: Option<String>,
    /// The same, as agents of OpenHarness have it: a name, or an object with `alias` or `model_ref`.
    model: Option<Value>,
    /// Tools to read the workspace with. Of an agent of OpenHarness, an object: of the tools in `native`, `Read`, `Grep` and
    /// `Glob` count. Default: none.
    #[schemars(default, schema_with = "agent_tools", extend("default" = []))]
    tools: Option<Value>,
    /// Maximum number of model calls per task, 1 to 50. Default: 8.
    #[schemars(range(min = 1, max = 50), extend("default" = 8))]
    max_turns: Option<i64>,
    /// What the agent is for. For people only.
    description: Option<String>,
    /// Of agents of OpenHarness; hooks do not use it.
    mode: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    policy: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    system_reminder: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    temperature: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    top_p: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    max_tokens: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    background: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    hidden: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    color: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    actions: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    skills: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    disallowed: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    switch: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    subagents: Option<Value>,
    /// Of agents of OpenHarness; hooks do not use it.
    name: Option<Value>,
}

/// A list of hookyard's tools, or the object of an agent of OpenHarness.
fn agent_tools(generator: &mut SchemaGenerator) -> Schema {
    let tool = generator.subschema_for::<shape::Tool>();
    json_schema!({
        "type": ["array", "object"],
        "if": { "type": "array" },
        "then": { "items": tool },
    })
}

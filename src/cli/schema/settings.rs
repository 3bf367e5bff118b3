//! The shape of the settings file. Owns what editors say about its keys; refuses to say what their defaults are,
//! which it takes from the file that is shipped.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, json_schema, transform::transform_subschemas};
use serde_json::Value;

use super::shape;
use crate::model::DialectName;

/// Every key at its default.
const SHIPPED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/hookyard.yaml"));

/// The schema. Whatever is left out has its default, so only models have keys that must be there.
pub(super) fn schema() -> Schema {
    let mut schema = shape::with_nulls::<Settings>();
    let defaults = serde_yaml::from_str(SHIPPED).unwrap_or(Value::Null);
    let definitions = schema.get("$defs").cloned().unwrap_or_default();
    add_defaults(&mut schema, &defaults, &definitions);
    schema.remove("$defs");
    schema
}

/// Puts the parts of the schema where they are used, each key with its default: the same part may have other
/// defaults elsewhere.
fn add_defaults(schema: &mut Schema, defaults: &Value, definitions: &Value) {
    schema.remove("required");
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (key, property) in properties {
        let Ok(property) = <&mut Schema>::try_from(property) else { continue };
        unfold(property, definitions);
        match &defaults[key.as_str()] {
            inner @ Value::Object(keys) if !keys.is_empty() => add_defaults(property, inner, definitions),
            default => {
                property.insert("default".to_owned(), default.clone());
            }
        }
    }
}

/// Puts the definition that a schema refers to in its place.
fn unfold(schema: &mut Schema, definitions: &Value) {
    if let Some(Value::String(reference)) = schema.remove("$ref")
        && let Some(Value::Object(definition)) = definitions.get(reference.trim_start_matches("#/$defs/"))
        && let Some(object) = schema.as_object_mut()
    {
        for (key, value) in definition {
            object.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    transform_subschemas(&mut |inner: &mut Schema| unfold(inner, definitions), schema);
}

shape::texts! {
    /// A duration with its unit.
    Duration = json_schema!({ "type": "string", "pattern": r"^(?=.*[1-9])\d+(\.\d*)?\s*(ms|s|m|h)$" });
    /// A size with its unit.
    Size = json_schema!({ "type": "string", "pattern": r"^(?=.*[1-9])\d+(\.\d*)?\s*(KiB|MiB|GiB|B)$" });
    /// A number of things.
    Count = json_schema!({ "type": "integer", "minimum": 1, "maximum": 1_000_000_000 });
    /// An absolute path, or none.
    AbsolutePath = json_schema!({ "type": ["string", "null"], "pattern": r"^/[^\x00]*$" });
    /// An absolute path.
    SomePath = json_schema!({ "type": "string", "pattern": r"^/[^\x00]*$" });
    /// An absolute path of a socket, or none.
    SocketPath = json_schema!({ "type": ["string", "null"], "pattern": r"^/[^\x00]{0,106}$" });
    /// An IP address with its port, or none.
    TcpAddress = json_schema!({
        "type": ["string", "null"],
        "pattern": r"^(((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)|\[[0-9A-Fa-f:.]+(%\d+)?\]):\d{1,5}$",
    });
    /// Where audit lines go.
    AuditPlace = json_schema!({ "type": ["string", "null"], "pattern": r"^(stdout|/[^\x00]*)$" });
    /// When audit lines are put on the disk.
    AuditSync = json_schema!({
        "type": "string", "pattern": r"^(never|always|(?=.*[1-9])\d+(\.\d*)?\s*(ms|s|m|h))$",
    });
    /// What audit lines tell of changes.
    AuditPatches = json_schema!({ "enum": ["paths", "values", "none"] });
    /// Where traces go.
    TracePlace = json_schema!({
        "type": ["string", "null"], "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s\x00-\x1f\\@$/?#]+([/?#][^\s\x00-\x1f\\$]*)?$",
    });
    /// What a workspace is for.
    Kind = json_schema!({ "enum": ["project", "chat", null] });
    /// Whose hooks a workspace runs.
    Dialects = {
        let known = DialectName::ALL.iter().filter(|name| **name != DialectName::Canonical);
        let known: Vec<&str> = known.map(|name| name.as_str()).collect();
        json_schema!({
            "anyOf": [
                { "enum": ["auto", null] },
                { "type": "array", "items": { "enum": known } },
            ]
        })
    };
    /// The beginning of variables' names, or none.
    VariablePrefix = json_schema!({ "type": ["string", "null"], "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" });
    /// A variable's name, or the beginning of several with a `*`.
    Variables = json_schema!({ "type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]*\*?$" });
}

/// The settings of hookyard. A key that is left out has its default.
#[derive(JsonSchema)]
#[schemars(title = "hookyard settings", deny_unknown_fields)]
struct Settings {
    /// Where a daemon listens.
    listen: Listen,
    /// The workspaces of a daemon, by their ids.
    #[schemars(extend("propertyNames" = { "pattern": r"^[^\x00-\x1f\x7f-\x9f]{1,256}$" }))]
    workspaces: BTreeMap<String, Workspace>,
    /// Directories, by absolute paths: an event whose `cwd` is below one registers the nearest directory with
    /// hook files.
    workspace_roots: Vec<SomePath>,
    /// Whether changed hook files are read again by themselves.
    watch: bool,
    /// The timeout of hooks that have none: a number with its unit (`ms`, `s`, `m`, `h`).
    default_timeout: Duration,
    /// The longest timeout a hook may have: a number with its unit (`ms`, `s`, `m`, `h`).
    max_timeout: Duration,
    /// How long a shutdown waits for what is under way: a number with its unit (`ms`, `s`, `m`, `h`).
    shutdown_deadline: Duration,
    /// How many hooks run and wait, by kind of handler.
    pools: Pools,
    /// What is too much.
    limits: Limits,
    /// What is written down of outcomes: a line of JSON for each.
    audit: Audit,
    /// Where traces of events go, as OTLP, and of how many; for programs that are built with the feature `otel`.
    traces: Traces,
    /// How many interceptor events of one run are worked on at the same time.
    interceptor_concurrency: Count,
    /// After how long without events a run's actor stops; the run itself goes on. With a unit (`s`, `m`, `h`).
    run_idle: Duration,
    /// After how long without events a run is forgotten. With a unit (`s`, `m`, `h`).
    run_forget: Duration,
    /// Variables of hookyard's environment that commands get beside the usual ones: `NAME` or `PREFIX_*`.
    pass_environment: Vec<Variables>,
    /// Whether hooks may set variables such as `LD_PRELOAD`, which make programs run other code.
    allow_unsafe_environment: bool,
    /// Whether http hooks may ask servers at Unix sockets, as `unix:/path/to.sock:/route`.
    allow_unix_sockets: bool,
    /// The home directory with the user's own hooks, by an absolute path; `null`: `$HOOKYARD_HOME` or `$HOME`.
    home: AbsolutePath,
    /// The directory with the hooks that an administrator installed, by an absolute path; `null`: `/etc`.
    system_directory: AbsolutePath,
    /// Where `${secrets.NAME}` in hook files is looked up, in this order.
    secrets: Secrets,
    /// The language models that hooks may ask, by the names that hook files have for them (`model_ref`).
    #[schemars(extend("propertyNames" = { "pattern": r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$", "maxLength": 256 }))]
    models: BTreeMap<String, LanguageModel>,
}

/// How many hooks run and wait, by kind of handler.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Pools {
    /// Command hooks: programs.
    command: Pool,
    /// Http hooks: requests to servers.
    http: Pool,
    /// Prompt hooks: questions to a language model.
    prompt: Pool,
    /// Agent hooks: language models that look around the workspace before they answer.
    agent: Pool,
    /// Native hooks: closures of an embedding program.
    native: NativePool,
}

/// How many hooks of one kind run and wait.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Pool {
    /// How many run at the same time.
    concurrency: Count,
    /// How many may wait; one more is shed.
    queue: Count,
    /// How long one may wait before it is shed: a number with its unit (`ms`, `s`, `m`, `h`).
    queue_deadline: Duration,
}

/// How many native hooks run.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct NativePool {
    /// How many run at the same time.
    concurrency: Count,
}

/// What is too much.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Limits {
    /// The largest event: a number with its unit (`B`, `KiB`, `MiB`, `GiB`).
    payload: Size,
    /// How much of a command's standard output is kept: a number with its unit (`B`, `KiB`, `MiB`, `GiB`).
    stdout: Size,
    /// How much of a command's standard error is kept: a number with its unit (`B`, `KiB`, `MiB`, `GiB`).
    stderr: Size,
    /// How much a server may answer an http hook with, decoded: a number with its unit (`B`, `KiB`, `MiB`, `GiB`).
    http_body: Size,
    /// How much a model may answer with, decoded: a number with its unit (`B`, `KiB`, `MiB`, `GiB`).
    model_body: Size,
    /// How many runs are remembered.
    runs: Count,
    /// How many events are worked on at the same time.
    in_flight: Count,
    /// How many events of one run may wait.
    pending_per_run: Count,
    /// How long an event may wait for its turn: a number with its unit (`ms`, `s`, `m`, `h`).
    pending_deadline: Duration,
    /// How many answers of one run are kept for events that are sent again.
    answers_per_run: Count,
    /// How many connections to the daemon are open.
    connections: Count,
    /// How many requests the daemon works on at the same time.
    requests: Count,
    /// How many readers the daemon's stream has.
    streams: Count,
    /// How long a request's head may take: a number with its unit (`ms`, `s`, `m`, `h`).
    header_timeout: Duration,
    /// How long a request's body, or the reading of an answer, may stand still. With a unit (`ms`, `s`, `m`, `h`).
    body_timeout: Duration,
    /// How long a connection may be idle: a number with its unit (`ms`, `s`, `m`, `h`).
    idle_timeout: Duration,
    /// How many workspaces are registered.
    workspaces: Count,
}

/// What is written down of outcomes.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Audit {
    /// A file, by an absolute path, or `stdout`. `null`: nothing is written.
    to: AuditPlace,
    /// How large the file may get before it is set aside: a number with its unit (`B`, `KiB`, `MiB`, `GiB`).
    max_size: Size,
    /// How many files that were set aside are kept.
    keep: Count,
    /// How many lines may wait to be written; one more is dropped and counted.
    queue: Count,
    /// When lines are put on the disk: `always`, `never`, or at the latest after a time (`ms`, `s`, `m`, `h`).
    sync: AuditSync,
    /// What is told of what hooks changed: the `paths` of changed values, the `values` themselves, or `none`.
    patches: AuditPatches,
}

/// Where traces of events go, and of how many.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Traces {
    /// An address such as `http://127.0.0.1:4318/v1/traces`. `null`: what `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` says, and without them nowhere.
    endpoint: TracePlace,
    /// The share of events that are traced, 0 to 1. Where an event belongs to a trace of its host's, that one decides.
    #[schemars(range(min = 0, max = 1))]
    sample: f64,
}

/// Where a daemon listens.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Listen {
    /// The Unix socket, by an absolute path. `null`: `$XDG_RUNTIME_DIR/hookyard.sock`.
    socket: SocketPath,
    /// An address to listen on as well, such as `127.0.0.1:8787`; any that is not loopback needs `token_file`.
    tcp: TcpAddress,
    /// A file with the bearer token that TCP clients must send, with mode 0600, by an absolute path.
    token_file: AbsolutePath,
    /// An address where only `/metrics`, `/healthz` and `/readyz` are, without a token.
    metrics: TcpAddress,
}

/// A workspace of a daemon.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Workspace {
    /// Its directory, by an absolute path.
    root: SomePath,
    /// What it is for: `project`, whose hooks run, or `chat`. Default: what its own file says.
    kind: Option<Kind>,
    /// Whose hooks it runs: `auto`, or a list of dialects. Default: what its own file says.
    dialects: Option<Dialects>,
}

/// Where secrets are looked up.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Secrets {
    /// A directory with a directory of files for each workspace, by its id, which other workspaces do not see.
    /// `null`: not there.
    by_workspace: AbsolutePath,
    /// Variables of hookyard's environment: this and the secret's name. `null`: not there.
    env_prefix: VariablePrefix,
    /// A directory with a file for each secret, by an absolute path. `null`: not there.
    dir: AbsolutePath,
    /// A YAML mapping of names to strings, with mode 0600, by an absolute path. `null`: not there.
    file: AbsolutePath,
}

/// A language model.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct LanguageModel {
    /// The protocol it speaks: `openai` (chat completions) or `anthropic` (messages).
    api: shape::Api,
    /// Where it is spoken. Default: the maker's own server.
    base_url: Option<shape::ModelAddress>,
    /// The model's name there.
    model: String,
    /// Who asks, such as `${secrets.NAME}`. Default: nobody in particular.
    key: Option<String>,
    /// How it is made to answer in JSON: by the protocol's means (`object`), also with the object's schema
    /// (`schema`), or by words alone (`words`). Default: object.
    #[schemars(extend("default" = "object"))]
    json: Option<shape::Json>,
    /// How many tokens one answer may have. Default: 2048.
    #[schemars(transform = shape::without_null, extend("default" = 2048))]
    max_output_tokens: Option<Count>,
    /// How many bytes it may be asked with: a number with its unit (`B`, `KiB`, `MiB`, `GiB`). Default: 256KiB.
    #[schemars(transform = shape::without_null, extend("default" = "256KiB"))]
    max_input: Option<Size>,
    /// How freely it chooses its words, 0 to 2. Default: the model's own.
    #[schemars(range(min = 0, max = 2))]
    temperature: Option<f64>,
    /// The ids of the workspaces whose hooks may ask it. Default: all.
    workspaces: Option<Vec<String>>,
}

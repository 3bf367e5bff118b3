//! Every setting of hookyard: its key, type, default and description.

use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf, time::Duration};

use super::{
    super::workspace_options::{
        BrokenFilePolicy, DialectSelection, RequiredHook, TrustPolicy, WorkspaceKind,
    },
    audit::{AuditDestination, AuditPatches, AuditSync},
    boundaries::{HttpSettings, LevelSettings, LimitSettings, ListenSettings, OutboxSettings},
    bundle::BundleSettings,
    cluster::ClusterSettings,
    data::{DataDirectory, NodeName},
    declare::settings,
    entries::{HandlerMode, ProcessCount},
    sandbox::SandboxSettings,
    ship::ShipSettings,
    urls::{ModelUrl, TraceUrl},
    value_types::{
        Fraction, HookNameText, KIB, MIB, NullIsDefault, Required, Size, Temperature, VariablePattern,
        VariablePrefix, count,
    },
};
use crate::model::{Address, FailurePolicy, JsonOutput, ModelApi, SecretText, WorkspaceId};

settings! {
    /// The settings of hookyard.
    #[derive(Debug, Clone, PartialEq)]
    pub section Settings {
        /// Name of this daemon in decision ids and in the header `x-hookyard-node` of its responses: at most 63 letters,
        /// digits, `.`, `_` and `-`; `null` means the name of the machine.
        #[example = "edge-7"]
        node: Option<String> as Option<NodeName> = None,

        /// Addresses on which the daemon listens.
        listen: ListenSettings = ListenSettings::default(),

        /// Workspaces of the daemon, by workspace id.
        #[example = "shop"]
        workspaces: BTreeMap<WorkspaceId, WorkspaceSettings> = BTreeMap::new(),

        /// Directories below which the `cwd` of an event registers the nearest directory with hook files as a
        /// workspace.
        #[example = "[/srv, /home]"]
        workspace_roots: Vec<PathBuf> = Vec::new(),

        /// Whether hook files are reloaded when they change.
        watch: bool = true,

        /// Timeout of hooks that set none.
        default_timeout: Duration = Duration::from_mins(1),

        /// Longest timeout that a hook may set.
        max_timeout: Duration = Duration::from_mins(10),

        /// Longest time that a shutdown waits for events in progress.
        shutdown_deadline: Duration = Duration::from_secs(10),

        /// Concurrency and queue limits of each handler type.
        pools: PoolSettings = PoolSettings::default(),

        /// Limits on sizes, numbers and waiting times.
        limits: LimitSettings = LimitSettings::default(),

        /// Audit log: one line of JSON per outcome.
        audit: AuditSettings = AuditSettings::default(),

        /// Export of traces as OTLP over HTTP. Idle until there is an endpoint.
        traces: TraceSettings = TraceSettings::default(),

        /// Audit lines and the state of the daemon, sent to a server. They are kept in `data` until it has taken them.
        ship: ShipSettings = ShipSettings::default(),

        /// Maximum number of interceptor events of one run that are processed at the same time.
        interceptor_concurrency: NonZeroUsize = count(1),

        /// Time without events after which the actor of a run stops; the run itself is kept.
        run_idle: Duration = Duration::from_secs(30),

        /// Time without events after which a run is forgotten.
        run_forget: Duration = Duration::from_hours(1),

        /// Environment variables that commands get in addition to the standard ones, as `NAME` or `PREFIX_*`.
        #[example = "[CI, AWS_*]"]
        pass_environment: Vec<String> as Vec<VariablePattern> = Vec::new(),

        /// Whether hooks may set variables that make programs run other code, such as `LD_PRELOAD` or
        /// `NODE_OPTIONS`.
        allow_unsafe_environment: bool = false,

        /// Whether http hooks may connect to Unix sockets, as `unix:/path/to.sock:/route`.
        allow_unix_sockets: bool = false,

        /// Servers that http hooks may ask.
        http: HttpSettings = HttpSettings::default(),

        /// Home directory with the user's own hooks; `null` means that of the account hookyard runs as. Only the
        /// settings file, `--set` and `--home` can say so, not an environment variable.
        #[example = "/home/alice"]
        home: Option<PathBuf> = None,

        /// Directory with the hooks that an administrator installed; `null` means `/etc`. Only the settings file and
        /// `--set` can say so, not an environment variable.
        #[example = "/usr/local/etc"]
        system_directory: Option<PathBuf> = None,

        /// Whether hooks of workspaces need the trust of a person before they run: `enforce` or `off`. Only the
        /// settings file and `--set` can say so, not an environment variable.
        trust: TrustPolicy as NullIsDefault<TrustPolicy> = TrustPolicy::default(),

        /// Directory with the record of trusted hooks; `null` means `.local/state/hookyard` in the home directory.
        /// Only the settings file and `--set` can say so, not an environment variable.
        #[example = "/var/lib/hookyard"]
        state_directory: Option<PathBuf> = None,

        /// Directory in which the daemon keeps the state of runs, so that a restart forgets no halt: a path, `auto` for the
        /// directory of `state_directory`, or `null` to keep it in memory only. One daemon uses it at a time.
        #[example = "/var/lib/hookyard"]
        data: DataDirectory = DataDirectory::Auto,

        /// What becomes of the rules of a hook file, or of an agent's settings file, that is broken: `keep` uses those
        /// that it last had, also after a restart if there is a `data` directory; `deny` blocks the events that they
        /// guarded, or all that can be stopped in the workspace where its rules are not known. Only the settings file and
        /// `--set` can say so, not an environment variable.
        broken: BrokenFilePolicy as NullIsDefault<BrokenFilePolicy> = BrokenFilePolicy::default(),

        /// Lifecycle events that are kept in `data` until their hooks have ended. Sizes are in bytes.
        outbox: OutboxSettings = OutboxSettings::default(),

        /// Signed bundle of hooks that nothing below it switches off. Only the settings file and `--set` can say so, not an
        /// environment variable.
        bundle: BundleSettings = BundleSettings::default(),

        /// Whether this daemon is a node: one of several daemons behind a balancer.
        cluster: ClusterSettings = ClusterSettings::default(),

        /// What the processes of command hooks may do, by the level of the file that configures them.
        sandbox: SandboxSettings = SandboxSettings::default(),

        /// What lower levels of configuration may do to the hooks of higher ones.
        levels: LevelSettings = LevelSettings::default(),

        /// Hooks that must be in force. An event whose required hook is missing, disabled or broken is blocked, and so
        /// is one for which it fails or times out. An item is the name of a hook, or a mapping with `hook`, the
        /// `sha256` of its definition, and `events` and `workspaces` to which the requirement is limited.
        #[example = "[guard, {hook: audit, events: [before_tool_dispatch], workspaces: [shop]}]"]
        required: Vec<RequiredHook> = Vec::new(),

        /// How hooks are run, by the name of the hook, as `hookyard list` shows it, or by its command, as it is written: for
        /// hooks of agents' settings, which cannot say it themselves. Only the settings file and `--set` can say so, not an
        /// environment variable.
        #[example = "claude.user.PreToolUse.1.1"]
        handlers: BTreeMap<String, HandlerSettings> = BTreeMap::new(),

        /// Sources of `${secrets.NAME}` in hook files, in the order in which they are searched.
        secrets: SecretSources = SecretSources::default(),

        /// Language models that hooks may ask, by the name that hook files give in `model_ref`.
        #[example = "platform/small"]
        models: BTreeMap<String, ModelSettings> = BTreeMap::new(),
    }
}

settings! {
    /// A workspace of the daemon.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub entry WorkspaceSettings {
        /// Directory of the workspace.
        #[example = "/srv/shop"]
        root: PathBuf as Required<PathBuf> = PathBuf::new(),

        /// `project` runs hooks and `chat` never does; `null` means what the workspace's own settings file says.
        #[example = "project"]
        kind: Option<WorkspaceKind> = None,

        /// Dialects whose hooks run: `auto` or a list; `null` means what the workspace's own settings file says.
        #[example = "auto"]
        dialects: Option<DialectSelection> = None,
    }
}

settings! {
    /// How a hook is run. What is not said here stays as its own file has it.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub entry HandlerSettings {
        /// Whether the hook runs, if its own file and the levels above it do not switch it off. `hookyard disable` writes it.
        #[example = "false"]
        enabled: bool = true,

        /// The rule that stands in the hook's place: where a rule of this name is in force that belongs to the workspace as
        /// the hook does, the hook does not run. `hookyard tune --write --rules` writes it.
        #[example = "no-publish"]
        replaced_by: Option<String> as Option<HookNameText> = None,

        /// How the process of a command is started: `oneshot`, `prespawn` or `worker`; `null` means as its own file says.
        #[example = "prespawn"]
        mode: Option<HandlerMode> = None,

        /// Maximum number of processes that wait for events (`prespawn`) or serve them (`worker`).
        processes: NonZeroUsize as ProcessCount = count(1),

        /// Maximum number of events that the hook handles at the same time; `null` means as its own file says.
        #[example = "4"]
        max_concurrency: Option<NonZeroUsize> = None,

        /// What a failure counts as: `ask` or `deny`, if that is stricter than what its own file says.
        #[example = "deny"]
        on_error: Option<FailurePolicy> = None,

        /// What a timeout counts as: `ask` or `deny`, if that is stricter than what its own file says.
        #[example = "deny"]
        on_timeout: Option<FailurePolicy> = None,
    }
}

settings! {
    /// Concurrency and queue limits of each handler type.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section PoolSettings {
        /// Command hooks, which run programs.
        command: WorkerPoolSettings = WorkerPoolSettings::default(),

        /// Http hooks, which send requests to servers.
        http: WorkerPoolSettings = WorkerPoolSettings::default(),

        /// Prompt hooks, which ask a language model.
        prompt: WorkerPoolSettings =
            WorkerPoolSettings { concurrency: count(16), queue: count(256), ..WorkerPoolSettings::default() },

        /// Agent hooks, whose language model may read files of the workspace before it answers.
        agent: WorkerPoolSettings =
            WorkerPoolSettings { concurrency: count(8), queue: count(128), ..WorkerPoolSettings::default() },

        /// Native hooks, which are closures of an embedding program.
        native: NativePoolSettings = NativePoolSettings::default(),
    }
}

settings! {
    /// Limits of the pool of one handler type.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section WorkerPoolSettings {
        /// Maximum number of hooks that run at the same time. Hooks of lifecycle events and detached hooks leave a quarter
        /// of them, one at least, to interceptors; with 1, one of each kind may run.
        concurrency: NonZeroUsize = count(64),

        /// Maximum number of hooks that wait to run; further ones are shed.
        queue: NonZeroUsize = count(1024),

        /// Longest time that a hook waits to run before it is shed.
        queue_deadline: Duration = Duration::from_secs(30),
    }
}

settings! {
    /// Limits of the pool of native hooks.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section NativePoolSettings {
        /// Maximum number of hooks that run at the same time. Hooks of lifecycle events and detached hooks leave a quarter
        /// of them, one at least, to interceptors; with 1, one of each kind may run.
        concurrency: NonZeroUsize = count(1024),
    }
}

settings! {
    /// Audit log: one line of JSON per outcome. Sizes are in bytes.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section AuditSettings {
        /// Where lines are written: an absolute path or `stdout`; `null` means that none are.
        #[example = "/var/log/hookyard/audit.jsonl"]
        to: Option<AuditDestination> = None,

        /// Size at which the file is rotated.
        max_size: usize as Size = 64 * MIB,

        /// Number of rotated files that are kept.
        keep: NonZeroUsize = count(5),

        /// Maximum number of lines that wait to be written; further ones are dropped and counted.
        queue: NonZeroUsize = count(8192),

        /// When lines are synced to disk: `always` for each line, `never`, or an interval.
        #[example = "1s"]
        sync: AuditSync = AuditSync::Never,

        /// Whether an event is answered only once its line is written, also if no hook wants it. It gets the error
        /// `not_audited` otherwise, and is blocked in agents' formats.
        required: bool = false,

        /// What a line says about changes by hooks: the `paths` of changed values, the `values` themselves, or
        /// `none`.
        patches: AuditPatches = AuditPatches::Paths,
    }
}

settings! {
    /// Export of traces as OTLP over HTTP.
    #[derive(Debug, Clone, PartialEq)]
    pub section TraceSettings {
        /// URL of the collector; `null` means what `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or
        /// `OTEL_EXPORTER_OTLP_ENDPOINT` says, and without them traces are off.
        #[example = "http://127.0.0.1:4318/v1/traces"]
        endpoint: Option<Address> as Option<TraceUrl> = None,

        /// Fraction of events that are traced; for an event in a trace of its host, the host decides.
        sample: f64 as Fraction = 1.0,
    }
}

settings! {
    /// Sources of secrets, in the order in which they are searched.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section SecretSources {
        /// Directory with a subdirectory per id of a workspace that `workspaces` declares. It holds a file per secret
        /// that only the workspace with the root declared there can use.
        #[example = "/run/secrets/workspaces"]
        by_workspace: Option<PathBuf> = None,

        /// Prefix of the environment variables that hold secrets; the rest of the name is the name of the secret.
        env_prefix: Option<String> as Option<VariablePrefix> = Some("HOOKYARD_SECRET_".to_owned()),

        /// Directory with a file per secret.
        #[example = "/run/secrets"]
        dir: Option<PathBuf> = None,

        /// YAML file that maps names to strings; its mode must be 0600.
        #[example = "/etc/hookyard/secrets.yaml"]
        file: Option<PathBuf> = None,
    }
}

settings! {
    /// A language model that hooks may ask, before its key is looked up. Sizes are in bytes.
    #[derive(Debug, Clone, PartialEq)]
    pub entry ModelSettings {
        /// Protocol: `openai` for chat completions or `anthropic` for messages.
        #[example = "openai"]
        api: ModelApi as Required<ModelApi> = ModelApi::OpenAi,

        /// Base URL of the API; `null` means the provider's own server.
        #[example = "http://127.0.0.1:11434/v1"]
        base_url: Option<Address> as Option<ModelUrl> = None,

        /// Name of the model at the server.
        #[example = "qwen3:8b"]
        model: String as Required<String> = String::new(),

        /// API key, which may refer to `${secrets.NAME}` and `${env.NAME}`; `null` means that none is sent.
        #[example = "\"${secrets.MODEL_KEY}\""]
        key: Option<SecretText> = None,

        /// How the model is made to answer in JSON: `object` and `schema` by the means of the protocol, `words` by
        /// instructions alone.
        json: JsonOutput as NullIsDefault<JsonOutput> = JsonOutput::Object,

        /// Maximum number of tokens of an answer. A verdict takes a few dozen; a patched prompt takes more.
        max_output_tokens: NonZeroUsize = count(2048),

        /// Maximum size of a question.
        max_input: usize as Size = 256 * KIB,

        /// Sampling temperature; `null` means the model's default.
        #[example = "0"]
        temperature: Option<f64> as Option<Temperature> = None,

        /// Ids under which `workspaces` declares the workspaces whose hooks may ask the model; `null` means all.
        #[example = "[shop]"]
        workspaces: Option<Vec<String>> = None,
    }
}

//! The settings of hookyard: their defaults and how they are read. Refuses to apply them.

use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    models::{self, ModelSettings},
    secrets::SecretSources,
    section::Section,
};
use crate::{
    dialect::{Document, HookRules, UnixSockets, UnsafeVariables},
    model::Diagnostic,
};

/// Everything that can be set, with its unit in the type or the description.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The timeout of hooks that have none.
    pub default_timeout: Duration,
    /// The longest timeout a hook may have.
    pub max_timeout: Duration,
    /// How long a shutdown waits for what is under way.
    pub shutdown_deadline: Duration,
    /// How many hooks run and wait, by kind of handler.
    pub pools: Pools,
    /// What is too much.
    pub limits: Limits,
    /// How many interceptor events of one run are worked on at the same time.
    pub interceptor_concurrency: NonZeroUsize,
    /// After how long without events a run's actor stops; the run itself goes on.
    pub run_idle: Duration,
    /// After how long without events a run is forgotten.
    pub run_forget: Duration,
    /// Variables of hookyard's environment that commands get beside the usual ones: `NAME` or `PREFIX_*`.
    pub pass_environment: Vec<String>,
    /// Whether hooks may set variables such as `LD_PRELOAD`, which make programs run other code.
    pub allow_unsafe_environment: bool,
    /// Whether http hooks may ask servers at Unix sockets, which often trust whoever can connect.
    pub allow_unix_sockets: bool,
    /// The home directory with the user's own hooks; without one, `$HOOKYARD_HOME` or `$HOME`.
    pub home: Option<PathBuf>,
    /// The directory with the hooks that an administrator installed; without one, `/etc`.
    pub system_directory: Option<PathBuf>,
    /// Where `${secrets.NAME}` in hook files is looked up.
    pub secrets: SecretSources,
    /// The language models that hooks may ask, by the names hook files have for them.
    pub models: BTreeMap<String, ModelSettings>,
}

/// How many hooks run and wait, by kind of handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pools {
    /// Command hooks.
    pub command: WorkerPool,
    /// Http hooks.
    pub http: WorkerPool,
    /// Prompt hooks.
    pub prompt: WorkerPool,
    /// Agent hooks.
    pub agent: WorkerPool,
    /// Native hooks.
    pub native: NativePool,
}

/// How many hooks of one kind of handler run and wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerPool {
    /// How many run at the same time.
    pub concurrency: NonZeroUsize,
    /// How many may wait; one more is shed.
    pub queue: NonZeroUsize,
    /// How long one may wait before it is shed.
    pub queue_deadline: Duration,
}

/// How many native hooks run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativePool {
    /// How many run at the same time.
    pub concurrency: NonZeroUsize,
}

/// What is too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest event, in bytes.
    pub payload: usize,
    /// How much of a command's standard output is kept, in bytes.
    pub stdout: usize,
    /// How much of a command's standard error is kept, in bytes.
    pub stderr: usize,
    /// How much a server may answer an http hook with, in bytes, decoded.
    pub http_body: usize,
    /// How much a model may answer with, in bytes, decoded.
    pub model_body: usize,
    /// How many runs are remembered.
    pub runs: NonZeroUsize,
    /// How many events are worked on at the same time.
    pub in_flight: NonZeroUsize,
    /// How many events of one run may wait.
    pub pending_per_run: NonZeroUsize,
    /// How long an event may wait for its turn.
    pub pending_deadline: Duration,
    /// How many answers of one run are kept for events that are sent again.
    pub answers_per_run: NonZeroUsize,
}

const fn count(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            default_timeout: Duration::from_mins(1),
            max_timeout: Duration::from_mins(10),
            shutdown_deadline: Duration::from_secs(10),
            pools: Pools::default(),
            limits: Limits::default(),
            interceptor_concurrency: count(1),
            run_idle: Duration::from_secs(30),
            run_forget: Duration::from_hours(1),
            pass_environment: Vec::new(),
            allow_unsafe_environment: false,
            allow_unix_sockets: false,
            home: None,
            system_directory: None,
            secrets: SecretSources::default(),
            models: BTreeMap::new(),
        }
    }
}

impl Default for Pools {
    fn default() -> Self {
        let usual = WorkerPool {
            concurrency: count(64),
            queue: count(1024),
            queue_deadline: Duration::from_secs(30),
        };
        let prompt = WorkerPool { concurrency: count(16), queue: count(256), ..usual.clone() };
        let agent = WorkerPool { concurrency: count(8), queue: count(128), ..usual.clone() };
        let native = NativePool { concurrency: count(1024) };
        Self { command: usual.clone(), http: usual, prompt, agent, native }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload: 16 << 20,
            stdout: 1 << 20,
            stderr: 64 << 10,
            http_body: 1 << 20,
            model_body: 1 << 20,
            runs: count(1_000_000),
            in_flight: count(16_384),
            pending_per_run: count(64),
            pending_deadline: Duration::from_secs(30),
            answers_per_run: count(64),
        }
    }
}

impl Settings {
    /// Reads a settings file; a key that is absent has its default.
    ///
    /// Returns the settings if the file has no error, and everything that is wrong with it.
    ///
    /// ```
    /// use std::path::Path;
    /// use hookyard::config::Settings;
    ///
    /// let (settings, diagnostics) = Settings::from_yaml("default_timeout: 5s", Path::new("hookyard.yaml"));
    /// assert_eq!(settings.unwrap().default_timeout.as_secs(), 5);
    /// assert!(diagnostics.is_empty());
    /// ```
    pub fn from_yaml(text: &str, file: &Path) -> (Option<Self>, Vec<Diagnostic>) {
        let (settings, _, diagnostics) = Self::read_file(text, file);
        (settings, diagnostics)
    }

    fn read_file(text: &str, file: &Path) -> (Option<Self>, Vec<&'static str>, Vec<Diagnostic>) {
        let document = match Document::parse(text.as_bytes(), file) {
            Ok(document) => document,
            // A file in which every key is commented out says: all defaults.
            Err(diagnostic) if diagnostic.code == "empty-document" => {
                return (Some(Self::default()), Vec::new(), Vec::new());
            }
            Err(diagnostic) => return (None, Vec::new(), vec![*diagnostic]),
        };
        let mut settings = Self::default();
        let absent = settings.take(&document);
        (Some(settings).filter(|_| !document.has_errors()), absent, document.into_diagnostics())
    }

    /// Takes what a document says, and tells which keys it does not have.
    fn take(&mut self, document: &Document<'_>) -> Vec<&'static str> {
        let Some(mapping) = document.root() else { return Vec::new() };
        let mut root = Section::new(Some(mapping.clone()));
        root.duration("default_timeout", &mut self.default_timeout);
        root.duration("max_timeout", &mut self.max_timeout);
        root.duration("shutdown_deadline", &mut self.shutdown_deadline);
        root.section("pools", |pools| self.pools.take(pools));
        root.section("limits", |limits| self.limits.take(limits));
        root.count("interceptor_concurrency", &mut self.interceptor_concurrency);
        root.duration("run_idle", &mut self.run_idle);
        root.duration("run_forget", &mut self.run_forget);
        root.variables("pass_environment", &mut self.pass_environment);
        root.flag("allow_unsafe_environment", &mut self.allow_unsafe_environment);
        root.flag("allow_unix_sockets", &mut self.allow_unix_sockets);
        root.path("home", &mut self.home);
        root.path("system_directory", &mut self.system_directory);
        root.section("secrets", |secrets| {
            secrets.variable_prefix("env_prefix", &mut self.secrets.env_prefix);
            secrets.path("dir", &mut self.secrets.dir);
            secrets.path("file", &mut self.secrets.file);
        });
        self.models = models::read(&mut root);
        if self.default_timeout > self.max_timeout
            && let Some(value) = mapping.get("default_timeout").or_else(|| mapping.get("max_timeout"))
        {
            let message = "`default_timeout` is longer than `max_timeout`";
            value.error("timeout", message, "shorten the one or raise the other");
        }
        root.finish()
    }

    /// What hook files are checked against under these settings.
    pub(super) fn hook_rules(&self) -> HookRules {
        HookRules {
            default_timeout: self.default_timeout,
            max_timeout: self.max_timeout,
            unsafe_variables: if self.allow_unsafe_environment {
                UnsafeVariables::Allowed
            } else {
                UnsafeVariables::Refused
            },
            unix_sockets: if self.allow_unix_sockets { UnixSockets::Allowed } else { UnixSockets::Refused },
        }
    }
}

impl Pools {
    fn take(&mut self, pools: &mut Section<'_>) {
        pools.section("command", |command| self.command.take(command));
        pools.section("http", |http| self.http.take(http));
        pools.section("prompt", |prompt| self.prompt.take(prompt));
        pools.section("agent", |agent| self.agent.take(agent));
        pools.section("native", |native| native.count("concurrency", &mut self.native.concurrency));
    }
}

impl WorkerPool {
    fn take(&mut self, pool: &mut Section<'_>) {
        pool.count("concurrency", &mut self.concurrency);
        pool.count("queue", &mut self.queue);
        pool.duration("queue_deadline", &mut self.queue_deadline);
    }
}

impl Limits {
    fn take(&mut self, limits: &mut Section<'_>) {
        limits.size("payload", &mut self.payload);
        limits.size("stdout", &mut self.stdout);
        limits.size("stderr", &mut self.stderr);
        limits.size("http_body", &mut self.http_body);
        limits.size("model_body", &mut self.model_body);
        limits.count("runs", &mut self.runs);
        limits.count("in_flight", &mut self.in_flight);
        limits.count("pending_per_run", &mut self.pending_per_run);
        limits.duration("pending_deadline", &mut self.pending_deadline);
        limits.count("answers_per_run", &mut self.answers_per_run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHIPPED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/hookyard.yaml"));

    fn mistakes(text: &str) -> Vec<String> {
        let (settings, diagnostics) = Settings::from_yaml(text, Path::new("h.yaml"));
        assert_eq!(settings.is_none(), !diagnostics.is_empty());
        diagnostics.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_shipped_file_has_every_key_at_its_default() {
        let (settings, absent, diagnostics) = Settings::read_file(SHIPPED, Path::new("hookyard.yaml"));
        assert_eq!(diagnostics, []);
        assert_eq!(settings, Some(Settings::default()));
        assert_eq!(absent, Vec::<&str>::new());
    }

    #[test]
    fn every_key_of_the_shipped_file_has_a_comment() {
        for line in SHIPPED.lines().filter(|line| line.contains(':') && !line.trim_start().starts_with('#')) {
            assert!(line.contains('#') || line.trim_end().ends_with(':'), "{line}");
        }
    }

    #[test]
    fn absent_keys_and_empty_files_mean_defaults() {
        for text in ["", "# nothing\n", "{}"] {
            assert_eq!(Settings::from_yaml(text, Path::new("x")).0, Some(Settings::default()), "{text:?}");
        }
    }

    #[test]
    fn what_is_written_counts() {
        let text = "max_timeout: 2h\npools: { command: { concurrency: 3 } }\nlimits: { stdout: 2KiB }\n\
                    pass_environment: [CI, AWS_*]\nallow_unsafe_environment: true\n";
        let settings = Settings::from_yaml(text, Path::new("x")).0.unwrap();
        assert_eq!(settings.max_timeout.as_secs(), 7200);
        assert_eq!(settings.pools.command.concurrency.get(), 3);
        assert_eq!(settings.pools.command.queue.get(), 1024);
        assert_eq!(settings.limits.stdout, 2048);
        assert_eq!(settings.pass_environment, ["CI", "AWS_*"]);
        assert!(settings.allow_unsafe_environment);
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let text = "defualt_timeout: 5s\nmax_timeout: 60\nshutdown_deadline: -1s\n\
                    pools: { command: { queue: 0, queu: 1 }, promt: {} }\nlimits: { runs: 1.5, stdout: big }\n\
                    pass_environment: ['*', 3]\nallow_unsafe_environment: yes\ninterceptor_concurrency: '2'\n\
                    secrets: { env_prefix: A-B, dir: here, fil: /x }\n";
        let found = mistakes(text).join("\n");
        for expected in [
            "h.yaml:1:1: unknown key `defualt_timeout` (did you mean `default_timeout`?)",
            "h.yaml:2:14: `max_timeout` must be a duration (write it with its unit",
            "h.yaml:3:20: `shutdown_deadline` must be a duration",
            "`queue` is out of range",
            "unknown key `queu` (did you mean `queue`?)",
            "unknown key `promt`",
            "`runs` must be a whole number, not a number",
            "`stdout` must be a size",
            "`pass_environment` has no names of variables here",
            "`pass_environment` must be a string, not a number",
            "`allow_unsafe_environment` must be a boolean, not a string",
            "`interceptor_concurrency` must be a whole number, not a string",
            "`env_prefix` is no beginning of a variable's name",
            "`dir` must be an absolute path",
            "unknown key `fil` (did you mean `file`?)",
        ] {
            assert!(found.contains(expected), "{expected}\nin\n{found}");
        }
    }

    #[test]
    fn a_default_timeout_beyond_the_longest_is_a_mistake() {
        let expected = "h.yaml:1:14: `default_timeout` is longer than `max_timeout` (shorten the one or raise the other)";
        assert_eq!(mistakes("max_timeout: 1s"), [expected]);
    }
}

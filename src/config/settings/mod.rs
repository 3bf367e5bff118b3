//! The settings of hookyard: their defaults and how they are read. Refuses to apply them.

mod audit;
mod layers;
mod limits;
mod listen;
mod pools;
mod traces;
mod workspaces;

pub use audit::{AuditDestination, AuditPatches, AuditSettings, AuditSync};
pub use limits::LimitSettings;
pub use listen::ListenSettings;
pub use pools::{NativePoolSettings, PoolSettings, WorkerPoolSettings};
pub use traces::TraceSettings;
pub use workspaces::WorkspaceSettings;

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
    dialect::{HookRules, Mapping, UnixSockets, UnsafeVariables, Value},
    model::{Diagnostic, WorkspaceId},
};

/// Everything that can be set, with its unit in the type or the description.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where a daemon listens.
    pub listen: ListenSettings,
    /// The workspaces of a daemon, by their ids.
    pub workspaces: BTreeMap<WorkspaceId, WorkspaceSettings>,
    /// Directories: an event from below one of them registers the nearest directory with hook files.
    pub workspace_roots: Vec<PathBuf>,
    /// Whether changed hook files are read again by themselves.
    pub watch: bool,
    /// The timeout of hooks that have none.
    pub default_timeout: Duration,
    /// The longest timeout a hook may have.
    pub max_timeout: Duration,
    /// How long a shutdown waits for what is under way.
    pub shutdown_deadline: Duration,
    /// How many hooks run and wait, by kind of handler.
    pub pools: PoolSettings,
    /// What is too much.
    pub limits: LimitSettings,
    /// What is written down of outcomes.
    pub audit: AuditSettings,
    /// Where traces of events go, and of how many.
    pub traces: TraceSettings,
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

const fn count(number: usize) -> NonZeroUsize {
    match NonZeroUsize::new(number) {
        Some(number) => number,
        None => NonZeroUsize::MIN,
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: ListenSettings::default(),
            workspaces: BTreeMap::new(),
            workspace_roots: Vec::new(),
            watch: true,
            default_timeout: Duration::from_mins(1),
            max_timeout: Duration::from_mins(10),
            shutdown_deadline: Duration::from_secs(10),
            pools: PoolSettings::default(),
            limits: LimitSettings::default(),
            audit: AuditSettings::default(),
            traces: TraceSettings::default(),
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

/// The value at a path of keys.
fn at<'d>(mapping: &Mapping<'d>, path: &[&str]) -> Option<Value<'d>> {
    let (key, rest) = path.split_first()?;
    let value = mapping.get(key)?;
    if rest.is_empty() { Some(value) } else { at(&value.as_mapping()?, rest) }
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
        Self::of_file(text, file)
    }

    /// Takes what a document says, and tells the paths of the keys it does not have.
    fn take(&mut self, mapping: Option<Mapping<'_>>) -> Vec<String> {
        let mut root = Section::new(mapping);
        root.section("listen", |listen| self.listen.take(listen));
        workspaces::read(&mut root, &mut self.workspaces);
        root.paths("workspace_roots", &mut self.workspace_roots);
        root.flag("watch", &mut self.watch);
        root.duration("default_timeout", &mut self.default_timeout);
        root.duration("max_timeout", &mut self.max_timeout);
        root.duration("shutdown_deadline", &mut self.shutdown_deadline);
        root.section("pools", |pools| self.pools.take(pools));
        root.section("limits", |limits| self.limits.take(limits));
        root.section("audit", |audit| self.audit.take(audit));
        root.section("traces", |traces| self.traces.take(traces));
        root.count("interceptor_concurrency", &mut self.interceptor_concurrency);
        root.duration("run_idle", &mut self.run_idle);
        root.duration("run_forget", &mut self.run_forget);
        root.variables("pass_environment", &mut self.pass_environment);
        root.flag("allow_unsafe_environment", &mut self.allow_unsafe_environment);
        root.flag("allow_unix_sockets", &mut self.allow_unix_sockets);
        root.path("home", &mut self.home);
        root.path("system_directory", &mut self.system_directory);
        root.section("secrets", |secrets| {
            secrets.path("by_workspace", &mut self.secrets.by_workspace);
            secrets.variable_prefix("env_prefix", &mut self.secrets.env_prefix);
            secrets.path("dir", &mut self.secrets.dir);
            secrets.path("file", &mut self.secrets.file);
        });
        models::read(&mut root, &mut self.models);
        root.finish()
    }

    /// Records what keys together come to, in the last of these documents that has one of them.
    fn check(&self, layers: &[Mapping<'_>]) {
        let last = |paths: [&[&str]; 2]| {
            layers.iter().rev().find_map(|layer| paths.iter().find_map(|path| at(layer, path)))
        };
        if self.default_timeout > self.max_timeout
            && let Some(value) = last([&["default_timeout"], &["max_timeout"]])
        {
            let message = "`default_timeout` is longer than `max_timeout`";
            value.error("timeout", message, "shorten the one or raise the other");
        }
        if self.listen.is_open()
            && let Some(value) = last([&["listen", "tcp"], &["listen", "token_file"]])
        {
            let message = "`tcp` is open to other machines, and there is no `token_file`";
            value.error("listen", message, "set `token_file`, or listen on `127.0.0.1`");
        }
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

#[cfg(test)]
mod tests {
    use super::{
        super::workspace_options::{DialectSelection, WorkspaceKind},
        *,
    };
    use crate::{dialect::Document, model::DialectName};

    const SHIPPED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/hookyard.yaml"));

    fn mistakes(text: &str) -> Vec<String> {
        let (settings, diagnostics) = Settings::from_yaml(text, Path::new("h.yaml"));
        assert_eq!(settings.is_none(), !diagnostics.is_empty());
        diagnostics.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_shipped_file_has_every_key_at_its_default() {
        let document = Document::parse(SHIPPED.as_bytes(), Path::new("hookyard.yaml")).unwrap();
        let mut settings = Settings::default();
        assert_eq!(settings.take(document.root()), Vec::<String>::new());
        assert_eq!(settings, Settings::default());
        assert_eq!(document.into_diagnostics(), []);
    }

    #[test]
    fn what_services_are_started_with_is_sound() {
        let container = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/container/hookyard.yaml"));
        let (settings, diagnostics) = Settings::from_yaml(container, Path::new("container.yaml"));
        let listen = settings.unwrap().listen;
        assert_eq!(diagnostics, []);
        assert!(!listen.is_open() && listen.tcp.is_some_and(|address| address.ip().is_unspecified()));
        let unit = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/systemd/hookyard.service"));
        let value =
            |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap();
        let stop = Duration::from_secs(value("TimeoutStopSec").parse().unwrap());
        assert!(stop > Settings::default().shutdown_deadline);
        let files: usize = value("LimitNOFILE").parse().unwrap();
        assert!(files > 2 * LimitSettings::default().connections.get());
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
    fn mistakes_in_what_a_daemon_needs_are_told() {
        let long = "/x".repeat(60);
        for (text, expected) in [
            ("listen: { socket: h.sock }", "1:19: `socket` must be an absolute path"),
            (&format!("listen: {{ socket: {long} }}"), "`socket` is longer than the 107 bytes"),
            ("listen: { tcp: localhost:80 }", "1:16: `tcp` must be an address with its port"),
            ("listen: { tcp: 127.0.0.1 }", "write it such as `127.0.0.1:8787`"),
            ("listen: { tcp: 8787 }", "`tcp` must be a string, not a number"),
            (
                "listen: { tcp: 0.0.0.0:80 }",
                "1:16: `tcp` is open to other machines, and there is no `token_file`",
            ),
            ("listen: { tcp: '[::]:80', token_file: null }", "and there is no `token_file`"),
            ("listen: { tcp: '[::ffff:10.0.0.1]:80' }", "and there is no `token_file`"),
            ("listen: { token_file: token }", "`token_file` must be an absolute path"),
            ("listen: { sockt: /x }", "unknown key `sockt` (did you mean `socket`?)"),
            ("listen: /x", "`listen` must be a mapping"),
            ("workspaces: { '': { root: /x } }", "1:15: the id of a workspace is empty"),
            ("workspaces: { \"a\\tb\": { root: /x } }", "the id of a workspace contains a control character"),
            ("workspaces: { a: { root: x } }", "1:26: `root` must be an absolute path"),
            ("workspaces: { a: { kind: chat } }", "`a` needs `root`"),
            ("workspaces: { a: { root: /x, kind: chatt } }", "did you mean `chat`?"),
            ("workspaces: { a: { root: /x, dialects: claude } }", "`dialects` is neither `auto` nor a list"),
            ("workspaces: { a: { root: /x, dialects: [cloude] } }", "did you mean `claude`?"),
            ("workspaces: { a: { root: /x, rot: 1 } }", "unknown key `rot` (did you mean `root`?)"),
            ("workspaces: [/x]", "`workspaces` must be a mapping"),
            ("workspace_roots: /srv", "`workspace_roots` must be a list"),
            ("workspace_roots: [/srv, srv]", "1:25: `workspace_roots` must be an absolute path"),
            ("watch: 3", "`watch` must be a boolean"),
            ("limits: { connections: 0 }", "`connections` is out of range"),
            ("limits: { requests: many }", "`requests` must be a whole number"),
            ("limits: { streams: -1 }", "`streams` is out of range"),
            ("limits: { header_timeout: 10 }", "`header_timeout` must be a duration"),
            ("limits: { body_timeout: 0s }", "`body_timeout` must be a duration"),
            ("limits: { idle_timeout: 5min }", "`idle_timeout` must be a duration"),
            ("limits: { workspaces: 1.5 }", "`workspaces` must be a whole number"),
        ] {
            let found = mistakes(text);
            assert!(found.len() == 1 && found[0].contains(expected), "{text}: {found:?}");
        }
    }

    #[test]
    fn what_a_daemon_needs_is_read() {
        let text = "listen: { socket: /run/h.sock, tcp: '[::1]:8787' }\nworkspace_roots: [/srv]\nwatch: false\n\
                    workspaces: { shop: { root: /srv/shop, kind: chat, dialects: [claude] }, b: { root: /b } }\n";
        let settings = Settings::from_yaml(text, Path::new("x")).0.unwrap();
        assert_eq!(settings.listen.socket.as_deref(), Some(Path::new("/run/h.sock")));
        assert_eq!(settings.listen.tcp, Some("[::1]:8787".parse().unwrap()));
        assert_eq!((settings.workspace_roots, settings.watch), (vec![PathBuf::from("/srv")], false));
        let shop = WorkspaceSettings {
            kind: Some(WorkspaceKind::Chat),
            dialects: Some(DialectSelection::Only(vec![DialectName::Claude])),
            ..WorkspaceSettings::new("/srv/shop")
        };
        let id = |text| WorkspaceId::new(text).unwrap();
        let expected = [(id("b"), WorkspaceSettings::new("/b")), (id("shop"), shop)];
        assert_eq!(settings.workspaces, expected.into());
    }

    #[test]
    fn a_token_opens_the_door_and_a_shared_root_is_worth_a_warning() {
        let text = "listen: { tcp: 0.0.0.0:80, token_file: /token }\n\
                    workspaces: { a: { root: /x }, b: { root: /x/ } }\n";
        let (settings, diagnostics) = Settings::from_yaml(text, Path::new("h.yaml"));
        assert!(settings.is_some());
        let told: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1);
        assert!(
            told[0].starts_with("h.yaml:2:35: the workspaces `a` and `b` have the same root"),
            "{told:?}"
        );
    }

    #[test]
    fn a_default_timeout_beyond_the_longest_is_a_mistake() {
        let expected = "h.yaml:1:14: `default_timeout` is longer than `max_timeout` (shorten the one or raise the other)";
        assert_eq!(mistakes("max_timeout: 1s"), [expected]);
    }
}

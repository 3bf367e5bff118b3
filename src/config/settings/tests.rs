//! What settings files may contain, and the messages about mistakes in them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    super::workspace_options::{DialectSelection, WorkspaceKind},
    AuditDestination, AuditPatches, AuditSettings, AuditSync, LimitSettings, Settings, TraceSettings,
    WorkspaceSettings,
    value_types::count,
};
use crate::model::{DialectName, WorkspaceId};

fn mistakes(text: &str) -> Vec<String> {
    let (settings, diagnostics) = Settings::from_yaml(text, Path::new("h.yaml"));
    assert_eq!(settings.is_none(), !diagnostics.is_empty());
    diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn the_settings_of_the_container_and_of_the_service_are_sound() {
    let container = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/container/hookyard.yaml"));
    let (settings, diagnostics) = Settings::from_yaml(container, Path::new("container.yaml"));
    let listen = settings.unwrap().listen;
    assert_eq!(diagnostics, []);
    assert!(!listen.is_open() && listen.tcp.is_some_and(|address| address.ip().is_unspecified()));
    let unit = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/systemd/hookyard.service"));
    let value = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap();
    let stop = Duration::from_secs(value("TimeoutStopSec").parse().unwrap());
    assert!(stop > Settings::default().shutdown_deadline);
    let files: usize = value("LimitNOFILE").parse().unwrap();
    assert!(files > 2 * LimitSettings::default().connections.get());
}

#[test]
fn absent_keys_and_empty_files_mean_defaults() {
    for text in ["", "# nothing\n", "{}"] {
        assert_eq!(Settings::from_yaml(text, Path::new("x")).0, Some(Settings::default()), "{text:?}");
    }
}

#[test]
fn keys_of_the_file_override_the_defaults() {
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
fn all_mistakes_are_reported_at_once() {
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
        "`env_prefix` must be the beginning of a variable's name",
        "`dir` must be an absolute path",
        "unknown key `fil` (did you mean `file`?)",
    ] {
        assert!(found.contains(expected), "{expected}\nin\n{found}");
    }
}

#[test]
fn mistakes_in_daemon_settings_are_reported() {
    let long = "/x".repeat(60);
    for (text, expected) in [
        ("listen: { socket: h.sock }", "1:19: `socket` must be an absolute path"),
        (&format!("listen: {{ socket: {long} }}"), "`socket` is longer than the 107 bytes"),
        ("listen: { tcp: localhost:80 }", "1:16: `tcp` must be an address with its port"),
        ("listen: { tcp: 127.0.0.1 }", "write it such as `127.0.0.1:8787`"),
        ("listen: { tcp: 8787 }", "`tcp` must be a string, not a number"),
        (
            "listen: { tcp: 0.0.0.0:80 }",
            "1:16: `tcp` is reachable from other machines, but `token_file` is missing",
        ),
        ("listen: { tcp: '[::]:80', token_file: null }", "but `token_file` is missing"),
        ("listen: { tcp: '[::ffff:10.0.0.1]:80' }", "but `token_file` is missing"),
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
fn daemon_settings_are_read() {
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
fn a_token_permits_an_open_address_and_a_shared_root_gets_a_warning() {
    let text = "listen: { tcp: 0.0.0.0:80, token_file: /token }\n\
                workspaces: { a: { root: /x }, b: { root: /x/ } }\n";
    let (settings, diagnostics) = Settings::from_yaml(text, Path::new("h.yaml"));
    assert!(settings.is_some());
    let reported: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(reported.len(), 1);
    assert!(
        reported[0].starts_with("h.yaml:2:35: the workspaces `a` and `b` have the same root"),
        "{reported:?}"
    );
}

#[test]
fn a_default_timeout_above_the_maximum_is_an_error() {
    let expected =
        "h.yaml:1:14: `default_timeout` is longer than `max_timeout` (shorten the one or raise the other)";
    assert_eq!(mistakes("max_timeout: 1s"), [expected]);
}

#[test]
fn lines_are_shipped_only_where_nobody_else_reads_them_and_where_they_can_wait() {
    for (text, expected) in [
        ("{ url: 'https://audit.example/v1' }", ""),
        ("{ url: 'http://127.0.0.1:4318/v1/logs', format: otlp }", ""),
        ("{ url: 'http://[::1]:4318/v1/logs' }", ""),
        (
            "{ url: 'http://audit.example/v1' }",
            "`url`: lines are sent to another machine over `https://` only",
        ),
        ("{ url: 'http://localhost.example/v1' }", "over `https://` only"),
        ("{ url: 'unix:/run/audit.sock:/v1' }", "lines are not sent to a socket"),
        ("{ format: syslog }", "`ndjson`"),
        ("{ url: 'https://audit.example/v1' }\ndata: null", "`ship.url` needs `data`"),
    ] {
        let found = mistakes(&format!("ship: {text}"));
        assert_eq!(found.len(), usize::from(!expected.is_empty()), "{text}: {found:?}");
        assert!(found.iter().all(|found| found.contains(expected)), "{text}: {found:?}");
    }
}

#[test]
fn audit_settings_are_read() {
    let text =
        "audit: { to: stdout, max_size: 1MiB, keep: 2, queue: 9, sync: 2s, required: true, patches: none }";
    let expected = AuditSettings {
        required: true,
        to: Some(AuditDestination::Stdout),
        max_size: 1 << 20,
        keep: count(2),
        queue: count(9),
        sync: AuditSync::Every(Duration::from_secs(2)),
        patches: AuditPatches::Nothing,
    };
    assert_eq!(Settings::from_yaml(text, Path::new("x")).0.unwrap().audit, expected);
    let text = "audit: { to: /var/log/audit.jsonl, sync: always }";
    let audit = Settings::from_yaml(text, Path::new("x")).0.unwrap().audit;
    assert_eq!(audit.to, Some(AuditDestination::File("/var/log/audit.jsonl".into())));
    assert_eq!(audit.sync, AuditSync::Always);
}

#[test]
fn mistakes_in_audit_settings_are_reported() {
    for (text, expected) in [
        ("audit: { to: here.jsonl }", "`to` must be an absolute path"),
        ("audit: { sync: sometimes }", "`sync` must be a duration, `always` or `never`"),
        ("audit: { sync: 0s }", "`sync` must be a duration"),
        ("audit: { patches: all }", "`patches` has no such choice"),
        ("audit: { keep: 0 }", "`keep` is out of range"),
    ] {
        let (settings, diagnostics) = Settings::from_yaml(text, Path::new("x"));
        let reported: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        assert!(
            settings.is_none() && reported.len() == 1 && reported[0].contains(expected),
            "{text}: {reported:?}"
        );
    }
}

#[test]
fn trace_settings_are_read() {
    let text = "traces: { endpoint: 'http://127.0.0.1:4318/v1/traces', sample: 0.25 }";
    let traces = Settings::from_yaml(text, Path::new("x")).0.unwrap().traces;
    assert_eq!(traces.endpoint.unwrap().to_string(), "http://127.0.0.1:4318/v1/traces");
    assert!((traces.sample - 0.25).abs() < f64::EPSILON);
    let none = Settings::from_yaml("traces: { endpoint: null, sample: 1 }", Path::new("x")).0.unwrap();
    assert_eq!(none.traces, TraceSettings::default());
}

#[test]
fn mistakes_in_trace_settings_are_reported() {
    for (text, expected) in [
        ("traces: { endpoint: 127.0.0.1 }", "`endpoint`: the scheme must be `http` or `https`"),
        ("traces: { endpoint: 'unix:/run/o.sock:/v1/traces' }", "`endpoint`: traces are sent over"),
        ("traces: { endpoint: 'http://me:pass@there/' }", "would be logged"),
        ("traces: { sample: 1.5 }", "`sample` is out of range"),
        ("traces: { sample: -0.1 }", "`sample` is out of range"),
        ("traces: { sample: half }", "`sample` must be a number"),
        ("traces: { smple: 1 }", "unknown key `smple`"),
    ] {
        let (settings, diagnostics) = Settings::from_yaml(text, Path::new("x"));
        let reported: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        assert!(
            settings.is_none() && reported.len() == 1 && reported[0].contains(expected),
            "{text}: {reported:?}"
        );
    }
}

#[test]
fn addresses_of_a_store_that_cannot_be_one_are_reported() {
    for (address, expected) in [
        ("nats://h:notaport", "an item of `store`: its port is no number up to 65535"),
        ("nats://h:65536", "its port is no number up to 65535"),
        ("nats://h:0", "its port is 0"),
        ("tls://:4222", "host"),
        ("nats://", "host"),
        ("nats://a b", "it is no address of a NATS server"),
        ("http://h:4222", "it is no address of a NATS server"),
        ("nats://me:pass@h", "credentials belong into the file"),
    ] {
        let reported = mistakes(&format!("cluster: {{ store: ['{address}'] }}"));
        assert!(reported.len() == 1 && reported[0].contains(expected), "{address}: {reported:?}");
    }
    for address in ["nats://h", "tls://10.0.0.1:4222", "nats://[::1]:4222"] {
        assert_eq!(mistakes(&format!("cluster: {{ store: ['{address}'] }}")), [""; 0], "{address}");
    }
}

#[test]
fn roots_that_a_node_does_not_serve_are_warned_of() {
    let text = "cluster: { enabled: true }\nworkspace_roots: [/srv]";
    let (settings, diagnostics) = Settings::from_yaml(text, Path::new("h.yaml"));
    assert!(settings.is_some_and(|settings| settings.cluster.enabled));
    let reported: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].starts_with("h.yaml:2:18: a node of a cluster registers no workspaces"),
        "{reported:?}"
    );
    assert_eq!(mistakes("cluster: { enabled: perhaps }").len(), 1);
}

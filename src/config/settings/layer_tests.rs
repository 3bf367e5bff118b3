//! How a file, variables and flags override each other, and the messages about mistakes in them.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::Path};

use super::{
    Settings,
    overrides::{NO_VARIABLES, NOT_SETTINGS, is_no_variable, variable_of},
};
use crate::dialect::{NativeDialect, natives};

fn layered(
    file: &str,
    environment: &[(&str, &str)],
    flags: &[(&str, &str)],
) -> (Option<Settings>, Vec<String>) {
    let flags: Vec<_> = flags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let file = (file, Path::new("h.yaml"));
    let (settings, diagnostics) = Settings::layered(Some(file), environment.iter().copied(), &flags);
    (settings, diagnostics.iter().map(ToString::to_string).collect())
}

fn good(file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Settings {
    let (settings, reported) = layered(file, environment, flags);
    assert_eq!(reported, Vec::<String>::new());
    settings.unwrap()
}

#[test]
fn each_key_has_its_own_variable() {
    let keys = Settings::key_paths();
    let mut variables: Vec<String> = keys.iter().map(|key| variable_of(key)).collect();
    assert!(keys.contains(&"pools.command.queue_deadline".to_owned()), "{keys:?}");
    assert!(variables.contains(&"HOOKYARD_LISTEN_TOKEN_FILE".to_owned()), "{variables:?}");
    assert!(!variables.iter().any(|name| NOT_SETTINGS.contains(&name.as_str())));
    assert!(
        !natives().flat_map(NativeDialect::variables).any(|name| variables.iter().any(|own| own == name))
    );
    variables.sort_unstable();
    variables.dedup();
    assert_eq!(variables.len(), keys.len());
}

/// The values of `config/hookyard.yaml` by the paths of their keys.
fn default_values() -> Vec<(String, String)> {
    fn leaves(value: &serde_json::Value, path: &str, found: &mut Vec<(String, String)>) {
        match value {
            serde_json::Value::Object(keys) if !keys.is_empty() => {
                for (key, value) in keys {
                    leaves(value, format!("{path}.{key}").trim_start_matches('.'), found);
                }
            }
            value => found.push((path.to_owned(), value.to_string())),
        }
    }
    let file = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/hookyard.yaml"));
    let mut found = Vec::new();
    leaves(&serde_yaml::from_str(file).unwrap(), "", &mut found);
    found
}

#[test]
fn every_key_can_be_set_by_a_variable_and_a_flag() {
    let flags = default_values();
    assert!(flags.len() > 50);
    let by_variable = flags.iter().filter(|(key, _)| !is_no_variable(key));
    let environment: Vec<_> = by_variable.map(|(key, value)| (variable_of(key), value.clone())).collect();
    let (by_variables, wrong) = Settings::layered(None, environment, &[]);
    assert_eq!((by_variables, wrong), (Some(Settings::default()), Vec::new()));
    let (by_flags, wrong) = Settings::layered(None, std::iter::empty::<(String, String)>(), &flags);
    assert_eq!((by_flags, wrong), (Some(Settings::default()), Vec::new()));
}

#[test]
fn flags_override_variables_and_these_override_the_file() {
    let file = "run_idle: 1s\nrun_forget: 1h\nlimits: { runs: 1, streams: 1 }\nlisten: { socket: /file }\n";
    let environment = [
        ("HOOKYARD_RUN_FORGET", "2h"),
        ("HOOKYARD_LIMITS_RUNS", "2"),
        ("HOOKYARD_LISTEN_SOCKET", "/variable"),
    ];
    let settings = good(file, &environment, &[("limits.runs", "3"), ("limits.runs", "4")]);
    assert_eq!((settings.run_idle.as_secs(), settings.run_forget.as_secs()), (1, 7200));
    assert_eq!((settings.limits.streams.get(), settings.limits.runs.get()), (1, 4));
    assert_eq!(settings.listen.socket.as_deref(), Some(Path::new("/variable")));
    let settings = good(file, &environment, &[("listen.socket", "/flag")]);
    assert_eq!(settings.listen.socket.as_deref(), Some(Path::new("/flag")));
}

#[test]
fn null_unsets_a_key_and_an_empty_variable_is_ignored() {
    let file = "listen: { tcp: '127.0.0.1:1', socket: /file }\nsystem_directory: /file\n";
    let empty = ["HOOKYARD_LISTEN_SOCKET", "HOOKYARD_SYSTEM_DIRECTORY"].map(|name| (name, ""));
    let settings = good(file, &[("HOOKYARD_LISTEN_TCP", "null"), empty[0], empty[1]], &[]);
    assert_eq!(settings.listen.tcp, None);
    let kept = [&settings.listen.socket, &settings.system_directory].map(Option::as_deref);
    assert_eq!(kept, [Some(Path::new("/file")); 2]);
}

#[test]
fn lists_and_entries_are_replaced_and_sections_are_merged() {
    let file = "workspaces: { a: { root: /a } }\npass_environment: [A]\nlimits: { runs: 1, streams: 1 }\n";
    let environment = [
        ("HOOKYARD_WORKSPACES", "{ b: { root: /b } }"),
        ("HOOKYARD_PASS_ENVIRONMENT", "[B, C_*]"),
        ("HOOKYARD_LIMITS", "{ runs: 2, requests: 2 }"),
        ("HOOKYARD_LIMITS_REQUESTS", "3"),
        ("HOOKYARD_MODELS", "{ m: { api: openai, model: x } }"),
    ];
    let settings = good(file, &environment, &[]);
    let ids: Vec<String> = settings.workspaces.keys().map(ToString::to_string).collect();
    assert_eq!((ids, settings.pass_environment), (vec!["b".into()], vec!["B".to_owned(), "C_*".into()]));
    let limits = settings.limits;
    assert_eq!((limits.runs.get(), limits.streams.get(), limits.requests.get()), (2, 1, 3));
    assert!(settings.models.contains_key("m"));
    assert_eq!(good(file, &[("HOOKYARD_RUN_IDLE", "1s")], &[]).workspaces.len(), 1);
}

#[test]
fn mistakes_name_the_variable_or_the_flag() {
    for (name, value, expected) in [
        ("HOOKYARD_LIMITS_RUNS", "many", "HOOKYARD_LIMITS_RUNS: `runs` must be a whole number"),
        ("HOOKYARD_LISTEN_TCP", "here:80", "HOOKYARD_LISTEN_TCP: `tcp` must be an address with its port"),
        ("HOOKYARD_LISTEN_TCP", "[::1]:80", "HOOKYARD_LISTEN_TCP: not valid YAML"),
        ("HOOKYARD_LISTEN_SOCKET", "home/me", "HOOKYARD_LISTEN_SOCKET: `socket` must be an absolute path"),
        ("HOOKYARD_LISTEN_SOCKET", "/a: b", "(put a text in quotes"),
        (
            "HOOKYARD_LISTEN_SOCKET",
            "/a #b",
            "HOOKYARD_LISTEN_SOCKET: the value has a `#`, which begins a comment",
        ),
        ("HOOKYARD_LISTEN_SOCKET", "!x /a", "YAML tags are not allowed"),
        ("HOOKYARD_WATCH", "yes", "`watch` must be a boolean"),
        ("HOOKYARD_WATCH", "true\nhome: /x", "HOOKYARD_WATCH: the value must be one line"),
        ("HOOKYARD_WATCH", "true\u{2028}home: /x", "the value must be one line"),
        ("HOOKYARD_POOLS_HTTP", "{ queu: 1 }", "HOOKYARD_POOLS_HTTP: unknown key `queu`"),
        ("HOOKYARD_WORKSPACE_ROOTS", "/srv", "put it in brackets"),
        ("HOOKYARD_TRUST", "off", "HOOKYARD_TRUST: `trust` cannot be set by an environment variable"),
    ] {
        let (settings, reported) = layered("", &[(name, value)], &[]);
        assert!(
            settings.is_none() && reported.len() == 1 && reported[0].contains(expected),
            "{name}: {reported:?}"
        );
    }
    let (settings, reported) =
        layered("", &[], &[("limits.in_flite", "1"), ("limits.runs", "x"), ("qq", "")]);
    assert!(settings.is_none());
    assert!(
        reported.iter().any(|line| line.starts_with("--set limits.runs: `runs` must be")),
        "{reported:?}"
    );
    let near = "--set: unknown key `limits.in_flite` (did you mean `limits.in_flight`?)";
    assert!(reported.iter().any(|line| line == near), "{reported:?}");
    assert!(reported.iter().any(|line| line.contains("unknown key `qq` (write the path")), "{reported:?}");
}

#[test]
fn the_documents_name_the_keys_that_no_variable_sets() {
    let keys = NO_VARIABLES.map(|key| format!("`{key}`"));
    let [others @ .., last] = &keys;
    let expected = format!("{} and {last}", others.join(", "));
    for page in ["docs/settings.md", "docs/trust.md"] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(&expected), "{page}: {expected}");
    }
}

/// A project can set variables of its agent.
#[test]
fn no_variable_moves_files_out_of_sight_or_frees_hooks() {
    for key in NO_VARIABLES {
        let (name, anywhere) = (variable_of(key), "/elsewhere");
        let (settings, reported) = layered("", &[(&name, anywhere)], &[]);
        let expected = format!("{name}: `{key}` cannot be set by an environment variable");
        assert!(settings.is_none() && reported[0].starts_with(&expected), "{reported:?}");
    }
    let (settings, reported) = layered("", &[("HOOKYARD_SANDBOX_PROJECT_REQUIRE", "false")], &[]);
    assert!(settings.is_none() && reported[0].contains("a project can set"), "{reported:?}");
}

#[test]
fn only_settings_must_be_text() {
    let odd = || OsString::from_vec(vec![0xff]);
    let (settings, wrong) = Settings::layered(None, [("HOOKYARD_SECRET_A", odd()), ("PATH", odd())], &[]);
    assert_eq!((settings, wrong), (Some(Settings::default()), Vec::new()));
    let (settings, wrong) = Settings::layered(None, [("HOOKYARD_LISTEN_SOCKET", odd())], &[]);
    assert_eq!((settings, wrong[0].code), (None, "not-utf8"));
}

#[test]
fn a_conflict_of_two_keys_is_reported_in_the_layer_that_causes_it() {
    let reported = |file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]| {
        let (settings, reported) = layered(file, environment, flags);
        assert_eq!((settings, reported.len()), (None, 1), "{reported:?}");
        reported[0].clone()
    };
    let timeouts = "default_timeout: 5s\nmax_timeout: 9s\n";
    assert!(reported(timeouts, &[("HOOKYARD_MAX_TIMEOUT", "1s")], &[]).starts_with("HOOKYARD_MAX_TIMEOUT: "));
    assert!(
        reported(timeouts, &[("HOOKYARD_MAX_TIMEOUT", "10s")], &[("default_timeout", "11s")])
            .starts_with("--set default_timeout: `default_timeout` is longer")
    );
    assert!(reported("default_timeout: 20m\n", &[], &[]).starts_with("h.yaml:1:18: "));
    let open = "listen: { tcp: '0.0.0.0:1', token_file: /t }\n";
    assert!(
        reported(open, &[("HOOKYARD_LISTEN_TOKEN_FILE", "null")], &[])
            .starts_with("HOOKYARD_LISTEN_TOKEN_FILE: `tcp`")
    );
    assert!(
        reported("", &[("HOOKYARD_LISTEN", "{ tcp: '0.0.0.0:1' }")], &[])
            .starts_with("HOOKYARD_LISTEN: `tcp`")
    );
}

#[test]
fn a_higher_layer_can_resolve_a_conflict_of_lower_ones() {
    good("default_timeout: 20m\n", &[("HOOKYARD_MAX_TIMEOUT", "1h")], &[]);
    good("listen: { tcp: '0.0.0.0:1' }\n", &[], &[("listen.token_file", "/t")]);
}

#[test]
fn unknown_variables_get_a_warning() {
    let others = [
        ("HOOKYARD_SECRET_RUN_IDLE", "x"),
        ("HOOKYARD_CLAWD_ENABLED", "x"),
        ("HOOKYARD_HOOK", "x"),
        ("HOOKYARD_WORKER", "1"),
        ("HOOKYARD_EVENT", "x"),
        ("HOOKYARD_LOG", "debug"),
        ("HOOKYARD_DEADLINE_MS", "1"),
        ("HOOKYARD_LIFE", "x"),
        ("HOOKYARD_PROCESS", "x"),
        ("HOOKYARD_COMMIT", "x"),
        ("HOOKYARD_TOKEN", "x"),
        ("HOOKYARD_PORT", "tcp://10.0.0.1:8787"),
        ("HOOKYARD_SERVICE_PORT_HTTP", "8787"),
        ("HOOKYARD_DAEMON_SERVICE_PORT", "8787"),
        ("HOOKYARD_PORT_8787_TCP_ADDR", "10.0.0.1"),
        ("HOOKYARD_SERVICE_HOST", "10.0.0.1"),
        ("WATCHH", "x"),
    ];
    good("", &others, &[]);
    let (settings, reported) =
        layered("", &[("HOOKYARD_LIMITS_INFLIGHT", "1"), ("HOOKYARD_DEFUALT_TIMEOUT", "1s")], &[]);
    assert_eq!(settings, Some(Settings::default()));
    assert_eq!(
        reported,
        [
            "HOOKYARD_DEFUALT_TIMEOUT: no setting has this variable (did you mean `HOOKYARD_DEFAULT_TIMEOUT`?)",
            "HOOKYARD_LIMITS_INFLIGHT: no setting has this variable (did you mean `HOOKYARD_LIMITS_IN_FLIGHT`?)",
        ]
    );
    let (settings, reported) = layered("", &[("HOOKYARD_CONFIG", "/h.yaml"), ("HOOKYARD_ZZZ", "1")], &[]);
    assert_eq!(settings, Some(Settings::default()));
    assert_eq!(
        reported,
        ["HOOKYARD_ZZZ: no setting has this variable (the variable of a setting is its path, such as \
             `HOOKYARD_LIMITS_IN_FLIGHT`)",]
    );
    good("secrets: { env_prefix: HOOKYARD_LIMITS_ }", &[("HOOKYARD_LIMITS_INFLIGHT", "1")], &[]);
}

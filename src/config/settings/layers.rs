//! Settings in layers: a file, above it variables, and above these flags. Owns which variable stands for which key,
//! and how a value of one line is read as in a file; refuses to look at the environment by itself.

use std::{collections::HashMap, ffi::OsString, path::Path};

use super::Settings;
use crate::{
    dialect::{Document, Native, natives, nearest, shorten},
    model::{Diagnostic, Severity},
};

/// What the names of hookyard's variables begin with.
const PREFIX: &str = "HOOKYARD_";

/// Its variables that are no settings: of the command line, and those that hooks are started with.
const OTHERS: [&str; 5] =
    ["HOOKYARD_LOG", "HOOKYARD_HOOK", "HOOKYARD_WORKER", "HOOKYARD_EVENT", "HOOKYARD_DEADLINE_MS"];

/// What YAML takes for the end of a line.
const LINE_ENDS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// What to do about a value that YAML takes apart.
const QUOTE: &str = "put a text in quotes, `\"…\"`, and a list in brackets, `[a, b]`";

/// How much of an unknown key is repeated, in characters.
const LONGEST_ECHO: usize = 64;

/// Something that says settings.
struct Layer<'t> {
    /// What messages call it: a path, a variable, a flag.
    name: &'t Path,
    text: &'t str,
    places: Places,
}

/// Whether places in the text of a layer mean anything to whoever wrote it.
#[derive(Clone, Copy)]
enum Places {
    Shown,
    Hidden,
}

/// One key's value, to be read like a file.
struct Written {
    name: String,
    text: String,
}

impl Settings {
    /// Reads settings from a file, variables and flags, each above the one before. A key that none of them has keeps
    /// its default.
    ///
    /// The variable of a key is its path in upper case: `HOOKYARD_LIMITS_IN_FLIGHT` is `limits.in_flight`. A flag is
    /// that path and a value. Both have the value as a file would, in one line: `HOOKYARD_WORKSPACE_ROOTS='[/srv]'`.
    /// An empty variable says nothing. Lists, `models` and `workspaces` take the place of those below them; other
    /// mappings join. Unlike [`from_yaml`](Self::from_yaml), which knows one file only, this is for programs that are
    /// set up from outside.
    ///
    /// Returns the settings if there is no error, and everything that is wrong. What is wrong with a variable has its
    /// name as the file; a variable whose name is almost that of a key is worth a warning.
    ///
    /// ```
    /// use std::path::Path;
    /// use hookyard::config::Settings;
    ///
    /// let file = ("default_timeout: 5s\nwatch: false", Path::new("hookyard.yaml"));
    /// let environment = [("HOOKYARD_DEFAULT_TIMEOUT", "7s"), ("HOOKYARD_LIMITS_IN_FLIGHT", "100")];
    /// let flags = [("limits.in_flight".to_owned(), "200".to_owned())];
    /// let (settings, diagnostics) = Settings::layered(Some(file), environment, &flags);
    ///
    /// let settings = settings.unwrap();
    /// assert!(diagnostics.is_empty() && !settings.watch);
    /// assert_eq!(settings.default_timeout.as_secs(), 7);
    /// assert_eq!(settings.limits.in_flight.get(), 200);
    /// ```
    pub fn layered(
        file: Option<(&str, &Path)>,
        environment: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
        flags: &[(String, String)],
    ) -> (Option<Self>, Vec<Diagnostic>) {
        let keys = keys();
        let variables = of_hookyard(environment);
        let (said, mut wrong) = say_all(&keys, &variables, flags);
        let file = file.map(|(text, name)| Layer { name, text, places: Places::Shown });
        let above = said.iter().map(|written| Layer {
            name: Path::new(&written.name),
            text: &written.text,
            places: Places::Hidden,
        });
        let layers: Vec<Layer<'_>> = file.into_iter().chain(above).collect();
        let (settings, mut diagnostics) = stack(&layers);
        diagnostics.append(&mut wrong);
        diagnostics.extend(misspelt(&keys, &variables, settings.secrets.env_prefix.as_deref()));
        (sound(settings, &diagnostics), diagnostics)
    }

    /// The same with nothing but a file.
    pub(super) fn of_file(text: &str, name: &Path) -> (Option<Self>, Vec<Diagnostic>) {
        let (settings, diagnostics) = stack(&[Layer { name, text, places: Places::Shown }]);
        (sound(settings, &diagnostics), diagnostics)
    }
}

fn sound(settings: Settings, diagnostics: &[Diagnostic]) -> Option<Settings> {
    let has_errors = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    (!has_errors).then_some(settings)
}

/// The paths of all keys, those with others in them before these.
fn keys() -> Vec<String> {
    Settings::default().take(None)
}

/// The variable of a key.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_uppercase())
}

/// The variables that concern hookyard and say something.
fn of_hookyard(
    environment: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
) -> HashMap<String, OsString> {
    environment
        .into_iter()
        .filter_map(|(name, value)| Some((name.into().into_string().ok()?, value.into())))
        .filter(|(name, value)| name.starts_with(PREFIX) && !value.is_empty())
        .collect()
}

/// Writes down what variables and flags say, in the order in which they count, and tells what cannot be.
fn say_all(
    keys: &[String],
    variables: &HashMap<String, OsString>,
    flags: &[(String, String)],
) -> (Vec<Written>, Vec<Diagnostic>) {
    let (mut said, mut wrong) = (Vec::new(), Vec::new());
    for key in keys {
        let name = variable(key);
        match variables.get(&name).map(|value| value.to_str()) {
            None => {}
            Some(Some(value)) => take_in(Written::new(name, key, value), &mut said, &mut wrong),
            Some(None) => wrong.push(error("not-utf8", &name, "the value is not UTF-8", "write it in UTF-8")),
        }
    }
    for (key, value) in flags {
        let name = format!("--set {key}");
        if keys.contains(key) {
            take_in(Written::new(name, key, value), &mut said, &mut wrong);
        } else {
            wrong.push(unknown(key, keys));
        }
    }
    (said, wrong)
}

fn take_in(read: Result<Written, Diagnostic>, said: &mut Vec<Written>, wrong: &mut Vec<Diagnostic>) {
    match read {
        Ok(written) => said.push(written),
        Err(diagnostic) => wrong.push(diagnostic),
    }
}

impl Written {
    /// Returns what is wrong if the value could mean more than this key's, or less than all of it.
    fn new(name: String, key: &str, value: &str) -> Result<Self, Diagnostic> {
        if value.contains(LINE_ENDS) {
            let help = "write a list as `[a, b]` and a mapping as `{ a: b }`";
            return Err(error("line-break", &name, "the value must be one line", help));
        }
        let plain = !value.trim_start().starts_with(['"', '\'', '[', '{']);
        if plain && [" #", "\t#"].iter().any(|comment| format!(" {value}").contains(comment)) {
            return Err(error("comment", &name, "the value has a `#`, which begins a comment", QUOTE));
        }
        let parts = key.split('.').enumerate();
        let lines: Vec<String> =
            parts.map(|(depth, part)| format!("{}{part}:", "  ".repeat(depth))).collect();
        Ok(Self { name, text: format!("{} {value}\n", lines.join("\n")) })
    }
}

/// Takes the layers one after the other, and then looks at what they come to.
fn stack(layers: &[Layer<'_>]) -> (Settings, Vec<Diagnostic>) {
    let (mut documents, mut diagnostics) = (Vec::new(), Vec::new());
    for layer in layers {
        match Document::parse(layer.text.as_bytes(), layer.name) {
            Ok(document) => documents.push((document, layer.places)),
            // A file in which every key is commented out says: all defaults.
            Err(diagnostic) if diagnostic.code == "empty-document" => {}
            Err(diagnostic) => diagnostics.push(match layer.places {
                Places::Shown => *diagnostic,
                Places::Hidden => {
                    let help = diagnostic.help.clone().unwrap_or_else(|| QUOTE.to_owned());
                    without_place(*diagnostic).help(help)
                }
            }),
        }
    }
    let mut settings = Settings::default();
    let mappings: Vec<_> = documents.iter().filter_map(|(document, _)| document.root()).collect();
    for mapping in &mappings {
        settings.take(Some(mapping.clone()));
    }
    settings.check(&mappings);
    drop(mappings);
    for (document, places) in documents {
        let found = document.into_diagnostics().into_iter();
        match places {
            Places::Shown => diagnostics.extend(found),
            Places::Hidden => diagnostics.extend(found.map(without_place)),
        }
    }
    (settings, diagnostics)
}

fn without_place(diagnostic: Diagnostic) -> Diagnostic {
    Diagnostic { line: 0, column: 0, length: 1, ..diagnostic }
}

fn error(code: &'static str, name: &str, message: &str, help: &str) -> Diagnostic {
    Diagnostic::of_file(Severity::Error, code, Path::new(name), message).help(help)
}

fn unknown(key: &str, keys: &[String]) -> Diagnostic {
    let known: Vec<&str> = keys.iter().map(String::as_str).collect();
    let help = match nearest(key, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write the path of a key of the settings file, such as `limits.in_flight`".to_owned(),
    };
    let message = format!("unknown key `{}`", shorten(key, LONGEST_ECHO));
    error("unknown-key", "--set", &message, &help)
}

/// Warnings of variables that are none, but almost.
fn misspelt(
    keys: &[String],
    variables: &HashMap<String, OsString>,
    secrets: Option<&str>,
) -> Vec<Diagnostic> {
    let known: Vec<String> = keys.iter().map(|key| variable(key)).collect();
    // Without what all begin with, which would make them all alike.
    let ends: Vec<&str> = known.iter().filter_map(|name| name.strip_prefix(PREFIX)).collect();
    let of_dialects: Vec<&str> = natives().flat_map(Native::variables).collect();
    let is_other = |name: &str| {
        OTHERS.contains(&name)
            || of_dialects.contains(&name)
            || secrets.is_some_and(|prefix| name.starts_with(prefix))
    };
    let mut found: Vec<Diagnostic> = variables
        .keys()
        .filter(|name| !known.contains(name) && !is_other(name))
        .filter_map(|name| {
            let near = nearest(name.strip_prefix(PREFIX)?, &ends)?;
            let message = "no setting has this variable";
            let diagnostic =
                Diagnostic::of_file(Severity::Warning, "unknown-variable", Path::new(name), message);
            Some(diagnostic.help(format!("did you mean `{PREFIX}{near}`?")))
        })
        .collect();
    found.sort_by(|a, b| a.file.cmp(&b.file));
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn layered(
        file: &str,
        environment: &[(&str, &str)],
        flags: &[(&str, &str)],
    ) -> (Option<Settings>, Vec<String>) {
        let flags: Vec<_> =
            flags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let file = (file, Path::new("h.yaml"));
        let (settings, diagnostics) = Settings::layered(Some(file), environment.iter().copied(), &flags);
        (settings, diagnostics.iter().map(ToString::to_string).collect())
    }

    fn good(file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Settings {
        let (settings, told) = layered(file, environment, flags);
        assert_eq!(told, Vec::<String>::new());
        settings.unwrap()
    }

    #[test]
    fn each_key_has_its_own_variable() {
        let keys = keys();
        let mut variables: Vec<String> = keys.iter().map(|key| variable(key)).collect();
        assert!(keys.contains(&"pools.command.queue_deadline".to_owned()), "{keys:?}");
        assert!(variables.contains(&"HOOKYARD_LISTEN_TOKEN_FILE".to_owned()), "{variables:?}");
        assert!(!variables.iter().any(|name| OTHERS.contains(&name.as_str())));
        assert!(!natives().flat_map(Native::variables).any(|name| variables.iter().any(|own| own == name)));
        variables.sort_unstable();
        variables.dedup();
        assert_eq!(variables.len(), keys.len());
    }

    /// What the shipped file says, key by key.
    fn shipped() -> Vec<(String, String)> {
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
    fn every_key_of_the_shipped_file_can_be_a_variable_and_a_flag() {
        let flags = shipped();
        assert!(flags.len() > 50);
        let environment: Vec<_> = flags.iter().map(|(key, value)| (variable(key), value.clone())).collect();
        let (by_variables, wrong) = Settings::layered(None, environment, &[]);
        assert_eq!((by_variables, wrong), (Some(Settings::default()), Vec::new()));
        let (by_flags, wrong) = Settings::layered(None, std::iter::empty::<(String, String)>(), &flags);
        assert_eq!((by_flags, wrong), (Some(Settings::default()), Vec::new()));
    }

    #[test]
    fn flags_stand_above_variables_and_these_above_the_file() {
        let file = "run_idle: 1s\nrun_forget: 1h\nlimits: { runs: 1, streams: 1 }\nhome: /file\n";
        let environment =
            [("HOOKYARD_RUN_FORGET", "2h"), ("HOOKYARD_LIMITS_RUNS", "2"), ("HOOKYARD_HOME", "/variable")];
        let settings = good(file, &environment, &[("limits.runs", "3"), ("limits.runs", "4")]);
        assert_eq!((settings.run_idle.as_secs(), settings.run_forget.as_secs()), (1, 7200));
        assert_eq!((settings.limits.streams.get(), settings.limits.runs.get()), (1, 4));
        assert_eq!(settings.home.as_deref(), Some(Path::new("/variable")));
        let settings = good(file, &environment, &[("home", "/flag")]);
        assert_eq!(settings.home.as_deref(), Some(Path::new("/flag")));
    }

    #[test]
    fn null_takes_away_and_an_empty_variable_says_nothing() {
        let file = "listen: { tcp: '127.0.0.1:1' }\nsystem_directory: /file\n";
        let settings = good(file, &[("HOOKYARD_LISTEN_TCP", "null"), ("HOOKYARD_SYSTEM_DIRECTORY", "")], &[]);
        assert_eq!(settings.listen.tcp, None);
        assert_eq!(settings.system_directory.as_deref(), Some(Path::new("/file")));
    }

    #[test]
    fn lists_and_names_replace_what_is_below_and_mappings_join_it() {
        let file =
            "workspaces: { a: { root: /a } }\npass_environment: [A]\nlimits: { runs: 1, streams: 1 }\n";
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
            ("HOOKYARD_HOME", "home/me", "HOOKYARD_HOME: `home` must be an absolute path"),
            ("HOOKYARD_HOME", "/a: b", "(put a text in quotes"),
            ("HOOKYARD_HOME", "/a #b", "HOOKYARD_HOME: the value has a `#`, which begins a comment"),
            ("HOOKYARD_HOME", "!x /a", "YAML tags are not allowed"),
            ("HOOKYARD_WATCH", "yes", "`watch` must be a boolean"),
            ("HOOKYARD_WATCH", "true\nhome: /x", "HOOKYARD_WATCH: the value must be one line"),
            ("HOOKYARD_WATCH", "true\u{2028}home: /x", "the value must be one line"),
            ("HOOKYARD_POOLS_HTTP", "{ queu: 1 }", "HOOKYARD_POOLS_HTTP: unknown key `queu`"),
            ("HOOKYARD_WORKSPACE_ROOTS", "/srv", "put it in brackets"),
        ] {
            let (settings, told) = layered("", &[(name, value)], &[]);
            assert!(settings.is_none() && told.len() == 1 && told[0].contains(expected), "{name}: {told:?}");
        }
        let (settings, told) =
            layered("", &[], &[("limits.in_flite", "1"), ("limits.runs", "x"), ("qq", "")]);
        assert!(settings.is_none());
        assert!(told.iter().any(|line| line.starts_with("--set limits.runs: `runs` must be")), "{told:?}");
        let near = "--set: unknown key `limits.in_flite` (did you mean `limits.in_flight`?)";
        assert!(told.iter().any(|line| line == near), "{told:?}");
        assert!(told.iter().any(|line| line.contains("unknown key `qq` (write the path")), "{told:?}");
    }

    #[test]
    fn only_settings_must_be_text() {
        let odd = || OsString::from_vec(vec![0xff]);
        let (settings, wrong) = Settings::layered(None, [("HOOKYARD_SECRET_A", odd()), ("PATH", odd())], &[]);
        assert_eq!((settings, wrong), (Some(Settings::default()), Vec::new()));
        let (settings, wrong) = Settings::layered(None, [("HOOKYARD_HOME", odd())], &[]);
        assert_eq!((settings, wrong[0].code), (None, "not-utf8"));
    }

    #[test]
    fn the_layer_that_makes_two_keys_clash_is_blamed() {
        let told = |file: &str, environment: &[(&str, &str)], flags: &[(&str, &str)]| {
            let (settings, told) = layered(file, environment, flags);
            assert_eq!((settings, told.len()), (None, 1), "{told:?}");
            told[0].clone()
        };
        let timeouts = "default_timeout: 5s\nmax_timeout: 9s\n";
        assert!(told(timeouts, &[("HOOKYARD_MAX_TIMEOUT", "1s")], &[]).starts_with("HOOKYARD_MAX_TIMEOUT: "));
        assert!(
            told(timeouts, &[("HOOKYARD_MAX_TIMEOUT", "10s")], &[("default_timeout", "11s")])
                .starts_with("--set default_timeout: `default_timeout` is longer")
        );
        assert!(told("default_timeout: 20m\n", &[], &[]).starts_with("h.yaml:1:18: "));
        let open = "listen: { tcp: '0.0.0.0:1', token_file: /t }\n";
        assert!(
            told(open, &[("HOOKYARD_LISTEN_TOKEN_FILE", "null")], &[])
                .starts_with("HOOKYARD_LISTEN_TOKEN_FILE: `tcp`")
        );
        assert!(
            told("", &[("HOOKYARD_LISTEN", "{ tcp: '0.0.0.0:1' }")], &[])
                .starts_with("HOOKYARD_LISTEN: `tcp`")
        );
    }

    #[test]
    fn a_layer_above_puts_right_what_clashes_below() {
        good("default_timeout: 20m\n", &[("HOOKYARD_MAX_TIMEOUT", "1h")], &[]);
        good("listen: { tcp: '0.0.0.0:1' }\n", &[], &[("listen.token_file", "/t")]);
    }

    #[test]
    fn variables_that_are_almost_one_are_told() {
        let others = [
            ("HOOKYARD_SECRET_RUN_IDLE", "x"),
            ("HOOKYARD_CLAWD_ENABLED", "x"),
            ("HOOKYARD_HOOK", "x"),
            ("HOOKYARD_WORKER", "1"),
            ("HOOKYARD_EVENT", "x"),
            ("HOOKYARD_LOG", "debug"),
            ("HOOKYARD_DEADLINE_MS", "1"),
            ("HOOKYARD_PORT_8787_TCP_ADDR", "10.0.0.1"),
            ("HOOKYARD_SERVICE_HOST", "10.0.0.1"),
            ("WATCHH", "x"),
        ];
        good("", &others, &[]);
        let (settings, told) =
            layered("", &[("HOOKYARD_LIMITS_INFLIGHT", "1"), ("HOOKYARD_DEFUALT_TIMEOUT", "1s")], &[]);
        assert_eq!(settings, Some(Settings::default()));
        assert_eq!(
            told,
            [
                "HOOKYARD_DEFUALT_TIMEOUT: no setting has this variable (did you mean `HOOKYARD_DEFAULT_TIMEOUT`?)",
                "HOOKYARD_LIMITS_INFLIGHT: no setting has this variable (did you mean `HOOKYARD_LIMITS_IN_FLIGHT`?)",
            ]
        );
        good("secrets: { env_prefix: HOOKYARD_LIMITS_ }", &[("HOOKYARD_LIMITS_INFLIGHT", "1")], &[]);
    }
}

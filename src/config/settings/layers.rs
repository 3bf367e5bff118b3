//! Settings read from a file, environment variables and flags, each of which overrides the one before.

#[cfg(all(feature = "cli", feature = "daemon"))]
use std::collections::BTreeMap;
use std::{ffi::OsString, path::Path};

#[cfg(feature = "daemon")]
use serde_json::Value as Json;

use super::{
    keys::KeySet,
    overrides::{Override, QUOTE, SettingVariables},
    table::Settings,
};
#[cfg(all(feature = "cli", feature = "daemon"))]
use crate::dialect::{Mapping, Value};
use crate::{
    dialect::Document,
    model::{Diagnostic, Severity},
};

/// What stands for a secret.
#[cfg(all(feature = "cli", feature = "daemon"))]
const HIDDEN: &str = "***";

/// A document with settings.
struct Layer<'t> {
    /// What diagnostics call it: a path, a variable or a flag.
    name: &'t Path,
    text: &'t str,
    spans: SpanDisplay,
}

/// Whether diagnostics give lines and columns.
#[derive(Clone, Copy)]
enum SpanDisplay {
    /// They do: the text is as somebody wrote it.
    Shown,
    /// They do not: the text was made from a variable or a flag.
    Hidden,
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
        let (settings, diagnostics) = read_layers(&[Layer { name: file, text, spans: SpanDisplay::Shown }]);
        (unless_wrong(settings, &diagnostics), diagnostics)
    }

    /// Reads settings from a file, environment variables and flags, each of which overrides the one before. A key that
    /// none of them has keeps its default.
    ///
    /// The variable of a key is its path in upper case: `HOOKYARD_LIMITS_IN_FLIGHT` is `limits.in_flight`. A flag is
    /// that path and a value. Both have the value as a file would, in one line: `HOOKYARD_WORKSPACE_ROOTS='[/srv]'`.
    /// An empty variable is ignored. Lists, `models` and `workspaces` replace those below them; other mappings are
    /// merged.
    ///
    /// Returns the settings if there is no error, and everything that is wrong. A diagnostic about a variable has its
    /// name as the file. A variable that begins with `HOOKYARD_` and is not known gets a warning.
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
        let keys = Self::key_paths();
        let variables = SettingVariables::of(environment);
        let mut invalid = Vec::new();
        let mut overrides = variables.overrides(&keys, &mut invalid);
        overrides.extend(super::overrides::of_flags(&keys, flags, &mut invalid));
        let layers = layers_of(file, &overrides);
        let (settings, mut diagnostics) = read_layers(&layers);
        diagnostics.append(&mut invalid);
        diagnostics.extend(variables.unknown(&keys, settings.secrets.env_prefix.as_deref()));
        (unless_wrong(settings, &diagnostics), diagnostics)
    }

    /// The keys that a file, environment variables and flags set, each as the last of these has it, without secrets.
    /// Mistakes are left out: [`Self::layered`] tells them.
    #[cfg(all(feature = "cli", feature = "daemon"))]
    pub(crate) fn set_keys(
        file: Option<(&str, &Path)>,
        environment: impl IntoIterator<Item = (impl Into<OsString>, impl Into<OsString>)>,
        flags: &[(String, String)],
    ) -> Vec<SetKey> {
        let keys = Self::key_paths();
        let mut ignored = Vec::new();
        let mut overrides = SettingVariables::of(environment).overrides(&keys, &mut ignored);
        overrides.extend(super::overrides::of_flags(&keys, flags, &mut ignored));
        let mut set = BTreeMap::new();
        for layer in layers_of(file, &overrides) {
            let Ok(document) = Document::parse(layer.text.as_bytes(), layer.name) else { continue };
            let Some(root) = document.root() else { continue };
            for key in &keys {
                let section = format!("{key}.");
                let is_section = keys.iter().any(|other| other.starts_with(&section));
                let Some(value) = value_at(&root, key).filter(|_| !is_section) else { continue };
                let is_written = matches!(layer.spans, SpanDisplay::Shown);
                let set_key = SetKey {
                    key: key.clone(),
                    value: without_secrets(&value, layer.text),
                    source: layer.name.display().to_string(),
                    line: is_written.then(|| document.position(value.key_span()).0),
                };
                set.insert(key, set_key);
            }
        }
        set.into_values().collect()
    }

    /// The paths of all keys, each section before the keys in it.
    pub(super) fn key_paths() -> Vec<String> {
        let mut paths = Vec::new();
        Self::push_key_paths("", &mut paths);
        paths
    }
}

/// A key that somebody has set.
#[cfg(feature = "daemon")]
#[cfg_attr(not(feature = "cli"), allow(dead_code, reason = "only the command line knows what was set"))]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SetKey {
    /// Its path, such as `limits.runs`.
    pub(crate) key: String,
    /// As it was written, without secrets.
    pub(crate) value: Json,
    /// The file, the variable or the flag.
    pub(crate) source: String,
    /// The line of a file.
    pub(crate) line: Option<usize>,
}

/// The value at the path of a key.
#[cfg(all(feature = "cli", feature = "daemon"))]
fn value_at<'d>(root: &Mapping<'d>, key: &str) -> Option<Value<'d>> {
    let mut parts = key.split('.');
    let first = root.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.as_mapping()?.get(part))
}

/// A value as JSON, with `***` for the keys of models and what addresses have besides their scheme and host.
#[cfg(all(feature = "cli", feature = "daemon"))]
fn without_secrets(value: &Value<'_>, text: &str) -> Json {
    if let Some(entries) = value.as_mapping() {
        let shown = entries.values().map(|entry| {
            let is_secret = entry.name() == "key" && !entry.as_text().is_some_and(is_reference);
            let shown = if is_secret { HIDDEN.into() } else { without_secrets(&entry, text) };
            (entry.name().to_owned(), shown)
        });
        return Json::Object(shown.collect());
    }
    if value.is_list() {
        return value.list().into_iter().flatten().map(|item| without_secrets(&item, text)).collect();
    }
    match value.as_text() {
        Some(written) => without_credentials(written).into(),
        None if value.is_null() => Json::Null,
        // A number, or `true` or `false`.
        None => {
            let written = &text[value.span().range()];
            serde_json::from_str(written).unwrap_or_else(|_| written.into())
        }
    }
}

/// Whether a text is one reference, such as `${secrets.KEY}`, and nothing else.
#[cfg(all(feature = "cli", feature = "daemon"))]
fn is_reference(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = name.and_then(|name| name.strip_prefix("secrets.").or_else(|| name.strip_prefix("env.")));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// An address with no more than its scheme and its host, since hooks of chats have their secret in the path; other texts as they
/// are. What has no host is a file.
#[cfg(all(feature = "cli", feature = "daemon"))]
fn without_credentials(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host =
        authority.rsplit_once('@').map_or(authority.to_owned(), |(_, host)| format!("{HIDDEN}@{host}"));
    let path = match path.split_once(['?', '#']) {
        _ if !authority.is_empty() && path.len() > 1 => format!("/{HIDDEN}"),
        Some((path, _)) => format!("{path}?{HIDDEN}"),
        None => path.to_owned(),
    };
    format!("{scheme}://{host}{path}")
}

/// The documents of a file and of what overrides it, in their order.
fn layers_of<'t>(file: Option<(&'t str, &'t Path)>, overrides: &'t [Override]) -> Vec<Layer<'t>> {
    let file = file.map(|(text, name)| Layer { name, text, spans: SpanDisplay::Shown });
    let above = overrides.iter().map(|single| Layer {
        name: Path::new(&single.name),
        text: &single.text,
        spans: SpanDisplay::Hidden,
    });
    file.into_iter().chain(above).collect()
}

fn unless_wrong(settings: Settings, diagnostics: &[Diagnostic]) -> Option<Settings> {
    let has_errors = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    (!has_errors).then_some(settings)
}

/// Reads the layers in their order, and then checks what they result in.
fn read_layers(layers: &[Layer<'_>]) -> (Settings, Vec<Diagnostic>) {
    let mut documents = Vec::new();
    let mut diagnostics = Vec::new();
    for layer in layers {
        match Document::parse(layer.text.as_bytes(), layer.name) {
            Ok(document) => documents.push((document, layer.spans)),
            // A file in which every key is commented out leaves all defaults.
            Err(diagnostic) if diagnostic.code == "empty-document" => {}
            Err(diagnostic) => diagnostics.push(match layer.spans {
                SpanDisplay::Shown => *diagnostic,
                SpanDisplay::Hidden => {
                    let help = diagnostic.help.clone().unwrap_or_else(|| QUOTE.to_owned());
                    without_span(*diagnostic).help(help)
                }
            }),
        }
    }
    let mut settings = Settings::default();
    let mappings: Vec<_> = documents.iter().filter_map(|(document, _)| document.root()).collect();
    for mapping in &mappings {
        settings.read_keys(mapping);
    }
    settings.check(&mappings);
    drop(mappings);
    for (document, spans) in documents {
        let found = document.into_diagnostics().into_iter();
        match spans {
            SpanDisplay::Shown => diagnostics.extend(found),
            SpanDisplay::Hidden => diagnostics.extend(found.map(without_span)),
        }
    }
    (settings, diagnostics)
}

fn without_span(diagnostic: Diagnostic) -> Diagnostic {
    Diagnostic { line: 0, column: 0, length: 1, ..diagnostic }
}

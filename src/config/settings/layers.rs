//! Settings read from a file, environment variables and flags, each of which overrides the one before.

use std::{ffi::OsString, path::Path};

use super::{
    keys::KeySet,
    overrides::{QUOTE, SettingVariables},
    table::Settings,
};
use crate::{
    dialect::Document,
    model::{Diagnostic, Severity},
};

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
        let file = file.map(|(text, name)| Layer { name, text, spans: SpanDisplay::Shown });
        let above = overrides.iter().map(|single| Layer {
            name: Path::new(&single.name),
            text: &single.text,
            spans: SpanDisplay::Hidden,
        });
        let layers: Vec<Layer<'_>> = file.into_iter().chain(above).collect();
        let (settings, mut diagnostics) = read_layers(&layers);
        diagnostics.append(&mut invalid);
        diagnostics.extend(variables.unknown(&keys, settings.secrets.env_prefix.as_deref()));
        (unless_wrong(settings, &diagnostics), diagnostics)
    }

    /// The paths of all keys, each section before the keys in it.
    pub(super) fn key_paths() -> Vec<String> {
        let mut paths = Vec::new();
        Self::push_key_paths("", &mut paths);
        paths
    }
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

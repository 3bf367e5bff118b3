//! Settings of a command, from its file, environment variables and flags, and changes of that file.

use std::{
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use tracing::Level;

use super::{
    diagnostics, escape,
    exit::CliError,
    flags::SettingsFlags,
    paths::open_input,
    screen::{FATAL_TARGET, MessageFormat, Screen},
};
use crate::{
    config::Settings,
    model::{Diagnostic, Severity},
};

/// The largest settings file, in bytes.
const LARGEST_SETTINGS: u64 = 1 << 20;

/// Whether a command takes settings from environment variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariablePolicy {
    /// It does: it is the daemon, which an operator starts, or checks the settings for it.
    Read,
    /// It does not: an agent may run it, and takes variables from the files of a project.
    Ignored,
}

/// The settings, or the defaults if there are errors in them, and what is wrong.
///
/// Returns an error if the file cannot be read, or the home directory cannot be used.
pub(super) fn settings_of(
    flags: &SettingsFlags,
    variables: VariablePolicy,
) -> Result<(Settings, Vec<Diagnostic>), CliError> {
    let text = flags.config.as_deref().map(text_of).transpose()?;
    let file = text.as_deref().zip(flags.config.as_deref());
    let variables = std::env::vars_os().filter(|_| variables == VariablePolicy::Read);
    let (settings, diagnostics) = Settings::layered(file, variables, &flags.set);
    let mut settings = settings.unwrap_or_default();
    if let Some(home) = &flags.home {
        settings.home = Some(home_directory(home)?);
    }
    if settings.sandbox.launcher.is_none() {
        // Without its own path, hooks with a sandbox report that there is no launcher.
        settings.sandbox.launcher = std::env::current_exe().ok();
    }
    Ok((settings, diagnostics))
}

/// Shows what is wrong with settings on standard error.
///
/// Returns an error if any of it is one.
pub(super) fn tell(diagnostics: &[Diagnostic], screen: &Screen) -> Result<(), CliError> {
    for diagnostic in diagnostics {
        match (screen.message_format, diagnostic.severity) {
            (MessageFormat::Text, severity) => {
                let text = diagnostics::render(diagnostic, None, screen.err.paint, screen.width());
                screen.write_message(level(severity), &text);
            }
            (MessageFormat::Log, Severity::Error) => tracing::error!(target: FATAL_TARGET, "{diagnostic}"),
            (MessageFormat::Log, Severity::Warning) => tracing::warn!("{diagnostic}"),
            (MessageFormat::Log, Severity::Info) => tracing::info!("{diagnostic}"),
        }
    }
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    if failed { Err(CliError::AlreadyReported) } else { Ok(()) }
}

fn level(severity: Severity) -> Level {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARN,
        Severity::Info => Level::INFO,
    }
}

fn home_directory(given: &Path) -> Result<PathBuf, CliError> {
    given.canonicalize().map_err(|error| {
        let name = escape::path(given);
        CliError::new(format!(
            "the home directory `{name}` cannot be used: {}",
            crate::model::io_reason(&error)
        ))
    })
}

/// The text of a settings file.
///
/// Returns an error if it cannot be read, is too large, or is not UTF-8.
fn text_of(file: &Path) -> Result<String, CliError> {
    let bytes = start_of(file)
        .map_err(|error| unusable(file, &format!("cannot be read: {}", crate::model::io_reason(&error))))?;
    if bytes.len() as u64 > LARGEST_SETTINGS {
        return Err(unusable(file, &format!("is larger than the {LARGEST_SETTINGS} bytes allowed")));
    }
    String::from_utf8(bytes).map_err(|_| unusable(file, "is not UTF-8"))
}

/// The bytes of a file, at most one more than are allowed.
///
/// Returns an error of a pipe through which nothing comes: the guards of its settings would be missing silently.
fn start_of(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened = open_input(file)?;
    let is_pipe = opened.metadata()?.file_type().is_fifo();
    opened.take(LARGEST_SETTINGS + 1).read_to_end(&mut bytes)?;
    if is_pipe && bytes.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is a pipe, and nobody writes to it"));
    }
    Ok(bytes)
}

fn unusable(file: &Path, why: &str) -> CliError {
    CliError::new(format!("the settings file `{}` {why}", escape::path(file)))
}

/// Changes the text of a settings file.
#[cfg(feature = "daemon")]
pub(super) mod edit {
    use std::{collections::BTreeMap, ops::Range, path::Path};

    use crate::{
        config::{HandlerMode, Settings},
        dialect::{Document, Span, Value},
    };

    /// Some editors put it before the first line of a text.
    const BYTE_ORDER_MARK: &str = "\u{feff}";

    /// Words that YAML, or an older version of it, does not read as texts.
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

    /// A text as a key, quoted unless it certainly needs no quotes.
    pub(in crate::cli) fn key_text(text: &str) -> String {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_word = WORDS.contains(&text.to_ascii_lowercase().as_str());
        if text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(is_plain) && !is_word {
            text.to_owned()
        } else {
            serde_json::Value::from(text).to_string()
        }
    }

    /// The text of a settings file with these modes in `handlers`, by the name or command of a hook. Everything else, also
    /// comments and formatting, stays as it is.
    ///
    /// Returns `None` if the file is written in a way in which that cannot be done safely.
    pub(in crate::cli) fn with_modes(
        text: &str,
        file: &Path,
        modes: &BTreeMap<String, HandlerMode>,
    ) -> Option<String> {
        let mark = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK } else { "" };
        let mut expected = Settings::from_yaml(text, file).0?;
        let mut edited = text[mark.len()..].to_owned();
        for (name, mode) in modes {
            let entry = expected.handlers.entry(name.clone()).or_default();
            if entry.mode != Some(*mode) {
                entry.mode = Some(*mode);
                let TextEdit { range, new } = mode_edit(&edited, file, name, mode.as_str())?;
                edited.replace_range(range, &new);
            }
        }
        let edited = format!("{mark}{edited}");
        // What was written must be what was meant, and nothing else.
        (Settings::from_yaml(&edited, file).0.as_ref() == Some(&expected)).then_some(edited)
    }

    /// What takes the place of a part of a text.
    struct TextEdit {
        range: Range<usize>,
        new: String,
    }

    /// The edit that gives a hook its mode.
    fn mode_edit(text: &str, file: &Path, name: &str, mode: &str) -> Option<TextEdit> {
        let key = format!("{}:", key_text(name));
        let flow_entry = format!(" {}: {{ \"mode\": \"{mode}\" }}", serde_json::Value::from(name));
        let mode_line = format!("mode: {mode}");
        let first_entry = || vec![(0, "handlers:".to_owned()), (2, key.clone()), (4, mode_line.clone())];
        // Settings that say nothing are no document.
        let Ok(document) = Document::parse(text.as_bytes(), file) else {
            return Some(at_end(text, &first_entry()));
        };
        let root = document.root()?;
        let Some(handlers) = root.get("handlers") else {
            let flow = in_flow(text, root.span(), format!(" \"handlers\": {{{flow_entry} }},"));
            return Some(flow.unwrap_or_else(|| at_end(text, &first_entry())));
        };
        let entries = handlers.as_mapping().filter(|entries| entries.values().next().is_some());
        let Some(entries) = entries else {
            return Some(instead(text, &handlers, &first_entry()[1..]));
        };
        let Some(entry) = entries.get(name) else {
            let flow = in_flow(text, handlers.span(), format!("{flow_entry},"));
            return flow.or_else(|| {
                let indent = indent_of(text, &entries.values().next()?)?;
                Some(below(text, &handlers, &[(indent, key), (indent + 2, mode_line)]))
            });
        };
        let keys = entry.as_mapping().filter(|keys| keys.values().next().is_some());
        let Some(keys) = keys else {
            return Some(instead(text, &entry, &[(indent_of(text, &entry)? + 2, mode_line)]));
        };
        if let Some(old) = keys.get("mode") {
            return Some(TextEdit { range: old.span().range(), new: mode.to_owned() });
        }
        in_flow(text, entry.span(), format!(" \"mode\": \"{mode}\",")).or_else(|| {
            let indent = indent_of(text, &keys.values().next()?)?;
            Some(below(text, &entry, &[(indent, mode_line)]))
        })
    }

    /// Adds lines at the end of the text.
    fn at_end(text: &str, lines: &[(usize, String)]) -> TextEdit {
        let added = indented(text, lines);
        let line_end = line_end(text);
        let is_at_start = text.is_empty() || text.ends_with('\n');
        let added = if is_at_start { added.trim_start_matches(line_end) } else { &added };
        TextEdit { range: text.len()..text.len(), new: format!("{added}{line_end}") }
    }

    /// Adds a text at the beginning of a mapping in braces; `None` if it has none.
    fn in_flow(text: &str, span: Span, new: String) -> Option<TextEdit> {
        let start = span.range().start;
        text[start..].starts_with('{').then(|| TextEdit { range: start + 1..start + 1, new })
    }

    /// Adds lines below that of a key.
    fn below(text: &str, value: &Value<'_>, lines: &[(usize, String)]) -> TextEdit {
        let key_end = value.key_span().range().end;
        let line = text[key_end..].find('\n').map_or(text.len(), |end| key_end + end);
        let end = text[..line].trim_end_matches('\r').len();
        TextEdit { range: end..end, new: indented(text, lines) }
    }

    /// Puts lines in the place of a value that has nothing in it.
    fn instead(text: &str, value: &Value<'_>, lines: &[(usize, String)]) -> TextEdit {
        let span = value.span().range();
        if text[span.clone()].trim().is_empty() {
            return below(text, value, lines);
        }
        let start = text[..span.start].trim_end_matches([' ', '\t']).len();
        TextEdit { range: start..span.end, new: indented(text, lines) }
    }

    /// The column of a key; `None` if something other than spaces is before it.
    fn indent_of(text: &str, value: &Value<'_>) -> Option<usize> {
        let before = &text[..value.key_span().range().start];
        let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
        line.bytes().all(|byte| byte == b' ').then_some(line.len())
    }

    /// Each line after a line end.
    fn indented(text: &str, lines: &[(usize, String)]) -> String {
        let line_end = line_end(text);
        let line = |(indent, line): &(usize, String)| [line_end, &" ".repeat(*indent), line].concat();
        lines.iter().map(line).collect()
    }

    /// How the lines of a text end.
    fn line_end(text: &str) -> &'static str {
        if text.contains("\r\n") { "\r\n" } else { "\n" }
    }
}

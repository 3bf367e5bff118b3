//! The table `handlers` of settings files: `enable` and `disable`, which switch hooks on and off, and changes of its text.

use std::{collections::BTreeMap, path::Path};

use clap::Args;

use super::{
    connect::AgentSettingsFile,
    daemon_flag::how_to_restart,
    escape,
    exit::{CliError, CliResult, Exit},
    flags::WorkspaceFlags,
    paths::display_path,
    screen::Screen,
    settings::file_to_change,
    workspace::LocatedWorkspace,
};
use edit::{HandlerChange, key_text, with_handlers};

use crate::{
    config::{self, LoadedWorkspace, Settings, is_called},
    handler::command::is_inside_hook,
    model::Hook,
};

const DISABLE_FOOTER: &str = "\
Examples:
  hookyard disable format-code
  hookyard disable claude.user.PreToolUse.1.1
  hookyard disable guard --config /etc/hookyard/hookyard.yaml

The setting applies to the hook of this name in every workspace. Commands use it at once, and a daemon with the same \
settings file after its next start. The events of a hook that `required` names are blocked.

Exit codes: 0 the hook is switched off; 1 there is no such hook, or the settings file cannot be changed.";

const ENABLE_FOOTER: &str = "\
Examples:
  hookyard enable format-code
  hookyard enable claude.user.PreToolUse.1.1

A hook that is disabled by its own file, or by a level above it, stays disabled.

Exit codes: 0 the settings do not switch the hook off; 1 there is no such hook, it stays disabled by something else, or the \
settings file cannot be changed.";

/// Switch a hook off
///
/// Writes `enabled: false` for the hook into `handlers` of the settings file, by default that of the user
/// (`~/.config/hookyard/hookyard.yaml`). No file of a workspace is changed, and its trust stays.
#[derive(Debug, Args)]
#[command(after_help = DISABLE_FOOTER)]
pub(super) struct DisableCommand {
    #[command(flatten)]
    switch: HookSwitch,
}

/// Switch a hook on that `disable` switched off
#[derive(Debug, Args)]
#[command(after_help = ENABLE_FOOTER)]
pub(super) struct EnableCommand {
    #[command(flatten)]
    switch: HookSwitch,
}

/// The hook, and the settings file.
#[derive(Debug, Args)]
struct HookSwitch {
    /// Name of the hook, as `hookyard list` shows it, or its command as it is written
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    workspace: WorkspaceFlags,
}

impl DisableCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        self.switch.turn(false, screen)
    }
}

impl EnableCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        self.switch.turn(true, screen)
    }
}

impl HookSwitch {
    fn turn(&self, enabled: bool, screen: &Screen) -> CliResult {
        let word = if enabled { "on" } else { "off" };
        if is_inside_hook() {
            let help = format!("switch it {word} yourself, outside the agent");
            return Err(CliError::with_help("a hook cannot switch hooks on or off", help));
        }
        let (mut found, _) = LocatedWorkspace::find_or_current_dir(&self.workspace, screen)?;
        let loaded = found.load();
        let named = find(&loaded, &self.name);
        if let Some(bundle) = named.and_then(|hook| hook.source.bundle.as_ref()).filter(|_| !enabled) {
            let what = format!("`{}` is of the signed bundle {bundle}", escape::line(&self.name));
            return Err(CliError::with_help(
                what,
                "nothing on this machine switches its hooks off; ask who signs it",
            ));
        }
        let named = named.is_some();
        let is_known = named || (enabled && found.settings.handlers.contains_key(&self.name));
        if !is_known {
            let what = format!("there is no hook `{}`", escape::line(&self.name));
            return Err(CliError::with_help(what, "`hookyard list` shows the hooks of the workspace"));
        }
        let file = file_to_change(&self.workspace.settings)?;
        let changed = write(&file, &self.name, enabled)?;
        found.settings.handlers.entry(self.name.clone()).or_default().enabled = enabled;
        let loaded = found.load();
        let name = escape::line(&self.name);
        let state = if changed { "is now" } else { "is already" };
        screen.note(&format!("`{name}` {state} switched {word} in {}", display_path(&file)));
        if changed {
            screen.note(&restart_advice(&found.settings));
        }
        found.note_problems(&loaded.diagnostics, &loaded.files, screen);
        match find(&loaded, &self.name).filter(|hook| enabled && !hook.enabled) {
            None => Ok(Exit::Done),
            Some(hook) => {
                let switch = hook.execution.switches.disabled_by.as_deref();
                let by = switch.unwrap_or("`enabled: false` in its own file");
                screen.error(&format!("`{name}` stays disabled by {}", escape::line(by)), None);
                Ok(Exit::Failed)
            }
        }
    }
}

/// How a daemon that runs comes to know a changed settings file.
pub(super) fn restart_advice(settings: &Settings) -> String {
    let record = config::connections(settings, &|name| std::env::var(name).ok());
    let restart = how_to_restart(record.daemon.as_ref().map(|daemon| daemon.start));
    format!("a daemon that runs keeps the former settings: {restart}")
}

/// The hook with a name or a command.
fn find<'l>(loaded: &'l LoadedWorkspace, name: &str) -> Option<&'l Hook> {
    loaded.hooks.iter().find(|hook| is_called(hook, name))
}

/// A settings file as it is, and its text with other `handlers`.
pub(super) struct HandlersEdit {
    pub(super) file: AgentSettingsFile,
    after: String,
}

impl HandlersEdit {
    /// Reads a settings file, and makes these changes of its `handlers`. None if the file says all of it already.
    ///
    /// Returns an error if the file cannot be read, or, with what to add by hand, if it cannot be changed safely.
    pub(super) fn of(
        named: &Path,
        changes: &BTreeMap<String, HandlerChange>,
        by_hand: &str,
    ) -> Result<Option<Self>, CliError> {
        let file = AgentSettingsFile::read(named, Path::new("/"))?;
        let text = String::from_utf8(file.bytes.clone().unwrap_or_default()).unwrap_or_default();
        let Some(after) = with_handlers(&text, &file.path, changes) else {
            let what = format!("{} cannot be changed without touching the rest of it", escape::path(named));
            return Err(CliError::with_help(what, format!("add this by hand:\n{by_hand}")));
        };
        Ok((after != text).then_some(Self { file, after }))
    }

    /// Writes the file.
    pub(super) fn write(&self) -> Result<(), CliError> {
        self.file.replace(self.after.as_bytes())
    }
}

/// Writes the switch of a hook into a settings file. Returns whether the file was changed.
fn write(named: &Path, name: &str, enabled: bool) -> Result<bool, CliError> {
    let changes = BTreeMap::from([(name.to_owned(), HandlerChange::Enabled(enabled))]);
    let by_hand = format!("handlers:\n  {}:\n    enabled: {enabled}\n", key_text(name));
    let Some(edit) = HandlersEdit::of(named, &changes, &by_hand)? else { return Ok(false) };
    edit.write()?;
    Ok(true)
}

/// Changes the text of a settings file.
pub(super) mod edit {
    use std::{collections::BTreeMap, ops::Range, path::Path};

    use crate::{
        config::{HandlerMode, HandlerSettings, Settings},
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

    /// What the entry of a hook in `handlers` says.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(in crate::cli) enum HandlerChange {
        Mode(HandlerMode),
        Enabled(bool),
        ReplacedBy(String),
    }

    impl HandlerChange {
        /// Makes the change. Returns whether it is one.
        fn apply(&self, entry: &mut HandlerSettings) -> bool {
            let before = entry.clone();
            match self {
                Self::Mode(mode) => entry.mode = Some(*mode),
                Self::Enabled(enabled) => entry.enabled = *enabled,
                Self::ReplacedBy(rule) => entry.replaced_by = Some(rule.clone()),
            }
            *entry != before
        }

        fn key(&self) -> &'static str {
            match self {
                Self::Mode(_) => "mode",
                Self::Enabled(_) => "enabled",
                Self::ReplacedBy(_) => "replaced_by",
            }
        }

        fn value(&self) -> serde_json::Value {
            match self {
                Self::Mode(mode) => mode.as_str().into(),
                Self::Enabled(enabled) => (*enabled).into(),
                Self::ReplacedBy(rule) => rule.as_str().into(),
            }
        }

        /// The value as a line of YAML has it.
        fn plain(&self) -> String {
            match self {
                Self::Mode(mode) => mode.as_str().to_owned(),
                Self::Enabled(enabled) => enabled.to_string(),
                Self::ReplacedBy(rule) => key_text(rule),
            }
        }

        /// The key and the value between braces.
        fn in_braces(&self) -> String {
            format!("\"{}\": {}", self.key(), self.value())
        }
    }

    /// The text of a settings file with these changes in `handlers`, by the name or command of a hook. Everything else,
    /// also comments and formatting, stays as it is.
    ///
    /// Returns `None` if the file is written in a way in which that cannot be done safely.
    pub(in crate::cli) fn with_handlers(
        text: &str,
        file: &Path,
        changes: &BTreeMap<String, HandlerChange>,
    ) -> Option<String> {
        let mark = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK } else { "" };
        let mut expected = Settings::from_yaml(text, file).0?;
        let mut edited = text[mark.len()..].to_owned();
        for (name, change) in changes {
            let mut entry = expected.handlers.get(name).cloned().unwrap_or_default();
            if change.apply(&mut entry) {
                expected.handlers.insert(name.clone(), entry);
                let TextEdit { range, new } = edit_of(&edited, file, name, change)?;
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

    /// The edit that makes a change of the entry of a hook.
    fn edit_of(text: &str, file: &Path, name: &str, change: &HandlerChange) -> Option<TextEdit> {
        let key = format!("{}:", key_text(name));
        let flow_entry = format!(" {}: {{ {} }}", serde_json::Value::from(name), change.in_braces());
        let line = format!("{}: {}", change.key(), change.plain());
        let first_entry = || vec![(0, "handlers:".to_owned()), (2, key.clone()), (4, line.clone())];
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
                Some(below(text, &handlers, &[(indent, key), (indent + 2, line)]))
            });
        };
        let keys = entry.as_mapping().filter(|keys| keys.values().next().is_some());
        let Some(keys) = keys else {
            return Some(instead(text, &entry, &[(indent_of(text, &entry)? + 2, line)]));
        };
        if let Some(old) = keys.get(change.key()) {
            return Some(TextEdit { range: old.span().range(), new: change.plain() });
        }
        in_flow(text, entry.span(), format!(" {},", change.in_braces())).or_else(|| {
            let indent = indent_of(text, &keys.values().next()?)?;
            Some(below(text, &entry, &[(indent, line)]))
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

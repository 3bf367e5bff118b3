//! Writes hooks as one settings file of an agent. Lost parts get a remark; a hook that would run something else is
//! left out.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    super::{
        event_table::{EventRow, MatchSource},
        native::NativeDialect,
        settings::{MatcherSyntax, SettingsLocation, Shell},
    },
    ConvertedFile,
    file_defaults::policies,
    matcher::PortableMatcher,
    portable_hook::{ConversionLosses, PortableCommand, PortableEvent, PortableHandler, PortableHook},
};
use crate::model::{EventKind, HandlerKind, MatchField, Scope, Strategy};

#[derive(Serialize)]
struct File {
    hooks: Events,
}

/// The keys for all hooks, and the events in order of their first hook.
#[derive(Default)]
struct Events {
    words: Vec<(&'static str, &'static str)>,
    events: Vec<(&'static str, Vec<Entry>)>,
}

impl Serialize for Events {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.words.len() + self.events.len()))?;
        self.words.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        self.events.iter().try_for_each(|(name, entries)| map.serialize_entry(name, entries))?;
        map.end()
    }
}

#[derive(Serialize)]
struct Entry {
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<Matcher>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequential: Option<bool>,
    hooks: Vec<Item>,
}

#[derive(Serialize, PartialEq)]
#[serde(untagged)]
enum Matcher {
    Text(String),
    Parts { tools: String },
}

#[derive(Serialize, Default, Clone)]
struct Item {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shell: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(rename = "allowedEnvVars", skip_serializing_if = "Vec::is_empty")]
    allowed: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    timeout: serde_json::Value,
}

/// The file, and how many hooks are in it.
pub(super) fn write(
    native: &NativeDialect,
    hooks: &[PortableHook],
    losses: &mut ConversionLosses,
) -> (Vec<ConvertedFile>, usize) {
    let mut events = Events::default();
    let mut kept = Vec::new();
    let mut written = 0;
    for hook in hooks {
        let rows: Vec<&EventRow> = hook.events.iter().filter_map(|event| row(native, event)).collect();
        let missing: Vec<&PortableEvent> = hook.events.iter().filter(|e| row(native, e).is_none()).collect();
        losses.missing_events(&hook.name, native.name, &missing, rows.len());
        if rows.is_empty() {
            continue;
        }
        let Some(item) = item(native, hook, losses) else { continue };
        remarks(hook, &rows, losses);
        kept.push(hook);
        for row in rows {
            let entry = Entry {
                matcher: matcher(native, row, hook, losses),
                sequential: sequential(native, row, hook),
                hooks: vec![item.clone()],
            };
            if events.add(row, entry) && is_out_of_order(native, row, hook) {
                let message =
                    format!("hooks on {} run at the same time, and none sees what others change", row.name);
                losses.partial(&hook.name, message);
            }
            written += 1;
        }
    }
    events.words = policies(native, &kept, losses);
    let place = native.settings.files.iter().find_map(|file| match (file.scope, file.location) {
        (Scope::Project, SettingsLocation::Workspace(path)) => Some(path),
        _ => None,
    });
    let (Some(path), true) = (place, written > 0) else { return (Vec::new(), 0) };
    match serde_json::to_string_pretty(&File { hooks: events }) {
        Ok(text) => {
            (vec![ConvertedFile { path: path.replace('*', "hooks").into(), text: text + "\n" }], written)
        }
        Err(error) => {
            losses.omitted(path, format!("the file cannot be written: {error}"));
            (Vec::new(), 0)
        }
    }
}

impl Events {
    /// Adds an entry, or its hooks to the last one if they belong there. Returns whether there were some before.
    fn add(&mut self, row: &'static EventRow, entry: Entry) -> bool {
        let at = self.events.iter().position(|(name, _)| *name == row.name).unwrap_or_else(|| {
            self.events.push((row.name, Vec::new()));
            self.events.len() - 1
        });
        let entries = &mut self.events[at].1;
        let is_next = !entries.is_empty();
        let belongs =
            |last: &&mut Entry| (&last.matcher, last.sequential) == (&entry.matcher, entry.sequential);
        match entries.last_mut().filter(belongs) {
            Some(last) => last.hooks.extend(entry.hooks),
            None => entries.push(entry),
        }
        is_next
    }
}

fn row(native: &NativeDialect, event: &PortableEvent) -> Option<&'static EventRow> {
    match event.kind {
        EventKind::HostEvent => native.row_of(event.kind, Some(event.host_event.as_deref()?)),
        kind => native.row_of(kind, None),
    }
}

/// Whether the entry needs the key that makes its hooks run one after the other.
fn sequential(native: &NativeDialect, row: &EventRow, hook: &PortableHook) -> Option<bool> {
    let waits = hook.order == Strategy::Serial && row.strategy == Strategy::Parallel;
    (waits && row.kind.is_interceptor() && native.settings.keys.entry.contains(&"sequential")).then_some(true)
}

/// Whether a hook that waited for others would no longer do so.
fn is_out_of_order(native: &NativeDialect, row: &EventRow, hook: &PortableHook) -> bool {
    let (was, is) = (hook.order == Strategy::Serial, row.strategy == Strategy::Serial);
    was && !is && row.kind.is_interceptor() && sequential(native, row, hook).is_none()
}

fn matcher(
    native: &NativeDialect,
    row: &EventRow,
    hook: &PortableHook,
    losses: &mut ConversionLosses,
) -> Option<Matcher> {
    if row.match_source == MatchSource::Unmatched && hook.matcher != PortableMatcher::Everything {
        losses.partial(&hook.name, format!("its matcher: {} has nothing to match on", row.name));
        return None;
    }
    match native.settings.matcher_syntax {
        MatcherSyntax::Parts => hook.matcher.list_or_whole().map(|tools| Matcher::Parts { tools }),
        MatcherSyntax::Whole => hook.matcher.whole().map(Matcher::Text),
        MatcherSyntax::ListOrPattern => hook.matcher.list_or_pattern().map(Matcher::Text),
        MatcherSyntax::PatternOrText if row.kind.match_field() == Some(MatchField::ToolName) => {
            hook.matcher.pattern().map(Matcher::Text)
        }
        MatcherSyntax::PatternOrText => {
            let text = hook.matcher.text();
            if text.is_none() && hook.matcher != PortableMatcher::Everything {
                losses
                    .partial(&hook.name, format!("its matcher: {} takes one text and no pattern", row.name));
            }
            text.map(Matcher::Text)
        }
    }
}

fn item(native: &NativeDialect, hook: &PortableHook, losses: &mut ConversionLosses) -> Option<Item> {
    let kind = match hook.handler {
        PortableHandler::Command { .. } => HandlerKind::Command,
        PortableHandler::Http { .. } => HandlerKind::Http,
        PortableHandler::Prompt { .. } => HandlerKind::Prompt,
        PortableHandler::Agent { .. } => HandlerKind::Agent,
    };
    if !native.settings.types.contains(&kind) {
        losses.omitted(&hook.name, format!("{} has no hooks of type `{kind}`", native.name));
        return None;
    }
    let item = Item {
        name: native.settings.keys.hook.contains(&"name").then(|| hook.name.clone()),
        r#type: kind.as_str(),
        timeout: native.settings.timeouts.unit_of(kind).number(hook.timeout).into(),
        ..Item::default()
    };
    match &hook.handler {
        PortableHandler::Command { run, cwd, environment } => {
            command(native, hook, run, cwd.as_deref(), environment, item, losses)
        }
        PortableHandler::Http { url, method, headers } => http(hook, url, method, headers, item, losses),
        PortableHandler::Prompt { text, model } => {
            Some(Item { prompt: Some(text.clone()), model: model.clone(), ..item })
        }
        PortableHandler::Agent { agent, task, model } => {
            if let Some(agent) = agent {
                losses.partial(
                    &hook.name,
                    format!("the agent `{agent}`: its role, its tools and its model stay behind"),
                );
            }
            Some(Item { prompt: Some(task.clone()), model: model.clone(), ..item })
        }
    }
}

/// A command, with its directory and variables in its line: the file has no place of its own for them.
fn command(
    native: &NativeDialect,
    hook: &PortableHook,
    run: &PortableCommand,
    cwd: Option<&str>,
    environment: &[(String, String)],
    item: Item,
    losses: &mut ConversionLosses,
) -> Option<Item> {
    if environment.iter().any(|(_, value)| value.contains("${secrets.")) {
        losses.omitted(&hook.name, "a secret in its `environment` cannot be kept in that format");
        return None;
    }
    let takes = |key| native.settings.keys.hook.contains(&key);
    if let Some(line) = run.bash_line().filter(|_| takes("shell") || native.settings.shell == Shell::Bash) {
        let shell = (native.settings.shell != Shell::Bash).then_some("bash");
        return Some(Item { command: Some(in_line(line, cwd, environment)), shell, ..item });
    }
    match run {
        PortableCommand::Exec(args) if cwd.is_none() && environment.is_empty() && takes("args") => {
            let (program, rest) = args.split_first()?;
            Some(Item { command: Some(program.clone()), args: rest.to_vec(), ..item })
        }
        PortableCommand::Exec(args) => {
            let line: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
            Some(Item { command: Some(in_line(&line.join(" "), cwd, environment)), ..item })
        }
        PortableCommand::Shell(line) => Some(Item { command: Some(in_line(line, cwd, environment)), ..item }),
    }
}

fn in_line(line: &str, cwd: Option<&str>, environment: &[(String, String)]) -> String {
    let mut steps: Vec<String> = cwd.iter().map(|cwd| format!("cd {}", quoted(cwd))).collect();
    steps.extend(environment.iter().map(|(name, value)| format!("export {name}={}", expanded(value))));
    steps.push(line.to_owned());
    steps.join(" && ")
}

/// A value for a shell, with `${env.NAME}` as a variable of the shell.
fn expanded(value: &str) -> String {
    let mut parts = value.split("${env.");
    let mut text = quoted(parts.next().unwrap_or_default());
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        text.extend(["\"${", name, "}\""]);
        if !rest.is_empty() {
            text.push_str(&quoted(rest));
        }
    }
    text
}

fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn http(
    hook: &PortableHook,
    url: &str,
    method: &str,
    headers: &[(String, String)],
    item: Item,
    losses: &mut ConversionLosses,
) -> Option<Item> {
    if method != "POST" {
        losses.omitted(&hook.name, format!("its requests are `{method}`, and there they are always `POST`"));
        return None;
    }
    if headers.iter().any(|(_, value)| value.contains("${secrets.")) {
        losses.omitted(&hook.name, "a secret in its `headers` cannot be kept in that format");
        return None;
    }
    let names = headers.iter().flat_map(|(_, value)| value.split("${env.").skip(1));
    let allowed = names.filter_map(|rest| Some(rest.split_once('}')?.0.to_owned())).collect();
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.replace("${env.", "${"))).collect();
    Some(Item { url: Some(url.to_owned()), headers, allowed, ..item })
}

/// The properties of a hook that a settings file cannot express.
fn remarks(hook: &PortableHook, rows: &[&EventRow], losses: &mut ConversionLosses) {
    if hook.priority != 0 {
        losses.partial(&hook.name, "`priority`: the order in the file replaces it");
    }
    if let Some(capabilities) = &hook.capabilities {
        let may = rows.iter().flat_map(|row| row.capabilities);
        let gained: Vec<&str> =
            may.map(|c| c.as_str()).filter(|name| !capabilities.iter().any(|c| c == name)).collect();
        if let Some(first) = gained.first() {
            losses.partial(&hook.name, format!("it may do more there: every hook has `{first}`"));
        }
    }
}

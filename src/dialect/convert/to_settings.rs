//! Hooks as one settings file of an agent. Refuses to weaken a hook without a word: what would make a guard let more
//! pass is told, and what would run another thing than meant is left out.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    super::{
        native::Native,
        row::{Looks, Row},
        settings::{Form, Place, Shell},
    },
    ConvertedFile,
    common::policies,
    matcher::Wants,
    portable::{Lost, Portable, PortableHandler, Run, WantedEvent},
};
use crate::model::{EventKind, HandlerKind, MatchField, Scope, Strategy};

#[derive(Serialize)]
struct File {
    hooks: Events,
}

/// What is for all hooks, and the events in order of their first hook.
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
pub(super) fn write(native: &Native, hooks: &[Portable], lost: &mut Lost) -> (Vec<ConvertedFile>, usize) {
    let mut events = Events::default();
    let mut kept = Vec::new();
    let mut written = 0;
    for hook in hooks {
        let rows: Vec<&Row> = hook.events.iter().filter_map(|event| row(native, event)).collect();
        let missing: Vec<&WantedEvent> = hook.events.iter().filter(|e| row(native, e).is_none()).collect();
        lost.events(&hook.name, native.name, &missing, rows.len());
        if rows.is_empty() {
            continue;
        }
        let Some(item) = item(native, hook, lost) else { continue };
        remarks(hook, &rows, lost);
        kept.push(hook);
        for row in rows {
            let entry = Entry {
                matcher: matcher(native, row, hook, lost),
                sequential: sequential(native, row, hook),
                hooks: vec![item.clone()],
            };
            if events.add(row, entry) && is_out_of_order(native, row, hook) {
                let message =
                    format!("hooks on {} run at the same time, and none sees what others change", row.name);
                lost.part(&hook.name, message);
            }
            written += 1;
        }
    }
    events.words = policies(native, &kept, lost);
    let place = native.settings.files.iter().find_map(|file| match (file.scope, file.place) {
        (Scope::Project, Place::Workspace(path)) => Some(path),
        _ => None,
    });
    let (Some(path), true) = (place, written > 0) else { return (Vec::new(), 0) };
    match serde_json::to_string_pretty(&File { hooks: events }) {
        Ok(text) => (vec![ConvertedFile { path: path.into(), text: text + "\n" }], written),
        Err(error) => {
            lost.hook(path, format!("the file cannot be written: {error}"));
            (Vec::new(), 0)
        }
    }
}

impl Events {
    /// Adds an entry, or its hooks to the last one if they belong there. Returns whether there were some before.
    fn add(&mut self, row: &'static Row, entry: Entry) -> bool {
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

fn row(native: &Native, event: &WantedEvent) -> Option<&'static Row> {
    match event.kind {
        EventKind::HostEvent => native.row_of(event.kind, Some(event.host_event.as_deref()?)),
        kind => native.row_of(kind, None),
    }
}

/// Whether the entry has to say that its hooks wait for one another.
fn sequential(native: &Native, row: &Row, hook: &Portable) -> Option<bool> {
    let waits = hook.order == Strategy::Serial && row.strategy == Strategy::Parallel;
    (waits && row.kind.is_interceptor() && native.settings.keys.entry.contains(&"sequential")).then_some(true)
}

/// Whether a hook that waited for others does so no more.
fn is_out_of_order(native: &Native, row: &Row, hook: &Portable) -> bool {
    let (was, is) = (hook.order == Strategy::Serial, row.strategy == Strategy::Serial);
    was && !is && row.kind.is_interceptor() && sequential(native, row, hook).is_none()
}

fn matcher(native: &Native, row: &Row, hook: &Portable, lost: &mut Lost) -> Option<Matcher> {
    if row.looks == Looks::Nowhere && hook.wants != Wants::Everything {
        lost.part(&hook.name, format!("its matcher: {} has nothing to match on", row.name));
        return None;
    }
    match native.settings.form {
        Form::Parts => hook.wants.list_or_whole().map(|tools| Matcher::Parts { tools }),
        Form::ListOrPattern => hook.wants.list_or_pattern().map(Matcher::Text),
        Form::PatternOrText if row.kind.match_field() == Some(MatchField::ToolName) => {
            hook.wants.pattern().map(Matcher::Text)
        }
        Form::PatternOrText => {
            let text = hook.wants.text();
            if text.is_none() && hook.wants != Wants::Everything {
                lost.part(&hook.name, format!("its matcher: {} takes one text and no pattern", row.name));
            }
            text.map(Matcher::Text)
        }
    }
}

fn item(native: &Native, hook: &Portable, lost: &mut Lost) -> Option<Item> {
    let kind = match hook.handler {
        PortableHandler::Command { .. } => HandlerKind::Command,
        PortableHandler::Http { .. } => HandlerKind::Http,
        PortableHandler::Prompt { .. } => HandlerKind::Prompt,
        PortableHandler::Agent { .. } => HandlerKind::Agent,
    };
    if !native.settings.types.contains(&kind) {
        lost.hook(&hook.name, format!("{} has no hooks of type `{kind}`", native.name));
        return None;
    }
    let item = Item {
        name: native.settings.keys.hook.contains(&"name").then(|| hook.name.clone()),
        r#type: kind.as_str(),
        timeout: native.settings.timeouts.unit.number(hook.timeout).into(),
        ..Item::default()
    };
    match &hook.handler {
        PortableHandler::Command { run, cwd, environment } => {
            command(native, hook, run, cwd.as_deref(), environment, item, lost)
        }
        PortableHandler::Http { url, method, headers } => http(hook, url, method, headers, item, lost),
        PortableHandler::Prompt { text, model } => {
            Some(Item { prompt: Some(text.clone()), model: model.clone(), ..item })
        }
        PortableHandler::Agent { agent, task, model } => {
            if let Some(agent) = agent {
                lost.part(
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
    native: &Native,
    hook: &Portable,
    run: &Run,
    cwd: Option<&str>,
    environment: &[(String, String)],
    item: Item,
    lost: &mut Lost,
) -> Option<Item> {
    if environment.iter().any(|(_, value)| value.contains("${secrets.")) {
        lost.hook(&hook.name, "a secret in its `environment` has no other place to stand");
        return None;
    }
    let takes = |key| native.settings.keys.hook.contains(&key);
    if let Some(line) = run.bash_line().filter(|_| takes("shell") || native.settings.shell == Shell::Bash) {
        let shell = (native.settings.shell != Shell::Bash).then_some("bash");
        return Some(Item { command: Some(in_line(line, cwd, environment)), shell, ..item });
    }
    match run {
        Run::Exec(args) if cwd.is_none() && environment.is_empty() && takes("args") => {
            let (program, rest) = args.split_first()?;
            Some(Item { command: Some(program.clone()), args: rest.to_vec(), ..item })
        }
        Run::Exec(args) => {
            let line: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
            Some(Item { command: Some(in_line(&line.join(" "), cwd, environment)), ..item })
        }
        Run::Shell(line) => Some(Item { command: Some(in_line(line, cwd, environment)), ..item }),
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
    hook: &Portable,
    url: &str,
    method: &str,
    headers: &[(String, String)],
    item: Item,
    lost: &mut Lost,
) -> Option<Item> {
    if method != "POST" {
        lost.hook(&hook.name, format!("its requests are `{method}`, and there they are always `POST`"));
        return None;
    }
    if headers.iter().any(|(_, value)| value.contains("${secrets.")) {
        lost.hook(&hook.name, "a secret in its `headers` has no other place to stand");
        return None;
    }
    let names = headers.iter().flat_map(|(_, value)| value.split("${env.").skip(1));
    let allowed = names.filter_map(|rest| Some(rest.split_once('}')?.0.to_owned())).collect();
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.replace("${env.", "${"))).collect();
    Some(Item { url: Some(url.to_owned()), headers, allowed, ..item })
}

/// What a settings file cannot say of a hook.
fn remarks(hook: &Portable, rows: &[&Row], lost: &mut Lost) {
    if hook.priority != 0 {
        lost.part(&hook.name, "`priority`: its place in the file stands for it");
    }
    if let Some(capabilities) = &hook.capabilities {
        let may = rows.iter().flat_map(|row| row.may);
        let gained: Vec<&str> =
            may.map(|c| c.as_str()).filter(|name| !capabilities.iter().any(|c| c == name)).collect();
        if let Some(first) = gained.first() {
            lost.part(&hook.name, format!("it may do more there: every hook has `{first}`"));
        }
    }
}

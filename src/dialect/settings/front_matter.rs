//! Hooks in the front matter of texts. Those of an agent are settings in YAML that count while the agent is at work.

use std::{path::Path, sync::Arc};

use super::{
    super::{
        document::Document,
        event_table::extra_field,
        native::NativeDialect,
        openharness::{HookRules, ReferenceLookup},
    },
    context::{FileContext, SettingsHook},
    file::{SettingsHooks, read_event, read_plugin_hooks, read_settings},
    labels::short_label,
    shared::SharedSettings,
};
use crate::model::{Condition, Diagnostic, Event, EventKind, PluginSource, Scope, Severity};

/// The line before and after the front matter.
const FENCE: &str = "---";

/// The key of the hooks.
const HOOKS: &str = "hooks";

/// The key of an agent's name, by which events call it.
const NAME: &str = "name";

/// The longest part of a hook's name that says of which agent it is.
const LONGEST_LABEL: usize = 15;

/// Reads a settings file, a file with hooks of a plugin, or the text of an agent.
pub(crate) fn read_hooks_of(
    native: &'static NativeDialect,
    (bytes, file): (&[u8], &Path),
    scope: Scope,
    plugin: Option<&Arc<PluginSource>>,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
) -> (SettingsHooks, Vec<Diagnostic>) {
    match plugin {
        Some(plugin) => read_plugin_hooks(native, (bytes, file), scope, plugin, rules, resolver),
        None if native.plugins().has_agent(file) => {
            read_agent_hooks(native, (bytes, file), scope, rules, resolver)
        }
        None => read_settings(native, bytes, file, scope, rules, resolver),
    }
}

/// Whether the front matter of a text has hooks.
pub(crate) fn has_hooks_in_front_matter(text: &[u8]) -> bool {
    lines_of(&String::from_utf8_lossy(text)).any(|(key, _)| key == HOOKS)
}

/// Reads the hooks of an agent's text. They count for the events of that agent.
pub(crate) fn read_agent_hooks(
    native: &'static NativeDialect,
    (bytes, file): (&[u8], &Path),
    scope: Scope,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
) -> (SettingsHooks, Vec<Diagnostic>) {
    let keys = match str::from_utf8(bytes) {
        Ok(text) => keys_of(text).into_bytes(),
        Err(_) => bytes.to_vec(),
    };
    let document = match Document::parse_foreign_yaml(&keys, file) {
        Ok(document) => document,
        Err(diagnostic) => return (SettingsHooks::default(), vec![*diagnostic]),
    };
    let label = label(native, file);
    let context =
        FileContext { native, file, scope, rules, resolver, plugin: None, agent: Some(label.as_str()) };
    let mut found = SettingsHooks::default();
    let mut nameless = None;
    if let Some(root) = document.root() {
        let name = root.get(NAME).and_then(|value| value.as_text());
        nameless = name.is_none().then(|| unnamed(file));
        if let (Some(name), Some(hooks)) = (name, root.get(HOOKS).and_then(|value| value.mapping())) {
            hooks.values().for_each(|value| read_event(&context, &value, &mut found));
            found.hooks.iter_mut().for_each(|configured| count_at_work(configured, name));
        }
    }
    found.shared = SharedSettings::default();
    let mut diagnostics = document.into_diagnostics();
    diagnostics.extend(nameless);
    diagnostics.extend(found.cut(file));
    (found, diagnostics)
}

/// Has a hook count for the events of an agent only. The end of its work is that of a subagent, or of the session whose agent
/// it is.
fn count_at_work(configured: &mut SettingsHook, agent: &str) {
    let SettingsHook { hook, .. } = configured;
    let also = hook.execution.condition.take();
    hook.execution.condition = Some(Arc::new(AtWork { agent: agent.into(), also }));
    if hook.events.contains(EventKind::AgentStopping) {
        hook.events = [EventKind::AgentStopping, EventKind::SubagentStopping].into_iter().collect();
    }
}

/// A warning about an agent without a name.
fn unnamed(file: &Path) -> Diagnostic {
    let message = "the hooks of this agent do not run: it has no `name`, so nothing is known to be its event";
    let diagnostic = Diagnostic::of_file(Severity::Warning, "front-matter", file, message);
    diagnostic.help("add `name: …` to the front matter; the agent's program needs it too")
}

/// The part of the names of hooks that says of which text they are: its path below the directory of agents.
fn label(native: &NativeDialect, file: &Path) -> String {
    let agents = native.plugins().agents();
    let above = file.ancestors().find(|above| agents.is_some_and(|agents| above.ends_with(agents)));
    let below = above.and_then(|above| file.strip_prefix(above).ok()).unwrap_or(file);
    short_label(&below.with_extension("").to_string_lossy(), LONGEST_LABEL)
}

/// The name and the hooks of a text, each in its line. Other keys are often no YAML, which agents do not mind.
fn keys_of(text: &str) -> String {
    let mut keys = String::new();
    // The first fence.
    keys.push('\n');
    for (key, line) in lines_of(text) {
        keys.push_str(if key == HOOKS || key == NAME { line } else { "" });
        keys.push('\n');
    }
    keys
}

/// The lines of the front matter below its first fence, each with the key at the left that it belongs to.
fn lines_of(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
    let is_front_matter = lines.next().is_some_and(|line| line.trim_end() == FENCE);
    let lines = lines.take_while(move |line| is_front_matter && line.trim_end() != FENCE);
    lines.scan("", |key, line| {
        let is_key = !line.is_empty() && !line.starts_with([' ', '\t', '#', '-']);
        if let Some((name, _)) = line.split_once(':').filter(|_| is_key) {
            *key = name.trim_end();
        }
        Some((*key, line))
    })
}

/// An agent is at work.
#[derive(Debug)]
struct AtWork {
    agent: Arc<str>,
    /// What the event must have besides.
    also: Option<Arc<dyn Condition>>,
}

/// What an event has of a subagent, apart from its name.
const SUBAGENT_ID: &str = "agent_id";

impl Condition for AtWork {
    /// The events of a subagent without a name may be those of the agent.
    fn holds(&self, event: &Event) -> bool {
        let facts = &event.attributes;
        let named = [&facts.agent_type, &facts.effective_agent_name, &facts.agent_name];
        let is_its = match named.into_iter().flatten().next() {
            Some(agent) => *agent == self.agent,
            None => extra_field(event, SUBAGENT_ID).is_some(),
        };
        is_its && self.also.as_ref().is_none_or(|also| also.holds(event))
    }

    fn text(&self) -> String {
        let also = self.also.as_ref().map(|also| format!(", and {}", also.text())).unwrap_or_default();
        format!("the agent `{}` at work{also}", self.agent)
    }
}

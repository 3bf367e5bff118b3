//! The entries of hookyard in the settings file of an agent: adds and removes them, and leaves every other byte as it is;
//! and the hooks of the agent itself, which can be moved out and back.

use std::path::{Path, PathBuf};

use jsonc_parser::{
    ParseOptions,
    cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode},
};

use super::agents::AgentProfile;
use crate::{
    config::is_adopting_relay,
    dialect::{self, NativeDialect, without_comments},
    model::check_json,
};

/// The text of a settings file that does not exist yet.
const NO_SETTINGS: &str = "{}\n";

/// The mark before the text of some files.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The key with the hooks, in the settings of every agent.
const HOOKS: &str = "hooks";

/// The key with the version of a file for hooks alone.
const VERSION: &str = "version";

/// The name of an entry, for agents whose entries have names.
const ENTRY_NAME: &str = "hookyard";

/// One entry: an event and the command for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct AgentEntry {
    pub(in crate::cli) event: String,
    pub(in crate::cli) command: String,
    /// In the unit of the agent.
    pub(in crate::cli) timeout: Option<String>,
}

impl AgentEntry {
    /// The program that it runs.
    pub(in crate::cli) fn program(&self) -> Option<&Path> {
        let (program, _) = self.command.split_once(" relay ")?;
        Some(Path::new(program.trim().trim_matches(['\'', '"'])))
    }

    /// Whether the agent is held back where no daemon answers.
    pub(in crate::cli) fn blocks_when_down(&self) -> bool {
        self.command.contains(" --if-down block") || self.command.contains(" --if-down=block")
    }

    /// Whether it says that the hooks of its file are adopted.
    pub(super) fn is_adopting(&self) -> bool {
        is_adopting_relay(&self.command)
    }

    /// The socket that it names.
    pub(in crate::cli) fn socket(&self) -> Option<&Path> {
        let (_, rest) = self.command.split_once(" --socket ")?;
        let quote = rest.chars().next().filter(|first| ['\'', '"'].contains(first));
        let path = match quote {
            Some(quote) => rest[1..].split(quote).next()?,
            None => rest.split_whitespace().next()?,
        };
        Some(Path::new(path))
    }
}

/// What is wrong with a settings file; a phrase that follows its name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(in crate::cli) struct EntriesError(String);

/// The settings of an agent, as they are written.
pub(in crate::cli) struct AgentSettings {
    /// The text before the first brace that is no part of the JSON.
    mark: &'static str,
    root: CstRootNode,
    /// Where they are.
    file: PathBuf,
    /// Whether an element of an event may be a hook itself.
    has_bare_hooks: bool,
}

impl AgentSettings {
    /// Reads a settings file; `None` for one that does not exist.
    ///
    /// Returns an error if the agent itself could not read it.
    pub(in crate::cli) fn read(
        agent: &AgentProfile,
        file: &Path,
        bytes: Option<&[u8]>,
    ) -> Result<Self, EntriesError> {
        let text = str::from_utf8(bytes.unwrap_or_default());
        let text = text.map_err(|_| EntriesError("is not UTF-8".to_owned()))?;
        let unread = agent.native().and_then(|native| native.why_unread(text, file));
        let (mark, text) = match (text.strip_prefix(BYTE_ORDER_MARK), unread) {
            (Some(_), Some(why)) => return Err(EntriesError(why.to_owned())),
            (Some(rest), None) => ("\u{feff}", rest),
            (None, _) => ("", text),
        };
        let text = if text.trim().is_empty() { NO_SETTINGS } else { text };
        let plain = agent.native().map_or(text.into(), |native| native.plain_json(text, file));
        // Not the lenient reader below: what the agent rejects is not changed. It also bounds the depth.
        check_json(&plain).map_err(|error| {
            EntriesError(format!("is not valid JSON: {}, at line {}", error.message, error.line))
        })?;
        let root = CstRootNode::parse(text, &ParseOptions::default());
        let root = root.map_err(|error| EntriesError(format!("is not valid JSON: {error}")))?;
        if root.object_value().is_none() {
            return Err(EntriesError("is not a JSON object".to_owned()));
        }
        let has_bare_hooks = agent.native().is_some_and(NativeDialect::allows_bare_hooks);
        Ok(Self { mark, root, file: file.to_owned(), has_bare_hooks })
    }

    pub(in crate::cli) fn text(&self) -> String {
        format!("{}{}", self.mark, self.root)
    }

    /// The entries of hookyard for an agent, in the order of the file.
    pub(in crate::cli) fn entries(&self, agent: &AgentProfile) -> Vec<AgentEntry> {
        let mut found = Vec::new();
        for (event, groups) in self.events() {
            for handler in groups.elements().iter().flat_map(|element| self.handlers(element)) {
                found.extend(own_entry(agent, &event, &handler));
            }
        }
        found
    }

    /// The hooks of the agent itself: its commands and addresses, with their events.
    pub(in crate::cli) fn own_hooks(&self, agent: &AgentProfile) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (event, groups) in self.events() {
            for handler in groups.elements().iter().flat_map(|element| self.handlers(element)) {
                let what = ["bash", "command", "url", "prompt"].iter().find_map(|key| text_of(&handler, key));
                if own_entry(agent, &event, &handler).is_none() {
                    found.push((event.clone(), what.unwrap_or_default()));
                }
            }
        }
        found
    }

    /// Whether a hook of the file that is not hookyard's runs a command.
    pub(super) fn has_own_commands(&self, agent: &AgentProfile) -> bool {
        self.events().iter().any(|(event, groups)| {
            let is_own_command = |handler: CstObject| {
                let command = ["bash", "command"].iter().find_map(|key| text_of(&handler, key));
                command.is_some() && own_entry(agent, event, &handler).is_none()
            };
            groups.elements().iter().flat_map(|element| self.handlers(element)).any(is_own_command)
        })
    }

    /// What the file says that keeps the agent from running the entries of hookyard, as a phrase.
    pub(in crate::cli) fn disabled_by(&self, agent: &AgentProfile) -> Option<String> {
        dialect::disabling_phrase(agent.native()?, (&self.text(), &self.file), ENTRY_NAME)
    }

    /// Puts these entries in the place of the ones that are there.
    ///
    /// Returns an error if the part with the hooks is not what the agent takes.
    pub(super) fn set_entries(
        &self,
        agent: &AgentProfile,
        wanted: &[AgentEntry],
    ) -> Result<(), EntriesError> {
        self.check_shape(agent)?;
        let is_same = |entries: &[AgentEntry]| {
            entries.len() == wanted.len() && wanted.iter().all(|entry| entries.contains(entry))
        };
        if is_same(&self.entries(agent)) {
            return Ok(());
        }
        self.remove_entries(agent);
        let Some(root) = self.root.object_value() else { return Ok(()) };
        if let Some(version) = agent.hooks_version
            && root.get(VERSION).is_none()
        {
            root.append(VERSION, CstInputValue::Number(version.to_owned()));
        }
        let hooks = root.object_value_or_set(HOOKS);
        for entry in wanted {
            hooks.array_value_or_set(&entry.event).append(group(agent, entry));
        }
        Ok(())
    }

    /// Removes the entries of hookyard, and what is empty without them.
    pub(super) fn remove_entries(&self, agent: &AgentProfile) {
        self.remove_where(|event, handler| own_entry(agent, event, handler).is_some());
    }

    /// Removes the hooks of the agent itself, and what is empty without them.
    ///
    /// Returns settings that have nothing but them, with their comments; none if there are none.
    pub(super) fn take_own_hooks(&self, agent: &AgentProfile) -> Result<Option<Self>, EntriesError> {
        if self.own_hooks(agent).is_empty() {
            return Ok(None);
        }
        let taken = Self::read(agent, &self.file, Some(self.text().as_bytes()))?;
        taken.remove_entries(agent);
        taken.remove_all_but_hooks();
        self.remove_where(|event, handler| own_entry(agent, event, handler).is_none());
        Ok(Some(taken))
    }

    /// Puts hooks that were taken out before those that are there. What is there already is not put there again.
    pub(super) fn put_back(&self, taken: &Self) {
        let Some(root) = self.root.object_value() else { return };
        for (event, missing) in taken.missing_in(self) {
            let list = root.object_value_or_set(HOOKS).array_value_or_set(&event);
            for (at, element) in missing.into_iter().enumerate() {
                let place = list.insert(at, CstInputValue::String(String::new()));
                // As it is written, with its comments.
                place.as_string_lit().into_iter().for_each(|place| place.set_raw_value(element.to_string()));
            }
        }
    }

    /// The elements of events that other settings do not have.
    pub(super) fn missing_in(&self, other: &Self) -> Vec<(String, Vec<CstNode>)> {
        let there = other.events();
        let events = self.events().into_iter().map(|(event, groups)| {
            let known =
                there.iter().filter(|(name, _)| *name == event).flat_map(|(_, known)| known.elements());
            let known: Vec<_> = known.map(|element| value_of(&element)).collect();
            let is_missing =
                |element: &CstNode| self.has_handlers(element) && !known.contains(&value_of(element));
            (event, groups.elements().into_iter().filter(is_missing).collect())
        });
        events.filter(|(_, missing): &(String, Vec<CstNode>)| !missing.is_empty()).collect()
    }

    /// Removes the hooks of which this is true, and what is empty without them.
    fn remove_where(&self, is_meant: impl Fn(&str, &CstObject) -> bool) {
        let mut removed = false;
        for (event, groups) in self.events() {
            for element in groups.elements() {
                let meant = self.handlers(&element).into_iter().filter(|handler| is_meant(&event, handler));
                let meant: Vec<_> = meant.collect();
                if meant.is_empty() {
                    continue;
                }
                removed = true;
                meant.into_iter().for_each(CstObject::remove);
                if handlers_of(&element).is_some_and(|handlers| handlers.elements().is_empty()) {
                    element.remove();
                }
            }
            if removed && groups.elements().is_empty() {
                self.hooks().and_then(|hooks| hooks.get(&event)).into_iter().for_each(CstObjectProp::remove);
            }
        }
        if removed && self.hooks().is_some_and(|hooks| hooks.properties().is_empty()) {
            let root = self.root.object_value();
            root.and_then(|root| root.get(HOOKS)).into_iter().for_each(CstObjectProp::remove);
        }
    }

    /// Removes all that is no hook: other settings, and switches and defaults beside the events.
    fn remove_all_but_hooks(&self) {
        let settings = self.root.object_value().map(|root| root.properties()).unwrap_or_default();
        let others = settings.into_iter().filter(|setting| setting.decoded_name().as_deref() != Some(HOOKS));
        others.for_each(CstObjectProp::remove);
        let events = self.hooks().map(|hooks| hooks.properties()).unwrap_or_default();
        let has_hooks = |event: &CstObjectProp| {
            event
                .array_value()
                .is_some_and(|groups| groups.elements().iter().any(|group| self.has_handlers(group)))
        };
        events.into_iter().filter(|event| !has_hooks(event)).for_each(CstObjectProp::remove);
    }

    fn hooks(&self) -> Option<CstObject> {
        self.root.object_value()?.object_value(HOOKS)
    }

    /// The events with a list of entries.
    fn events(&self) -> Vec<(String, CstArray)> {
        let events = self.hooks().map(|hooks| hooks.properties()).unwrap_or_default();
        events.into_iter().filter_map(|event| Some((event.decoded_name()?, event.array_value()?))).collect()
    }

    /// The hooks of an element of an event: those in its list, or the element itself.
    fn handlers(&self, element: &CstNode) -> Vec<CstObject> {
        match handlers_of(element) {
            Some(handlers) => handlers.elements().iter().filter_map(CstNode::as_object).collect(),
            None if self.has_bare_hooks => element.as_object().into_iter().collect(),
            None => Vec::new(),
        }
    }

    fn has_handlers(&self, element: &CstNode) -> bool {
        handlers_of(element).is_some() || !self.handlers(element).is_empty()
    }

    fn check_shape(&self, agent: &AgentProfile) -> Result<(), EntriesError> {
        let Some(hooks) = self.root.object_value().and_then(|root| root.get(HOOKS)) else { return Ok(()) };
        let Some(events) = hooks.object_value() else {
            return Err(EntriesError(format!("has a `{HOOKS}` that is not an object")));
        };
        let is_list = |event: &&CstObjectProp| {
            let is_event =
                |name: String| name.starts_with(char::is_uppercase) || agent.hooks_version.is_some();
            event.decoded_name().is_some_and(is_event) && event.array_value().is_none()
        };
        match events.properties().iter().find(is_list).and_then(CstObjectProp::decoded_name) {
            Some(name) => Err(EntriesError(format!("has a `{HOOKS}.{name}` that is not a list"))),
            None => Ok(()),
        }
    }
}

/// The list of hooks in one element of an event.
fn handlers_of(element: &CstNode) -> Option<CstArray> {
    element.as_object()?.array_value(HOOKS)
}

/// What an element says, whatever its formatting and comments.
fn value_of(element: &CstNode) -> Option<serde_json::Value> {
    serde_json::from_str(&without_comments(&element.to_string())).ok()
}

fn text_of(object: &CstObject, key: &str) -> Option<String> {
    object.get(key)?.value()?.as_string_lit()?.decoded_value().ok()
}

/// The entry of hookyard that a hook is, if it is one.
fn own_entry(agent: &AgentProfile, event: &str, handler: &CstObject) -> Option<AgentEntry> {
    // Of two commands and two timeouts, as an agent may have them, it takes the first.
    let has_bare_hooks = agent.native().is_some_and(NativeDialect::allows_bare_hooks);
    let bash = has_bare_hooks.then(|| text_of(handler, "bash")).flatten();
    let command = bash.or_else(|| text_of(handler, "command"))?;
    let seconds = has_bare_hooks.then(|| handler.get("timeoutSec")).flatten();
    let timeout = seconds
        .or_else(|| handler.get("timeout"))
        .and_then(|timeout| timeout.value())
        .map(|value| value.to_string());
    is_relay(&command, agent.dialect.as_str()).then(|| AgentEntry {
        event: event.to_owned(),
        command,
        timeout,
    })
}

/// Whether a command passes the events of a dialect to hookyard.
pub(in crate::cli) fn is_relay(command: &str, dialect: &str) -> bool {
    let Some((program, rest)) = command.split_once(" relay ") else { return false };
    let program = program.trim().trim_matches(['\'', '"']);
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    let mut words = rest.split_whitespace();
    let names_dialect = std::iter::from_fn(|| words.next())
        .any(|word| word == dialect || word.strip_prefix("--dialect=") == Some(dialect));
    name.is_some_and(|name| name.starts_with("hookyard")) && names_dialect
}

/// An element of an event's list with one entry.
fn group(agent: &AgentProfile, entry: &AgentEntry) -> CstInputValue {
    let text = |text: &str| CstInputValue::String(text.to_owned());
    let mut handler = Vec::new();
    if agent.names_entries {
        handler.push(("name".to_owned(), text(ENTRY_NAME)));
    }
    handler.push(("type".to_owned(), text("command")));
    handler.push(("command".to_owned(), text(&entry.command)));
    handler
        .extend(entry.timeout.clone().map(|timeout| ("timeout".to_owned(), CstInputValue::Number(timeout))));
    if agent.hooks_version.is_some() {
        // Also where `relay` itself fails.
        if entry.blocks_when_down() {
            handler.push(("failClosed".to_owned(), CstInputValue::Bool(true)));
        }
        return CstInputValue::Object(handler);
    }
    let handlers = CstInputValue::Array(vec![CstInputValue::Object(handler)]);
    CstInputValue::Object(vec![(HOOKS.to_owned(), handlers)])
}

#[cfg(test)]
mod tests {
    use super::{super::agents::AGENTS, *};
    fn claude() -> &'static AgentProfile {
        &AGENTS[0]
    }

    fn file() -> &'static Path {
        Path::new("settings.json")
    }

    fn entry(event: &str) -> AgentEntry {
        let command = "/usr/bin/hookyard relay --dialect claude --if-down block".to_owned();
        AgentEntry { event: event.to_owned(), command, timeout: Some("630".to_owned()) }
    }

    fn connected(agent: &AgentProfile, text: &str) -> String {
        let settings = AgentSettings::read(agent, file(), Some(text.as_bytes())).unwrap();
        settings.set_entries(agent, &[entry("PreToolUse"), entry("Stop")]).unwrap();
        settings.text()
    }

    fn disconnected(agent: &AgentProfile, text: &str) -> String {
        let settings = AgentSettings::read(agent, file(), Some(text.as_bytes())).unwrap();
        settings.remove_entries(agent);
        settings.text()
    }

    #[test]
    fn entries_come_and_go_and_the_rest_stays() {
        let other =
            "{ \"hooks\": [ { \"type\": \"command\", \"command\": \"fmt.sh\" } ], \"matcher\": \"Edit\" }";
        for text in [
            "{}\n".to_owned(),
            "{}".to_owned(),
            "{\n  \"model\": \"opus\"\n}\n".to_owned(),
            "{\n\t\"model\": \"opus\"\n}".to_owned(),
            "{\r\n    \"a\": [1,2],\r\n    \"b\": null\r\n}\r\n".to_owned(),
            "\u{feff}{\n  \"a\": 1\n}\n".to_owned(),
            format!("{{\"hooks\":{{\"PreToolUse\":[{other}]}},\"z\":1}}"),
            format!(
                "{{\n  \"hooks\": {{\n    \"PreToolUse\": [\n      {other}\n    ]\n  }},\n  \"z\": 1\n}}\n"
            ),
            "{\"hooks\":{\"Notification\":[]}}\n".to_owned(),
        ] {
            let after = connected(claude(), &text);
            let settings = AgentSettings::read(claude(), file(), Some(after.as_bytes())).unwrap();
            assert_eq!(settings.entries(claude()), [entry("PreToolUse"), entry("Stop")], "{after}");
            assert_eq!(connected(claude(), &after), after, "twice changes nothing");
            let value = |text: &str| {
                serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\u{feff}')).unwrap()
            };
            let back = disconnected(claude(), &after);
            assert_eq!(value(&back), value(&text), "{back}");
            assert_eq!(back.contains('\r'), text.contains('\r'));
        }
    }

    #[test]
    fn comments_stay_where_the_agent_takes_them() {
        let gemini = &AGENTS[1];
        let text = "// mine\n{\n  // the theme, \"hooks\": {\n  \"theme\": \"x//y\", /* b */\n  \"hooks\": {} // none\n}\n";
        let settings = AgentSettings::read(gemini, file(), Some(text.as_bytes())).unwrap();
        let command = "/usr/bin/hookyard relay --dialect gemini".to_owned();
        let entry = AgentEntry { event: "BeforeTool".to_owned(), command, timeout: None };
        settings.set_entries(gemini, &[entry]).unwrap();
        let after = settings.text();
        for comment in ["// mine", "// the theme, \"hooks\": {", "/* b */", "// none", "\"x//y\""] {
            assert!(after.contains(comment), "{after}");
        }
        let refused = AgentSettings::read(claude(), file(), Some(text.as_bytes()));
        assert!(refused.is_err_and(|error| error.0.contains("not valid JSON")));
    }

    #[test]
    fn what_the_agent_cannot_read_is_not_changed() {
        for (text, expected) in [
            ("{\"a\": 1", "not valid JSON"),
            ("{\"a\": 1,}", "not valid JSON"),
            ("{'a': 1}", "not valid JSON"),
            ("{\"a\": 1, \"a\": 2}", "duplicate key"),
            ("[]", "not a JSON object"),
            ("null", "not a JSON object"),
            ("{\"hooks\": []}", "`hooks` that is not an object"),
            ("{\"hooks\": {\"Stop\": {}}}", "`hooks.Stop` that is not a list"),
        ] {
            let read = AgentSettings::read(claude(), file(), Some(text.as_bytes()));
            let done = read.and_then(|settings| settings.set_entries(claude(), &[entry("Stop")]));
            assert!(done.as_ref().is_err_and(|error| error.0.contains(expected)), "{text}: {done:?}");
        }
        let deep = "[".repeat(200_000);
        assert!(AgentSettings::read(claude(), file(), Some(deep.as_bytes())).is_err());
        assert!(AgentSettings::read(claude(), file(), Some(b"{\"a\": \"\xff\"}")).is_err());
    }

    #[test]
    fn entries_are_told_from_other_hooks() {
        for command in [
            "hookyard relay --dialect claude",
            "'/my dir/hookyard' relay --if-down block --dialect=claude",
            "/opt/hookyard-0.2/bin/hookyard relay -d claude",
        ] {
            assert!(is_relay(command, "claude"), "{command}");
        }
        for command in
            ["hookyard relay --dialect gemini", "hookyard fire x", "my-relay relay claude", "relay claude"]
        {
            assert!(!is_relay(command, "claude"), "{command}");
        }
    }
}

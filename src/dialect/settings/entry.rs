//! One entry of an event in a settings file: a matcher and its hooks.

use std::{os::unix::ffi::OsStrExt, path::Path, sync::Arc};

use sha2::{Digest, Sha256};

use super::{
    super::{
        document::{Mapping, Value},
        event_table::{EventRow, MatchSource, extra_field},
    },
    context::{FileContext, SettingsHook, warn_misspelt_keys},
    format::{DuplicateHooks, EventFilter, SettingsFile},
    handler::{self, SettingsHandler},
    matcher::command_pattern,
    tool_rule::ToolRule,
};
use crate::model::{
    Concurrency, Condition, Delivery, Event, EventKind, ExecutionPolicy, FailurePolicy, Frequency,
    HandlerKind, Hook, HookName, HookSource, HookTrust,
};

/// The hooks of an entry; `position` is how many hooks the file has before it.
pub(super) fn read(
    context: &FileContext<'_>,
    row: &EventRow,
    number: usize,
    position: usize,
    entry: &Value<'_>,
) -> Vec<SettingsHook> {
    let Some(entry) = entry.mapping() else { return Vec::new() };
    let keys = context.native.settings.keys.entry;
    warn_misspelt_keys(&entry, keys);
    let Some(wanted) = wanted(context, row, &entry) else { return Vec::new() };
    let concurrency = match entry.get("sequential").filter(|value| keys.contains(&value.name())) {
        Some(value) => match value.flag() {
            Some(true) => Concurrency::Exclusive,
            Some(false) => Concurrency::Shared,
            None => return Vec::new(),
        },
        None => Concurrency::Shared,
    };
    let parts = |index: usize| Parts {
        context,
        row,
        wanted: &wanted,
        concurrency,
        name: [number, index + 1],
        place: position + index,
    };
    if context.native.settings.keys.allows_bare_hooks() && entry.get("hooks").is_none() {
        return parts(0).hook(&entry).into_iter().collect();
    }
    let Some(items) = entry.require("hooks", "\"hooks\": [{\"type\": \"command\", …}]") else {
        return Vec::new();
    };
    let items = items.list().unwrap_or_default();
    let hook = |(index, item): (usize, &Value<'_>)| parts(index).hook(&item.mapping()?);
    items.iter().enumerate().filter_map(hook).collect()
}

/// The events and values that the entry selects; `None` if one of its patterns was refused.
fn wanted(context: &FileContext<'_>, row: &EventRow, entry: &Mapping<'_>) -> Option<EventFilter> {
    let mut wanted = matched(context, row, entry)?;
    let is_known = |value: &Value<'_>| context.native.settings.keys.entry.contains(&value.name());
    if let Some(value) = entry.get("commandRegex").filter(is_known) {
        wanted.condition = command_pattern(&value)?;
    }
    Some(wanted)
}

/// The values that the matcher of an entry selects.
fn matched(context: &FileContext<'_>, row: &EventRow, entry: &Mapping<'_>) -> Option<EventFilter> {
    let Some(value) = entry.get("matcher") else { return Some(EventFilter::default()) };
    let wanted = (context.native.settings.matcher)(&value, row)?;
    if row.match_source == MatchSource::Unmatched && wanted.matcher.is_some() {
        let message = format!("`matcher` is ignored: {} has nothing to match on", row.name);
        value.warn("matcher", message, "remove it; the hooks run for every such event");
        return Some(EventFilter::default());
    }
    Some(wanted)
}

/// The parts of a hook that come from its entry.
struct Parts<'a> {
    context: &'a FileContext<'a>,
    row: &'a EventRow,
    wanted: &'a EventFilter,
    concurrency: Concurrency,
    /// The numbers of the entry and of the hook in it, from 1.
    name: [usize; 2],
    place: usize,
}

impl Parts<'_> {
    /// The hook, or `None` if anything about it is wrong, which has been reported.
    fn hook(&self, item: &Mapping<'_>) -> Option<SettingsHook> {
        let Self { context, row, .. } = self;
        let SettingsHandler { handler, timeout, own_timeout, identity } = handler::read(context, row, item)?;
        let condition = self.condition(item)?;
        let frequency = match context.get(item, "once") {
            Some(value) if value.flag()? => Frequency::OncePerRun,
            _ => Frequency::default(),
        };
        let delivery = self.delivery(item)?;
        let on_failure = self.on_failure(item)?;
        let on_timeout = self.on_timeout(on_failure, handler.kind());
        let host_event = (row.kind == EventKind::HostEvent).then(|| row.name.into());
        let turn = Some(context.native.turn(context.scope, context.file));
        let called =
            ["name", "bash", "command"].into_iter().filter_map(|key| context.get(item, key)?.as_text());
        let identity = (context.native.settings.duplicates == DuplicateHooks::RunOnce).then_some(identity);
        let hook = Hook {
            name: self.name()?,
            dialect: context.native,
            events: [row.kind].into_iter().collect(),
            matcher: self.wanted.matcher.clone(),
            handler,
            capabilities: row.capabilities.iter().copied().collect(),
            priority: 0,
            enabled: true,
            timeout,
            max_concurrency: None,
            on_error: on_failure,
            on_timeout,
            execution: ExecutionPolicy {
                host_event,
                condition,
                dedup_key: identity,
                frequency,
                delivery,
                concurrency: self.concurrency,
                max_parallel: None,
                order_scope: turn,
                plugin: context.plugin.cloned(),
                ..ExecutionPolicy::default()
            },
            source: HookSource {
                scope: context.scope,
                file: Some(context.file.into()),
                line: item.document().position(item.span()).0,
                position: self.place,
                content: None,
                bundle: None,
            },
            trust: HookTrust::default(),
        };
        let plugin = context.plugin.map(|plugin| plugin.id.to_string());
        let aliases = called.map(str::to_owned).chain(plugin).collect();
        Some(SettingsHook { hook, event: row.name, aliases, own_timeout })
    }

    /// Whether the agent waits for the hook. Keys that do nothing here, or something else, are reported.
    fn delivery(&self, item: &Mapping<'_>) -> Option<Delivery> {
        let context = self.context;
        if let Some(value) = item.get("once").filter(|_| context.get(item, "once").is_none()) {
            let message = "`once` has no effect in settings files of this agent: the hook runs each time";
            value.note("once", message);
        }
        let is_set = |key| context.get(item, key).map_or(Some(false), |value| value.flag());
        let wakes = is_set("asyncRewake")?;
        if let Some(value) = context.get(item, "asyncRewake").filter(|_| wakes) {
            let message = "`asyncRewake`: the hook runs in the background, and what it says wakes no agent";
            value.warn("async", message, "leave such a hook to the agent itself");
        }
        Some(if is_set("async")? || wakes { Delivery::Detached } else { Delivery::Awaited })
    }

    /// What a failure of the hook counts as. A stop goes on even where it fails closed.
    fn on_failure(&self, item: &Mapping<'_>) -> Option<FailurePolicy> {
        let fails_closed = self.context.get(item, "failClosed").map_or(Some(false), |value| value.flag())?;
        Some(if fails_closed && !self.is_stop() { FailurePolicy::Deny } else { FailurePolicy::Ignore })
    }

    /// What it counts as if the hook takes too long.
    fn on_timeout(&self, on_failure: FailurePolicy, kind: HandlerKind) -> FailurePolicy {
        let is_refusal = self.context.native.settings.timeouts.are_refusals && !self.is_stop();
        if is_refusal && kind == HandlerKind::Command { FailurePolicy::Deny } else { on_failure }
    }

    fn is_stop(&self) -> bool {
        matches!(self.row.kind, EventKind::AgentStopping | EventKind::SubagentStopping)
    }

    /// Hooks in settings have no names, so generated ones say in which file they are, and where in it.
    fn name(&self) -> Option<HookName> {
        let [entry, hook] = self.name;
        let (dialect, scope) = (self.context.native.name, self.context.scope);
        // Some agents have a second file of a level, which is called so.
        let file = match (self.context.plugin, self.context.agent) {
            (Some(plugin), _) => format!(".{}", plugin.label),
            (None, Some(agent)) => format!(".agents.{agent}"),
            _ if self.context.file.ends_with("config.json") => ".config".to_owned(),
            _ if self.context.native.settings.is_bare(self.context.file) => self.bare_label(),
            _ => self.file_label(),
        };
        HookName::new(format!("{dialect}.{scope}{file}.{}.{entry}.{hook}", self.row.name)).ok()
    }

    /// Which of two files with the events at the top it is in: some agents have a former place for theirs.
    fn bare_label(&self) -> String {
        let directory = self.context.file.parent().and_then(Path::file_name);
        let is_former = self.context.file.file_stem() == directory;
        if is_former { ".hooks.former".to_owned() } else { ".hooks".to_owned() }
    }

    /// Which of the files of a directory it is in; of long and unusual names, a part with a checksum.
    fn file_label(&self) -> String {
        const LONGEST: usize = 19;
        let file = self.context.file;
        let is_one = |known: &SettingsFile| known.location.directory().is_some() && known.location.has(file);
        if !self.context.native.settings.files.iter().any(is_one) {
            return String::new();
        }
        let stem = file.file_stem().unwrap_or_default().as_bytes();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let plain: String =
            stem.iter().map(|byte| if is_plain(*byte) { char::from(*byte) } else { '-' }).collect();
        if plain.as_bytes() == stem && plain.len() <= LONGEST {
            return format!(".{plain}");
        }
        let [a, b, c, ..] = Sha256::digest(stem)[..] else { return String::new() };
        format!(".{plain:.12}-{a:02x}{b:02x}{c:02x}")
    }

    /// What an event must have; `None` if that cannot be read.
    #[expect(clippy::option_option, reason = "no condition and one that was refused are different things")]
    fn condition(&self, item: &Mapping<'_>) -> Option<Option<Arc<dyn Condition>>> {
        if self.is_stop() && self.context.native.settings.keys.hook.contains(&LOOP_LIMIT) {
            return LoopLimit::read(item);
        }
        let Some(value) = self.context.get(item, "if") else { return Some(self.wanted.condition.clone()) };
        let tools = [
            EventKind::BeforeToolDispatch,
            EventKind::AfterToolDispatch,
            EventKind::ToolFailed,
            EventKind::PermissionRequested,
        ];
        // An event without a kind of its own that is about a tool call.
        let is_denial = self.row.match_source == MatchSource::Field("tool_name");
        if !tools.contains(&self.row.kind) && !is_denial {
            let message = format!("`if` needs a tool call, and {} has none", self.row.name);
            value.error("if", message, "remove it, or the hook would never run");
            return None;
        }
        let rule = ToolRule::parse(value.text()?, &self.context.rule_roots());
        if rule.is_none() {
            value.error("if", "`if` is not a valid tool rule", "write it as `Bash(git *)` or `Edit`");
        }
        Some(Some(Arc::new(rule?)))
    }
}

/// The key for how often a hook may keep the agent at work.
const LOOP_LIMIT: &str = "loop_limit";

/// The limit of a hook that has none of its own.
const USUAL_LOOP_LIMIT: u64 = 5;

/// How often the hooks of a conversation may have kept the agent at work, by the count of the agent.
#[derive(Debug)]
struct LoopLimit(u64);

impl LoopLimit {
    /// The limit of a hook; of one with `null`, there is none.
    #[expect(clippy::option_option, reason = "no limit and one that was refused are different things")]
    fn read(item: &Mapping<'_>) -> Option<Option<Arc<dyn Condition>>> {
        let limit = match item.get(LOOP_LIMIT) {
            None => USUAL_LOOP_LIMIT,
            Some(value) if value.is_null() => return Some(None),
            Some(value) => match value.integer().map(u64::try_from)? {
                Ok(limit) if limit > 0 => limit,
                _ => {
                    value.error(
                        "loop-limit",
                        "`loop_limit` is not positive",
                        "leave it out, or write `null` for no limit",
                    );
                    return None;
                }
            },
        };
        Some(Some(Arc::new(Self(limit))))
    }
}

impl Condition for LoopLimit {
    fn holds(&self, event: &Event) -> bool {
        let count = extra_field(event, "loop_count").and_then(|count| count.read::<u64>().ok());
        count.is_none_or(|count| count < self.0)
    }

    fn text(&self) -> String {
        format!("fewer than {} follow-ups so far", self.0)
    }
}

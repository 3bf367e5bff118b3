//! Reads agents' settings files for conversion.

use serde_json::Value;

use super::{
    super::{
        event_table::EventRow,
        native::NativeDialect,
        settings::{MatcherSyntax, Shell, TextPart, text_parts},
    },
    HookConfigFile,
    file_defaults::FileDefaults,
    matcher::PortableMatcher,
    portable_hook::{
        ConversionLosses, PortableCommand, PortableEvent, PortableHandler, PortableHook, name_of,
        sanitized_name,
    },
};
use crate::model::{EventKind, FailurePolicy, HandlerKind, MatchField, Strategy};

/// The hooks of some files.
pub(super) fn read(
    native: &'static NativeDialect,
    files: &[HookConfigFile],
    losses: &mut ConversionLosses,
) -> Vec<PortableHook> {
    let mut hooks = Vec::new();
    for file in files {
        let place = file.path.display().to_string();
        let Ok(value) = serde_json::from_slice::<Value>(&file.bytes) else {
            losses.omitted(&place, "the file is not JSON; run `hookyard check`");
            continue;
        };
        let hooks_of_file = if native.settings.is_bare(&file.path) { &value } else { &value["hooks"] };
        let common = FileDefaults::read(native, &value, hooks_of_file, &place, losses);
        let events = hooks_of_file.as_object().into_iter().flatten();
        for (name, entries) in events.filter(|(name, _)| !FileDefaults::is_default_key(native, name)) {
            let Some((_, row)) = native.configured(name) else {
                losses.omitted(&format!("{place}: {name}"), "there is no such event");
                continue;
            };
            for (number, entry) in (1..).zip(entries.as_array().into_iter().flatten()) {
                let place = format!("{place}: {name}, entry {number}");
                hooks.extend(self::entry(native, row, entry, &common, &place, losses));
            }
        }
    }
    hooks
}

fn entry(
    native: &NativeDialect,
    row: &EventRow,
    entry: &Value,
    common: &FileDefaults,
    place: &str,
    losses: &mut ConversionLosses,
) -> Vec<PortableHook> {
    let matcher = match native.settings.matcher_syntax {
        MatcherSyntax::Parts => &entry["matcher"]["tools"],
        MatcherSyntax::ListOrPattern | MatcherSyntax::PatternOrText | MatcherSyntax::Whole => {
            &entry["matcher"]
        }
    };
    let matcher =
        matcher.as_str().map_or(PortableMatcher::Everything, |text| match native.settings.matcher_syntax {
            MatcherSyntax::Parts => PortableMatcher::of_list_or_whole(text),
            MatcherSyntax::Whole => PortableMatcher::of_whole(text),
            MatcherSyntax::ListOrPattern => PortableMatcher::of_list_or_pattern(text),
            MatcherSyntax::PatternOrText if row.kind.match_field() == Some(MatchField::ToolName) => {
                PortableMatcher::of_pattern_or_text(text)
            }
            MatcherSyntax::PatternOrText => PortableMatcher::of_text(text),
        });
    let order = if entry["sequential"] == true { Strategy::Serial } else { row.strategy };
    let mut hooks = Vec::new();
    let is_hook = native.settings.keys.allows_bare_hooks() && entry["hooks"].is_null();
    let bare = is_hook.then(|| std::slice::from_ref(entry));
    let items = bare.or(entry["hooks"].as_array().map(Vec::as_slice)).unwrap_or_default();
    for (number, item) in (1..).zip(items) {
        let place = format!("{place}, hook {number}");
        match hook(native, row, &matcher, item, &entry["name"]) {
            Some(hook) if is_off(common, item) => losses.omitted(&hook.name, "it is switched off"),
            Some(hook) => {
                let timeout = common.timeout.filter(|_| item["timeout"].is_null()).unwrap_or(hook.timeout);
                let (on_error, on_timeout) = (common.on_error, common.on_timeout);
                let hook = PortableHook { order, timeout, on_error, on_timeout, ..hook };
                remarks(&hook, item, losses);
                for part in ["paths", "commands"].iter().filter(|part| entry["matcher"][**part].is_string()) {
                    let message = format!("`{part}` of its matcher: it runs whatever the tool works on");
                    losses.partial(&hook.name, message);
                }
                if entry["commandRegex"].is_string() {
                    losses.partial(&hook.name, "`commandRegex`: it runs whatever the command is");
                }
                hooks.push(hook);
            }
            None => losses.omitted(&place, "it cannot be read as a hook; run `hookyard check`"),
        }
    }
    hooks
}

fn is_off(common: &FileDefaults, item: &Value) -> bool {
    let called = [&item["name"], &item["command"]].into_iter().filter_map(Value::as_str);
    common.all_off || called.into_iter().any(|name| common.off.iter().any(|off| off == name))
}

fn hook(
    native: &NativeDialect,
    row: &EventRow,
    matcher: &PortableMatcher,
    item: &Value,
    called: &Value,
) -> Option<PortableHook> {
    let (handler, kind) = handler(native, item)?;
    let timeouts = &native.settings.timeouts;
    let takes_seconds = native.settings.keys.hook.contains(&"timeoutSec");
    let own = item["timeoutSec"].as_f64().filter(|_| takes_seconds);
    let timeout = match own.or(item["timeout"].as_f64()) {
        Some(number) => timeouts.unit_of(kind).duration(number)?,
        None => timeouts.usual(row, kind),
    };
    let host_event = (row.kind == EventKind::HostEvent).then(|| row.name.to_owned());
    let named = [&item["name"], called].into_iter().find_map(Value::as_str).map(sanitized_name);
    let named = named.filter(|name| !name.is_empty());
    Some(PortableHook {
        name: named.unwrap_or_else(|| name_of(&handler, row.name)),
        events: vec![PortableEvent { kind: row.kind, host_event }],
        matcher: matcher.clone(),
        order: row.strategy,
        handler,
        timeout,
        priority: 0,
        on_error: FailurePolicy::Ignore,
        on_timeout: FailurePolicy::Ignore,
        capabilities: None,
    })
}

fn handler(native: &NativeDialect, item: &Value) -> Option<(PortableHandler, HandlerKind)> {
    let text = |key: &str| item[key].as_str().map(str::to_owned);
    let own = |key| text(key).filter(|_| native.settings.keys.hook.contains(&key));
    let bare = || native.settings.keys.allows_bare_hooks().then_some("command");
    Some(match item["type"].as_str().or_else(bare)? {
        "command" => {
            let command = own("bash").or_else(|| text("command"))?;
            let run = match (item["args"].as_array(), item["shell"].as_str()) {
                (Some(args), _) => PortableCommand::Exec(
                    std::iter::once(command)
                        .chain(args.iter().filter_map(Value::as_str).map(str::to_owned))
                        .collect(),
                ),
                (None, None) if native.settings.shell == Shell::Bash => PortableCommand::bash(command),
                (None, Some("bash")) => PortableCommand::bash(command),
                (None, _) => PortableCommand::Shell(command),
            };
            let environment = item["env"].as_object().into_iter().flatten();
            let environment = environment.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())));
            let environment = environment.collect();
            (PortableHandler::Command { run, cwd: own("cwd"), environment }, HandlerKind::Command)
        }
        "http" => {
            let allowed: Vec<&str> =
                item["allowedEnvVars"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let headers = item["headers"].as_object().into_iter().flatten();
            let headers = headers.filter_map(|(k, v)| Some((k.clone(), references(v.as_str()?, &allowed))));
            let headers = headers.collect();
            (
                PortableHandler::Http { url: text("url")?, method: "POST".to_owned(), headers },
                HandlerKind::Http,
            )
        }
        "prompt" => {
            (PortableHandler::Prompt { text: text("prompt")?, model: text("model") }, HandlerKind::Prompt)
        }
        "agent" => (
            PortableHandler::Agent { agent: None, task: text("prompt")?, model: text("model") },
            HandlerKind::Agent,
        ),
        _ => return None,
    })
}

/// A value with `$NAME` as `${env.NAME}`, where the hook may see the variable; others expand to nothing.
fn references(text: &str, allowed: &[&str]) -> String {
    let part = |part| match part {
        TextPart::Text(text) => text.to_owned(),
        TextPart::Variable(name) if allowed.contains(&name) => format!("${{env.{name}}}"),
        TextPart::Variable(_) => String::new(),
    };
    text_parts(text).into_iter().map(part).collect()
}

/// The parts that no other dialect has.
fn remarks(hook: &PortableHook, item: &Value, losses: &mut ConversionLosses) {
    if item["async"] == true {
        losses.partial(&hook.name, "`async`: the agent waits for it and uses its answer");
    }
    if item["once"] == true {
        losses.partial(&hook.name, "`once`: it runs for every such event");
    }
    if let Some(rule) = item["if"].as_str() {
        losses.partial(&hook.name, format!("`if: {rule}`: it runs for every call that its matcher accepts"));
    }
    if let PortableHandler::Prompt { text, .. } | PortableHandler::Agent { task: text, .. } = &hook.handler
        && text.contains("$ARGUMENTS")
    {
        losses.partial(
            &hook.name,
            "`$ARGUMENTS` in its text: hooks of openharness get the event after the text",
        );
    }
}

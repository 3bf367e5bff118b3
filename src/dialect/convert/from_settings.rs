//! Hooks from the settings files of agents. Refuses entries that do not load, which `check` explains better.

use serde_json::Value;

use super::{
    super::{
        native::Native,
        row::Row,
        settings::{Form, Part, Shell, parts},
    },
    WrittenHooks,
    common::Common,
    matcher::Wants,
    portable::{Lost, Portable, PortableHandler, Run, WantedEvent, name_of, plain},
};
use crate::model::{EventKind, FailurePolicy, HandlerKind, MatchField, Strategy};

/// The hooks of some files.
pub(super) fn read(native: &Native, files: &[WrittenHooks], lost: &mut Lost) -> Vec<Portable> {
    let mut hooks = Vec::new();
    for file in files {
        let place = file.path.display().to_string();
        let Ok(value) = serde_json::from_slice::<Value>(&file.bytes) else {
            lost.hook(&place, "the file is not JSON; run `hookyard check`");
            continue;
        };
        let common = Common::read(native, &value, &place, lost);
        let events = value["hooks"].as_object().into_iter().flatten();
        for (name, entries) in events.filter(|(name, _)| !Common::is_word(native, name)) {
            let Some(row) = native.row_named(name) else {
                lost.hook(&format!("{place}: {name}"), "there is no such event");
                continue;
            };
            for (number, entry) in (1..).zip(entries.as_array().into_iter().flatten()) {
                let place = format!("{place}: {name}, entry {number}");
                hooks.extend(self::entry(native, row, entry, &common, &place, lost));
            }
        }
    }
    hooks
}

fn entry(
    native: &Native,
    row: &Row,
    entry: &Value,
    common: &Common,
    place: &str,
    lost: &mut Lost,
) -> Vec<Portable> {
    let matcher = match native.settings.form {
        Form::Parts => &entry["matcher"]["tools"],
        Form::ListOrPattern | Form::PatternOrText => &entry["matcher"],
    };
    let wants = matcher.as_str().map_or(Wants::Everything, |text| match native.settings.form {
        Form::Parts => Wants::of_list_or_whole(text),
        Form::ListOrPattern => Wants::of_list_or_pattern(text),
        Form::PatternOrText if row.kind.match_field() == Some(MatchField::ToolName) => {
            Wants::of_pattern_or_text(text)
        }
        Form::PatternOrText => Wants::of_text(text),
    });
    let order = if entry["sequential"] == true { Strategy::Serial } else { row.strategy };
    let mut hooks = Vec::new();
    for (number, item) in (1..).zip(entry["hooks"].as_array().into_iter().flatten()) {
        let place = format!("{place}, hook {number}");
        match hook(native, row, &wants, item, &entry["name"]) {
            Some(hook) if is_off(common, item) => lost.hook(&hook.name, "it is switched off"),
            Some(hook) => {
                let timeout = common.timeout.filter(|_| item["timeout"].is_null()).unwrap_or(hook.timeout);
                let (on_error, on_timeout) = (common.on_error, common.on_timeout);
                let hook = Portable { order, timeout, on_error, on_timeout, ..hook };
                remarks(&hook, item, lost);
                for part in ["paths", "commands"].iter().filter(|part| entry["matcher"][**part].is_string()) {
                    let message = format!("`{part}` of its matcher: it runs whatever the tool works on");
                    lost.part(&hook.name, message);
                }
                hooks.push(hook);
            }
            None => lost.hook(&place, "it cannot be read as a hook; run `hookyard check`"),
        }
    }
    hooks
}

fn is_off(common: &Common, item: &Value) -> bool {
    let called = [&item["name"], &item["command"]].into_iter().filter_map(Value::as_str);
    common.all_off || called.into_iter().any(|name| common.off.iter().any(|off| off == name))
}

fn hook(native: &Native, row: &Row, wants: &Wants, item: &Value, called: &Value) -> Option<Portable> {
    let (handler, kind) = handler(native, item)?;
    let timeouts = &native.settings.timeouts;
    let timeout = match item["timeout"].as_f64() {
        Some(number) => timeouts.unit.duration(number)?,
        None => timeouts.usual(row, kind),
    };
    let host_event = (row.kind == EventKind::HostEvent).then(|| row.name.to_owned());
    let named = [&item["name"], called].into_iter().find_map(Value::as_str).map(plain);
    let named = named.filter(|name| !name.is_empty());
    Some(Portable {
        name: named.unwrap_or_else(|| name_of(&handler, row.name)),
        events: vec![WantedEvent { kind: row.kind, host_event }],
        wants: wants.clone(),
        order: row.strategy,
        handler,
        timeout,
        priority: 0,
        on_error: FailurePolicy::Ignore,
        on_timeout: FailurePolicy::Ignore,
        capabilities: None,
    })
}

fn handler(native: &Native, item: &Value) -> Option<(PortableHandler, HandlerKind)> {
    let text = |key: &str| item[key].as_str().map(str::to_owned);
    Some(match item["type"].as_str()? {
        "command" => {
            let command = text("command")?;
            let run = match (item["args"].as_array(), item["shell"].as_str()) {
                (Some(args), _) => Run::Exec(
                    std::iter::once(command)
                        .chain(args.iter().filter_map(Value::as_str).map(str::to_owned))
                        .collect(),
                ),
                (None, None) if native.settings.shell == Shell::Bash => Run::bash(command),
                (None, Some("bash")) => Run::bash(command),
                (None, _) => Run::Shell(command),
            };
            let environment = item["env"].as_object().into_iter().flatten();
            let environment = environment.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())));
            let environment = environment.collect();
            (PortableHandler::Command { run, cwd: None, environment }, HandlerKind::Command)
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

/// A value with `$NAME` as `${env.NAME}`, where the hook may see the variable; others stand for nothing.
fn references(text: &str, allowed: &[&str]) -> String {
    let part = |part| match part {
        Part::Text(text) => text.to_owned(),
        Part::Variable(name) if allowed.contains(&name) => format!("${{env.{name}}}"),
        Part::Variable(_) => String::new(),
    };
    parts(text).into_iter().map(part).collect()
}

/// What no other dialect has.
fn remarks(hook: &Portable, item: &Value, lost: &mut Lost) {
    if item["async"] == true {
        lost.part(&hook.name, "`async`: the agent waits for it, and its answer counts");
    }
    if item["once"] == true {
        lost.part(&hook.name, "`once`: it runs for every such event");
    }
    if let Some(rule) = item["if"].as_str() {
        lost.part(&hook.name, format!("`if: {rule}`: it runs for every call that its matcher accepts"));
    }
    if let PortableHandler::Prompt { text, .. } | PortableHandler::Agent { task: text, .. } = &hook.handler
        && text.contains("$ARGUMENTS")
    {
        lost.part(&hook.name, "`$ARGUMENTS` in its text: hooks of openharness get the event after the text");
    }
}

//! Reads OpenHarness hook files for conversion.

use std::time::Duration;

use serde_json::Value;

use super::{
    HookConfigFile,
    file_defaults::policy,
    matcher::PortableMatcher,
    portable_hook::{ConversionLosses, PortableCommand, PortableEvent, PortableHandler, PortableHook},
};
use crate::model::{EventKind, Strategy};

/// The default timeout of a hook, in seconds.
const USUAL_TIMEOUT: f64 = 60.0;

/// The hooks of some files.
pub(super) fn read(
    files: &[HookConfigFile],
    text_file: &dyn Fn(&str) -> Option<String>,
    losses: &mut ConversionLosses,
) -> Vec<PortableHook> {
    let mut hooks = Vec::new();
    for file in files {
        let place = file.path.display().to_string();
        let value = serde_yaml::from_slice::<Value>(&file.bytes).ok();
        match value.as_ref().and_then(|value| hook(value, text_file)) {
            Some(hook) if value.as_ref().is_some_and(|value| value["enabled"] == false) => {
                losses.omitted(&hook.name, "it is switched off (`enabled: false`)");
            }
            Some(hook) => {
                remarks(&hook, value.as_ref().map(|value| &value["handler"]), losses);
                hooks.push(hook);
            }
            None if value.as_ref().is_some_and(|value| value["handler"]["type"] == "rule") => {
                losses.omitted(&place, "rules are evaluated by hookyard alone");
            }
            None => losses.omitted(&place, "the file cannot be read as a hook; run `hookyard check`"),
        }
    }
    hooks.sort_by_key(|hook| hook.priority);
    hooks
}

fn hook(file: &Value, text_file: &dyn Fn(&str) -> Option<String>) -> Option<PortableHook> {
    let kinds = file["events"].as_array()?.iter().filter_map(Value::as_str).filter_map(EventKind::from_name);
    let handler = &file["handler"];
    Some(PortableHook {
        name: file["name"].as_str()?.to_owned(),
        events: kinds.map(|kind| PortableEvent { kind, host_event: None }).collect(),
        matcher: file["matcher"].as_str().map_or(PortableMatcher::Everything, PortableMatcher::of_pattern),
        order: Strategy::Serial,
        handler: self::handler(handler, text_file)?,
        timeout: Duration::try_from_secs_f64(handler["timeout_seconds"].as_f64().unwrap_or(USUAL_TIMEOUT))
            .ok()?,
        priority: file["priority"].as_i64().unwrap_or_default(),
        on_error: policy(&file["on_error"]),
        on_timeout: policy(&file["on_timeout"]),
        capabilities: Some(texts(&file["capabilities"])),
    })
}

fn handler(handler: &Value, text_file: &dyn Fn(&str) -> Option<String>) -> Option<PortableHandler> {
    let prompt_text = |text: &Value| match text["inline"].as_str() {
        Some(inline) => Some(inline.to_owned()),
        None => text_file(text["file"].as_str()?),
    };
    Some(match handler["type"].as_str()? {
        "command" => PortableHandler::Command {
            run: match handler["command"].as_str() {
                Some(line) => PortableCommand::Shell(line.to_owned()),
                None => PortableCommand::Exec(Some(texts(&handler["args"])).filter(|args| !args.is_empty())?),
            },
            cwd: handler["cwd"].as_str().filter(|cwd| *cwd != ".").map(str::to_owned),
            environment: pairs(&handler["environment"]),
        },
        "http" => PortableHandler::Http {
            url: handler["url"].as_str()?.to_owned(),
            method: handler["method"].as_str().unwrap_or("POST").to_owned(),
            headers: pairs(&handler["headers"]),
        },
        "prompt" => PortableHandler::Prompt {
            text: prompt_text(&handler["prompt"])?,
            model: handler["model_ref"].as_str().map(str::to_owned),
        },
        "agent" => PortableHandler::Agent {
            agent: handler["agent"].as_str().map(str::to_owned),
            task: prompt_text(&handler["task"])?,
            model: None,
        },
        _ => return None,
    })
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn pairs(mapping: &Value) -> Vec<(String, String)> {
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    mapping.as_object().into_iter().flatten().filter_map(text).collect()
}

/// The parts that no other dialect has.
fn remarks(hook: &PortableHook, handler: Option<&Value>, losses: &mut ConversionLosses) {
    let Some(handler) = handler else { return };
    if let Some(mode) = handler["mode"].as_str().filter(|mode| *mode != "oneshot") {
        losses.partial(&hook.name, format!("`mode: {mode}`: a process is started for each event"));
    }
    if !handler["max_concurrency"].is_null() {
        losses.partial(&hook.name, "`max_concurrency`: nothing bounds how many run at once");
    }
}

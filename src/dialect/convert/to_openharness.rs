//! Writes hooks as OpenHarness files, one each.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    super::{openharness, settings::TimeUnit},
    ConvertedFile,
    portable_hook::{ConversionLosses, PortableCommand, PortableHandler, PortableHook},
};
use crate::model::{AgentTool, DialectName, EventKind, FailurePolicy};

/// The model of hooks that name none.
const USUAL_MODEL: &str = "default";

#[derive(Serialize)]
struct HookFile<'a> {
    name: &'a str,
    events: Vec<EventKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<String>,
    handler: Handler<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    capabilities: Vec<&'a str>,
    #[serde(skip_serializing_if = "is_usual")]
    priority: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_timeout: Option<&'static str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_usual(priority: &i64) -> bool {
    *priority == 0
}

#[derive(Serialize)]
struct Handler<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    what: What<'a>,
    timeout_seconds: serde_json::Number,
}

#[derive(Serialize)]
#[serde(untagged)]
enum What<'a> {
    Command(CommandFile<'a>),
    Http {
        url: &'a str,
        method: &'a str,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<&'a str, &'a str>,
    },
    Prompt {
        prompt: Text<'a>,
        model_ref: &'a str,
    },
    Agent {
        agent: &'a str,
        task: Text<'a>,
    },
}

#[derive(Serialize)]
struct CommandFile<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    args: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    environment: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct Text<'a> {
    inline: &'a str,
}

/// The files, and how many hooks are in them.
pub(super) fn write(hooks: &[PortableHook], losses: &mut ConversionLosses) -> (Vec<ConvertedFile>, usize) {
    let mut files = Vec::new();
    let mut written = 0;
    for hook in hooks {
        let (known, missing): (Vec<_>, Vec<_>) =
            hook.events.iter().partition(|event| openharness::has_kind(event.kind));
        losses.missing_events(&hook.name, DialectName::OpenHarness, &missing, known.len());
        if known.is_empty() {
            continue;
        }
        let events = known.iter().map(|event| event.kind).collect();
        files.extend(agent_file(hook));
        match serde_yaml::to_string(&hook_file(hook, events, losses)) {
            Ok(text) => {
                let path = format!(".openharness/hooks/{}.yaml", hook.name).into();
                files.push(ConvertedFile { path, text });
                written += 1;
            }
            Err(error) => losses.omitted(&hook.name, format!("it cannot be written: {error}")),
        }
    }
    (files, written)
}

fn hook_file<'a>(
    hook: &'a PortableHook,
    events: Vec<EventKind>,
    losses: &mut ConversionLosses,
) -> HookFile<'a> {
    let capabilities = match &hook.capabilities {
        Some(names) => names.iter().map(String::as_str).collect(),
        // What the other dialect allows every hook, this one wants said.
        None => events.iter().filter_map(|kind| kind.target()).map(|t| t.capability().as_str()).collect(),
    };
    let matcher = hook.matcher.pattern();
    if matcher.is_some() && events.iter().all(|kind| !openharness::is_matched(*kind)) {
        losses.partial(&hook.name, "its matcher: hooks on these events run for every one");
    }
    let policy = |policy: FailurePolicy| (policy != FailurePolicy::Ignore).then(|| policy.as_str());
    HookFile {
        name: &hook.name,
        matcher: matcher.filter(|_| events.iter().any(|kind| openharness::is_matched(*kind))),
        handler: handler(hook),
        capabilities,
        priority: hook.priority,
        on_error: policy(hook.on_error),
        on_timeout: policy(hook.on_timeout),
        events,
    }
}

fn handler(hook: &PortableHook) -> Handler<'_> {
    let (r#type, what) = match &hook.handler {
        PortableHandler::Command { run, cwd, environment } => {
            let (command, args) = match run {
                PortableCommand::Shell(line) => (Some(line.as_str()), &[][..]),
                PortableCommand::Exec(args) => (None, &args[..]),
            };
            let environment = sorted(environment);
            ("command", What::Command(CommandFile { command, args, cwd: cwd.as_deref(), environment }))
        }
        PortableHandler::Http { url, method, headers } => {
            ("http", What::Http { url, method, headers: sorted(headers) })
        }
        PortableHandler::Prompt { text, model } => {
            let model_ref = model.as_deref().unwrap_or(USUAL_MODEL);
            ("prompt", What::Prompt { prompt: Text { inline: text }, model_ref })
        }
        PortableHandler::Agent { task, .. } => {
            ("agent", What::Agent { agent: &hook.name, task: Text { inline: task } })
        }
    };
    Handler { r#type, what, timeout_seconds: TimeUnit::Seconds.number(hook.timeout) }
}

fn sorted(pairs: &[(String, String)]) -> BTreeMap<&str, &str> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// The file of an agent that was only a task.
fn agent_file(hook: &PortableHook) -> Option<ConvertedFile> {
    let PortableHandler::Agent { model, .. } = &hook.handler else { return None };
    let model = model.as_deref().unwrap_or(USUAL_MODEL);
    let tools: Vec<&str> = AgentTool::ALL.iter().map(|tool| tool.as_str()).collect();
    let text = format!(
        "---\nmodel_ref: {model}\ntools: [{}]\n---\nYou check whether something holds. Look around before you judge.\n",
        tools.join(", ")
    );
    Some(ConvertedFile { path: format!(".openharness/agents/{}.md", hook.name).into(), text })
}

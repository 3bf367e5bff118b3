//! A hook as programs see it in lists. Environments, headers and prompts are left out: they may hold secrets.

use std::{borrow::Cow, path::Path};

use serde::Serialize;

use crate::model::{CommandLine, DialectName, EventKinds, Handler, HandlerKind, Hook, Matcher, TrustState};

/// One hook as programs see it.
#[derive(Debug, Serialize)]
pub struct HookListing<'a> {
    name: &'a str,
    dialect: DialectName,
    events: EventKinds,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_event: Option<&'a str>,
    matcher: Option<&'a str>,
    /// What an event must have besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
    handler: HandlerKind,
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Command<'a>>,
    scope: &'static str,
    /// The signed bundle that it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle: Option<BundleListing<'a>>,
    /// The directory of the workspace that it is of, where that is around the one it runs for.
    #[serde(skip_serializing_if = "Option::is_none")]
    outer_workspace: Option<Cow<'a, str>>,
    /// Nothing if trust is off.
    trust: Option<TrustState>,
    /// What a trusted hook reaches that the trust does not cover.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_covered: &'a [String],
    priority: i32,
    enabled: bool,
    /// The switch of a settings file that disables it.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_by: Option<&'a str>,
    /// Whether the agent in whose settings it is runs it itself for its own events.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run_by_agent: bool,
    /// The switches that would disable it if they had the authority.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    cannot_be_disabled_by: &'a [std::sync::Arc<str>],
    /// The SHA-256 of its definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<&'a str>,
    file: Option<Cow<'a, str>>,
    line: usize,
}

/// The signed bundle of a hook.
#[derive(Debug, Serialize)]
struct BundleListing<'a> {
    name: &'a str,
    version: u64,
}

/// What a command handler runs: a line for the shell, or a program with its arguments.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Command<'a> {
    Line(&'a str),
    Words(Vec<Cow<'a, str>>),
}

impl<'a> Command<'a> {
    fn of(handler: &'a Handler) -> Option<Self> {
        let Handler::Command(command) = handler else { return None };
        Some(match &command.line {
            CommandLine::Shell(line) => Self::Line(line),
            CommandLine::Exec { program, args } => {
                let program = std::iter::once(program.to_string_lossy());
                Self::Words(program.chain(args.iter().map(|arg| Cow::Borrowed(arg.as_str()))).collect())
            }
        })
    }
}

impl<'a> HookListing<'a> {
    /// The row of a hook.
    pub fn of(hook: &'a Hook) -> Self {
        Self {
            name: hook.name.as_str(),
            dialect: hook.dialect.name(),
            events: hook.events,
            host_event: hook.execution.host_event.as_deref(),
            matcher: hook.matcher.as_ref().map(Matcher::pattern),
            condition: hook.execution.condition.as_ref().map(|condition| condition.text()),
            handler: hook.handler.kind(),
            mode: hook.handler.mode(),
            command: Command::of(&hook.handler),
            scope: hook.source.scope.as_str(),
            bundle: hook
                .source
                .bundle
                .as_deref()
                .map(|bundle| BundleListing { name: &bundle.name, version: bundle.version }),
            outer_workspace: hook
                .execution
                .outer
                .as_ref()
                .map(|outer| outer.workspace.root.to_string_lossy()),
            trust: hook.trust.state(),
            not_covered: hook.trust.not_covered(),
            priority: hook.priority,
            enabled: hook.enabled,
            disabled_by: hook.execution.switches.disabled_by.as_deref(),
            run_by_agent: hook.execution.host_runs.is_by_agent(),
            cannot_be_disabled_by: &hook.execution.switches.without_effect,
            sha256: hook.execution.definition.as_deref(),
            file: hook.source.file.as_deref().map(Path::to_string_lossy),
            line: hook.source.line,
        }
    }
}

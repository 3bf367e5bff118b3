//! The dialect of Qwen Code: the events of Claude Code, with the outputs of Gemini CLI, from which the agent comes.

mod reply;
mod response;
mod tools;

use std::time::Duration;

use self::tools::TOOLS;
use super::{
    agent_variables,
    claude::{FIELDS, replace},
    event_table::{
        EventRow,
        MatchSource::{Fact, Unmatched},
        rows,
    },
    gemini::{self, BESIDE_EVENTS},
    native::{EnvelopeField, NativeDialect, Spelling},
    settings::{
        BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, HookIdentity, MatcherSyntax,
        PluginFormat, SettingsFile, SettingsFormat, SettingsKeys, SettingsLocation, Shell, StartDirectory,
        TimeUnit, UnreadByAgent, names_or_regexes,
    },
};
use crate::model::{DialectName, Draft, EventKind, HandlerKind, ResponseFormat, Scope, Workspace};

/// Its events; the columns are those of Claude Code's table. It runs hooks on tool calls after it has asked the person,
/// and reads no context there.
const ROWS: &[EventRow] = rows! {
    "SessionStart" SessionStarted Fact, Parallel Strictest, Nothing, Told Taken, [];
    "SessionEnd" SessionEnded Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "UserPromptSubmit" PromptSubmitted Unmatched, Parallel Combined, Prevents, Told Taken, [];
    "PreToolUse" BeforeToolDispatch Fact, Parallel Combined, Prevents, Ignored NoPlace, [RewriteToolRequest];
    "PermissionRequest" PermissionRequested Fact, Parallel Combined, Denies, Ignored NoPlace, [RewriteToolRequest];
    "PostToolUse" AfterToolDispatch Fact, Parallel Combined, Tells, Ignored Taken, [];
    "PostToolUseFailure" ToolFailed Fact, Parallel Combined, Nothing, Ignored Taken, [];
    "Notification" Notification Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "Stop" AgentStopping Unmatched, Parallel Combined, Prevents, Ignored NoPlace, [];
    "StopFailure" RunFailed Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "SubagentStart" SubagentStarted Fact, Parallel Strictest, Nothing, Ignored Taken, [];
    "SubagentStop" SubagentStopping Fact, Parallel Combined, Prevents, Ignored NoPlace, [];
    "PreCompact" BeforeContextCompact Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "PostCompact" AfterContextCompact Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
};

/// The first fields of an envelope.
const ENVELOPE_FIELDS: &[(&str, EnvelopeField)] = &[
    ("session_id", EnvelopeField::Session),
    ("transcript_path", EnvelopeField::Own(Some(""))),
    ("cwd", EnvelopeField::Cwd),
    ("hook_event_name", EnvelopeField::EventName),
    ("timestamp", EnvelopeField::Timestamp),
];

/// The kinds whose matchers are compared with a tool, by any of its names.
const TOOL_EVENTS: &[EventKind] = &[
    EventKind::BeforeToolDispatch,
    EventKind::PermissionRequested,
    EventKind::AfterToolDispatch,
    EventKind::ToolFailed,
];

/// The variables with the project's directory whose values it puts into command lines.
const PROJECT: &[&str] = agent_variables::QWEN.project;

/// The dialect of Qwen Code.
pub(super) static QWEN: NativeDialect = NativeDialect {
    name: DialectName::Qwen,
    rows: ROWS,
    fields: FIELDS,
    spelling: Spelling::ONE,
    envelope_fields: ENVELOPE_FIELDS,
    roots_field: None,
    default_session: None,
    own_fields: &["permission_mode", "custom_instructions", "stop_hook_active", "last_assistant_message"],
    host_variables: agent_variables::QWEN.given,
    prompt_field: None,
    settings: SettingsFormat {
        files: &[
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".qwen/settings.json"),
            },
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".qwen/settings.json") },
            SettingsFile {
                scope: Scope::Managed,
                location: SettingsLocation::System("qwen-code/settings.json"),
            },
        ],
        unread: &[],
        bare_file: None,
        beside_json: BesideJson::Comments,
        unread_by_agent: UnreadByAgent::None,
        types: &[HandlerKind::Command, HandlerKind::Http],
        matcher_syntax: MatcherSyntax::PatternOrText,
        matcher: |value, row| {
            names_or_regexes(value, if TOOL_EVENTS.contains(&row.kind) { TOOLS } else { &[] })
        },
        timeouts: DefaultTimeouts {
            unit: TimeUnit::SecondsOrMilliseconds,
            usual: Duration::from_mins(1),
            prompt: Duration::from_mins(1),
            agent: Duration::from_mins(1),
            of_events: &[],
            of_http: Some((TimeUnit::Seconds, Duration::from_mins(10))),
            are_refusals: false,
        },
        duplicates: DuplicateHooks::RunOnce,
        shared: &[],
        project_variables: agent_variables::QWEN.project,
        keys: SettingsKeys {
            entry: &["matcher", "sequential", "hooks"],
            hook: &[
                "type",
                "command",
                "url",
                "headers",
                "allowedEnvVars",
                "name",
                "description",
                "timeout",
                "env",
                "async",
                "shell",
                "statusMessage",
            ],
            beside_events: BESIDE_EVENTS,
        },
        shell: Shell::Bash,
        directory: StartDirectory::Workspace,
        identity: HookIdentity::NameAndHandler,
        disable: DisableSyntax::All("disableAllHooks"),
        plugins: PluginFormat::None,
        managed_only: None,
    },
    ends_input_with_newline: false,
    goes_on_in_background: |_| false,
    environment,
    response_format: |_| ResponseFormat::default(),
    read_reply: |_, row, _, raw| reply::read(row, raw),
    write_response: |_, row, outcome| response::write(row, outcome),
    apply_patch: replace,
    translate: gemini::translate,
    combine: reply::combine,
    ends_chain: |_| &[],
};

/// The variables of a command: all are the agent's working directory.
fn environment(draft: &Draft, place: &Workspace) -> Vec<(&'static str, String)> {
    // No variable can hold a NUL character.
    let cwd = draft.event().cwd.as_deref().filter(|cwd| !cwd.contains('\0'));
    let directory = cwd.map_or_else(|| place.root.display().to_string(), str::to_owned);
    let names = PROJECT.iter().copied().chain(["QWEN_PROJECT_DIR"]);
    names.map(|name| (name, directory.clone())).collect()
}

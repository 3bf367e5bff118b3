//! The dialect of GitHub Copilot CLI. It has two spellings: the names of Claude Code's events with fields in snake case,
//! and names of its own with fields in camel case.

mod reply;
mod response;

use std::time::Duration;

use super::{
    agent_variables,
    claude::replace,
    codex::combined_decision,
    event_table::{
        EventRow,
        MatchSource::{Fact, Unmatched},
        rows,
    },
    native::{EnvelopeField, NativeDialect, Spelling},
    settings::{
        BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, HookIdentity, MatcherSyntax,
        PluginFormat, SettingsFile, SettingsFormat, SettingsKeys, SettingsLocation, Shell, StartDirectory,
        TimeUnit, UnreadByAgent, whole_regex,
    },
};
use crate::model::{
    DialectName, Draft, EventKind, HandlerKind, ResponseFormat, Scope, Target, Verdict, Workspace,
};

/// Its events; the columns are those of Claude Code's table. A host names a permission in the second spelling.
const ROWS: &[EventRow] = rows! {
    "SessionStart" SessionStarted Unmatched, Parallel Strictest, Nothing, Ignored Taken, [];
    "SessionEnd" SessionEnded Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "UserPromptSubmit" PromptSubmitted Unmatched, Serial Combined, Prevents, Ignored Taken, [RewritePrompt];
    "PreToolUse" BeforeToolDispatch Fact, Serial Combined, Prevents, Ignored Taken, [RewriteToolRequest];
    "PermissionRequest" PermissionRequested Fact, Serial Strictest, Denies, Ignored NoPlace, [];
    "permissionRequest" PermissionRequested Fact, Serial Strictest, Denies, Ignored NoPlace, [];
    "PostToolUse" AfterToolDispatch Fact, Serial Combined, Tells, Ignored Taken, [RewriteToolResponse];
    "PostToolUseFailure" ToolFailed Fact, Parallel Strictest, Nothing, Ignored Taken, [];
    "Stop" AgentStopping Unmatched, Serial Combined, Prevents, Ignored NoPlace, [];
    "SubagentStart" SubagentStarted Fact, Parallel Strictest, Nothing, Ignored Taken, [];
    "SubagentStop" SubagentStopping Unmatched, Serial Combined, Prevents, Ignored NoPlace, [];
    "PreCompact" BeforeContextCompact Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "Notification" Notification Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "ErrorOccurred" RunFailed Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
};

/// The same events by its own names. What a notification names itself is the same in both spellings.
const OWN_ROWS: &[EventRow] = rows! {
    "sessionStart" SessionStarted Unmatched, Parallel Strictest, Nothing, Ignored Taken, [];
    "sessionEnd" SessionEnded Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "userPromptSubmitted" PromptSubmitted Unmatched, Serial Combined, Prevents, Ignored Taken, [RewritePrompt];
    "preToolUse" BeforeToolDispatch Fact, Serial Combined, Prevents, Ignored Taken, [RewriteToolRequest];
    "permissionRequest" PermissionRequested Fact, Serial Strictest, Denies, Ignored NoPlace, [];
    "postToolUse" AfterToolDispatch Fact, Serial Combined, Tells, Ignored Taken, [RewriteToolResponse];
    "postToolUseFailure" ToolFailed Fact, Parallel Strictest, Nothing, Ignored Taken, [];
    "agentStop" AgentStopping Unmatched, Serial Combined, Prevents, Ignored NoPlace, [];
    "subagentStart" SubagentStarted Fact, Parallel Strictest, Nothing, Ignored Taken, [];
    "subagentStop" SubagentStopping Unmatched, Serial Combined, Prevents, Ignored NoPlace, [];
    "preCompact" BeforeContextCompact Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "Notification" Notification Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "notification" Notification Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "errorOccurred" RunFailed Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
};

/// Fields with a canonical name.
const FIELDS: &[(&str, &str)] = &[
    ("session_id", "session_id"),
    ("cwd", "cwd"),
    ("tool_name", "tool_name"),
    ("tool_input", "tool_input"),
    ("tool_result", "tool_output"),
    ("prompt", "prompt"),
    ("source", "source"),
    ("reason", "reason"),
    ("trigger", "trigger"),
    ("message", "message"),
    ("notification_type", "notification_type"),
    ("agent_name", "agent_type"),
];

/// The same in the second spelling.
const OWN_FIELDS: &[(&str, &str)] = &[
    ("sessionId", "session_id"),
    ("cwd", "cwd"),
    ("toolName", "tool_name"),
    ("toolArgs", "tool_input"),
    ("toolResult", "tool_output"),
    ("prompt", "prompt"),
    ("source", "source"),
    ("reason", "reason"),
    ("trigger", "trigger"),
    ("message", "message"),
    ("notification_type", "notification_type"),
    ("agentName", "agent_type"),
];

/// Fields of the second spelling that hosts send with permissions and notifications.
const ALSO_READ: &[(&str, &str)] =
    &[("sessionId", "session_id"), ("toolName", "tool_name"), ("toolInput", "tool_input")];

/// The first fields of an envelope.
const ENVELOPE_FIELDS: &[(&str, EnvelopeField)] = &[
    ("hook_event_name", EnvelopeField::EventName),
    ("session_id", EnvelopeField::Session),
    ("timestamp", EnvelopeField::Timestamp),
    ("cwd", EnvelopeField::Cwd),
];

/// The same in the second spelling, in which an envelope mostly does not name its event.
const OWN_ENVELOPE_FIELDS: &[(&str, EnvelopeField)] = &[
    ("hookName", EnvelopeField::EventNameOf(EventKind::PermissionRequested)),
    ("sessionId", EnvelopeField::Session),
    ("timestamp", EnvelopeField::Milliseconds),
    ("cwd", EnvelopeField::Cwd),
    ("hook_event_name", EnvelopeField::EventNameOf(EventKind::Notification)),
    ("toolInput", EnvelopeField::InputOf(EventKind::PermissionRequested)),
];

/// Tools as a host names them in the first spelling, each with the name in the second. Matchers may use both.
const TOOLS: &[(&str, &str)] = &[
    ("Bash", "bash"),
    ("Read", "view"),
    ("Write", "create"),
    ("Edit", "edit"),
    ("Edit", "apply_patch"),
    ("Grep", "grep"),
    ("Glob", "glob"),
    ("WebFetch", "web_fetch"),
    ("WebSearch", "web_search"),
    ("AskUserQuestion", "ask_user"),
    ("TodoWrite", "update_todo"),
    ("Agent", "task"),
];

/// Further fields of a host in the first spelling, each with the name in the second.
const FURTHER_FIELDS: &[(&str, &str)] = &[
    ("initial_prompt", "initialPrompt"),
    ("transcript_path", "transcriptPath"),
    ("stop_reason", "stopReason"),
    ("custom_instructions", "customInstructions"),
    ("error_context", "errorContext"),
    ("agent_display_name", "agentDisplayName"),
    ("agent_description", "agentDescription"),
];

/// The variables with the project's directory.
const PROJECT: &[&str] = &["COPILOT_PROJECT_DIR", "CLAUDE_PROJECT_DIR"];

/// The dialect of GitHub Copilot CLI.
pub(super) static COPILOT: NativeDialect = NativeDialect {
    rows: ROWS,
    fields: FIELDS,
    spelling: Spelling {
        second: Some(&SECOND),
        always_second: &[EventKind::PermissionRequested, EventKind::Notification, EventKind::SubagentStarted],
        also_read: ALSO_READ,
        renamed: [&[], &[]],
    },
    envelope_fields: ENVELOPE_FIELDS,
    ..BASE
};

/// The same in its second spelling, for hooks that are configured by its own names of events.
static SECOND: NativeDialect = NativeDialect {
    spelling: Spelling { second: None, always_second: &[], also_read: &[], renamed: [TOOLS, FURTHER_FIELDS] },
    translate: |event, target, value| {
        (target == Target::ToolOutput).then(|| response::own_result(event, value)).flatten()
    },
    ..BASE
};

/// What both spellings share; the rest is that of the second.
const BASE: NativeDialect = NativeDialect {
    name: DialectName::Copilot,
    rows: OWN_ROWS,
    fields: OWN_FIELDS,
    spelling: Spelling::ONE,
    envelope_fields: OWN_ENVELOPE_FIELDS,
    roots_field: None,
    default_session: None,
    own_fields: &["stop_hook_active"],
    host_variables: agent_variables::COPILOT.given,
    prompt_field: None,
    settings: SettingsFormat {
        files: &[
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".copilot/hooks/*.json") },
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".copilot/settings.json") },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".github/hooks/*.json"),
            },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".github/copilot/settings.json"),
            },
            SettingsFile {
                scope: Scope::Local,
                location: SettingsLocation::Workspace(".github/copilot/settings.local.json"),
            },
        ],
        unread: &[],
        bare_file: None,
        // The user's settings have a reader in JavaScript, and those of a project another one.
        beside_json: BesideJson::NothingIn(".github/copilot"),
        unread_by_agent: UnreadByAgent::LenientIn(&[".github/copilot", "hooks"]),
        types: &[HandlerKind::Command, HandlerKind::Http],
        matcher_syntax: MatcherSyntax::Whole,
        matcher: |value, row| whole_regex(value, row, TOOLS),
        timeouts: DefaultTimeouts {
            unit: TimeUnit::Seconds,
            usual: Duration::from_secs(30),
            prompt: Duration::from_secs(30),
            agent: Duration::from_secs(30),
            of_events: &[],
            of_http: None,
            are_refusals: false,
        },
        duplicates: DuplicateHooks::RunEach,
        shared: &[],
        project_variables: agent_variables::COPILOT.project,
        keys: SettingsKeys {
            entry: &[
                "matcher",
                "hooks",
                "type",
                "bash",
                "command",
                "powershell",
                "url",
                "headers",
                "allowedEnvVars",
                "cwd",
                "env",
                "timeoutSec",
                "timeout",
            ],
            hook: &[
                "type",
                "matcher",
                "bash",
                "command",
                "powershell",
                "url",
                "headers",
                "allowedEnvVars",
                "cwd",
                "env",
                "timeoutSec",
                "timeout",
            ],
            beside_events: &[],
        },
        shell: Shell::Bash,
        directory: StartDirectory::Workspace,
        identity: HookIdentity::Handler,
        disable: DisableSyntax::Own("disableAllHooks"),
        plugins: PluginFormat::None,
        managed_only: None,
    },
    ends_input_with_newline: false,
    goes_on_in_background: |_| false,
    environment,
    response_format: |_| ResponseFormat::default(),
    read_reply: |native, row, _, raw| reply::read(!native.spelling.renames(), row, raw),
    write_response: response::write,
    apply_patch: replace,
    translate: |_, target, value| (target == Target::ToolOutput).then(|| response::result(value)).flatten(),
    combine: |_, _, earlier, mut reply| {
        reply.decision = combined_decision(earlier, reply.decision, "\n");
        reply
    },
    ends_chain: |_| &[Verdict::Block, Verdict::Halt],
};

fn environment(draft: &Draft, place: &Workspace) -> Vec<(&'static str, String)> {
    let event = draft.event();
    let given = event.environment.iter().filter(|_| event.dialect == DialectName::Copilot);
    let directories = PROJECT.iter().map(|name| (*name, place.root.display().to_string()));
    directories.chain(given.map(|(name, value)| (*name, value.to_string()))).collect()
}

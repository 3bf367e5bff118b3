//! The dialect of Claude Code, and what its family shares: events, fields and settings files.

mod reply;
mod response;

use std::time::Duration;

pub(super) use reply::WORKTREE_PATH;
use reply::read;
use response::write;
pub(super) use response::{Object, for_vscode, made_path};
use serde_json::json;

use crate::{
    dialect::{
        agent_variables,
        event_table::{
            EventRow,
            MatchSource::{Fact, Field, FileName, Unmatched},
            rows,
        },
        native::{EnvelopeField, NativeDialect, Spelling},
        output::goes_on_in_background,
        settings::{
            BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, HookIdentity, MatcherSyntax, PLUGINS,
            PluginFormat, SettingsFile, SettingsFormat, SettingsKeys, SettingsLocation, Shell,
            StartDirectory, TimeUnit, UnreadByAgent, exact_list_or_regex,
        },
    },
    model::{DialectName, HandlerKind, Json, JsonError, ResponseFormat, Scope, Target, Verdict, Workspace},
};

/// Its 31 events: the name, the kind, what matchers look at, how hooks run, what becomes of equal verdicts, what
/// a block means, what plain text on standard output means, whether hosts accept context for the model, and what
/// hooks may change.
const ROWS: &[EventRow] = rows! {
    "SessionStart" SessionStarted Fact, Parallel Strictest, Nothing, Told Taken, [];
    "Setup" HostEvent Field("trigger"), Parallel Strictest, Nothing, Ignored Taken, [];
    "SessionEnd" SessionEnded Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "UserPromptSubmit" PromptSubmitted Unmatched, Parallel Strictest, Prevents, Told Taken, [];
    "UserPromptExpansion" HostEvent Field("command_name"), Parallel Strictest, Nothing, Ignored Taken, [];
    "PreToolUse" BeforeToolDispatch Fact, Parallel Strictest, Prevents, Ignored Taken, [RewriteToolRequest];
    "PermissionRequest" PermissionRequested Fact, Parallel Strictest, Denies, Ignored NoPlace, [RewriteToolRequest];
    "PermissionDenied" HostEvent Field("tool_name"), Parallel Strictest, Nothing, Ignored NoPlace, [];
    "PostToolUse" AfterToolDispatch Fact, Parallel Strictest, Tells, Ignored Taken, [RewriteToolResponse SuppressOutput];
    "PostToolUseFailure" ToolFailed Fact, Parallel Strictest, Tells, Ignored Taken, [];
    "PostToolBatch" HostEvent Unmatched, Parallel Strictest, Prevents, Ignored Taken, [];
    "Notification" Notification Fact, Parallel Strictest, Nothing, Ignored Taken, [];
    "MessageDisplay" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "Stop" AgentStopping Unmatched, Parallel Strictest, Prevents, Ignored Taken, [];
    "StopFailure" RunFailed Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "SubagentStart" SubagentStarted Fact, Parallel Strictest, Nothing, Ignored Taken, [];
    "SubagentStop" SubagentStopping Fact, Parallel Strictest, Prevents, Ignored Taken, [];
    "TaskCreated" HostEvent Unmatched, Parallel Strictest, PreventsByExit, Ignored NoPlace, [];
    "TaskCompleted" HostEvent Unmatched, Parallel Strictest, PreventsByExit, Ignored NoPlace, [];
    "TeammateIdle" HostEvent Unmatched, Parallel Strictest, PreventsByExit, Ignored NoPlace, [];
    "PreCompact" BeforeContextCompact Fact, Parallel Strictest, Prevents, Told Printed, [];
    "PostCompact" AfterContextCompact Fact, Parallel Strictest, Nothing, Told Printed, [];
    "InstructionsLoaded" HostEvent Field("load_reason"), Parallel Strictest, Nothing, Ignored NoPlace, [];
    "ConfigChange" HostEvent Field("source"), Parallel Strictest, Prevents, Ignored NoPlace, [];
    "CwdChanged" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "DirectoryAdded" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "FileChanged" HostEvent FileName("file_path"), Parallel Strictest, Nothing, Ignored NoPlace, [];
    "WorktreeCreate" HostEvent Unmatched, Parallel Strictest, Nothing, Path NoPlace, [];
    "WorktreeRemove" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "Elicitation" HostEvent Field("mcp_server_name"), Parallel Strictest, Declines, Ignored NoPlace, [];
    "ElicitationResult" HostEvent Field("mcp_server_name"), Parallel Strictest, Nothing, Ignored NoPlace, [];
};

/// Fields with a canonical name, in the family of Claude Code.
pub(super) const FIELDS: &[(&str, &str)] = &[
    ("session_id", "session_id"),
    ("cwd", "cwd"),
    ("tool_name", "tool_name"),
    ("tool_input", "tool_input"),
    ("tool_use_id", "tool_call_id"),
    ("tool_response", "tool_output"),
    ("prompt", "prompt"),
    ("source", "source"),
    ("reason", "reason"),
    ("trigger", "trigger"),
    ("message", "message"),
    ("notification_type", "notification_type"),
    ("agent_type", "agent_type"),
];

/// The first fields of an envelope, in the family of Claude Code.
pub(super) const ENVELOPE_FIELDS: &[(&str, EnvelopeField)] = &[
    ("session_id", EnvelopeField::Session),
    ("transcript_path", EnvelopeField::Own(Some(""))),
    ("cwd", EnvelopeField::Cwd),
    ("permission_mode", EnvelopeField::Own(None)),
    ("hook_event_name", EnvelopeField::EventName),
];

/// Fields without a canonical name that hosts of other dialects may have, in the family of Claude Code.
pub(super) const OWN_FIELDS: &[&str] = &["custom_instructions", "stop_hook_active", "last_assistant_message"];

/// The keys of Claude Code. It reads `once` in the front matter of skills only.
const KEYS: SettingsKeys = SettingsKeys {
    entry: &["matcher", "hooks"],
    hook: &[
        "type",
        "command",
        "args",
        "url",
        "headers",
        "allowedEnvVars",
        "prompt",
        "model",
        "timeout",
        "async",
        "asyncRewake",
        "rewakeMessage",
        "rewakeSummary",
        "if",
        "statusMessage",
        "shell",
        "name",
    ],
    beside_events: &[],
};

/// The dialect of Claude Code.
pub(super) static CLAUDE: NativeDialect = NativeDialect {
    name: DialectName::Claude,
    rows: ROWS,
    fields: FIELDS,
    spelling: Spelling::ONE,
    envelope_fields: ENVELOPE_FIELDS,
    roots_field: None,
    default_session: None,
    own_fields: OWN_FIELDS,
    host_variables: agent_variables::CLAUDE.given,
    prompt_field: Some("prompt_id"),
    settings: SettingsFormat {
        files: &[
            SettingsFile {
                scope: Scope::Managed,
                location: SettingsLocation::System("claude-code/managed-settings.json"),
            },
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".claude/settings.json") },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".claude/settings.json"),
            },
            SettingsFile {
                scope: Scope::Local,
                location: SettingsLocation::Workspace(".claude/settings.local.json"),
            },
        ],
        unread: &[],
        bare_file: None,
        beside_json: BesideJson::LargeNumbers,
        unread_by_agent: UnreadByAgent::None,
        types: &[HandlerKind::Command, HandlerKind::Http, HandlerKind::Prompt, HandlerKind::Agent],
        matcher_syntax: MatcherSyntax::ListOrPattern,
        matcher: exact_list_or_regex,
        timeouts: DefaultTimeouts {
            unit: TimeUnit::Seconds,
            usual: Duration::from_mins(10),
            prompt: Duration::from_secs(30),
            agent: Duration::from_mins(1),
            of_events: &[("UserPromptSubmit", Duration::from_secs(30))],
            of_http: None,
            are_refusals: false,
        },
        duplicates: DuplicateHooks::RunOnce,
        shared: &[],
        project_variables: agent_variables::CLAUDE.project,
        keys: KEYS,
        shell: Shell::Sh,
        directory: StartDirectory::Workspace,
        identity: HookIdentity::Handler,
        disable: DisableSyntax::All("disableAllHooks"),
        plugins: PluginFormat::Plugins(&PLUGINS),
        managed_only: Some("allowManagedHooksOnly"),
    },
    ends_input_with_newline: true,
    goes_on_in_background,
    environment: |draft, place| {
        let mut variables = project_directory(&["CLAUDE_PROJECT_DIR"], place);
        let event = draft.event();
        if event.dialect == DialectName::Claude {
            variables.extend(event.environment.iter().map(|(name, value)| (*name, value.to_string())));
        }
        variables
    },
    response_format: judgement_format,
    read_reply: |_, row, hook, raw| read(row, hook, raw),
    write_response: write,
    apply_patch: replace,
    translate: |_, _, _| None,
    combine: |_, _, _, reply| reply,
    ends_chain: |_| &[Verdict::Block, Verdict::Halt],
};

/// Variables that hold the project's directory.
pub(super) fn project_directory(names: &[&'static str], place: &Workspace) -> Vec<(&'static str, String)> {
    names.iter().map(|name| (*name, place.root.display().to_string())).collect()
}

/// A patch replaces the current value.
#[expect(clippy::unnecessary_wraps, reason = "all ways of joining have one type")]
pub(super) fn replace(_: Target, _: Option<&Json>, patch: &Json) -> Result<Json, JsonError> {
    Ok(patch.clone())
}

/// The placeholder for the envelope in a prompt.
const ARGUMENTS: &str = "$ARGUMENTS";

/// The format of an answer, for every event.
pub(super) fn judgement_format(_: &EventRow) -> ResponseFormat {
    let instructions = "Answer with one JSON object and nothing else: {\"ok\": true} if what is asked for holds and \
                        the agent may go on, or {\"ok\": false, \"reason\": \"why, for the agent\"} if not.";
    ResponseFormat {
        instructions: instructions.to_owned(),
        schema: json!({
            "type": "object",
            "properties": { "ok": { "type": "boolean" }, "reason": { "type": "string" } },
            "required": ["ok"],
            "additionalProperties": false,
        }),
        placeholder: Some(ARGUMENTS),
    }
}

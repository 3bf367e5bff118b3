//! What is so in Claude Code: its events, its fields, its files. Refuses to hold any code that reads or writes.

use std::time::Duration;

use super::{FailingJson, Words, judgement, read, write};
use crate::{
    dialect::{
        native::{Frame, Native},
        row::{
            Looks::{Fact, Field, FileName, Nowhere},
            Row, rows,
        },
        settings::{
            Form, Keys, Levels, Place, Repeats, Same, SettingsFacts, SettingsFile, Shell, Switches, Timeouts,
            Unit, exact_list_or_regex,
        },
    },
    model::{DialectName, HandlerKind, Json, JsonError, Scope, Target, Verdict, Workspace},
};

/// Its 31 events: the name, the kind, what matchers look at, how hooks run, what becomes of equal verdicts, what
/// a block means, what plain text on standard output means, whether hosts take words for the model, how often
/// hooks run, and what they may change.
const ROWS: &[Row] = rows! {
    "SessionStart" SessionStarted Fact, Parallel Strictest, Nothing, Told Taken, Always, [];
    "Setup" HostEvent Field("trigger"), Parallel Strictest, Nothing, Ignored Taken, Always, [];
    "SessionEnd" SessionEnded Fact, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "UserPromptSubmit" PromptSubmitted Nowhere, Parallel Strictest, Prevents, Told Taken, Always, [];
    "UserPromptExpansion" HostEvent Field("command_name"), Parallel Strictest, Nothing, Ignored Taken, Always, [];
    "PreToolUse" BeforeToolDispatch Fact, Parallel Strictest, Prevents, Ignored Taken, Always, [RewriteToolRequest];
    "PermissionRequest" PermissionRequested Fact, Parallel Strictest, Denies, Ignored NoPlace, Always, [RewriteToolRequest];
    "PermissionDenied" HostEvent Field("tool_name"), Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "PostToolUse" AfterToolDispatch Fact, Parallel Strictest, Tells, Ignored Taken, Always, [RewriteToolResponse SuppressOutput];
    "PostToolUseFailure" ToolFailed Fact, Parallel Strictest, Tells, Ignored Taken, Always, [];
    "PostToolBatch" HostEvent Nowhere, Parallel Strictest, Prevents, Ignored Taken, Always, [];
    "Notification" Notification Fact, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "MessageDisplay" HostEvent Nowhere, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "Stop" AgentStopping Nowhere, Parallel Strictest, Prevents, Ignored NoPlace, Always, [];
    "StopFailure" RunFailed Nowhere, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "SubagentStart" SubagentStarted Fact, Parallel Strictest, Nothing, Ignored Taken, Always, [];
    "SubagentStop" SubagentStopping Fact, Parallel Strictest, Prevents, Ignored NoPlace, Always, [];
    "TaskCreated" HostEvent Nowhere, Parallel Strictest, PreventsByExit, Ignored NoPlace, Always, [];
    "TaskCompleted" HostEvent Nowhere, Parallel Strictest, PreventsByExit, Ignored NoPlace, Always, [];
    "TeammateIdle" HostEvent Nowhere, Parallel Strictest, PreventsByExit, Ignored NoPlace, Always, [];
    "PreCompact" BeforeContextCompact Fact, Parallel Strictest, Prevents, Ignored NoPlace, Always, [];
    "PostCompact" AfterContextCompact Fact, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "InstructionsLoaded" HostEvent Field("load_reason"), Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "ConfigChange" HostEvent Field("source"), Parallel Strictest, Prevents, Ignored NoPlace, Always, [];
    "CwdChanged" HostEvent Nowhere, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "DirectoryAdded" HostEvent Nowhere, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "FileChanged" HostEvent FileName("file_path"), Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "WorktreeCreate" HostEvent Nowhere, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "WorktreeRemove" HostEvent Nowhere, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "Elicitation" HostEvent Field("mcp_server_name"), Parallel Strictest, Declines, Ignored NoPlace, Always, [];
    "ElicitationResult" HostEvent Field("mcp_server_name"), Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
};

/// Fields with a canonical name, in the family of Claude Code.
pub(in crate::dialect) const FIELDS: &[(&str, &str)] = &[
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
pub(in crate::dialect) const FRAME: &[(&str, Frame)] = &[
    ("session_id", Frame::Session),
    ("transcript_path", Frame::Own(Some(""))),
    ("cwd", Frame::Cwd),
    ("permission_mode", Frame::Own(None)),
    ("hook_event_name", Frame::EventName),
];

/// Fields without a canonical name that hosts of other dialects may have, in the family of Claude Code.
pub(in crate::dialect) const OWN_FIELDS: &[&str] =
    &["custom_instructions", "stop_hook_active", "last_assistant_message"];

/// The keys of settings files, in the family of Claude Code.
pub(in crate::dialect) const KEYS: Keys = Keys {
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
        "once",
        "if",
        "statusMessage",
        "shell",
        "name",
    ],
};

const WORDS: Words = Words { input: "updatedInput", failing_json: FailingJson::Counts, defer: Some("defer") };

/// The dialect of Claude Code.
pub(in crate::dialect) static CLAUDE: Native = Native {
    name: DialectName::Claude,
    rows: ROWS,
    fields: FIELDS,
    frame: FRAME,
    own_fields: OWN_FIELDS,
    settings: SettingsFacts {
        files: &[
            SettingsFile { scope: Scope::Managed, place: Place::System("claude-code/managed-settings.json") },
            SettingsFile { scope: Scope::User, place: Place::Home(".claude/settings.json") },
            SettingsFile { scope: Scope::Project, place: Place::Workspace(".claude/settings.json") },
            SettingsFile { scope: Scope::Local, place: Place::Workspace(".claude/settings.local.json") },
        ],
        levels: Levels::AddUp,
        types: &[HandlerKind::Command, HandlerKind::Http, HandlerKind::Prompt, HandlerKind::Agent],
        form: Form::ListOrPattern,
        matcher: exact_list_or_regex,
        timeouts: Timeouts {
            unit: Unit::Seconds,
            usual: Duration::from_mins(10),
            prompt: Duration::from_secs(30),
            agent: Duration::from_mins(1),
            of_events: &[("UserPromptSubmit", Duration::from_secs(30))],
        },
        repeats: Repeats::RunOnce,
        common: &[],
        project_variables: &["CLAUDE_PROJECT_DIR"],
        keys: KEYS,
        shell: Shell::Sh,
        same: Same::Handler,
        switches: Switches::All("disableAllHooks"),
    },
    environment: |_, place| project_directory(&["CLAUDE_PROJECT_DIR"], place),
    response_format: judgement,
    read: |_, row, hook, raw| read(&WORDS, row, hook, raw),
    write: |_, row, outcome| write(&WORDS, row, outcome),
    fold: replace,
    translate: |_, _, _| None,
    join: |_, _, _, reply| reply,
    ends_chain: |_| &[Verdict::Block, Verdict::Halt],
};

/// Variables that hold the project's directory.
pub(in crate::dialect) fn project_directory(
    names: &[&'static str],
    place: &Workspace,
) -> Vec<(&'static str, String)> {
    names.iter().map(|name| (*name, place.root.display().to_string())).collect()
}

/// A patch takes the place of what was there.
#[expect(clippy::unnecessary_wraps, reason = "all ways of joining have one type")]
pub(in crate::dialect) fn replace(_: Target, _: Option<&Json>, patch: &Json) -> Result<Json, JsonError> {
    Ok(patch.clone())
}

//! What is so in ClawdCode: its events, its fields, its files. Refuses to hold any code that reads or writes.

use std::time::Duration;

use super::{answer::write, matcher::parts, reply::read, subject};
use crate::{
    dialect::{
        native::{Frame, Native},
        row::{
            Looks::{Fact, Nowhere},
            Row, rows,
        },
        settings::{
            CommonWord, Form, Keys, Levels, Means, Place, Repeats, Same, SettingsFacts, SettingsFile, Shell,
            Switches, Timeouts, Unit,
        },
    },
    model::{
        DialectName, Draft, EventKind, HandlerKind, ResponseFormat, Scope, Target, Verdict, Workspace,
        merge_one_level,
    },
};

/// Its events; the columns are those of Claude Code's table.
const ROWS: &[Row] = rows! {
    "SessionStart" SessionStarted Nowhere, Parallel Strictest, Nothing, Ignored Taken, Always, [];
    "SessionEnd" SessionEnded Nowhere, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "UserPromptSubmit" PromptSubmitted Nowhere, Parallel Strictest, PreventsByExit, Told Taken, Always, [];
    "PreToolUse" BeforeToolDispatch Fact, Serial Strictest, Denies, Ignored NoPlace, Always, [RewriteToolRequest];
    "PermissionRequest" PermissionRequested Fact, Serial Strictest, Denies, Ignored NoPlace, Always, [RewriteToolRequest];
    "PostToolUse" AfterToolDispatch Fact, Parallel Strictest, Tells, Told Taken, Always, [];
    "PostToolUseFailure" ToolFailed Fact, Parallel Strictest, Tells, Told Taken, Always, [];
    "Notification" Notification Nowhere, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "Stop" AgentStopping Nowhere, Serial Strictest, Prevents, Ignored NoPlace, Always, [];
    "SubagentStop" SubagentStopping Nowhere, Serial Strictest, Prevents, Ignored NoPlace, Always, [];
    "Compaction" BeforeContextCompact Nowhere, Serial Strictest, Prevents, Ignored NoPlace, Always, [];
};

/// Fields with a canonical name. A prompt and a result each have two names, since its own hooks know the second.
const FIELDS: &[(&str, &str)] = &[
    ("session_id", "session_id"),
    ("project_dir", "cwd"),
    ("tool_name", "tool_name"),
    ("tool_use_id", "tool_call_id"),
    ("tool_input", "tool_input"),
    ("tool_response", "tool_output"),
    ("tool_output", "tool_output"),
    ("prompt", "prompt"),
    ("prompt_content", "prompt"),
    ("source", "source"),
    ("reason", "reason"),
    ("trigger", "trigger"),
    ("message", "message"),
    ("notification_type", "notification_type"),
    ("agent_type", "agent_type"),
];

/// The first fields of an envelope.
const FRAME: &[(&str, Frame)] = &[
    ("hook_event_name", Frame::EventName),
    ("hook_execution_id", Frame::Uuid),
    ("timestamp", Frame::Timestamp),
    ("project_dir", Frame::Project),
    ("session_id", Frame::Session),
    ("permission_mode", Frame::Own(None)),
];

/// What stands beside the events.
const COMMON: &[CommonWord] = &[
    CommonWord { key: "enabled", variable: "HOOKYARD_CLAWD_ENABLED", means: Means::Enabled },
    CommonWord {
        key: "defaultTimeout",
        variable: "HOOKYARD_CLAWD_DEFAULT_TIMEOUT",
        means: Means::Timeout(Unit::Seconds),
    },
    CommonWord {
        key: "timeoutBehavior",
        variable: "HOOKYARD_CLAWD_TIMEOUT_BEHAVIOR",
        means: Means::OnTimeout,
    },
    CommonWord { key: "failureBehavior", variable: "HOOKYARD_CLAWD_FAILURE_BEHAVIOR", means: Means::OnError },
    CommonWord {
        key: "maxConcurrentHooks",
        variable: "HOOKYARD_CLAWD_MAX_CONCURRENT_HOOKS",
        means: Means::Together,
    },
];

/// The longest path that commands get in a variable, in bytes: the system's own limit. One that could not be set
/// would keep the hook from starting.
const LONGEST_PATH: usize = 4096;

/// The dialect of ClawdCode.
pub(in crate::dialect) static CLAWD: Native = Native {
    name: DialectName::Clawd,
    rows: ROWS,
    fields: FIELDS,
    frame: FRAME,
    own_fields: &[],
    settings: SettingsFacts {
        files: &[
            SettingsFile { scope: Scope::User, place: Place::Home(".clawdcode/settings.json") },
            SettingsFile { scope: Scope::Project, place: Place::Workspace(".clawdcode/settings.json") },
        ],
        levels: Levels::AddUp,
        types: &[HandlerKind::Command],
        form: Form::Parts,
        matcher: parts,
        timeouts: Timeouts {
            unit: Unit::Seconds,
            usual: Duration::from_mins(1),
            prompt: Duration::from_mins(1),
            agent: Duration::from_mins(1),
            of_events: &[],
        },
        repeats: Repeats::RunEach,
        common: COMMON,
        project_variables: &["PROJECT_DIR"],
        keys: Keys {
            entry: &["name", "matcher", "hooks"],
            hook: &["type", "command", "timeout", "statusMessage"],
        },
        shell: Shell::Sh,
        same: Same::Handler,
        switches: Switches::All("disableAllHooks"),
    },
    environment,
    // No model answers for its hooks: they are commands.
    response_format: |_| ResponseFormat::default(),
    read: |_, row, hook, raw| read(row, hook, raw),
    write: |_, row, outcome| write(row, outcome),
    fold: |_: Target, current, patch| merge_one_level(current, patch),
    translate: |_, _, _| None,
    join: |_, _, _, reply| reply,
    ends_chain: |kind| match kind {
        EventKind::BeforeToolDispatch => &[Verdict::Ask, Verdict::Block, Verdict::Halt],
        EventKind::PermissionRequested => &[Verdict::Allow, Verdict::Block, Verdict::Halt],
        // What runs in parallel is heard to the end, also where it runs in several stages.
        EventKind::PromptSubmitted | EventKind::AfterToolDispatch => &[Verdict::Halt],
        _ => &[Verdict::Block, Verdict::Halt],
    },
};

fn environment(draft: &Draft, place: &Workspace) -> Vec<(&'static str, String)> {
    let event = draft.event();
    let name = CLAWD.row(event).map_or(event.kind.as_str(), |row| row.name);
    let path = draft.target(Target::ToolInput).and_then(subject::path);
    let path = path.filter(|path| path.len() <= LONGEST_PATH && !path.contains('\0'));
    let mut variables = vec![
        ("HOOK_EVENT", name.to_owned()),
        ("SESSION_ID", event.session_id.to_string()),
        ("PROJECT_DIR", place.root.display().to_string()),
    ];
    variables.extend(path.map(|path| ("FILE_PATH", path)));
    variables
}

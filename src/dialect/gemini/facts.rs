//! What is so in Gemini CLI: its events, its fields, its files. Refuses to hold any code that reads or writes.

use std::time::Duration;

use super::{answer::write, join::join, parts::translate, reply::read};
use crate::{
    dialect::{
        native::{Frame, Native},
        row::{
            Looks::{Fact, Nowhere},
            Row, rows,
        },
        settings::{
            Form, Keys, Levels, Place, Repeats, Same, SettingsFacts, SettingsFile, Shell, Switches, Timeouts,
            Unit, exact_or_regex,
        },
    },
    model::{DialectName, Draft, HandlerKind, ResponseFormat, Scope, Verdict, Workspace},
};

/// Its 11 events; the columns are those of Claude Code's table. Plain text never depends on the event.
const ROWS: &[Row] = rows! {
    "SessionStart" SessionStarted Fact, Parallel Combined, Nothing, Ignored Taken, Always, [];
    "SessionEnd" SessionEnded Fact, Parallel CombinedLatestNotes, Nothing, Ignored Taken, Always, [];
    "BeforeAgent" PromptSubmitted Nowhere, Parallel Combined, Prevents, Ignored Taken, Always, [RewritePrompt];
    "AfterAgent" AgentStopping Nowhere, Parallel Combined, Prevents, Ignored Taken, Always, [];
    "BeforeModel" BeforeModelCall Nowhere, Parallel CombinedLatestNotes, Prevents, Ignored Taken, Always, [RewriteModelRequest];
    "AfterModel" AfterModelCall Nowhere, Parallel CombinedLatestNotes, Prevents, Ignored Taken, Always, [RewriteModelResponse];
    "BeforeToolSelection" BeforeToolSelection Nowhere, Parallel Combined, Nothing, Ignored Taken, Always, [RewriteToolConfig];
    "BeforeTool" BeforeToolDispatch Fact, Parallel Combined, Prevents, Ignored Taken, Always, [RewriteToolRequest];
    "AfterTool" AfterToolDispatch Fact, Parallel Combined, Tells, Ignored Taken, Always, [SuppressOutput];
    "PreCompress" BeforeContextCompact Fact, Parallel CombinedLatestNotes, Nothing, Ignored Taken, Always, [];
    "Notification" Notification Fact, Parallel CombinedLatestNotes, Nothing, Ignored Taken, Always, [];
};

/// Fields with a canonical name. One with a dot in it is a part of another.
const FIELDS: &[(&str, &str)] = &[
    ("session_id", "session_id"),
    ("cwd", "cwd"),
    ("tool_name", "tool_name"),
    ("tool_input", "tool_input"),
    ("tool_response", "tool_output"),
    ("prompt", "prompt"),
    ("llm_request", "model_request"),
    ("llm_request.model", "model_ref"),
    ("llm_response", "model_response"),
    ("source", "source"),
    ("reason", "reason"),
    ("trigger", "trigger"),
    ("notification_type", "notification_type"),
    ("message", "message"),
];

/// The first fields of an envelope.
const FRAME: &[(&str, Frame)] = &[
    ("session_id", Frame::Session),
    ("transcript_path", Frame::Own(Some(""))),
    ("cwd", Frame::Cwd),
    ("hook_event_name", Frame::EventName),
    ("timestamp", Frame::Timestamp),
];

/// The dialect of Gemini CLI.
pub(in crate::dialect) static GEMINI: Native = Native {
    name: DialectName::Gemini,
    rows: ROWS,
    fields: FIELDS,
    frame: FRAME,
    own_fields: &["stop_hook_active"],
    settings: SettingsFacts {
        files: &[
            SettingsFile { scope: Scope::Project, place: Place::Workspace(".gemini/settings.json") },
            SettingsFile { scope: Scope::User, place: Place::Home(".gemini/settings.json") },
            SettingsFile { scope: Scope::Managed, place: Place::System("gemini-cli/settings.json") },
        ],
        levels: Levels::AddUp,
        types: &[HandlerKind::Command],
        form: Form::PatternOrText,
        matcher: exact_or_regex,
        timeouts: Timeouts {
            unit: Unit::Milliseconds,
            usual: Duration::from_mins(1),
            prompt: Duration::from_mins(1),
            agent: Duration::from_mins(1),
            of_events: &[],
        },
        repeats: Repeats::RunOnce,
        common: &[],
        project_variables: &["GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
        keys: Keys {
            entry: &["matcher", "sequential", "hooks"],
            hook: &["type", "command", "name", "description", "timeout", "env"],
        },
        shell: Shell::Bash,
        same: Same::NameAndHandler,
        switches: Switches::AllOrSome("hooksConfig"),
    },
    environment,
    response_format: |_| ResponseFormat::default(),
    read: |_, row, hook, raw| read(row, hook, raw),
    write,
    translate,
    fold: |_, _, patch| Ok(patch.clone()),
    join,
    ends_chain: |_| &[Verdict::Halt],
};

fn environment(draft: &Draft, place: &Workspace) -> Vec<(&'static str, String)> {
    let (event, root) = (draft.event(), place.root.display().to_string());
    // No variable can hold a NUL character.
    let cwd = event.cwd.as_deref().filter(|cwd| !cwd.contains('\0')).unwrap_or(&root).to_owned();
    vec![
        ("GEMINI_PROJECT_DIR", root.clone()),
        ("GEMINI_CWD", cwd),
        ("GEMINI_SESSION_ID", event.session_id.to_string()),
        ("CLAUDE_PROJECT_DIR", root),
    ]
}

//! The dialect of ClawdCode: its events, fields and settings files.

mod matcher;
mod reply;
mod response;

use std::time::Duration;

use matcher::{parts, path};
use reply::read;
use response::write;

use crate::{
    dialect::{
        agent_variables,
        event_table::{
            EventRow,
            MatchSource::{Fact, Unmatched},
            rows,
        },
        native::{EnvelopeField, NativeDialect, Spelling},
        settings::{
            BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, HookIdentity, MatcherSyntax,
            PluginFormat, SettingsFile, SettingsFormat, SettingsKeys, SettingsLocation, SharedKey,
            SharedSetting, Shell, StartDirectory, TimeUnit, UnreadByAgent,
        },
    },
    model::{
        DialectName, Draft, EventKind, HandlerKind, ResponseFormat, Scope, Target, Verdict, Workspace,
        merge_one_level,
    },
};

/// Its events; the columns are those of Claude Code's table.
const ROWS: &[EventRow] = rows! {
    "SessionStart" SessionStarted Unmatched, Parallel Strictest, Nothing, Ignored Taken, [];
    "SessionEnd" SessionEnded Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "UserPromptSubmit" PromptSubmitted Unmatched, Parallel Strictest, PreventsByExit, Told Taken, [];
    "PreToolUse" BeforeToolDispatch Fact, Serial Strictest, Denies, Ignored NoPlace, [RewriteToolRequest];
    "PermissionRequest" PermissionRequested Fact, Serial Strictest, Denies, Ignored NoPlace, [RewriteToolRequest];
    "PostToolUse" AfterToolDispatch Fact, Parallel Strictest, Tells, Told Taken, [];
    "PostToolUseFailure" ToolFailed Fact, Parallel Strictest, Tells, Told Taken, [];
    "Notification" Notification Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "Stop" AgentStopping Unmatched, Serial Strictest, Prevents, Ignored NoPlace, [];
    "SubagentStop" SubagentStopping Unmatched, Serial Strictest, Prevents, Ignored NoPlace, [];
    "Compaction" BeforeContextCompact Unmatched, Serial Strictest, Prevents, Ignored NoPlace, [];
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
const ENVELOPE_FIELDS: &[(&str, EnvelopeField)] = &[
    ("hook_event_name", EnvelopeField::EventName),
    ("hook_execution_id", EnvelopeField::Uuid),
    ("timestamp", EnvelopeField::Timestamp),
    ("project_dir", EnvelopeField::Project),
    ("session_id", EnvelopeField::Session),
    ("permission_mode", EnvelopeField::Own(None)),
];

/// The keys beside the events.
const SHARED_KEYS: &[SharedKey] = &[
    SharedKey { key: "enabled", variable: "HOOKYARD_CLAWD_ENABLED", setting: SharedSetting::Enabled },
    SharedKey {
        key: "defaultTimeout",
        variable: "HOOKYARD_CLAWD_DEFAULT_TIMEOUT",
        setting: SharedSetting::Timeout(TimeUnit::Seconds),
    },
    SharedKey {
        key: "timeoutBehavior",
        variable: "HOOKYARD_CLAWD_TIMEOUT_BEHAVIOR",
        setting: SharedSetting::OnTimeout,
    },
    SharedKey {
        key: "failureBehavior",
        variable: "HOOKYARD_CLAWD_FAILURE_BEHAVIOR",
        setting: SharedSetting::OnError,
    },
    SharedKey {
        key: "maxConcurrentHooks",
        variable: "HOOKYARD_CLAWD_MAX_CONCURRENT_HOOKS",
        setting: SharedSetting::MaxParallel,
    },
];

/// The longest path that commands get in a variable, in bytes: the system's own limit. One that could not be set
/// would keep the hook from starting.
const LONGEST_PATH: usize = 4096;

/// The dialect of ClawdCode.
pub(super) static CLAWD: NativeDialect = NativeDialect {
    name: DialectName::Clawd,
    rows: ROWS,
    fields: FIELDS,
    spelling: Spelling::ONE,
    envelope_fields: ENVELOPE_FIELDS,
    roots_field: None,
    default_session: None,
    own_fields: &[],
    host_variables: agent_variables::CLAWD.given,
    prompt_field: None,
    settings: SettingsFormat {
        files: &[
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".clawdcode/config.json") },
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".clawdcode/settings.json") },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".clawdcode/config.json"),
            },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".clawdcode/settings.json"),
            },
            SettingsFile {
                scope: Scope::Local,
                location: SettingsLocation::Workspace(".clawdcode/settings.local.json"),
            },
        ],
        unread: &[],
        bare_file: None,
        beside_json: BesideJson::Nothing,
        unread_by_agent: UnreadByAgent::Marked,
        types: &[HandlerKind::Command],
        matcher_syntax: MatcherSyntax::Parts,
        matcher: parts,
        timeouts: DefaultTimeouts {
            unit: TimeUnit::Seconds,
            usual: Duration::from_mins(1),
            prompt: Duration::from_mins(1),
            agent: Duration::from_mins(1),
            of_events: &[],
            of_http: None,
            are_refusals: false,
        },
        duplicates: DuplicateHooks::RunEach,
        shared: SHARED_KEYS,
        project_variables: agent_variables::CLAWD.project,
        keys: SettingsKeys {
            entry: &["name", "matcher", "hooks"],
            hook: &["type", "command", "timeout", "statusMessage"],
            beside_events: &[],
        },
        shell: Shell::Sh,
        directory: StartDirectory::Workspace,
        identity: HookIdentity::Handler,
        disable: DisableSyntax::All("disableAllHooks"),
        plugins: PluginFormat::None,
        managed_only: None,
    },
    ends_input_with_newline: false,
    goes_on_in_background: |_| false,
    environment,
    // No model answers for its hooks: they are commands.
    response_format: |_| ResponseFormat::default(),
    read_reply: |_, row, hook, raw| read(row, hook, raw),
    write_response: |_, row, outcome| write(row, outcome),
    apply_patch: |_: Target, current, patch| merge_one_level(current, patch),
    translate: |_, _, _| None,
    combine: |_, _, _, reply| reply,
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
    let path = draft.target(Target::ToolInput).and_then(path);
    let path = path.filter(|path| path.len() <= LONGEST_PATH && !path.contains('\0'));
    let mut variables = vec![
        ("HOOK_EVENT", name.to_owned()),
        ("SESSION_ID", event.session_id.to_string()),
        ("PROJECT_DIR", place.root.display().to_string()),
    ];
    variables.extend(path.map(|path| ("FILE_PATH", path)));
    variables
}

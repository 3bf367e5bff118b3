//! The dialect of Codex: Claude Code's words, of which it refuses each that it does not know. Its events, fields and
//! settings files.

mod reply;
mod response;

use std::time::Duration;

pub(super) use reply::combined_decision;

use super::{
    agent_variables,
    claude::{FIELDS, OWN_FIELDS, judgement_format, replace},
    event_table::{
        EventRow,
        MatchSource::{Fact, Unmatched},
        rows,
    },
    native::{EnvelopeField, NativeDialect, Spelling},
    settings::{
        BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, HookIdentity, MatcherSyntax,
        PluginFormat, SettingsFile, SettingsFormat, SettingsKeys, SettingsLocation, Shell, StartDirectory,
        TimeUnit, UnreadByAgent, exact_names_or_regex,
    },
};
use crate::model::{DialectName, HandlerKind, Scope, Verdict};

/// Its events; the columns are those of Claude Code's table.
const ROWS: &[EventRow] = rows! {
    "SessionStart" SessionStarted Fact, Parallel Strictest, Nothing, Told Taken, [];
    "SessionEnd" SessionEnded Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "UserPromptSubmit" PromptSubmitted Unmatched, Parallel Strictest, Prevents, Told Taken, [];
    "PreModelRequest" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "PostModelRequest" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "PreToolUse" BeforeToolDispatch Fact, Parallel Strictest, Prevents, Ignored Taken, [RewriteToolRequest];
    "PermissionRequest" PermissionRequested Fact, Parallel Strictest, Denies, Ignored NoPlace, [];
    "PostToolUse" AfterToolDispatch Fact, Parallel Combined, Tells, Ignored Taken, [];
    "PreCompact" BeforeContextCompact Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "PostCompact" AfterContextCompact Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "SubagentStart" SubagentStarted Fact, Parallel Strictest, Nothing, Told Taken, [];
    "SubagentStop" SubagentStopping Fact, Parallel Combined, Prevents, Ignored NoPlace, [];
    "Stop" AgentStopping Unmatched, Parallel Combined, Prevents, Ignored NoPlace, [];
    "Interrupt" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
};

/// The first fields of an envelope.
const ENVELOPE_FIELDS: &[(&str, EnvelopeField)] = &[
    ("session_id", EnvelopeField::Session),
    ("turn_id", EnvelopeField::Own(None)),
    ("transcript_path", EnvelopeField::Own(Some(""))),
    ("cwd", EnvelopeField::Cwd),
    ("hook_event_name", EnvelopeField::EventName),
    ("model", EnvelopeField::Own(Some(""))),
    ("permission_mode", EnvelopeField::Own(Some("default"))),
];

/// The longest that it waits for hooks on these events.
const HURRIED: Duration = Duration::from_secs(3);

/// Names of Claude Code's tools that matchers may use, each with the tool that they mean.
const TOOL_ALIASES: &[(&str, &str)] =
    &[("Write", "apply_patch"), ("Edit", "apply_patch"), ("Agent", "spawn_agent")];

/// The dialect of Codex.
pub(super) static CODEX: NativeDialect = NativeDialect {
    name: DialectName::Codex,
    rows: ROWS,
    fields: FIELDS,
    spelling: Spelling::ONE,
    envelope_fields: ENVELOPE_FIELDS,
    roots_field: None,
    default_session: None,
    own_fields: OWN_FIELDS,
    prompt_field: Some("turn_id"),
    settings: SettingsFormat {
        files: &[
            SettingsFile { scope: Scope::Managed, location: SettingsLocation::System("codex/hooks.json") },
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".codex/hooks.json") },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".codex/hooks.json"),
            },
        ],
        unread: &[
            SettingsFile { scope: Scope::Managed, location: SettingsLocation::System("codex/config.toml") },
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".codex/config.toml") },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".codex/config.toml"),
            },
        ],
        bare_file: None,
        beside_json: BesideJson::Nothing,
        unread_by_agent: UnreadByAgent::Marked,
        types: &[HandlerKind::Command],
        matcher_syntax: MatcherSyntax::ListOrPattern,
        matcher: |value, row| exact_names_or_regex(value, row, TOOL_ALIASES),
        timeouts: DefaultTimeouts {
            unit: TimeUnit::Seconds,
            usual: Duration::from_mins(10),
            prompt: Duration::from_mins(10),
            agent: Duration::from_mins(10),
            of_events: &[("SessionEnd", HURRIED), ("Interrupt", HURRIED)],
            of_http: None,
            are_refusals: false,
        },
        duplicates: DuplicateHooks::RunEach,
        shared: &[],
        project_variables: agent_variables::CODEX.project,
        keys: SettingsKeys {
            entry: &["matcher", "hooks"],
            hook: &["type", "command", "commandWindows", "timeout", "async", "statusMessage"],
            beside_events: &[],
        },
        shell: Shell::Bash,
        directory: StartDirectory::Workspace,
        identity: HookIdentity::Handler,
        disable: DisableSyntax::Never,
        plugins: PluginFormat::None,
        managed_only: None,
    },
    ends_input_with_newline: false,
    host_variables: agent_variables::CODEX.given,
    goes_on_in_background: |_| false,
    environment: |draft, _| {
        let event = draft.event();
        let is_home = event.dialect == DialectName::Codex;
        let variables = event.environment.iter().filter(|_| is_home);
        variables.map(|(name, value)| (*name, value.to_string())).collect()
    },
    response_format: judgement_format,
    read_reply: |native, row, _, raw| reply::read(native.rows, row, raw),
    write_response: response::write,
    apply_patch: replace,
    translate: |_, _, _| None,
    combine: |_, _, earlier, mut reply| {
        reply.decision = combined_decision(earlier, reply.decision, "\n\n");
        reply
    },
    ends_chain: |_| &[Verdict::Block, Verdict::Halt],
};

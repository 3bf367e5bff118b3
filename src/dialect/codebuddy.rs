//! The dialect of CodeBuddy: the words of Claude Code's family, by rules of its own.

mod reply;
mod response;

use std::time::Duration;

use super::{
    agent_variables,
    claude::{ENVELOPE_FIELDS, FIELDS, OWN_FIELDS, judgement_format, project_directory, replace},
    codex::combined_decision,
    event_table::{
        EventRow,
        MatchSource::{Fact, Unmatched},
        rows,
    },
    native::{NativeDialect, Spelling},
    output::goes_on_in_background,
    settings::{
        BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, HookIdentity, MatcherSyntax,
        PluginFormat, SettingsFile, SettingsFormat, SettingsKeys, SettingsLocation, Shell, StartDirectory,
        TimeUnit, UnreadByAgent, search_or_word,
    },
};
use crate::model::{DialectName, Draft, HandlerKind, Scope, Target, Verdict, Workspace, merge_one_level};

/// Its 28 events; the columns are those of Claude Code's table.
const ROWS: &[EventRow] = rows! {
    "SessionStart" SessionStarted Fact, Parallel Strictest, Nothing, Told Taken, [];
    "Setup" HostEvent Unmatched, Parallel Strictest, Nothing, Told Taken, [];
    "SessionEnd" SessionEnded Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "UserPromptSubmit" PromptSubmitted Unmatched, Parallel Combined, Prevents, Told Taken, [];
    "PreToolUse" BeforeToolDispatch Fact, Parallel Combined, Prevents, Ignored NoPlace, [RewriteToolRequest];
    "PermissionRequest" PermissionRequested Unmatched, Parallel Strictest, Denies, Ignored NoPlace, [RewriteToolRequest];
    "PermissionDenied" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "PostToolUse" AfterToolDispatch Fact, Parallel Strictest, Nothing, Ignored Taken, [];
    "PostToolUseFailure" ToolFailed Unmatched, Parallel Strictest, Nothing, Ignored Taken, [];
    "Notification" Notification Fact, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "Stop" AgentStopping Unmatched, Parallel Combined, Prevents, Ignored NoPlace, [];
    "StopFailure" RunFailed Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "FinalStop" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "SubagentStart" SubagentStarted Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "SubagentStop" SubagentStopping Unmatched, Parallel Combined, Prevents, Ignored NoPlace, [];
    "TaskCreated" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "TaskCompleted" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "TeammateIdle" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "PreCompact" BeforeContextCompact Fact, Parallel Strictest, Nothing, Told Printed, [];
    "PostCompact" AfterContextCompact Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "InstructionsLoaded" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "ConfigChange" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "CwdChanged" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "FileChanged" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "WorktreeCreate" HostEvent Unmatched, Parallel Strictest, Prevents, Path NoPlace, [];
    "WorktreeRemove" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "Elicitation" HostEvent Unmatched, Parallel Strictest, Declines, Ignored NoPlace, [];
    "ElicitationResult" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
};

/// Which variables hold the project's directory.
const PROJECT: &[&str] = agent_variables::CODEBUDDY.project;

const KEYS: SettingsKeys = SettingsKeys {
    entry: &["matcher", "hooks"],
    hook: &[
        "type",
        "command",
        "url",
        "headers",
        "allowedEnvVars",
        "prompt",
        "model",
        "timeout",
        "once",
        "if",
        "statusMessage",
        "shell",
        "name",
    ],
    beside_events: &[],
};

/// The dialect of CodeBuddy.
pub(super) static CODEBUDDY: NativeDialect = NativeDialect {
    name: DialectName::CodeBuddy,
    rows: ROWS,
    fields: FIELDS,
    spelling: Spelling::ONE,
    envelope_fields: ENVELOPE_FIELDS,
    roots_field: None,
    default_session: Some("no-session"),
    own_fields: OWN_FIELDS,
    host_variables: agent_variables::CODEBUDDY.given,
    prompt_field: None,
    settings: SettingsFormat {
        files: &[
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".codebuddy/settings.json") },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".codebuddy/settings.json"),
            },
            SettingsFile {
                scope: Scope::Local,
                location: SettingsLocation::Workspace(".codebuddy/settings.local.json"),
            },
        ],
        unread: &[],
        bare_file: None,
        beside_json: BesideJson::CommentsAndCommas,
        unread_by_agent: UnreadByAgent::Marked,
        types: &[HandlerKind::Command, HandlerKind::Http, HandlerKind::Prompt, HandlerKind::Agent],
        matcher_syntax: MatcherSyntax::PatternOrText,
        matcher: |value, row| search_or_word(value, row, &[]),
        timeouts: DefaultTimeouts {
            unit: TimeUnit::Seconds,
            usual: Duration::from_mins(1),
            prompt: Duration::from_secs(30),
            agent: Duration::from_secs(30),
            of_events: &[],
            of_http: None,
            are_refusals: true,
        },
        duplicates: DuplicateHooks::RunOnce,
        shared: &[],
        project_variables: agent_variables::CODEBUDDY.project,
        keys: KEYS,
        shell: Shell::Sh,
        directory: StartDirectory::Workspace,
        identity: HookIdentity::Handler,
        disable: DisableSyntax::Never,
        plugins: PluginFormat::None,
        managed_only: None,
    },
    ends_input_with_newline: false,
    goes_on_in_background,
    environment,
    response_format: judgement_format,
    read_reply: |_, row, hook, raw| reply::read(row, hook, raw),
    write_response: |_, row, outcome| response::write(row, outcome),
    apply_patch: |target, current, patch| match target {
        Target::ToolInput => merge_one_level(current, patch),
        _ => replace(target, current, patch),
    },
    translate: |_, _, _| None,
    combine: |_, _, earlier, mut reply| {
        reply.decision = combined_decision(earlier, reply.decision, "\n");
        reply
    },
    ends_chain: |_| &[Verdict::Block, Verdict::Halt],
};

fn environment(draft: &Draft, place: &Workspace) -> Vec<(&'static str, String)> {
    let event = draft.event();
    let given = event.environment.iter().filter(|_| event.dialect == DialectName::CodeBuddy);
    let mut variables = project_directory(PROJECT, place);
    variables.extend(given.map(|(name, value)| (*name, value.to_string())));
    variables
}

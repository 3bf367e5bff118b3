//! The dialect of Droid, the agent of Factory: the words of Claude Code's family, of which it reads fewer.

mod reply;
mod response;

use std::time::Duration;

use super::{
    agent_variables,
    claude::{ENVELOPE_FIELDS, FIELDS, OWN_FIELDS, judgement_format, project_directory, replace},
    event_table::{
        EventRow,
        MatchSource::{Fact, Unmatched},
        rows,
    },
    native::{NativeDialect, Spelling},
    settings::{
        BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, HookIdentity, MatcherSyntax,
        PluginFormat, SettingsFile, SettingsFormat, SettingsKeys, SettingsLocation, Shell, StartDirectory,
        TimeUnit, UnreadByAgent, search_or_word,
    },
};
use crate::model::{DialectName, Draft, HandlerKind, Scope, Target, Verdict, Workspace, merge_one_level};

/// Its events; the columns are those of Claude Code's table.
const ROWS: &[EventRow] = rows! {
    "SessionStart" SessionStarted Fact, Parallel Strictest, Nothing, Told Taken, [];
    "SessionEnd" SessionEnded Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "UserPromptSubmit" PromptSubmitted Unmatched, Parallel Strictest, Prevents, Told Taken, [RewritePrompt];
    "PreToolUse" BeforeToolDispatch Fact, Parallel Strictest, Prevents, Ignored NoPlace, [RewriteToolRequest];
    "PostToolUse" AfterToolDispatch Fact, Parallel Strictest, Tells, Ignored Taken, [];
    "Notification" Notification Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "Stop" AgentStopping Unmatched, Parallel Strictest, Prevents, Ignored NoPlace, [];
    "SubagentStop" SubagentStopping Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "PreCompact" BeforeContextCompact Unmatched, Parallel Strictest, PreventsByExit, Ignored NoPlace, [];
};

/// Of the variables with the project's directory, the first is its own.
const PROJECT: &[&str] = agent_variables::DROID.project;

/// The dialect of Droid.
pub(super) static DROID: NativeDialect = NativeDialect {
    name: DialectName::Droid,
    rows: ROWS,
    fields: FIELDS,
    spelling: Spelling::ONE,
    envelope_fields: ENVELOPE_FIELDS,
    roots_field: None,
    default_session: None,
    own_fields: OWN_FIELDS,
    host_variables: agent_variables::DROID.given,
    prompt_field: None,
    settings: SettingsFormat {
        files: &[
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".factory/settings.json") },
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".factory/hooks.json") },
            SettingsFile {
                scope: Scope::User,
                location: SettingsLocation::Home(".factory/hooks/hooks.json"),
            },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".factory/settings.json"),
            },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".factory/hooks.json"),
            },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".factory/hooks/hooks.json"),
            },
        ],
        unread: &[],
        bare_file: Some("hooks.json"),
        beside_json: BesideJson::CommentsAndCommas,
        unread_by_agent: UnreadByAgent::None,
        types: &[HandlerKind::Command],
        matcher_syntax: MatcherSyntax::PatternOrText,
        matcher: |value, row| search_or_word(value, row, &[]),
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
        shared: &[],
        project_variables: agent_variables::DROID.project,
        keys: SettingsKeys {
            entry: &["matcher", "commandRegex", "hooks"],
            hook: &["type", "command", "timeout", "preserveRiskLevel"],
            beside_events: &["hooksDisabled", "showHookOutput"],
        },
        shell: Shell::Sh,
        directory: StartDirectory::Workspace,
        identity: HookIdentity::Handler,
        disable: DisableSyntax::BesideEvents("hooksDisabled"),
        plugins: PluginFormat::None,
        managed_only: None,
    },
    ends_input_with_newline: false,
    goes_on_in_background: |_| false,
    environment,
    response_format: judgement_format,
    read_reply: |_, row, hook, raw| reply::read(row, hook, raw),
    write_response: |_, row, outcome| response::write(row, outcome),
    apply_patch: |target, current, patch| match target {
        Target::ToolInput => merge_one_level(current, patch),
        _ => replace(target, current, patch),
    },
    translate: |_, _, _| None,
    combine: |_, _, _, reply| reply,
    ends_chain: |_| &[Verdict::Block, Verdict::Halt],
};

/// The project's directory by each of its names, and the short texts of the event by the names that they have in it.
fn environment(draft: &Draft, place: &Workspace) -> Vec<(&'static str, String)> {
    let event = draft.event();
    let facts = &event.attributes;
    let mut variables = project_directory(PROJECT, place);
    variables.push(("session_id", event.session_id.to_string()));
    let texts = [
        ("tool_name", &facts.tool_name),
        ("source", &facts.source),
        ("reason", &facts.reason),
        ("notification_type", &facts.notification_type),
        ("trigger", &facts.trigger),
    ];
    variables.extend(texts.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?.to_owned()))));
    variables
}

//! The dialect of Cursor. A shell command, a call of an MCP server and a file that is read have an event for any tool
//! (`preToolUse`) and one of their own, which is without a kind: hooks of other dialects run once for each call.

mod reply;
mod response;

use std::time::Duration;

use reply::SEPARATOR;

use super::{
    agent_variables,
    claude::{judgement_format, replace},
    codex::combined_decision,
    event_table::{
        EventRow,
        MatchSource::{Fact, Field, Prefixed, Unmatched},
        rows,
    },
    native::{EnvelopeField, NativeDialect, Spelling},
    settings::{
        BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, HookIdentity, MatcherSyntax,
        PluginFormat, SettingsFile, SettingsFormat, SettingsKeys, SettingsLocation, Shell, StartDirectory,
        TimeUnit, UnreadByAgent, search_or_word,
    },
};
use crate::model::{DialectName, Draft, HandlerKind, Json, Scope, Target, Verdict, Workspace};

/// Its events; the columns are those of Claude Code's table.
const ROWS: &[EventRow] = rows! {
    "sessionStart" SessionStarted Unmatched, Parallel Combined, Nothing, Ignored Taken, [];
    "sessionEnd" SessionEnded Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "beforeSubmitPrompt" PromptSubmitted Unmatched, Parallel Combined, Prevents, Ignored Taken, [];
    "preToolUse" BeforeToolDispatch Fact, Parallel Combined, Prevents, Ignored Taken, [RewriteToolRequest];
    "postToolUse" AfterToolDispatch Fact, Parallel Combined, Nothing, Ignored Taken, [];
    "postToolUseFailure" ToolFailed Fact, Parallel Combined, Nothing, Ignored Taken, [];
    "beforeShellExecution" HostEvent Field("command"), Parallel Strictest, Prevents, Ignored NoPlace, [];
    "afterShellExecution" HostEvent Field("command"), Parallel Strictest, Nothing, Ignored NoPlace, [];
    "beforeMCPExecution" HostEvent Prefixed("MCP:", "tool_name"), Parallel Strictest, Prevents, Ignored NoPlace, [];
    "afterMCPExecution" HostEvent Prefixed("MCP:", "tool_name"), Parallel Strictest, Nothing, Ignored NoPlace, [];
    "beforeReadFile" HostEvent Unmatched, Parallel Strictest, Prevents, Ignored NoPlace, [];
    "afterFileEdit" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "beforeTabFileRead" HostEvent Unmatched, Parallel Strictest, Prevents, Ignored NoPlace, [];
    "afterTabFileEdit" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "afterAgentResponse" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "afterAgentThought" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "stop" AgentStopping Unmatched, Parallel Combined, Prevents, Ignored NoPlace, [];
    "subagentStart" HostEvent Field("subagent_type"), Parallel Strictest, Prevents, Ignored NoPlace, [];
    "subagentStop" SubagentStopping Fact, Parallel Combined, Prevents, Ignored NoPlace, [];
    "preCompact" BeforeContextCompact Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
    "workspaceOpen" HostEvent Unmatched, Parallel Strictest, Nothing, Ignored NoPlace, [];
};

/// What matchers of hooks on some events are compared with, whatever the event is about.
const WORDS: &[(&str, &str)] = &[
    ("beforeReadFile", "Read"),
    ("afterFileEdit", "Write"),
    ("beforeTabFileRead", "TabRead"),
    ("afterTabFileEdit", "TabWrite"),
    ("beforeSubmitPrompt", "UserPromptSubmit"),
    ("stop", "Stop"),
    ("afterAgentResponse", "AgentResponse"),
    ("afterAgentThought", "AgentThought"),
];

/// Fields with a canonical name.
const FIELDS: &[(&str, &str)] = &[
    ("session_id", "session_id"),
    ("tool_name", "tool_name"),
    ("tool_input", "tool_input"),
    ("tool_use_id", "tool_call_id"),
    ("tool_output", "tool_output"),
    ("prompt", "prompt"),
    ("reason", "reason"),
    ("trigger", "trigger"),
    ("subagent_type", "agent_type"),
];

/// The first fields of an envelope.
const ENVELOPE_FIELDS: &[(&str, EnvelopeField)] = &[
    ("conversation_id", EnvelopeField::Session),
    ("generation_id", EnvelopeField::Own(Some(""))),
    ("model", EnvelopeField::Own(Some(""))),
    ("session_id", EnvelopeField::Session),
    ("hook_event_name", EnvelopeField::EventName),
    ("cursor_version", EnvelopeField::Own(Some(""))),
    ("workspace_roots", EnvelopeField::Roots),
    ("cwd", EnvelopeField::CwdOfOthers),
];

/// Of the variables with the project's directory, the first is its own.
const PROJECT: &[&str] = &["CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"];

/// The dialect of Cursor.
pub(super) static CURSOR: NativeDialect = NativeDialect {
    name: DialectName::Cursor,
    rows: ROWS,
    fields: FIELDS,
    spelling: Spelling { also_read: &[("conversation_id", "session_id")], ..Spelling::ONE },
    envelope_fields: ENVELOPE_FIELDS,
    own_fields: &[],
    roots_field: Some("workspace_roots"),
    default_session: None,
    host_variables: agent_variables::CURSOR.given,
    prompt_field: Some("generation_id"),
    settings: SettingsFormat {
        files: &[
            SettingsFile { scope: Scope::Managed, location: SettingsLocation::System("cursor/hooks.json") },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".cursor/hooks.json"),
            },
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".cursor/hooks.json") },
        ],
        unread: &[],
        bare_file: None,
        beside_json: BesideJson::Comments,
        unread_by_agent: UnreadByAgent::Marked,
        types: &[HandlerKind::Command, HandlerKind::Prompt],
        matcher_syntax: MatcherSyntax::PatternOrText,
        matcher: |value, row| search_or_word(value, row, WORDS),
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
        project_variables: agent_variables::CURSOR.project,
        keys: SettingsKeys { entry: KEYS, hook: KEYS, beside_events: &[] },
        shell: Shell::Bash,
        directory: StartDirectory::OfUserFile,
        identity: HookIdentity::Handler,
        disable: DisableSyntax::Never,
        plugins: PluginFormat::None,
        managed_only: None,
    },
    // It writes the envelope into the command line, as a document that ends with a line of its own.
    ends_input_with_newline: true,
    goes_on_in_background: |_| false,
    environment,
    response_format: judgement_format,
    read_reply: |_, row, hook, raw| reply::read(row, hook, raw),
    write_response: |_, row, outcome| response::write(row, outcome),
    apply_patch: replace,
    translate: |_, target, value| {
        // It has the output of a tool as a text.
        let is_other = target == Target::ToolOutput && value.kind() != "a string";
        is_other.then(|| Json::of(&value.as_str()).ok()).flatten()
    },
    combine: |_, _, earlier, mut reply| {
        reply.decision = combined_decision(earlier, reply.decision, SEPARATOR);
        reply::combine_native(earlier, &mut reply);
        reply
    },
    ends_chain: |_| &[Verdict::Halt],
};

/// The keys of a hook, which stands in an event's list itself.
const KEYS: &[&str] =
    &["type", "command", "prompt", "model", "matcher", "timeout", "loop_limit", "failClosed"];

fn environment(draft: &Draft, place: &Workspace) -> Vec<(&'static str, String)> {
    let event = draft.event();
    let given = event.environment.iter().filter(|_| event.dialect == DialectName::Cursor);
    let directories = PROJECT.iter().map(|name| (*name, place.root.display().to_string()));
    directories.chain(given.map(|(name, value)| (*name, value.to_string()))).collect()
}

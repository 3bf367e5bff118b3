//! The dialect of Cursor. A shell command, a call of an MCP server and a file that is read have an event for any tool
//! (`preToolUse`) and one of their own, which is without a kind: hooks of other dialects run once for each call.

mod reply;

use std::time::Duration;

use reply::{AGENT_MESSAGE, ENV, STOPS};
use serde::Serialize;

use super::{
    claude::{judgement_format, replace},
    codex::combined_decision,
    event_table::{
        ContextSupport, EventRow,
        MatchSource::{Fact, Field, Prefixed, Unmatched},
        rows,
    },
    native::{EnvelopeField, NativeDialect, Spelling},
    response,
    settings::{
        BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, HookIdentity, MatcherSyntax,
        PluginFormat, SettingsFile, SettingsFormat, SettingsKeys, SettingsLocation, Shell, StartDirectory,
        TimeUnit, search_or_word,
    },
};
use crate::model::{
    DialectName, Draft, EventKind, HandlerKind, HostResponse, Json, NoteKind, Outcome, Scope, Target,
    Verdict, Workspace,
};

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

/// What stands between the messages of several hooks.
const SEPARATOR: &str = "\n\n---\n\n";

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
    host_variables: &["CURSOR_VERSION", "CURSOR_USER_EMAIL", "CURSOR_TRANSCRIPT_PATH"],
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
        beside_json: BesideJson::Comments,
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
        project_variables: &[],
        keys: SettingsKeys { entry: KEYS, hook: KEYS },
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
    write_response: |_, row, outcome| write(row, outcome),
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
    ends_chain: |_| &[],
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

/// Printed if an answer has no JSON form: on each event, the agent reads the word that it knows there.
const STRICTEST: &str = r#"{"permission":"deny","continue":false}"#;

/// The reason of a refusal without one.
const NO_REASON: &str = "blocked by a hook";

/// The longest context that it takes, in characters; a longer one is lost.
const LONGEST_CONTEXT: usize = 10_000;

/// What a hook would have printed. The agent refuses words of another type, and ignores those that an event does not have.
#[derive(Default, Serialize)]
struct Printed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#continue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_input: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    followup_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<&'a Json>,
}

/// Writes the answer to an event of this row. What has no place in it is on standard error, which the agent logs.
fn write(row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    let Some(row) = row else { return response::unreadable_event(outcome) };
    let mut output = Printed::default();
    let noted = |wanted: fn(NoteKind) -> bool| {
        let notes = outcome.notes.iter().filter(|note| wanted(note.kind));
        Some(joined(notes.map(|note| Some(note.text.to_string())))).filter(|text| !text.is_empty())
    };
    let mut messages = vec![noted(|kind| kind != NoteKind::AdditionalContext), response::failures(outcome)];
    let mut context = noted(|kind| kind == NoteKind::AdditionalContext);
    let refusal = reason_to_refuse(row, outcome);
    match row.kind {
        EventKind::BeforeToolDispatch | EventKind::HostEvent if row.prevents() => {
            output.permit(row, outcome, refusal);
        }
        EventKind::PromptSubmitted => {
            if let Some(reason) = refusal {
                output.r#continue = Some(false);
                messages.insert(0, Some(reason));
            }
        }
        // The end of the session is what an end of the run asks for.
        EventKind::AgentStopping | EventKind::SubagentStopping if outcome.verdict == Verdict::Halt => {
            messages.push(refusal);
        }
        EventKind::AgentStopping | EventKind::SubagentStopping => {
            output.followup_message = refusal.map(|reason| joined([Some(reason), context.take()]));
        }
        // What has happened stays so; the model reads why it should not have.
        EventKind::AfterToolDispatch | EventKind::ToolFailed => {
            context = Some(joined([refusal, context])).filter(|text| !text.is_empty());
        }
        EventKind::SessionStarted => {
            output.r#continue = response::native_field(outcome, STOPS).map(|_| false);
            output.env = response::native_field(outcome, ENV);
        }
        _ => messages.push(refusal),
    }
    match context {
        Some(text) if row.context == ContextSupport::Taken => {
            output.additional_context = Some(text.chars().take(LONGEST_CONTEXT).collect());
        }
        other => messages.push(other),
    }
    let message = joined(messages);
    if row.reads_messages() && !message.is_empty() {
        output.user_message = Some(match output.user_message.take() {
            Some(reason) => joined([Some(reason), Some(message)]),
            None => message,
        });
        return response::of(&output, STRICTEST);
    }
    HostResponse { stderr: message, ..response::of(&output, STRICTEST) }
}

impl EventRow {
    /// Whether the agent shows the person what an answer says.
    fn reads_messages(&self) -> bool {
        let reads = [EventKind::PromptSubmitted, EventKind::SessionStarted, EventKind::BeforeContextCompact];
        self.kind == EventKind::BeforeToolDispatch
            || self.prevents() && self.kind == EventKind::HostEvent
            || reads.contains(&self.kind)
    }
}

impl<'a> Printed<'a> {
    /// About what the agent is about to do. The model reads the message for the person, too.
    fn permit(&mut self, row: &EventRow, outcome: &'a Outcome, refusal: Option<String>) {
        let given = || outcome.reason.as_deref().map(str::to_owned);
        let (word, reason) = match (refusal, outcome.verdict) {
            (Some(reason), _) => (Some("deny"), Some(reason)),
            (None, Verdict::Ask) => (Some("ask"), given()),
            (None, Verdict::Allow) => (Some("allow"), given()),
            (None, _) => (None, None),
        };
        self.permission = word;
        let to_model = response::native_field(outcome, AGENT_MESSAGE).and_then(|text| text.read().ok());
        self.agent_message = to_model.or_else(|| reason.clone());
        self.user_message = reason;
        if word != Some("deny") && row.kind == EventKind::BeforeToolDispatch {
            self.updated_input = outcome.patched.get(Target::ToolInput);
        }
    }
}

/// Why the agent must not go on, if it must not. It asks a person about shell commands and calls of MCP servers alone: of
/// any other tool call it ignores that word, and the tool runs.
fn reason_to_refuse(row: &EventRow, outcome: &Outcome) -> Option<String> {
    let reason = match outcome.verdict {
        Verdict::Halt => Some(outcome.reason.as_deref().unwrap_or("stopped by a hook").to_owned()),
        Verdict::Ask if matches!(row.name, "beforeShellExecution" | "beforeMCPExecution") => None,
        _ => response::refusal(outcome).map(String::from),
    };
    let is_lost = |(target, value): &(Target, &Json)| {
        let is_taken = *target == Target::ToolInput && row.kind == EventKind::BeforeToolDispatch;
        !(is_taken && value.kind() == "an object")
    };
    let lost = || outcome.patched.iter().find(is_lost).map(|(target, _)| response::lost_change(target));
    reason.map(|reason| if reason.trim().is_empty() { NO_REASON.to_owned() } else { reason }).or_else(lost)
}

fn joined(texts: impl IntoIterator<Item = Option<String>>) -> String {
    let said = texts.into_iter().flatten().filter(|text| !text.trim().is_empty());
    said.collect::<Vec<_>>().join(SEPARATOR)
}

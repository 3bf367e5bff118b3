//! The dialect of CodeBuddy: seven events of Claude Code's family, and the differences from it.

use std::time::Duration;

use super::{
    claude::{
        ClaudeVariant, ENVELOPE_FIELDS, FIELDS, FailingJson, KEYS, OWN_FIELDS, judgement_format,
        project_directory, read, replace, write,
    },
    event_table::{
        EventRow,
        MatchSource::{Fact, Unmatched},
        rows,
    },
    native::{NativeDialect, Spelling},
    response::{self, BLOCK},
    settings::{
        DefaultTimeouts, DisableSyntax, DuplicateHooks, HookIdentity, MatcherSyntax, PluginFormat,
        ScopeMerge, SettingsFile, SettingsFormat, SettingsLocation, Shell, StartDirectory, TimeUnit,
        exact_list_or_regex,
    },
};
use crate::model::{
    DialectName, EventKind, HandlerKind, HostResponse, Outcome, Scope, Target, Verdict, merge_one_level,
};

/// Its events; the columns are those of Claude Code's table.
const ROWS: &[EventRow] = rows! {
    "SessionStart" SessionStarted Fact, Parallel Strictest, Nothing, Told Taken, OncePerRun, [];
    "SessionEnd" SessionEnded Fact, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "UserPromptSubmit" PromptSubmitted Unmatched, Parallel Strictest, Prevents, Told Taken, Always, [];
    "PreToolUse" BeforeToolDispatch Fact, Parallel Strictest, Prevents, Ignored Taken, Always, [RewriteToolRequest];
    "PostToolUse" AfterToolDispatch Fact, Parallel Strictest, Tells, Ignored Taken, Always, [RewriteToolResponse SuppressOutput];
    "Stop" AgentStopping Unmatched, Parallel Strictest, Prevents, Ignored NoPlace, Always, [];
    "PreCompact" BeforeContextCompact Fact, Parallel Strictest, Nothing, Told Taken, Always, [];
};

const VARIANT: ClaudeVariant = ClaudeVariant {
    input: "modifiedInput",
    failing_json: FailingJson::Ignored,
    exit_tells: false,
    has_background: false,
    defer: None,
};

/// Which variables hold the project's directory.
const PROJECT: &[&str] = &["CODEBUDDY_PROJECT_DIR", "CLAUDE_PROJECT_DIR"];

/// The dialect of CodeBuddy.
pub(super) static CODEBUDDY: NativeDialect = NativeDialect {
    name: DialectName::CodeBuddy,
    rows: ROWS,
    fields: FIELDS,
    spelling: Spelling::ONE,
    envelope_fields: ENVELOPE_FIELDS,
    roots_field: None,
    own_fields: OWN_FIELDS,
    host_variables: &[],
    prompt_field: None,
    settings: SettingsFormat {
        files: &[
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".codebuddy/settings.json") },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".codebuddy/settings.json"),
            },
        ],
        unread: &[],
        allows_comments: false,
        scope_merge: ScopeMerge::ProjectReplacesUser,
        types: &[HandlerKind::Command, HandlerKind::Http, HandlerKind::Prompt, HandlerKind::Agent],
        matcher_syntax: MatcherSyntax::ListOrPattern,
        matcher: exact_list_or_regex,
        timeouts: DefaultTimeouts {
            unit: TimeUnit::Seconds,
            usual: Duration::from_mins(1),
            prompt: Duration::from_mins(1),
            agent: Duration::from_mins(1),
            of_events: &[],
            of_http: None,
        },
        duplicates: DuplicateHooks::RunOnce,
        shared: &[],
        project_variables: PROJECT,
        keys: KEYS,
        shell: Shell::Sh,
        directory: StartDirectory::Workspace,
        identity: HookIdentity::Handler,
        disable: DisableSyntax::All("disableAllHooks"),
        plugins: PluginFormat::None,
        managed_only: None,
    },
    ends_input_with_newline: true,
    goes_on_in_background: |_| false,
    environment: |_, place| project_directory(PROJECT, place),
    response_format: judgement_format,
    read_reply: |_, row, hook, raw| read(&VARIANT, row, hook, raw),
    write_response: |_, row, outcome| answer(row, outcome),
    apply_patch: |target, current, patch| match target {
        Target::ToolInput => merge_one_level(current, patch),
        _ => replace(target, current, patch),
    },
    translate: |_, _, _| None,
    combine: |_, _, _, reply| reply,
    ends_chain: |_| &[Verdict::Block, Verdict::Halt],
};

/// The answer to an event. A prompt is held back, and the agent kept at work, by an exit code and standard error.
fn answer(row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    let usual = write(&VARIANT, row, outcome);
    let is_by_exit =
        row.is_some_and(|row| matches!(row.kind, EventKind::PromptSubmitted | EventKind::AgentStopping));
    match response::refusal(outcome).filter(|_| is_by_exit) {
        Some(reason) => {
            let parts: Vec<String> =
                [reason.into_owned()].into_iter().chain(response::model_context(outcome)).collect();
            HostResponse { stderr: parts.join("\n\n"), exit_code: BLOCK, ..usual }
        }
        None => usual,
    }
}

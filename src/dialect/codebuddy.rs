//! The dialect of CodeBuddy: seven events of Claude Code's family, and in what it differs from it.

use std::time::Duration;

use super::{
    claude::{
        FIELDS, FRAME, FailingJson, KEYS, OWN_FIELDS, Words, judgement, project_directory, read, replace,
        write,
    },
    native::Native,
    row::{
        Looks::{Fact, Nowhere},
        Row, rows,
    },
    settings::{
        Form, Levels, Place, Repeats, Same, SettingsFacts, SettingsFile, Shell, Switches, Timeouts, Unit,
        exact_list_or_regex,
    },
};
use crate::model::{DialectName, HandlerKind, Scope, Target, Verdict, merge_one_level};

/// Its events; the columns are those of Claude Code's table.
const ROWS: &[Row] = rows! {
    "SessionStart" SessionStarted Fact, Parallel Strictest, Nothing, Told Taken, OncePerRun, [];
    "SessionEnd" SessionEnded Fact, Parallel Strictest, Nothing, Ignored NoPlace, Always, [];
    "UserPromptSubmit" PromptSubmitted Nowhere, Parallel Strictest, Prevents, Told Taken, Always, [];
    "PreToolUse" BeforeToolDispatch Fact, Parallel Strictest, Prevents, Ignored Taken, Always, [RewriteToolRequest];
    "PostToolUse" AfterToolDispatch Fact, Parallel Strictest, Tells, Ignored Taken, Always, [RewriteToolResponse SuppressOutput];
    "Stop" AgentStopping Nowhere, Parallel Strictest, Prevents, Ignored NoPlace, Always, [];
    "PreCompact" BeforeContextCompact Fact, Parallel Strictest, Nothing, Told Taken, Always, [];
};

const WORDS: Words = Words { input: "modifiedInput", failing_json: FailingJson::Ignored, defer: None };

/// Which variables hold the project's directory.
const PROJECT: &[&str] = &["CODEBUDDY_PROJECT_DIR", "CLAUDE_PROJECT_DIR"];

/// The dialect of CodeBuddy.
pub(super) static CODEBUDDY: Native = Native {
    name: DialectName::CodeBuddy,
    rows: ROWS,
    fields: FIELDS,
    frame: FRAME,
    own_fields: OWN_FIELDS,
    settings: SettingsFacts {
        files: &[
            SettingsFile { scope: Scope::User, place: Place::Home(".codebuddy/settings.json") },
            SettingsFile { scope: Scope::Project, place: Place::Workspace(".codebuddy/settings.json") },
        ],
        levels: Levels::ProjectReplacesUser,
        types: &[HandlerKind::Command, HandlerKind::Http, HandlerKind::Prompt, HandlerKind::Agent],
        form: Form::ListOrPattern,
        matcher: exact_list_or_regex,
        timeouts: Timeouts {
            unit: Unit::Seconds,
            usual: Duration::from_mins(1),
            prompt: Duration::from_mins(1),
            agent: Duration::from_mins(1),
            of_events: &[],
        },
        repeats: Repeats::RunOnce,
        common: &[],
        project_variables: PROJECT,
        keys: KEYS,
        shell: Shell::Sh,
        same: Same::Handler,
        switches: Switches::All("disableAllHooks"),
    },
    environment: |_, place| project_directory(PROJECT, place),
    response_format: judgement,
    read: |_, row, hook, raw| read(&WORDS, row, hook, raw),
    write: |_, row, outcome| write(&WORDS, row, outcome),
    fold: |target, current, patch| match target {
        Target::ToolInput => merge_one_level(current, patch),
        _ => replace(target, current, patch),
    },
    translate: |_, _, _| None,
    join: |_, _, _, reply| reply,
    ends_chain: |_| &[Verdict::Block, Verdict::Halt],
};

//! The dialect of Gemini CLI, which combines the outputs of all hooks into one: its events, fields and settings files.

mod combine;
mod output;
mod payload;
mod reply;
mod response;

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::Deserialize;

use combine::combine;
pub(super) use combine::next_prompt;
pub(super) use output::{GeminiDecision, GeminiOutput};
pub(super) use payload::translate;
use reply::read;
pub(super) use reply::{PrintedAnswer, answer_in};
use response::write;

use super::{
    agent_variables,
    event_table::{
        EventRow,
        MatchSource::{Fact, Unmatched},
        rows,
    },
    native::{EnvelopeField, NativeDialect, Spelling},
    settings::{
        BesideJson, DefaultTimeouts, DisableSyntax, DuplicateHooks, EXTENSIONS, HookIdentity, MatcherSyntax,
        PluginFormat, SettingsFile, SettingsFormat, SettingsKeys, SettingsLocation, Shell, StartDirectory,
        TimeUnit, UnreadByAgent, exact_or_regex, plugin_json,
    },
};
use crate::model::{DialectName, Draft, EventKind, HandlerKind, ResponseFormat, Scope, Workspace};

/// Its 11 events; the columns are those of Claude Code's table. Plain text never depends on the event.
const ROWS: &[EventRow] = rows! {
    "SessionStart" SessionStarted Fact, Parallel Combined, Nothing, Ignored Taken, [];
    "SessionEnd" SessionEnded Fact, Parallel CombinedLatestNotes, Nothing, Ignored Taken, [];
    "BeforeAgent" PromptSubmitted Unmatched, Parallel Combined, Prevents, Ignored Taken, [RewritePrompt];
    "AfterAgent" AgentStopping Unmatched, Parallel Combined, Prevents, Ignored Taken, [];
    "BeforeModel" BeforeModelCall Unmatched, Parallel CombinedLatestNotes, Prevents, Ignored Taken, [RewriteModelRequest];
    "AfterModel" AfterModelCall Unmatched, Parallel CombinedLatestNotes, Prevents, Ignored Taken, [RewriteModelResponse];
    "BeforeToolSelection" BeforeToolSelection Unmatched, Parallel Combined, Nothing, Ignored Taken, [RewriteToolConfig];
    "BeforeTool" BeforeToolDispatch Fact, Parallel Combined, Prevents, Ignored Taken, [RewriteToolRequest];
    "AfterTool" AfterToolDispatch Fact, Parallel Combined, Tells, Ignored Taken, [SuppressOutput];
    "PreCompress" BeforeContextCompact Fact, Parallel CombinedLatestNotes, Nothing, Ignored Taken, [];
    "Notification" Notification Unmatched, Parallel CombinedLatestNotes, Nothing, Ignored Taken, [];
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
const ENVELOPE_FIELDS: &[(&str, EnvelopeField)] = &[
    ("session_id", EnvelopeField::Session),
    ("transcript_path", EnvelopeField::Own(Some(""))),
    ("cwd", EnvelopeField::Cwd),
    ("hook_event_name", EnvelopeField::EventName),
    ("timestamp", EnvelopeField::Timestamp),
];

/// The kinds whose matchers are patterns; those of all others are texts.
const SEARCHED: &[EventKind] = &[EventKind::BeforeToolDispatch, EventKind::AfterToolDispatch];

/// Keys beside the events that are no events; the agents take them for nothing there.
pub(super) const BESIDE_EVENTS: &[&str] = &["enabled", "disabled", "notifications"];

/// The dialect of Gemini CLI.
pub(super) static GEMINI: NativeDialect = NativeDialect {
    name: DialectName::Gemini,
    rows: ROWS,
    fields: FIELDS,
    spelling: Spelling::ONE,
    envelope_fields: ENVELOPE_FIELDS,
    roots_field: None,
    default_session: None,
    own_fields: &["stop_hook_active"],
    host_variables: agent_variables::GEMINI.given,
    prompt_field: None,
    settings: SettingsFormat {
        files: &[
            SettingsFile { scope: Scope::User, location: SettingsLocation::Home(".gemini/settings.json") },
            SettingsFile {
                scope: Scope::Project,
                location: SettingsLocation::Workspace(".gemini/settings.json"),
            },
            SettingsFile {
                scope: Scope::Managed,
                location: SettingsLocation::System("gemini-cli/settings.json"),
            },
        ],
        unread: &[],
        bare_file: None,
        beside_json: BesideJson::Comments,
        unread_by_agent: UnreadByAgent::Marked,
        types: &[HandlerKind::Command],
        matcher_syntax: MatcherSyntax::PatternOrText,
        matcher: |value, row| exact_or_regex(value, row, SEARCHED),
        timeouts: DefaultTimeouts {
            unit: TimeUnit::Milliseconds,
            usual: Duration::from_mins(1),
            prompt: Duration::from_mins(1),
            agent: Duration::from_mins(1),
            of_events: &[],
            of_http: None,
            are_refusals: false,
        },
        duplicates: DuplicateHooks::RunOnce,
        shared: &[],
        project_variables: agent_variables::GEMINI.project,
        keys: SettingsKeys {
            entry: &["matcher", "sequential", "hooks"],
            hook: &["type", "command", "name", "description", "timeout", "env"],
            beside_events: BESIDE_EVENTS,
        },
        shell: Shell::Bash,
        directory: StartDirectory::Workspace,
        identity: HookIdentity::NameAndHandler,
        disable: DisableSyntax::AllOrSome("hooksConfig"),
        plugins: PluginFormat::Extensions(&EXTENSIONS),
        managed_only: None,
    },
    ends_input_with_newline: false,
    goes_on_in_background: |_| false,
    environment,
    response_format: |_| ResponseFormat::default(),
    read_reply: |_, row, hook, raw| read(row, hook, raw),
    write_response: write,
    translate,
    apply_patch: |_, _, patch| Ok(patch.clone()),
    combine,
    ends_chain: |_| &[],
};

fn environment(draft: &Draft, place: &Workspace) -> Vec<(&'static str, String)> {
    let (event, root) = (draft.event(), place.root.display().to_string());
    // No variable can hold a NUL character.
    let cwd = event.cwd.as_deref().filter(|cwd| !cwd.contains('\0')).unwrap_or(&root).to_owned();
    let mut variables = vec![
        ("GEMINI_PROJECT_DIR", root.clone()),
        ("GEMINI_CWD", cwd),
        ("GEMINI_SESSION_ID", event.session_id.to_string()),
        ("CLAUDE_PROJECT_DIR", root),
    ];
    let given = event.environment.iter().filter(|_| event.dialect == DialectName::Gemini);
    variables.extend(given.map(|(name, value)| (*name, value.to_string())));
    variables
}

/// Whether an extension is enabled in a project: the last rule about it that fits decides.
pub(crate) fn is_extension_enabled(enablement: &[u8], name: &str, project: &Path) -> Result<bool, String> {
    #[derive(Deserialize)]
    struct Rules {
        overrides: Vec<String>,
    }
    let mut all: BTreeMap<String, Rules> = plugin_json(enablement)?;
    let path = format!("{}/", project.display());
    let rules = all.remove(name).map(|rules| rules.overrides).unwrap_or_default();
    let mut is_enabled = true;
    for rule in rules {
        let (disables, place) = rule.strip_prefix('!').map_or((false, rule.as_str()), |place| (true, place));
        if fits(place, &path) {
            is_enabled = !disables;
        }
    }
    Ok(is_enabled)
}

/// Whether a directory, which ends with a slash, is at a place: `/*` at its end stands for the place and all below it.
fn fits(place: &str, path: &str) -> bool {
    let Some(beginning) = place.strip_suffix('*') else { return path == place };
    match beginning.strip_suffix('/') {
        Some(above) => path.strip_prefix(above).is_some_and(|below| below.starts_with('/')),
        None => path.starts_with(beginning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rule_that_fits_says_whether_an_extension_is_enabled() {
        let rules = br#"{"x": {"overrides": ["!/home/me/*", "/home/me/shop/", "!/home/me/a+b/*"]}}"#;
        let is_enabled = |name, path| is_extension_enabled(rules, name, Path::new(path)).unwrap();
        assert!(is_enabled("other", "/home/me/any"));
        assert!(is_enabled("x", "/srv") && is_enabled("x", "/home/me/shop"));
        for disabled in ["/home/me", "/home/me/any", "/home/me/shop/sub", "/home/me/a+b"] {
            assert!(!is_enabled("x", disabled), "{disabled}");
        }
        assert!(is_extension_enabled(b"[]", "x", Path::new("/")).is_err());
    }
}

//! Shows the text of a rule hook, and what a rule that is not saved would have decided about the last events, with its part of
//! the route table. Saves nothing, and runs nothing but rules.

use std::sync::Arc;

use axum::{Json, body::Body, extract::State, http::HeaderMap, http::StatusCode, routing::on};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    decisions::whole_history,
    extract::{ApiQuery, PathParameter, absent_workspace, workspace_id},
    operation::{
        BodySchema::{AnyObject, One},
        Operation, Parameter, RequestLimit, ResponseContent, Route, RouteMethod, ok,
    },
    shared::{BODY_ERRORS, NO_RULE_TEXT, NO_TRIAL, UNKNOWN_RULE, UNREADABLE_RULE, WORKSPACE_ID, off_the_way},
};
use crate::{
    config::{NoRuleText, UnsavedRule, read_unsaved_rule, rule_text},
    daemon::{
        auth::AccessRight,
        error::ApiError,
        page::{RuleTrial, RuleTrialView},
        request_body::{self, SMALL_BODY_BYTES},
        schema::{Component, object, optional_string, string},
        state::{DaemonState, RequestContext},
    },
    model::{Diagnostic, Hook, Severity},
    registry::Snapshot,
};

/// The most diagnostics of a rule that are shown.
const MOST_DIAGNOSTICS: usize = 50;

const HOOK: Parameter = Parameter::query("hook", "The name of the rule hook", || json!({ "type": "string" }));

/// A rule that is to be tried.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrialRequest {
    /// The text of a hook file.
    text: String,
    /// The hook in whose place it would be.
    hook: Option<String>,
}

pub(super) static TRIAL_REQUEST: Component = Component::built("RuleTrialRequest", || {
    let hook = optional_string("The hook in whose place it would be. Without it, the rule is another hook.");
    let text = string("The text of a hook file with a handler of the type `rule`.");
    let mut schema = object("A rule that is to be tried.", [("text", text), ("hook", hook)], &["hook"]);
    schema["additionalProperties"] = false.into();
    schema
});

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TextQuery {
    hook: Option<String>,
}

/// The text of a rule hook.
#[derive(Debug, Serialize)]
struct RuleTextView {
    hook: String,
    text: String,
}

/// What came of a rule: nothing is tried of one that is wrong.
#[derive(Debug, Serialize)]
struct TriedRuleView {
    diagnostics: Vec<PlacedDiagnostic>,
    trial: Option<RuleTrialView>,
}

/// A diagnostic with what it takes to mark its place in the text.
#[derive(Debug, Serialize)]
struct PlacedDiagnostic {
    severity: Severity,
    code: &'static str,
    message: String,
    help: Option<String>,
    line: usize,
    column: usize,
    length: usize,
}

pub(super) const RULE_TRIAL: Route = Route {
    path: "/v1/workspaces/{id}/rule-trial",
    limit: RequestLimit::Counted,
    operations: &[
        Operation {
            method: RouteMethod::Get,
            id: "getRuleText",
            tag: "decisions",
            right: AccessRight::Control,
            summary: "Show the text of a rule hook, as it is in force.",
            description: "The hook may be of any level. Its file is read: if it is not as it was loaded, the answer is 409.",
            parameters: &[WORKSPACE_ID, HOOK],
            request: None,
            success: &[ok("The text", ResponseContent::Json(AnyObject))],
            errors: &[UNKNOWN_RULE, NO_RULE_TEXT],
            handler: |method| on(method, text),
        },
        Operation {
            method: RouteMethod::Post,
            id: "tryRule",
            tag: "decisions",
            right: AccessRight::Control,
            summary: "Show what a rule would have decided about the last 1,000 events that are kept of a workspace, before it is saved.",
            description: "Saves nothing, and evaluates rules only: other hooks say what they said then. With a rule that is wrong, the answer has `diagnostics` and no `trial`. A trial takes 5 seconds at most and then says which events it did not reach; one is made at a time. Its answers depend on what events carry, so it needs the right to control.",
            parameters: &[WORKSPACE_ID],
            request: Some(One(&TRIAL_REQUEST)),
            success: &[ok("What came of it", ResponseContent::Json(AnyObject))],
            errors: &[UNREADABLE_RULE, BODY_ERRORS, UNKNOWN_RULE, NO_TRIAL],
            handler: |method| on(method, try_rule),
        },
    ],
};

async fn text(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
    ApiQuery(query): ApiQuery<TextQuery>,
) -> Result<Json<RuleTextView>, ApiError> {
    let snapshot = snapshot(&state, &id)?;
    let name = query.hook.ok_or_else(|| {
        ApiError::bad_request(
            "bad_query",
            "the query names no hook",
            "add `?hook=` with the name of a rule hook",
        )
    })?;
    let read = off_the_way(move || {
        let hook = find(&snapshot, &name)?;
        let text = rule_text(hook, snapshot.workspace()).map_err(|error| no_text(&error))?;
        Ok(RuleTextView { hook: name, text })
    });
    read.await?.map(Json)
}

async fn try_rule(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    PathParameter(id): PathParameter,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<TriedRuleView>, ApiError> {
    let bounds = share.body_bounds(SMALL_BODY_BYTES);
    let request: TrialRequest = request_body::read_as(&headers, body, bounds).await?;
    let history = whole_history(&state)?;
    let snapshot = snapshot(&state, &id)?;
    let tried = off_the_way(move || {
        let mut diagnostics = Vec::new();
        let made = history.try_rule(|| made(&request, &snapshot, &state, &mut diagnostics));
        let trial = match made.map_err(|_| under_way())? {
            Ok(trial) => Some(trial),
            Err(NoTrial::Wrong) => None,
            Err(NoTrial::Refused(error)) => return Err(error),
        };
        Ok(TriedRuleView { diagnostics, trial })
    });
    tried.await?.map(Json)
}

/// Why a rule is not tried.
enum NoTrial {
    /// The diagnostics say so.
    Wrong,
    Refused(ApiError),
}

/// The trial of a rule, with what looks wrong in it.
fn made(
    TrialRequest { text, hook }: &TrialRequest,
    snapshot: &Arc<Snapshot>,
    state: &DaemonState,
    shown: &mut Vec<PlacedDiagnostic>,
) -> Result<RuleTrial, NoTrial> {
    let replaced = hook.as_deref().map(|name| find(snapshot, name)).transpose().map_err(NoTrial::Refused)?;
    let (rule, diagnostics) = match read_unsaved_rule(text, replaced, snapshot, &state.settings) {
        UnsavedRule::OtherHandler(kind) => return Err(NoTrial::Refused(not_a_rule(&kind))),
        UnsavedRule::Read(rule, diagnostics) => (Some(rule), diagnostics),
        UnsavedRule::Wrong(diagnostics) => (None, diagnostics),
    };
    shown.extend(diagnostics.into_iter().take(MOST_DIAGNOSTICS).map(PlacedDiagnostic::of));
    let rule = rule.ok_or(NoTrial::Wrong)?;
    let is_other = replaced.is_none_or(|replaced| replaced.name != rule.name);
    if is_other && find(snapshot, rule.name.as_str()).is_ok() {
        let message = format!("another hook has the name `{}`", rule.name);
        let hint = "give the rule another name, or choose that hook to change it";
        return Err(NoTrial::Refused(ApiError::bad_request("duplicate_name", message, hint)));
    }
    let replaced = replaced.map(|hook| hook.name.clone());
    Ok(RuleTrial { snapshot: Arc::clone(snapshot), replaced, rule: *rule })
}

impl PlacedDiagnostic {
    fn of(diagnostic: Diagnostic) -> Self {
        let Diagnostic { severity, code, message, help, line, column, length, .. } = diagnostic;
        Self { severity, code, message, help, line, column, length }
    }
}

fn snapshot(state: &DaemonState, id: &str) -> Result<Arc<Snapshot>, ApiError> {
    let id = workspace_id(id)?;
    state.orchestrator.snapshot(Some(&id)).ok_or_else(|| absent_workspace(state, &id))
}

/// A hook of a workspace.
fn find<'s>(snapshot: &'s Snapshot, name: &str) -> Result<&'s Hook, ApiError> {
    let found = snapshot.hooks().iter().find(|known| known.hook.name.as_str() == name);
    found.map(|known| &known.hook).ok_or_else(|| {
        ApiError::not_found(
            "unknown_hook",
            format!("no hook has the name {name:?}"),
            "look at the hooks again",
        )
    })
}

fn no_text(error: &NoRuleText) -> ApiError {
    let hint = match error {
        NoRuleText::NoRule(_) => "only rules of hook files have a text that can be tried",
        NoRuleText::Changed(_) | NoRuleText::Unreadable(..) => "reload the workspace, and look again",
    };
    ApiError::new(StatusCode::CONFLICT, "no_text", error.to_string(), hint)
}

fn not_a_rule(kind: &str) -> ApiError {
    let message =
        format!("the handler is of the type {kind:?}, and a trial runs no program and asks no server");
    ApiError::bad_request("not_a_rule", message, "only handlers of the type `rule` can be tried")
}

fn under_way() -> ApiError {
    let hint = "try again when it has ended, in a few seconds";
    ApiError::new(StatusCode::CONFLICT, "under_way", "another rule is being tried", hint)
}

//! Answers agents' events whose hooks cannot be asked. An agent takes an HTTP error for consent, so it gets a verdict in
//! the words of its dialect.

use axum::{
    body::Bytes,
    extract::Request,
    http::Uri,
    response::{IntoResponse, Response},
};

use super::{
    addressed::{self, partial_event},
    events::{confirm_unasked, refuse_own_hook},
    native_response::{
        AnsweredError, NATIVE_EVENTS_PREFIX, NativeAnswer, ResponseForm, parse_dialect, respond,
    },
};
use crate::{
    daemon::{
        error::{ApiError, Retry},
        guard_scope::GuardScope,
        listener_share::ListenerShare,
        request_body::{self, BEGINNING_BYTES},
        state::{DaemonState, RequestContext},
    },
    dialect,
    model::{DialectName, EventKind, EventOrigin, Note, Outcome, PartialEvent, Verdict},
    run::next_decision_id,
    telemetry::EVENTS_TARGET,
};

/// An agent's event whose hooks cannot be asked.
#[derive(Debug)]
pub(super) struct UnaskedEvent {
    pub(super) dialect: DialectName,
    /// What is known of it.
    pub(super) event: PartialEvent,
    /// How it came, if it was read so far.
    pub(super) origin: Option<EventOrigin>,
    /// Whose guards would have been asked.
    pub(super) guards: GuardScope,
    pub(super) error: ApiError,
}

impl UnaskedEvent {
    /// The agent's answer: a block where a guard might have cared for the event, else no opinion and a note to the
    /// person.
    ///
    /// Returns the error for hosts with canonical events.
    pub(super) async fn answer(self, state: &DaemonState) -> Result<NativeAnswer, ApiError> {
        if self.dialect == DialectName::Canonical {
            return Err(self.error);
        }
        let outcome = self.block(state).unwrap_or_else(|| self.no_opinion());
        let outcome = self.audited(state, outcome).await;
        let (decision_id, event, verdict) = (&outcome.decision_id, outcome.event, outcome.verdict);
        tracing::warn!(
            target: EVENTS_TARGET, %decision_id, dialect = %self.dialect, %event, %verdict,
            code = self.error.code(), "an agent's event was answered without its hooks"
        );
        let answer = dialect::unasked_response(self.dialect, &self.event, &outcome);
        Ok(NativeAnswer { answer, error: Some(AnsweredError::of(&self.error)) })
    }

    fn block(&self, state: &DaemonState) -> Option<Outcome> {
        let why = format!("{}; {}", self.error, self.error.hint());
        // Other nodes go on without this one. An agent that went on here would not ask them.
        if self.error.is_of_cluster() && self.is_blocked_unjudged() {
            return Some(self.block_for(why));
        }
        match &self.guards {
            GuardScope::Nowhere => None,
            GuardScope::Workspace(id) => state.orchestrator.block_unasked(Some(id), &self.event, &why),
            GuardScope::AnyWorkspace => state.orchestrator.block_unasked(None, &self.event, &why),
            GuardScope::NotLoaded => self.is_blocked_unjudged().then(|| {
                let what = if self.has_asked() {
                    "the answer of the hooks is lost"
                } else {
                    "the hooks could not be asked"
                };
                self.block_for(format!("{what}: {why}"))
            }),
        }
    }

    /// Whether it is blocked if nobody can judge it. To block the end of a turn means to make the agent go on, without end.
    fn is_blocked_unjudged(&self) -> bool {
        self.event.may_be_stopped() && !self.event.ends_turn()
    }

    fn block_for(&self, reason: String) -> Outcome {
        Outcome { verdict: Verdict::Block, reason: Some(reason.into()), ..self.proceed() }
    }

    /// Records the answer, where the settings require that. What could not be recorded does not go on.
    async fn audited(&self, state: &DaemonState, outcome: Outcome) -> Outcome {
        // The line that was lost is the reason for this answer.
        let is_recorded = self.error.code() == ApiError::NOT_AUDITED
            || confirm_unasked(state, &outcome, &self.error, (self.origin.as_ref(), self.dialect)).await;
        if is_recorded || outcome.verdict == Verdict::Block || !self.is_blocked_unjudged() {
            return outcome;
        }
        let error = ApiError::not_audited();
        self.block_for(format!("{error}; {}", error.hint()))
    }

    /// Whether hooks may have run.
    fn has_asked(&self) -> bool {
        self.error.retry() == Retry::MayRepeat
    }

    fn no_opinion(&self) -> Outcome {
        let mut outcome = self.proceed();
        let what = if self.has_asked() {
            "hookyard lost the answer of the hooks for this event"
        } else {
            "hookyard ran no hooks for this event"
        };
        let text = format!("{what}: {}; {}", self.error, self.error.hint());
        outcome.notes.extend(Note::of_hookyard(&text));
        outcome
    }

    fn proceed(&self) -> Outcome {
        Outcome::proceed(next_decision_id(), self.event.kind.unwrap_or(EventKind::HostEvent), 0)
    }
}

/// Answers a request that was refused before it came to its route: an agent's event with a verdict, any other with the
/// error.
///
/// A request of a hook gets the error as well: an event of its agent is being judged already.
pub(in crate::daemon) async fn answer_refused(
    context: &RequestContext,
    request: Request,
    error: ApiError,
    guards: RefusedGuards,
) -> Response {
    let Some((dialect, form)) = native_target(request.uri()) else { return error.into_response() };
    if let Err(own_hook) = refuse_own_hook(request.headers()) {
        return own_hook.into_response();
    }
    let origin = request.extensions().get().cloned();
    let workspace = addressed::workspace(request.headers());
    let event = partial_event(dialect, workspace, &beginning(&context.share, request).await);
    respond(refuse_native(context, (dialect, origin), event, (error, guards)).await, form)
}

/// The answer to an agent's event that was refused before it was read, by what is known of it.
///
/// Returns the error for hosts with canonical events.
pub(in crate::daemon) async fn refuse_native(
    context: &RequestContext,
    (dialect, origin): (DialectName, Option<EventOrigin>),
    event: PartialEvent,
    (error, guards): (ApiError, RefusedGuards),
) -> Result<NativeAnswer, ApiError> {
    let state = &context.daemon;
    let guards = match guards {
        RefusedGuards::NotLoaded => GuardScope::NotLoaded,
        RefusedGuards::Loaded => state.locator.known_guards(&state.orchestrator, &event),
    };
    UnaskedEvent { dialect, event, origin, guards, error }.answer(state).await
}

/// Whether the guards of a refused event are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::daemon) enum RefusedGuards {
    Loaded,
    NotLoaded,
}

impl RefusedGuards {
    /// Those of an event that is refused now.
    pub(in crate::daemon) fn of(state: &DaemonState) -> Self {
        if state.loading.is_done() { Self::Loaded } else { Self::NotLoaded }
    }
}

/// The dialect and the form of an answer to a native event, by the address of its request. An unknown dialect is
/// answered in Claude's words, which most agents understand.
fn native_target(uri: &Uri) -> Option<(DialectName, ResponseForm)> {
    let rest = uri.path().strip_prefix(NATIVE_EVENTS_PREFIX)?;
    let name = rest.split('/').next().unwrap_or_default();
    let is_process = uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "as=process"));
    let form = if is_process { ResponseForm::Process } else { ResponseForm::Body };
    Some((parse_dialect(name).unwrap_or(DialectName::Claude), form))
}

/// The beginning of the body of a request of which more is not wanted.
pub(super) async fn beginning(share: &ListenerShare, request: Request) -> Bytes {
    let (parts, body) = request.into_parts();
    match request_body::read_or_beginning(&parts.headers, body, share.body_bounds(BEGINNING_BYTES)).await {
        Ok(body) => body.into_bytes(),
        Err(failure) => failure.beginning,
    }
}

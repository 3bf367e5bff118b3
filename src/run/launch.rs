//! How a step of a course is launched: in the run's actor, in a pool, or once it is known where the links in the event's paths
//! lead. The actor asks no disk, since a disk may hang: the links are looked up beside it, and come back as a message.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    actor::RunActor,
    actor_state::{CourseRole, InFlightEvent, RunActorState},
    course::Progress,
    message::{InvocationId, RunMessage},
};
use crate::{
    handler::{BackgroundSwitch, Invocation, links, native},
    model::{Conclusion, Ended, Handler, Hook, KnownLinks, NativeHandler, RuleCall, TrustState},
    pool::{Job, JobClass, NativeTask, ReplyPort},
};

/// Why a detached hook did not run.
const TOO_MANY_DETACHED: &str = "as many detached hooks are under way as may be, in its run or in all runs";

impl RunActor {
    /// Launches steps of one stage. Says what is next: the stage goes on when its last step has concluded.
    pub(super) fn launch_all(
        &self,
        state: &mut RunActorState,
        course: u64,
        running: &mut InFlightEvent,
        steps: impl IntoIterator<Item = usize>,
    ) -> Progress {
        // All but the last one get `Wait`, and overwrite nothing.
        let mut progress = Progress::Wait;
        for step in steps {
            if let Some(conclusion) = self.launch(state, InvocationId { course, step }, running) {
                progress = running.course.conclude(step, conclusion);
            }
        }
        progress
    }

    /// Runs one step, unless it waits for links: inline closures, rules and policies in the actor, anything else in its pool.
    fn launch(
        &self,
        state: &mut RunActorState,
        invocation: InvocationId,
        running: &mut InFlightEvent,
    ) -> Option<Conclusion> {
        if let Some(refused) = refuse(&running.course.step(invocation.step).hook) {
            return Some(refused);
        }
        if running.lacks_links(invocation.step) {
            look_up_links(state, invocation, running);
            return None;
        }
        let at_once = conclude_at_once(state, invocation.step, running);
        if at_once.is_some() {
            return at_once;
        }
        self.submit(state, invocation, running)
    }

    /// Submits a step to its pool.
    ///
    /// Returns a conclusion if it is shed.
    fn submit(
        &self,
        state: &RunActorState,
        invocation: InvocationId,
        running: &mut InFlightEvent,
    ) -> Option<Conclusion> {
        let registered = Arc::clone(running.course.step(invocation.step));
        let hook = &registered.hook;
        if running.role == CourseRole::Background && running.detached.is_none() {
            return Some(Conclusion::not_run(Ended::Shed, TOO_MANY_DETACHED));
        }
        let actor = state.myself.clone();
        // A send fails only if the run's actor is gone, and with it every caller.
        let reply = ReplyPort::new(move |conclusion| {
            let conclusion = Box::new(conclusion);
            drop(actor.cast(RunMessage::Concluded { invocation, conclusion }));
        });
        let cancel = running.cancel.clone();
        let goes_last = running.is_anonymous() || running.course.event().is_repeated();
        // A detached hook decides nothing.
        let is_interceptor = running.role == CourseRole::Answering && running.course.event().is_interceptor();
        let class = JobClass::of(is_interceptor, goes_last);
        let (course, submitted) = (&mut running.course, Instant::now());
        course.submitted(invocation.step, submitted);
        if let Handler::Native(NativeHandler::Task(make)) = &hook.handler {
            let (make, draft) = (Arc::clone(make), course.draft().clone());
            let hook = Arc::clone(&registered);
            let task = NativeTask { class, submitted, hook, make, draft, cancel, reply };
            self.context.pools.submit_task(&course.workspace().root, task);
            return None;
        }
        let invocation = Invocation {
            envelope: course.envelope(invocation.step),
            environment: match hook.handler {
                Handler::Command(_) => {
                    let workspace = hook.workspace(course.workspace());
                    hook.dialect.environment(course.draft(), workspace, hook.timeout)
                }
                _ => Vec::new(),
            },
            event: Arc::clone(course.event()),
            root: course.workspace().root.clone(),
            project_roots: Arc::clone(course.project_roots()),
            timeout: hook.timeout,
            meters: Arc::clone(running.meters.of(registered.rank)),
            hook: Arc::clone(&registered),
            permit: None,
            background: BackgroundSwitch::default(),
        };
        self.context.pools.submit(Job::new(class, submitted, invocation, cancel, reply));
        None
    }

    /// It is known where the links of an event lead: the steps that waited for it are launched. The event may have ended since.
    pub(super) fn go_on(&self, state: &mut RunActorState, course: u64, links: Box<KnownLinks>) {
        let Some(mut running) = state.running.remove(&course) else { return };
        running.links.known = Some(links);
        let waiting = std::mem::take(&mut running.links.waiting);
        let progress = self.launch_all(state, course, &mut running, waiting);
        self.resume(state, course, running, progress);
    }
}

impl InFlightEvent {
    /// Whether a step asks for links that were not looked up since the event was changed last.
    fn lacks_links(&self, step: usize) -> bool {
        self.course.follows_links(step)
            && (self.links.known.is_none() || self.links.revision != self.course.draft().revision())
    }
}

/// Looks up the links of an event for a step, and for those of its stage that ask the same.
fn look_up_links(state: &RunActorState, invocation: InvocationId, running: &mut InFlightEvent) {
    running.course.submitted(invocation.step, Instant::now());
    running.links.waiting.push(invocation.step);
    if running.links.waiting.len() > 1 {
        return;
    }
    running.links.revision = running.course.draft().revision();
    let query = running.course.link_query();
    let (actor, cancel) = (state.myself.clone(), running.cancel.clone());
    tokio::spawn(async move {
        if let Some(links) = cancel.run_until_cancelled(links::look_up(query)).await {
            // A send fails only if the run's actor is gone, and with it every caller.
            drop(actor.cast(RunMessage::LinksKnown { course: invocation.course, links: Box::new(links) }));
        }
    });
}

/// The conclusion of a hook that may not run.
pub(super) fn refuse(hook: &Hook) -> Option<Conclusion> {
    let reason = hook.trust.refusal()?;
    let is_broken = hook.trust.state() == Some(TrustState::Broken);
    let ended = if is_broken { Ended::Failed } else { Ended::Untrusted };
    Some(Conclusion::not_run(ended, reason))
}

/// Concludes a step that needs no pool: an inline closure, rules, or policies.
fn conclude_at_once(
    state: &mut RunActorState,
    step: usize,
    running: &mut InFlightEvent,
) -> Option<Conclusion> {
    let hook = &running.course.step(step).hook;
    let draft = running.course.draft();
    match &hook.handler {
        Handler::Native(NativeHandler::Inline(closure)) => {
            Some(native::run_inline(&**closure, draft, hook.timeout))
        }
        Handler::Rule(rule) | Handler::Rego(rule) => {
            let workspace = hook.subject(running.course.workspace());
            let cache = &mut running.rule_cache;
            let links = running.links.known.as_deref();
            Some(state.run_state.with_counts(&hook.name, |counts| {
                native::run_rule(rule, RuleCall { draft, workspace, links, cache, counts }, hook.timeout)
            }))
        }
        _ => None,
    }
}

//! One rule of a script: which events it concerns, and what its hook does then.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::Serialize;

use crate::{
    NativeHook, StartError,
    model::{EventKind, FailurePolicy, HookDecision, Json, NativeReply, NoteKind, Patch, Reply, Target},
};

/// What a scripted hook does for the events of one kind.
///
/// A rule without an action proceeds. Actions of one rule add up, except that the last decision ([`allow`](Self::allow),
/// [`ask`](Self::ask), [`block`](Self::block), [`halt`](Self::halt)) wins and that a rule that [fails](Self::fail)
/// does nothing else. Rules apply in the order in which they are given, each as a hook of its own.
#[derive(Debug, Clone)]
pub struct Rule {
    kind: EventKind,
    matcher: Option<String>,
    name: Option<String>,
    wait: Duration,
    times: usize,
    timeout: Option<Duration>,
    on_failure: FailurePolicy,
    reply: Reply,
    failure: Option<String>,
    /// Why the rule itself cannot work.
    mistake: Option<String>,
}

impl Rule {
    /// A rule for every event of a kind.
    pub fn on(kind: EventKind) -> Self {
        Self {
            kind,
            matcher: None,
            name: None,
            wait: Duration::ZERO,
            times: usize::MAX,
            timeout: None,
            on_failure: FailurePolicy::Ignore,
            reply: Reply::proceed(),
            failure: None,
            mistake: None,
        }
    }

    /// A rule for every call of the tool with exactly this name, before it runs.
    pub fn tool(name: &str) -> Self {
        let matcher = Some(format!("^{}$", regex_syntax::escape(name)));
        Self { matcher, ..Self::on(EventKind::BeforeToolDispatch) }
    }

    /// Only for events whose matched field this regular expression is found in, as for
    /// [`NativeHook::matcher`].
    #[must_use]
    pub fn matching(self, pattern: impl Into<String>) -> Self {
        Self { matcher: Some(pattern.into()), ..self }
    }

    /// The name of its hook, as in outcomes; the default is `rule-1` for the first rule, and so on.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Only for the first event that it concerns; afterwards it proceeds.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Only for the first `times` events that it concerns; afterwards it proceeds.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    /// Is slow: waits before anything else. A test with a paused clock (`tokio::time::pause`) does not wait.
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// The timeout of its hook, as for [`NativeHook::timeout`].
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// What a failure or a timeout of its hook counts as; the default is to proceed.
    #[must_use]
    pub fn on_failure(self, policy: FailurePolicy) -> Self {
        Self { on_failure: policy, ..self }
    }

    /// Has the host go on without asking a person.
    #[must_use]
    pub fn allow(self) -> Self {
        self.decide(HookDecision::Allow(None))
    }

    /// Has the host ask a person.
    #[must_use]
    pub fn ask(self, reason: impl Into<String>) -> Self {
        self.decide(HookDecision::Ask(Some(reason.into())))
    }

    /// Blocks the event.
    #[must_use]
    pub fn block(self, reason: impl Into<String>) -> Self {
        self.decide(HookDecision::Block(Some(reason.into())))
    }

    /// Ends the run.
    #[must_use]
    pub fn halt(self, reason: impl Into<String>) -> Self {
        self.decide(HookDecision::Halt(Some(reason.into())))
    }

    fn decide(mut self, decision: HookDecision) -> Self {
        self.reply.decision = decision;
        self
    }

    /// Patches a part of the payload. The hook gets the capability that it needs for it.
    ///
    /// A value without a JSON form, or a part that events of this kind do not have, makes the start fail.
    #[must_use]
    pub fn patch(mut self, target: Target, value: &(impl Serialize + ?Sized)) -> Self {
        match Json::of(value) {
            Ok(value) => self.reply = self.reply.patch(target, value),
            Err(error) => self.mistake = Some(format!("the patch of {target} has no JSON form: {error}")),
        }
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, kind: NoteKind, text: impl Into<String>) -> Self {
        self.reply = self.reply.note(kind, text);
        self
    }

    /// Fails, as a hook that crashes does.
    #[must_use]
    pub fn fail(self, message: impl Into<String>) -> Self {
        Self { failure: Some(message.into()), ..self }
    }

    /// The hook of this rule, which is the rule with this number, from 1.
    ///
    /// Returns an error if a patch has no JSON form.
    pub(super) fn into_hook(self, number: usize) -> Result<NativeHook, StartError> {
        let name = self.name.clone().unwrap_or_else(|| format!("rule-{number}"));
        if let Some(message) = self.mistake {
            return Err(StartError::NativeHook { name, message });
        }
        let capabilities: Vec<_> = self.reply.patches.iter().filter_map(Patch::target).collect();
        let answer: NativeReply = self.failure.map_or(Ok(self.reply), Err);
        let left = Arc::new(AtomicUsize::new(self.times));
        let wait = self.wait;
        let mut hook = if wait.is_zero() {
            NativeHook::inline(name, [self.kind], move |_| next_answer(&left, &answer))
        } else {
            NativeHook::task(name, [self.kind], move |_| {
                let answer = next_answer(&left, &answer);
                async move {
                    tokio::time::sleep(wait).await;
                    answer
                }
            })
        };
        for target in capabilities {
            hook = hook.capability(target.capability());
        }
        if let Some(pattern) = self.matcher {
            hook = hook.matcher(pattern);
        }
        if let Some(timeout) = self.timeout {
            hook = hook.timeout(timeout);
        }
        Ok(hook.on_error(self.on_failure).on_timeout(self.on_failure))
    }
}

/// What the rule answers now: its answer while it applies, then nothing.
fn next_answer(left: &AtomicUsize, answer: &NativeReply) -> NativeReply {
    let applies = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    if applies.is_ok() { answer.clone() } else { Ok(Reply::proceed()) }
}

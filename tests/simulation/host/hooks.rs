//! The hooks of a simulation: closures and answers of a model that do what their scripts say, and note when.

use std::{
    future::pending,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use hookyard::{
    NativeHook,
    handler::models::{ModelAnswer, ModelClient, ModelError, ModelRequest, Turn},
    model::{Capability, Draft, Json, Model, NativeReply, NoteKind, Reply, Target},
};
use tokio::time::{Instant, sleep};

use super::since;
use crate::{
    SCRIPTED_PANIC,
    observed::{Work, WorkEnd},
    schedule::{Form, Rule, Schedule, input_of},
    script::{Ending, Script, script, words},
};

/// Where hooks work: what they are to do, and what they did.
#[derive(Debug)]
pub(super) struct Workbench {
    schedule: Arc<Schedule>,
    began: Instant,
    done: Mutex<Vec<Work>>,
}

/// RAII guard: a hook at work. Dropped before it is done, it says so.
struct AtWork<'a> {
    bench: &'a Workbench,
    work: Option<Work>,
}

impl Workbench {
    pub(super) fn new(schedule: Arc<Schedule>, began: Instant) -> Self {
        Self { schedule, began, done: Mutex::default() }
    }

    /// What hooks did so far.
    pub(super) fn take(&self) -> Vec<Work> {
        std::mem::take(&mut self.done.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn begin(&self, rule: &Rule, event: usize, input: String) -> AtWork<'_> {
        let now = since(self.began);
        let hook = rule.name.clone();
        let work = Work { from: now, to: now, event, hook, end: WorkEnd::Dropped, input };
        AtWork { bench: self, work: Some(work) }
    }

    /// A hook of the embedding program.
    pub(super) fn native_hook(self: &Arc<Self>, number: usize) -> NativeHook {
        let (bench, rule) = (Arc::clone(self), self.schedule.native[number].clone());
        let (name, kinds) = (rule.name.clone(), rule.kinds.clone());
        let hook = if rule.form == Form::Inline {
            let rule = rule.clone();
            NativeHook::inline(name, kinds, move |draft| bench.reply_at_once(&rule, draft))
        } else {
            let rule = Arc::new(rule.clone());
            NativeHook::task(name, kinds, move |draft| {
                let (bench, rule) = (Arc::clone(&bench), Arc::clone(&rule));
                async move { bench.reply(&rule, &draft).await }
            })
        };
        let hook = hook
            .priority(rule.priority)
            .timeout(Duration::from_millis(rule.timeout))
            .on_error(rule.on_error)
            .on_timeout(rule.on_timeout);
        let hook = match rule.tool {
            Some(tool) => hook.matcher(format!("^{tool}$")),
            None => hook,
        };
        let hook = match rule.most_at_once {
            Some(most) => hook.max_concurrency(most),
            None => hook,
        };
        if rule.may_patch { hook.capability(Capability::RewriteToolRequest) } else { hook }
    }

    fn reply_at_once(&self, rule: &Rule, draft: &Draft) -> NativeReply {
        let event = event_of(draft);
        let script = script(&self.schedule, rule, event);
        self.begin(rule, event, input_in(draft, event)).end();
        native_reply(rule, event, script.ending)
    }

    async fn reply(&self, rule: &Rule, draft: &Draft) -> NativeReply {
        let event = event_of(draft);
        let script = script(&self.schedule, rule, event);
        self.work(rule, event, input_in(draft, event), script).await;
        native_reply(rule, event, script.ending)
    }

    async fn work(&self, rule: &Rule, event: usize, input: String, script: Script) {
        let work = self.begin(rule, event, input);
        if script.ending == Ending::Hang {
            return pending().await;
        }
        if script.latency > 0 {
            sleep(Duration::from_millis(script.latency)).await;
        }
        work.end();
    }
}

impl AtWork<'_> {
    fn end(mut self) {
        self.note(WorkEnd::Done);
    }

    fn note(&mut self, end: WorkEnd) {
        if let Some(mut work) = self.work.take() {
            (work.to, work.end) = (since(self.bench.began), end);
            self.bench.done.lock().unwrap_or_else(PoisonError::into_inner).push(work);
        }
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.note(WorkEnd::Dropped);
    }
}

fn event_of(draft: &Draft) -> usize {
    let number = draft.event().extra.iter().find(|(name, _)| **name == *"n");
    number.and_then(|(_, number)| number.as_str().parse().ok()).expect("every event has its number")
}

fn input_in(draft: &Draft, event: usize) -> String {
    draft.target(Target::ToolInput).map_or_else(|| input_of(event), |input| input.as_str().to_owned())
}

fn native_reply(rule: &Rule, event: usize, ending: Ending) -> NativeReply {
    let words = words(rule, event);
    let patch = || Json::parse(&format!("{{\"{}\":{event}}}", rule.name)).expect("it is JSON");
    match ending {
        Ending::Proceed | Ending::Hang => Ok(Reply::proceed()),
        Ending::Allow => {
            Ok(Reply { decision: hookyard::model::HookDecision::Allow(Some(words)), ..Reply::proceed() })
        }
        Ending::Ask => Ok(Reply::ask(words)),
        Ending::Block => Ok(Reply::block(words)),
        Ending::Halt => Ok(Reply::halt(words)),
        Ending::Patch => Ok(Reply::proceed().patch(Target::ToolInput, patch())),
        Ending::Note => Ok(Reply::proceed().note(NoteKind::SystemMessage, words)),
        Ending::Error | Ending::Nonsense => Err("it went wrong".to_owned()),
        Ending::Panic => panic!("{SCRIPTED_PANIC}"),
    }
}

/// A model client that answers for prompt hooks.
#[derive(Debug)]
pub(super) struct Models(pub(super) Arc<Workbench>);

impl ModelClient for Models {
    fn has(&self, model_ref: &str) -> bool {
        model_ref == "small"
    }

    fn ask<'a>(
        &'a self,
        _: &'a Model,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(async move {
            let Some(Turn::User(text)) = request.turns.first() else { panic!("no question: {request:?}") };
            let (rule, event, input) = self.question(text);
            let script = script(&self.0.schedule, rule, event);
            self.0.work(rule, event, input, script).await;
            match script.ending {
                Ending::Error => Err(ModelError::Failed("it went wrong".to_owned())),
                Ending::Panic => panic!("{SCRIPTED_PANIC}"),
                ending => {
                    Ok(ModelAnswer { text: model_reply(rule, event, ending), ..ModelAnswer::default() })
                }
            }
        })
    }
}

impl Models {
    /// The hook that asks, the event, and the tool's input as the hook was told.
    fn question(&self, text: &str) -> (&Rule, usize, String) {
        let name = text.split_whitespace().nth(1).expect("a question begins with its hook");
        let mut rules = self.0.schedule.workspaces.iter().flat_map(|files| files.versions.iter().flatten());
        let rule = rules.find(|rule| rule.name == name).expect("a hook of the schedule asks");
        let number = text.split("\"n\":").nth(1).expect("the event has its number");
        let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
        let event = digits.parse().expect("a number");
        let input = text.split("\"tool_input\":").nth(1).and_then(|rest| rest.split_inclusive('}').next());
        (rule, event, input.map_or_else(|| input_of(event), str::to_owned))
    }
}

fn model_reply(rule: &Rule, event: usize, ending: Ending) -> String {
    let words = words(rule, event);
    match (rule.form, ending) {
        (_, Ending::Nonsense) => "I would rather not say".to_owned(),
        (Form::Judge(_), Ending::Block) => format!("{{\"ok\":false,\"reason\":\"{words}\"}}"),
        (Form::Judge(_), _) => "{\"ok\":true}".to_owned(),
        (_, Ending::Block) => format!("{{\"decision\":\"block\",\"reason\":\"{words}\"}}"),
        (_, Ending::Halt) => format!("{{\"continue\":false,\"stopReason\":\"{words}\"}}"),
        (_, Ending::Note) => format!("{{\"systemMessage\":\"{words}\"}}"),
        (_, Ending::Patch) => format!(
            "{{\"hookSpecificOutput\":{{\"hookEventName\":\"before_tool_dispatch\",\"patch\":{{\"tool_input\":{{\"{}\":{event}}}}}}}}}",
            rule.name
        ),
        _ => "{}".to_owned(),
    }
}

//! Compiled policies: what they are given of an event, and what they say of it.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use regorus::{Engine, LimitError, Value};

use super::{
    answer::{self, Answer},
    budget, document,
    evaluator::{Evaluator, Unevaluated},
    mistake::read_error,
    package::{JudgingPackage, Said},
    source::ENTRY,
    verb::Verb,
};
#[cfg(any(feature = "cli", feature = "daemon"))]
use crate::model::TracedExpression;
use crate::model::{
    Draft, Ended, Failure, HookDecision, Json, Reply, RuleCall, RuleProgram, Target, Workspace,
};

/// The largest event that policies judge, in bytes.
const LARGEST: usize = 1 << 20;

/// What policies are given of an event.
pub(crate) struct PolicyInput {
    /// The event in the form of an agent.
    pub(crate) document: Bytes,
    /// What is added under names that the form does not have.
    pub(crate) more: Vec<(&'static str, InputField)>,
}

/// A value that is added to the input.
pub(crate) enum InputField {
    Text(String),
    Json(Json),
}

/// Writes what policies are given of an event.
pub(crate) type InputWriter = Box<dyn Fn(&Draft, &Workspace) -> PolicyInput + Send + Sync>;

/// The policies of a hook.
pub(crate) struct PolicySet {
    policies: Arc<Policies>,
    evaluator: Evaluator,
    input: InputWriter,
}

/// What is evaluated.
struct Policies {
    engine: Engine,
    packages: Vec<JudgingPackage>,
}

/// An event as policies are asked about it.
struct Question {
    input: Value,
    /// Its size, in bytes.
    size: usize,
    kind: &'static str,
}

/// What the rules of all packages say that want an event, and the first failure.
type AllSaid = (Vec<Said>, Option<Failure>);

impl PolicySet {
    pub(super) fn new(engine: Engine, packages: Vec<JudgingPackage>, input: InputWriter) -> Self {
        let policies = Arc::new(Policies { engine, packages });
        Self { policies, evaluator: Evaluator::default(), input }
    }

    pub(super) fn ask(&self, draft: &Draft, workspace: &Workspace) -> AllSaid {
        let asked = self.question(draft, workspace).and_then(|question| {
            let policies = Arc::clone(&self.policies);
            self.evaluator.run(move || policies.ask(&question)).map_err(|why| unevaluated(&why))
        });
        asked.unwrap_or_else(|failure| (Vec::new(), Some(failure)))
    }

    fn question(&self, draft: &Draft, workspace: &Workspace) -> Result<Question, Failure> {
        let failed = |message: String| Failure::new(Ended::Failed, message);
        let input = (self.input)(draft, workspace);
        let size = input.document.len();
        if size > LARGEST {
            return Err(failed(format!("the event has {size} bytes; policies judge at most {LARGEST}")));
        }
        let input = read_input(&input)
            .map_err(|why| failed(format!("the event cannot be given to policies: {why}")))?;
        Ok(Question { input, size, kind: draft.event().kind.as_str() })
    }
}

/// What failed where policies gave nothing.
fn unevaluated(why: &Unevaluated) -> Failure {
    match why {
        Unevaluated::Late => too_long(budget::TOO_LONG),
        Unevaluated::Busy => too_long("the policy still judges an event for which it takes too long"),
        Unevaluated::Panicked => Failure::new(Ended::Failed, "the policy cannot be evaluated".to_owned()),
        Unevaluated::NoThread(error) => {
            Failure::new(Ended::SpawnFailed, format!("no thread for the policy: {error}"))
        }
    }
}

/// Whoever writes an event can make it so that this comes about, so that it is no milder than another failure.
fn too_long(message: &str) -> Failure {
    Failure::new(Ended::TimedOut, message.to_owned()).by_stricter_policy()
}

impl Policies {
    fn ask(&self, question: &Question) -> AllSaid {
        let _counting = budget::begin(question.size);
        let text = |name: &str| match &question.input[&Value::from(name)] {
            Value::String(text) => Some(text.to_string()),
            _ => None,
        };
        let (event, tool) = (text("hook_event_name"), text("tool_name"));
        let names: Vec<&str> = event.as_deref().into_iter().chain([question.kind]).collect();
        let mut said = Vec::new();
        let mut failed = None;
        for (number, package) in self.packages.iter().enumerate() {
            if !package.wants(&names, tool.as_deref()) {
                continue;
            }
            let mut engine = self.engine.clone();
            engine.set_input(question.input.clone());
            if let Some(failure) = ask_package(&mut engine, number, package, &mut said) {
                let is_last = failure.ended == Ended::TimedOut;
                failed.get_or_insert(failure);
                if is_last {
                    break;
                }
            }
        }
        (said, failed)
    }
}

/// Adds what the rules of a package say. If one has no value because of a failure, the others are asked one by one: what is
/// denied stays denied.
fn ask_package(
    engine: &mut Engine,
    number: usize,
    package: &JudgingPackage,
    said: &mut Vec<Said>,
) -> Option<Failure> {
    let mut add = |(name, verb): (&'static str, Verb), value: Value| {
        said.push(Said { package: Arc::clone(&package.name), name, verb, value });
    };
    let failure = match evaluated(engine, &format!("data.{ENTRY}.p{number}")) {
        Ok(pairs) => {
            for (verb, value) in answer::pairs(&pairs, &package.verbs) {
                add(verb, value);
            }
            return None;
        }
        Err(failure) => failure,
    };
    for verb in &package.verbs {
        if budget::is_exceeded() {
            break;
        }
        if let Ok(value) = evaluated(engine, &package.rule(verb.0)) {
            add(*verb, value);
        }
    }
    Some(failure)
}

/// The value of a rule.
fn evaluated(engine: &mut Engine, rule: &str) -> Result<Value, Failure> {
    let value = engine.eval_rule(rule.to_owned());
    if let Some(failure) = budget::failure() {
        return Err(failure);
    }
    value.map_err(|error| match error.downcast_ref::<LimitError>() {
        Some(limit) => Failure::new(Ended::Failed, limit.to_string()),
        None => Failure::new(Ended::Failed, located(&error.to_string())),
    })
}

/// An error of the interpreter on one line.
fn located(error: &str) -> String {
    let file = error.lines().find_map(|line| line.trim().strip_prefix("--> ")).unwrap_or("the policy");
    format!("{file}: {}", read_error(error).1)
}

/// The input as the interpreter has it.
fn read_input(input: &PolicyInput) -> Result<Value, String> {
    let text = std::str::from_utf8(&input.document).map_err(|error| error.to_string())?;
    let mut value = document::read(text).map_err(|error| error.to_string())?;
    let object = value.as_object_mut().map_err(|error| error.to_string())?;
    for (name, field) in &input.more {
        let name = Value::from(*name);
        if !object.contains_key(&name) {
            let value = match field {
                InputField::Text(text) => Value::from(text.as_str()),
                InputField::Json(json) => document::read(json.as_str()).map_err(|error| error.to_string())?,
            };
            object.insert(name, value);
        }
    }
    Ok(value)
}

impl RuleProgram for PolicySet {
    fn judge(&self, call: RuleCall<'_>) -> Result<Reply, Failure> {
        let (said, failed) = self.ask(call.draft, call.workspace);
        let Answer { mut reply, failure } =
            answer::reply_of(&said, call.draft.target(Target::ToolInput).is_some());
        let failed = failed.or(failure);
        // What is allowed where a stricter rule has no value is not known.
        if failed.is_some() && matches!(reply.decision, HookDecision::Allow(_)) {
            reply.decision = HookDecision::None;
        }
        let says_nothing =
            reply.decision == HookDecision::None && reply.patches.is_empty() && reply.notes.is_empty();
        match failed {
            Some(failure) if says_nothing => Err(failure),
            failure => {
                reply.failure = failure.map(Box::new);
                Ok(reply)
            }
        }
    }

    #[cfg(any(feature = "cli", feature = "daemon"))]
    fn explain(&self, call: RuleCall<'_>) -> Vec<TracedExpression> {
        let (said, failed) = self.ask(call.draft, call.workspace);
        super::trace::of(&said, failed)
    }
}

impl fmt::Debug for PolicySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicySet").field("packages", &self.policies.packages.len()).finish_non_exhaustive()
    }
}

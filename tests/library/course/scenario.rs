//! Scenarios: an event, hooks with their replies, and the order in which they end.

use std::{collections::BTreeMap, fmt, num::NonZeroUsize, path::Path, sync::Arc, time::Duration};

use hookyard::model::{
    Address, Agent, AgentHandler, Capability, Ended, Event, EventKind, ExecutionPolicy, Failure,
    FailurePolicy, Handler, Hook, HookDecision, HookName, HookSource, HostEvent, HttpHandler, HttpMethod,
    MatchField, Matcher, Model, ModelAccess, NativeHandler, NoteKind, Patch, PromptHandler, Reply, RunId,
    Scope, SessionId, Strategy, Target, Verdict,
};

use crate::course::{double::Double, tree::Tree};

/// One event and everything that will happen to it.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) kind: EventKind,
    /// The value that matchers look at, if the host sent it.
    pub(crate) text: Option<&'static str>,
    pub(crate) payload: BTreeMap<Target, Tree>,
    pub(crate) hooks: Vec<Rule>,
    /// Of two steps that run at the same time, the one with the lower number here ends first.
    pub(crate) pace: Vec<u8>,
    pub(crate) end: End,
}

/// How the course of an event ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Every invocation ends by itself.
    ByItself,
    /// The event is cancelled after so many invocations have ended.
    CancelledAfter(usize),
}

/// A hook, and what it will answer.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) dialect: &'static Double,
    pub(crate) events: Vec<EventKind>,
    pub(crate) matcher: Option<&'static str>,
    pub(crate) handler: Runs,
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) priority: i32,
    pub(crate) switch: Switch,
    pub(crate) on_error: FailurePolicy,
    pub(crate) on_timeout: FailurePolicy,
    pub(crate) scope: Scope,
    pub(crate) file: Option<&'static str>,
    pub(crate) position: usize,
    pub(crate) answer: Answer,
}

/// Whether a hook is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    Off,
}

/// What a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    Native,
    Http,
    Prompt,
    Agent,
}

/// How an invocation will end.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Replies(Says),
    Fails(Ended, &'static str),
}

/// What a hook replies.
#[derive(Debug, Clone)]
pub(crate) struct Says {
    pub(crate) verdict: Verdict,
    pub(crate) reason: Option<&'static str>,
    pub(crate) changes: Vec<Change>,
    pub(crate) notes: Vec<(NoteKind, &'static str)>,
    pub(crate) output: Output,
    pub(crate) warnings: Vec<&'static str>,
}

/// A patch.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Of(Target, Tree),
    Foreign(&'static str),
}

/// What a hook wants done with a tool's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Shown,
    Suppressed,
}

impl Scenario {
    /// An event for which no hook is registered yet.
    pub(crate) fn new(kind: EventKind) -> Self {
        let payload = kind.target().map(|target| (target, Tree::Object(vec![("command", Tree::Leaf("1"))])));
        let (payload, pace) = (payload.into_iter().collect(), (0..8).collect());
        Self { kind, text: Some("Bash"), payload, hooks: Vec::new(), pace, end: End::ByItself }
    }

    /// Adds a hook.
    pub(crate) fn with(mut self, rule: Rule) -> Self {
        self.hooks.push(rule);
        self
    }

    /// Adds nothing to the hooks but lets those of a stage end in the opposite order.
    pub(crate) fn last_ends_first(mut self) -> Self {
        self.pace.reverse();
        self
    }

    /// The rule of a hook.
    pub(crate) fn rule(&self, name: &str) -> &Rule {
        self.hooks.iter().find(|rule| rule.name == name).expect("the hook is one of the scenario")
    }

    /// The event as a host sends it.
    pub(crate) fn event(&self) -> Event {
        let mut event = Event::new(self.kind, SessionId::new("s").unwrap(), RunId::new("r").unwrap());
        for (target, value) in &self.payload {
            event.targets.set(*target, value.json());
        }
        let facts = &mut event.attributes;
        let fact = match self.kind.match_field() {
            Some(MatchField::Source) => &mut facts.source,
            Some(MatchField::Reason) => &mut facts.reason,
            Some(MatchField::Trigger) => &mut facts.trigger,
            Some(MatchField::ModelRef) => &mut facts.model_ref,
            Some(MatchField::ToolName) => &mut facts.tool_name,
            Some(MatchField::NotificationType) => &mut facts.notification_type,
            Some(MatchField::AgentType) => &mut facts.agent_type,
            Some(MatchField::TriggerType) => &mut facts.trigger_type,
            Some(MatchField::HostEvent) => {
                let (name, strategy) = ("SomethingElse".into(), Strategy::Parallel);
                event.host_event = Some(HostEvent { name, match_text: self.text.map(Arc::from), strategy });
                return event;
            }
            None => return event,
        };
        *fact = self.text.map(Arc::from);
        event
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n  {} about {:?}, payload {:?}", self.kind, self.text, self.payload)?;
        writeln!(f, "  ends {:?}, pace {:?}", self.end, self.pace)?;
        for rule in &self.hooks {
            let (name, matcher, file, place) = (rule.name, rule.matcher, rule.file, rule.position);
            writeln!(f, "  hook {name}: {:?}, matcher {matcher:?}, {:?}", rule.switch, rule.events)?;
            writeln!(f, "    at {}, priority {}, {file:?} number {place}", rule.scope, rule.priority)?;
            writeln!(f, "    {:?}", rule.dialect)?;
            let (error, timeout) = (rule.on_error.as_str(), rule.on_timeout.as_str());
            writeln!(f, "    {:?}, on_error {error}, on_timeout {timeout}", rule.handler)?;
            writeln!(f, "    may {:?}", rule.capabilities)?;
            writeln!(f, "    {:?}", rule.answer)?;
        }
        Ok(())
    }
}

impl Rule {
    /// A hook of the workspace on every kind of event that may do everything and has no opinion.
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            dialect: Double::plain(),
            events: EventKind::ALL.to_vec(),
            matcher: None,
            handler: Runs::Native,
            capabilities: Capability::ALL.to_vec(),
            priority: 0,
            switch: Switch::On,
            on_error: FailurePolicy::Ignore,
            on_timeout: FailurePolicy::Ignore,
            scope: Scope::Project,
            file: None,
            position: 0,
            answer: Answer::Replies(Says::default()),
        }
    }

    /// The same hook of another dialect.
    pub(crate) fn dialect(self, dialect: &'static Double) -> Self {
        Self { dialect, ..self }
    }

    /// The same hook with another answer.
    pub(crate) fn says(self, says: Says) -> Self {
        Self { answer: Answer::Replies(says), ..self }
    }

    /// The same hook, failing.
    pub(crate) fn fails(self, ended: Ended, message: &'static str) -> Self {
        Self { answer: Answer::Fails(ended, message), ..self }
    }

    /// The hook as hookyard takes it.
    pub(crate) fn hook(&self) -> Hook {
        Hook {
            name: HookName::new(self.name).unwrap(),
            dialect: self.dialect,
            events: self.events.iter().copied().collect(),
            matcher: self.matcher.map(|pattern| Matcher::search(pattern).unwrap()),
            handler: self.handler.handler(),
            capabilities: self.capabilities.iter().copied().collect(),
            priority: self.priority,
            enabled: self.switch == Switch::On,
            timeout: Duration::from_secs(1),
            max_concurrency: None,
            on_error: self.on_error,
            on_timeout: self.on_timeout,
            execution: ExecutionPolicy::default(),
            source: HookSource {
                scope: self.scope,
                file: self.file.map(|file| Arc::from(Path::new(file))),
                line: self.position + 1,
                position: self.position,
                content: None,
                bundle: None,
            },
            trust: hookyard::model::HookTrust::default(),
        }
    }
}

impl Runs {
    fn handler(self) -> Handler {
        let text = || "is this all right?".into();
        let model = || Model { reference: "small".into(), access: ModelAccess::Host };
        match self {
            Self::Native => Handler::Native(NativeHandler::Inline(Arc::new(|_| Ok(Reply::proceed())))),
            Self::Http => Handler::Http(HttpHandler {
                address: Address::parse("http://127.0.0.1/").unwrap(),
                method: HttpMethod::Post,
                headers: Vec::new(),
            }),
            Self::Prompt => Handler::Prompt(PromptHandler { prompt: text(), model: model() }),
            Self::Agent => {
                let agent = Agent {
                    name: "guard".into(),
                    description: None,
                    system: "you guard".into(),
                    model: model(),
                    tools: Vec::new(),
                    max_turns: NonZeroUsize::MIN,
                };
                Handler::Agent(AgentHandler { agent: Arc::new(agent), task: text() })
            }
        }
    }
}

impl Default for Says {
    fn default() -> Self {
        Self {
            verdict: Verdict::Proceed,
            reason: None,
            changes: Vec::new(),
            notes: Vec::new(),
            output: Output::Shown,
            warnings: Vec::new(),
        }
    }
}

impl Says {
    /// A verdict with its reason.
    pub(crate) fn verdict(verdict: Verdict, reason: &'static str) -> Self {
        Self { verdict, reason: Some(reason), ..Self::default() }
    }

    /// A patch that sets one key of a target to a value.
    pub(crate) fn set(self, target: Target, key: &'static str, value: &'static str) -> Self {
        self.change(Change::Of(target, Tree::Object(vec![(key, Tree::Leaf(value))])))
    }

    /// One more patch.
    pub(crate) fn change(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    /// One more note.
    pub(crate) fn note(mut self, text: &'static str) -> Self {
        self.notes.push((NoteKind::SystemMessage, text));
        self
    }
}

impl Answer {
    /// The answer as its dialect reads it.
    pub(crate) fn result(&self) -> Result<Reply, Failure> {
        match self {
            Self::Fails(ended, message) => Err(Failure::new(*ended, *message)),
            Self::Replies(says) => Ok(says.reply()),
        }
    }
}

impl Says {
    fn reply(&self) -> Reply {
        let reason = self.reason.map(str::to_owned);
        Reply {
            decision: match self.verdict {
                Verdict::Proceed => HookDecision::None,
                Verdict::Allow => HookDecision::Allow(reason),
                Verdict::Ask => HookDecision::Ask(reason),
                Verdict::Block => HookDecision::Block(reason),
                Verdict::Halt => HookDecision::Halt(reason),
            },
            patches: self.changes.iter().map(Change::patch).collect(),
            notes: self.notes.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect(),
            suppress_output: self.output == Output::Suppressed,
            native: Vec::new(),
            warnings: self.warnings.iter().map(|text| (*text).to_owned()).collect(),
            failure: None,
        }
    }
}

impl Change {
    fn patch(&self) -> Patch {
        match self {
            Self::Of(target, value) => Patch::Target(*target, value.json()),
            Self::Foreign(name) => Patch::Unsupported((*name).to_owned()),
        }
    }
}

//! What handlers return: the raw reply, the reply as a dialect reads it, and the conclusion of an invocation.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Ended, Json, NoteKind, Target, TokenUsage, Verdict, json::with_paired_surrogates};

/// What a handler returned, before its dialect reads it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RawReply {
    /// A program's exit.
    Command {
        /// Its exit code.
        exit_code: i32,
        /// What it wrote to its standard output.
        stdout: Bytes,
        /// Head and tail of what it wrote to its standard error.
        stderr: Bytes,
        /// Whether `stdout` is only the beginning.
        truncated: bool,
    },
    /// A server's answer.
    Http {
        /// Its status code.
        status: u16,
        /// Its decoded body.
        body: Bytes,
    },
    /// A model's answer.
    Text(String),
    /// A native hook's reply, which needs no reading.
    Native(Reply),
}

impl RawReply {
    /// The same with U+FFFD in place of each unpaired surrogate. JavaScript writes one for an emoji that it has cut in
    /// half, and agents read it.
    pub(super) fn with_paired_surrogates(mut self) -> Self {
        match &mut self {
            Self::Command { stdout, stderr, .. } => [stdout, stderr].into_iter().for_each(pair_surrogates),
            Self::Http { body, .. } => pair_surrogates(body),
            Self::Text(text) => {
                let mended = with_paired_surrogates(text.as_bytes());
                if let Some(mended) = mended.and_then(|bytes| String::from_utf8(bytes).ok()) {
                    *text = mended;
                }
            }
            Self::Native(_) => {}
        }
        self
    }
}

fn pair_surrogates(bytes: &mut Bytes) {
    if let Some(mended) = with_paired_surrogates(bytes) {
        *bytes = mended.into();
    }
}

/// What a hook answers, as its dialect reads the raw reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// What it thinks of the event.
    pub decision: HookDecision,
    /// The changes it wants, in order.
    pub patches: Vec<Patch>,
    /// Its messages.
    pub notes: Vec<(NoteKind, String)>,
    /// Whether the tool's output should not be shown.
    pub suppress_output: bool,
    /// Fields without a canonical meaning, for hosts of the hook's own dialect.
    pub native: Vec<(Box<str>, Json)>,
    /// Warnings about a reply that is valid.
    pub warnings: Vec<String>,
    /// The failure of an invocation whose reply counts all the same.
    pub failure: Option<Box<Failure>>,
}

impl Reply {
    /// A reply that decides nothing.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// The host may go on without asking a person.
    pub fn allow() -> Self {
        Self { decision: HookDecision::Allow(None), ..Self::default() }
    }

    /// A block with its reason.
    pub fn block(reason: impl Into<String>) -> Self {
        Self { decision: HookDecision::Block(Some(reason.into())), ..Self::default() }
    }

    /// A person is to be asked, for this reason.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self { decision: HookDecision::Ask(Some(reason.into())), ..Self::default() }
    }

    /// The end of the run, with its reason.
    pub fn halt(reason: impl Into<String>) -> Self {
        Self { decision: HookDecision::Halt(Some(reason.into())), ..Self::default() }
    }

    /// Adds a patch.
    #[must_use]
    pub fn patch(mut self, target: Target, value: Json) -> Self {
        self.patches.push(Patch::Target(target, value));
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, kind: NoteKind, text: impl Into<String>) -> Self {
        self.notes.push((kind, text.into()));
        self
    }
}

/// What a hook thinks of an event, with the reason where it gave one.
// Exhaustive for the reason that `Verdict` is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HookDecision {
    /// Nothing.
    #[default]
    None,
    /// Go on without asking a person.
    Allow(Option<String>),
    /// Ask a person.
    Ask(Option<String>),
    /// Don't.
    Block(Option<String>),
    /// End the run.
    Halt(Option<String>),
}

impl HookDecision {
    /// The opinion as a verdict.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::None => Verdict::Proceed,
            Self::Allow(_) => Verdict::Allow,
            Self::Ask(_) => Verdict::Ask,
            Self::Block(_) => Verdict::Block,
            Self::Halt(_) => Verdict::Halt,
        }
    }

    /// The opinion as a verdict, and its reason.
    pub fn into_parts(self) -> (Verdict, Option<String>) {
        let verdict = self.verdict();
        match self {
            Self::None => (verdict, None),
            Self::Allow(reason) | Self::Ask(reason) | Self::Block(reason) | Self::Halt(reason) => {
                (verdict, reason)
            }
        }
    }
}

/// One change that a hook wants.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Patch {
    /// A change to a part of the payload.
    Target(Target, Json),
    /// What later hooks of the same dialect receive instead of a part of the payload; hosts never do.
    HooksOnly(Target, Json),
    /// A change to anything else, by the name the hook used; never applied.
    Unsupported(String),
}

impl Patch {
    /// The name of what it changes.
    pub fn name(&self) -> &str {
        match self {
            Self::Target(target, _) | Self::HooksOnly(target, _) => target.as_str(),
            Self::Unsupported(name) => name,
        }
    }

    /// The target it changes, if it is one.
    pub fn target(&self) -> Option<Target> {
        match self {
            Self::Target(target, _) | Self::HooksOnly(target, _) => Some(*target),
            Self::Unsupported(_) => None,
        }
    }
}

/// Why an invocation has no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// How it ended; never [`Ended::Completed`].
    pub ended: Ended,
    /// What happened, for the operator.
    pub message: String,
    /// Whether the hook's policy applies.
    pub handling: FailureHandling,
}

/// Whether the hook's failure policy applies to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailureHandling {
    /// It is.
    #[default]
    ByPolicy,
    /// The stricter of the hook's two policies applies: for a process that somebody else ended, which says nothing about its
    /// answer, and for rules that take too many steps, which the sender of an event can bring about.
    ByStricterPolicy,
    /// It is ignored under every policy: the dialect defines it so.
    Ignore,
}

impl Failure {
    /// Why an invocation is cancelled when every caller has gone.
    pub const ABANDONED: &'static str = "the host no longer waits for the outcome";

    /// A failure to which the hook's policy applies.
    pub fn new(ended: Ended, message: impl Into<String>) -> Self {
        debug_assert_ne!(ended, Ended::Completed, "a completed invocation is no failure");
        Self { ended, message: message.into(), handling: FailureHandling::ByPolicy }
    }

    /// The failure of an invocation that nobody waits for any more.
    pub fn cancelled() -> Self {
        Self::new(Ended::Cancelled, Self::ABANDONED)
    }

    /// The same failure, to which the stricter of the hook's policies applies.
    #[must_use]
    pub fn by_stricter_policy(self) -> Self {
        Self { handling: FailureHandling::ByStricterPolicy, ..self }
    }

    /// The same failure, ignored under every policy.
    #[must_use]
    pub fn ignored(self) -> Self {
        Self { handling: FailureHandling::Ignore, ..self }
    }
}

/// How one invocation ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Conclusion {
    /// The reply as its dialect reads it, or why there is none.
    pub result: Result<Reply, Failure>,
    /// Warnings about how it was run.
    pub warnings: Vec<String>,
    /// The tokens it used, if it asked a model that reports them.
    pub tokens: Option<TokenUsage>,
    /// When the hook started; none if it did not.
    pub started: Option<Instant>,
    /// How long the hook ran.
    pub duration: Duration,
    /// How long the invocation waited before the hook ran: for a place in its pool, at its own limit, or for its workers.
    pub queued: Duration,
}

impl Conclusion {
    /// An invocation that failed before it ran.
    pub fn not_run(ended: Ended, message: impl Into<String>) -> Self {
        Self::ran(Err(Failure::new(ended, message)), Duration::ZERO)
    }

    /// An invocation that nobody waits for any more, before it ran.
    pub fn cancelled() -> Self {
        Self::ran(Err(Failure::cancelled()), Duration::ZERO)
    }

    /// An invocation that ran for this long, without warnings.
    pub fn ran(result: Result<Reply, Failure>, duration: Duration) -> Self {
        let queued = Duration::ZERO;
        Self { result, warnings: Vec::new(), tokens: None, started: None, duration, queued }
    }

    /// The same after a wait of this length.
    #[must_use]
    pub(crate) fn after_wait(self, queued: Duration) -> Self {
        Self { queued, ..self }
    }

    /// The same with the moment it started.
    #[must_use]
    pub fn started_at(self, started: Instant) -> Self {
        Self { started: Some(started), ..self }
    }
}

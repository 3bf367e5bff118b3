//! What a hook can say about a tool call, and what a host does that read it; without native words.

use serde_json::{Value, json};

/// Why a hook says what it says.
pub(crate) const REASON: &str = "because it said so";

/// What a hook tells the model.
pub(crate) const CONTEXT: &str = "the branch is main";

/// A guard that knows no dialect: it looks for a text and blocks by its exit code.
pub(crate) const GUARD: &str = "if grep -q 'rm -rf /'; then echo 'because it said so' >&2; exit 2; fi";

/// What a hook says about a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookReply {
    /// It may run, and nobody need be asked.
    Allow,
    /// It may not run.
    Block,
    /// It is to run with another command.
    Rewrite,
    /// It is to run without one of its arguments.
    Shorten,
    /// A person is to be asked.
    Ask,
    /// The run is to end.
    Halt,
    /// The model is to know something.
    Context,
}

/// Everything a hook may say.
pub(crate) const HOOK_REPLIES: [HookReply; 7] = [
    HookReply::Allow,
    HookReply::Block,
    HookReply::Rewrite,
    HookReply::Shorten,
    HookReply::Ask,
    HookReply::Halt,
    HookReply::Context,
];

/// What a host does about a tool call, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Move {
    /// It runs the tool and asks nobody.
    Runs,
    /// It does what it would have done without hooks.
    AsUsual,
    /// It asks a person.
    Asks,
    /// It does not run the tool.
    Refuses,
    /// It ends the run.
    Ends,
}

/// What a host makes of an answer.
#[derive(Debug)]
pub(crate) struct HostReading {
    pub(crate) moves: Move,
    /// The reason it has for that, or nothing.
    pub(crate) reason: String,
    /// The input with which the tool would run.
    pub(crate) input: Value,
    /// What it tells the model.
    pub(crate) context: Option<String>,
}

/// What a hook means a host to do.
pub(crate) struct Meant {
    pub(crate) moves: Move,
    pub(crate) reason: Option<&'static str>,
    pub(crate) input: Value,
    pub(crate) context: Option<String>,
}

/// The input of a tool call.
pub(crate) fn call() -> Value {
    json!({ "command": "npm install", "force": true })
}

impl HookReply {
    pub(crate) fn meant(self) -> Meant {
        let (moves, reason) = match self {
            Self::Allow => (Move::Runs, None),
            Self::Block => (Move::Refuses, Some(REASON)),
            Self::Ask => (Move::Asks, Some(REASON)),
            Self::Halt => (Move::Ends, Some(REASON)),
            Self::Rewrite | Self::Shorten | Self::Context => (Move::AsUsual, None),
        };
        let input = match self {
            Self::Rewrite => json!({ "command": "npm ci", "force": true }),
            Self::Shorten => json!({ "command": "npm ci" }),
            _ => call(),
        };
        Meant { moves, reason, input, context: (self == Self::Context).then(|| CONTEXT.to_owned()) }
    }

    /// The head of its column on the page.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block => "block",
            Self::Rewrite => "change the input",
            Self::Shorten => "take an argument out",
            Self::Ask => "ask",
            Self::Halt => "halt",
            Self::Context => "context",
        }
    }
}

impl Move {
    /// How the page calls it where it takes the place of a thing.
    pub(crate) fn title(self, thing: HookReply) -> &'static str {
        match self {
            Self::Runs => "allows",
            Self::AsUsual if thing == HookReply::Context => "drops it",
            Self::AsUsual => "goes on as usual",
            Self::Asks => "asks",
            Self::Refuses => "blocks",
            Self::Ends => "halts",
        }
    }
}

//! Which answer an event must get: written from the documents, and from what the hooks of the workspace do.

use serde_json::Value;

/// What is wrong with an answer to an event of a halted run.
pub(crate) const HALT_UNDONE: &str = "the halt is undone";

/// The tools of events; each has a hook of its own, but for `Read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// A guard that is a process for each event.
    Bash,
    /// A guard that is a worker.
    Work,
    /// A guard that is a server, which is slow and resets connections.
    Fetch,
    /// No hook.
    Read,
    /// A hook that halts the run.
    Halt,
}

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bash => "Bash",
            Self::Work => "Work",
            Self::Fetch => "Fetch",
            Self::Read => "Read",
            Self::Halt => "Halt",
        }
    }

    /// Whether its hook says that it ran.
    pub(crate) fn has_witness(self) -> bool {
        matches!(self, Self::Bash | Self::Work | Self::Halt)
    }
}

/// What a host wants to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) tool: Tool,
    /// Whether its guard forbids it.
    pub(crate) is_forbidden: bool,
    /// Whether the run was halted before.
    pub(crate) is_halted: bool,
}

/// A right answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RightAnswer {
    /// What the hook says.
    OfHook,
    /// The run is halted by now, and no hook runs.
    AlreadyHalted,
    /// The hook could not be asked, and it fails closed.
    FailedClosed,
}

/// Judges the outcome of an event.
///
/// Returns what is wrong with it.
pub(crate) fn judge(call: Call, outcome: &Value) -> Result<RightAnswer, String> {
    let verdict = outcome["verdict"].as_str().unwrap_or_default();
    let hooks = outcome["hooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let has_failed = hooks.iter().any(|hook| hook["ended"] != "completed");
    let failed_closed = verdict == "block" && has_failed;
    if call.is_halted {
        let is_right = verdict == "halt" && hooks.is_empty();
        return if is_right { Ok(RightAnswer::AlreadyHalted) } else { Err(HALT_UNDONE.to_owned()) };
    }
    let expected = match call.tool {
        Tool::Halt => "halt",
        Tool::Bash | Tool::Work | Tool::Fetch if call.is_forbidden => "block",
        Tool::Bash | Tool::Work | Tool::Fetch | Tool::Read => "proceed",
    };
    match verdict {
        _ if failed_closed && call.tool != Tool::Read => Ok(RightAnswer::FailedClosed),
        // An earlier attempt, whose answer was lost, has halted the run.
        "halt" if call.tool == Tool::Halt && hooks.is_empty() => Ok(RightAnswer::AlreadyHalted),
        _ if verdict != expected => Err(format!("the verdict is `{verdict}` instead of `{expected}`")),
        _ if call.tool != Tool::Read && hooks.len() != 1 => Err(format!("{} hooks ran", hooks.len())),
        _ => Ok(RightAnswer::OfHook),
    }
}

/// Judges the answer to an event in Claude Code's format.
///
/// Returns what is wrong with it.
pub(crate) fn judge_native(
    is_forbidden: bool,
    is_instead_of_error: bool,
    answer: &Value,
) -> Result<RightAnswer, String> {
    let is_denied = answer["hookSpecificOutput"]["permissionDecision"] == "deny";
    let is_silent = answer.as_object().is_some_and(serde_json::Map::is_empty);
    match (is_forbidden, is_instead_of_error) {
        (true, _) if !is_denied => Err("what the guard forbids was not denied".to_owned()),
        (true, false) => Ok(RightAnswer::OfHook),
        (_, true) => Ok(RightAnswer::FailedClosed),
        (false, false) if is_denied => Ok(RightAnswer::FailedClosed),
        (false, false) if is_silent => Ok(RightAnswer::OfHook),
        (false, false) => Err("it is neither silent nor a denial".to_owned()),
    }
}

//! The variables that agents give their hooks. They stand apart from the other tables of the dialects, so that the program
//! that only passes events on has none of those in it.

#[cfg(feature = "daemon")]
use crate::model::DialectName;

/// The variables of one agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentVariables {
    /// Those with the directory of the project, the first of which the agent always sets.
    pub(super) project: &'static [&'static str],
    /// Those that its hooks get as it has them.
    pub(super) given: &'static [&'static str],
}

pub(super) const CLAUDE: AgentVariables = AgentVariables {
    project: &["CLAUDE_PROJECT_DIR"],
    given: &[
        "CLAUDECODE",
        "CLAUDE_CODE_CHILD_SESSION",
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_REMOTE",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_EFFORT",
        "CLAUDE_ENV_FILE",
    ],
};

pub(super) const CLAWD: AgentVariables = AgentVariables { project: &["PROJECT_DIR"], given: &[] };

pub(super) const CODEBUDDY: AgentVariables = AgentVariables {
    project: &["CODEBUDDY_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
    given: &["CODEBUDDY_SERVICE_PROXY_URL"],
};

pub(super) const CODEX: AgentVariables = AgentVariables { project: &[], given: &["CODEX_HOME"] };

pub(super) const COPILOT: AgentVariables =
    AgentVariables { project: &[], given: &["COPILOT_CLI", "COPILOT_CLI_BINARY_VERSION"] };

pub(super) const CURSOR: AgentVariables = AgentVariables {
    project: &[],
    given: &["CURSOR_VERSION", "CURSOR_USER_EMAIL", "CURSOR_TRANSCRIPT_PATH"],
};

pub(super) const DROID: AgentVariables = AgentVariables {
    project: &["FACTORY_PROJECT_DIR", "DROID_PROJECT_DIR", "CLAUDE_PROJECT_DIR"],
    given: &[],
};

pub(super) const GEMINI: AgentVariables =
    AgentVariables { project: &["GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"], given: &["GEMINI_PLANS_DIR"] };

pub(super) const QWEN: AgentVariables =
    AgentVariables { project: &["GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR"], given: &[] };

#[cfg(feature = "daemon")]
fn variables(name: DialectName) -> AgentVariables {
    match name {
        DialectName::Canonical | DialectName::OpenHarness => AgentVariables { project: &[], given: &[] },
        DialectName::Claude => CLAUDE,
        DialectName::Clawd => CLAWD,
        DialectName::CodeBuddy => CODEBUDDY,
        DialectName::Gemini => GEMINI,
        DialectName::Codex => CODEX,
        DialectName::Qwen => QWEN,
        DialectName::Copilot => COPILOT,
        DialectName::Cursor => CURSOR,
        DialectName::Droid => DROID,
    }
}

/// The variables of an agent that its hooks get as it has them.
#[cfg(feature = "daemon")]
pub(crate) fn host_variables(name: DialectName) -> &'static [&'static str] {
    variables(name).given
}

/// The variable with the directory of its project, which an agent gives its commands.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) fn project_variable(name: DialectName) -> Option<&'static str> {
    variables(name).project.first().copied()
}

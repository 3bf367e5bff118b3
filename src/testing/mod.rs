//! A test double for hosts: a real orchestrator whose hooks follow a script.
//!
//! A host's own tests rarely want hook files, processes or a daemon. They want to say "the tool Bash is blocked with
//! this reason" and then look at what the host did. A [`ScriptedOrchestrator`] runs the given [`Rule`]s as native
//! hooks of an [`Orchestrator`], so that merging, timeouts, failures and halts are the real ones,
//! and it records every event that the host sends.
//!
//! ```
//! use std::time::Duration;
//! use hookyard::{
//!     Orchestrator, ToolCall,
//!     model::{EventKind, Target, Verdict},
//!     testing::{Rule, ScriptedOrchestrator},
//! };
//!
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct Bash { command: String }
//! /// The code under test: runs a tool if hooks let it.
//! async fn run_bash(
//!     hooks: &Orchestrator,
//!     input: Bash,
//! ) -> Result<String, Box<dyn std::error::Error>> {
//!     let run = hooks.run("run-1")?;
//!     let outcome = run.before_tool_dispatch(&ToolCall::new("Bash", &input)).await?;
//!     Ok(match outcome.verdict {
//!         Verdict::Proceed | Verdict::Allow => {
//!             let input = outcome.tool_input()?.unwrap_or(input);
//!             format!("ran {}", input.command)
//!         }
//!         Verdict::Ask => "asked".to_owned(),
//!         Verdict::Block | Verdict::Halt => format!("not run: {}", outcome.reason.unwrap_or_default()),
//!     })
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scripted = ScriptedOrchestrator::start([
//!     Rule::tool("Bash").once().block("not in tests"),
//!     Rule::tool("Bash").patch(Target::ToolInput, &serde_json::json!({ "command": "ls -l" })),
//!     Rule::on(EventKind::BeforeModelCall).wait(Duration::from_secs(1)).fail("the guard crashed"),
//! ])
//! .await?;
//! let ls = || Bash { command: "ls".to_owned() };
//! assert_eq!(run_bash(scripted.orchestrator(), ls()).await?, "not run: not in tests");
//! assert_eq!(run_bash(scripted.orchestrator(), ls()).await?, "ran ls -l");
//! assert_eq!(scripted.kinds(), [EventKind::BeforeToolDispatch; 2]);
//! # Ok(())
//! # }
//! ```

mod rule;

use std::sync::Arc;

pub use self::rule::Rule;
use crate::{
    Builder, Orchestrator, StartError,
    model::{Event, EventKind},
    orchestrator::EventLog,
};

/// An orchestrator whose hooks are [`Rule`]s, with a record of every event that was dispatched.
///
/// Recorded is what reaches a workspace, in the order of the calls: also events that no rule concerns, events of a
/// halted run, and events that are sent again. Not recorded is what could not be read or names no workspace.
#[derive(Debug, Clone)]
pub struct ScriptedOrchestrator {
    orchestrator: Orchestrator,
    log: Arc<EventLog>,
}

impl ScriptedOrchestrator {
    /// Starts an orchestrator with these rules and nothing else.
    ///
    /// Returns an error if a rule cannot work: its pattern is invalid, its patch does not fit its kind of event, or
    /// two rules have the same name.
    pub async fn start(rules: impl IntoIterator<Item = Rule>) -> Result<Self, StartError> {
        Self::start_with(Orchestrator::builder(), rules).await
    }

    /// Starts an orchestrator with these rules after everything that the builder has: workspaces, settings, native
    /// hooks.
    ///
    /// Returns an error as [`Builder::start`] does, and if a rule cannot work.
    pub async fn start_with(
        builder: Builder,
        rules: impl IntoIterator<Item = Rule>,
    ) -> Result<Self, StartError> {
        let log = Arc::new(EventLog::default());
        let mut builder = builder.event_log(Arc::clone(&log));
        for (number, rule) in (1..).zip(rules) {
            builder = builder.native_hook(rule.into_hook(number)?);
        }
        Ok(Self { orchestrator: builder.start().await?, log })
    }

    /// The orchestrator, for the host under test.
    pub fn orchestrator(&self) -> &Orchestrator {
        &self.orchestrator
    }

    /// The events that were dispatched so far.
    pub fn events(&self) -> Vec<Event> {
        self.log.events()
    }

    /// The dispatched events of one kind.
    pub fn events_of(&self, kind: EventKind) -> Vec<Event> {
        self.log.events().into_iter().filter(|event| event.kind == kind).collect()
    }

    /// The kinds of the dispatched events, in order.
    pub fn kinds(&self) -> Vec<EventKind> {
        self.log.events().iter().map(|event| event.kind).collect()
    }

    /// Forgets the recorded events; rules go on where they are.
    pub fn clear_events(&self) {
        self.log.clear();
    }
}

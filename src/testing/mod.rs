//! A test double for hosts: a real orchestrator whose hooks follow a script.
//!
//! A host's own tests rarely want hook files, processes or a daemon. They want to say "the tool Bash is blocked with
//! this reason" and then look at what the host did. A [`ScriptedOrchestrator`] runs the given [`Rule`]s as native
//! hooks of an [`Orchestrator`](crate::Orchestrator), so that merging, timeouts, failures and halts are the real ones,
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
mod scripted;

pub use rule::Rule;
pub use scripted::ScriptedOrchestrator;

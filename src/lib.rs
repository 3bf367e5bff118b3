//! hookyard runs hooks for AI-agent hosts.
//!
//! A host tells it what is about to happen in a run, such as "the model wants to call the tool Bash with this input".
//! hookyard finds the hooks that concern it, runs them under timeouts and policies, and returns one
//! [`Verdict`](model::Verdict): proceed, allow, ask a person, block, or halt the run; and the payload as hooks
//! changed it.
//!
//! # Quickstart
//!
//! ```
//! use hookyard::{NativeHook, Orchestrator, ToolCall, model::{EventKind, Reply, Verdict}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guard = NativeHook::inline("no-deploys", [EventKind::BeforeToolDispatch], |_| Ok(Reply::ask("deploy now?")));
//! let orchestrator = Orchestrator::builder().native_hook(guard.matcher("^Deploy$")).start().await?;
//!
//! let input = serde_json::json!({ "service": "shop" });
//! let outcome = orchestrator.run("run-1")?.before_tool_dispatch(&ToolCall::new("Deploy", &input)).await?;
//! match outcome.verdict {
//!     Verdict::Proceed | Verdict::Allow => println!("run it with {}", outcome.tool_input()?.unwrap_or(input)),
//!     Verdict::Ask => println!("ask a person: {:?}", outcome.reason),
//!     Verdict::Block => println!("tell the model: {:?}", outcome.reason),
//!     Verdict::Halt => println!("end the run: {:?}", outcome.reason),
//! }
//! # assert_eq!(outcome.verdict, Verdict::Ask);
//! # Ok(())
//! # }
//! ```
//!
//! [`Builder::workspace`] adds a directory whose hook files are loaded as well, and [`Builder::strict`] refuses to
//! start if one of them is broken. The repository has three hosts that run: `cargo run --example embedded`,
//! `agent_loop` and `daemon_client`.
//!
//! # Where to look
//!
//! | to | see |
//! | --- | --- |
//! | start, reload, stop | [`Orchestrator`], [`Builder`], [`config::Settings`] |
//! | send events | [`Run`], [`ToolCall`], [`model::Event`] |
//! | read what came of it | [`model::Outcome`], [`model::Verdict`], [`DispatchError`] |
//! | write hooks in Rust | [`NativeHook`], [`model::Draft`], [`model::Reply`] |
//! | call models your own way | [`handler::ModelClient`] |
//! | watch and operate | [`Orchestrator::subscribe`], [`OutcomeObserver`], [`Orchestrator::runs`] |
//! | test your host | [`testing`] |
//! | serve hosts in other languages | [`daemon`], or the program `hookyard serve` |
//!
//! The library installs no metrics recorder, no logger and no signal handler. It needs a tokio runtime and Linux;
//! on another Unix it promises less, as `SECURITY.md` of the repository says.
//! Without the default features `cli` and `daemon` it has neither a command line nor a server.
//!
//! What stays compatible from version to version is written in `docs/stability.md` of the repository; how it works
//! inside, in `ARCHITECTURE.md`.

// The files that an event passes through, in order: here one from a Claude Code host to a command hook that runs once.
// A host in Rust begins at `orchestrator/run.rs`.
//
// `daemon/connections.rs`            accepts the connection and serves it
// `daemon/monitored_io.rs`           notices a peer that is gone, on every read and write
// `daemon/connection_timeouts.rs`    the timeouts of the connection, and the body as it comes and goes
// `daemon/admission.rs`              request id, authorisation, and a permit of its listener
// `daemon/listener_share.rs`         what the clients of its listener may take
// `daemon/auth.rs`                   whether the request may come in
// `daemon/routes/router.rs`          which route the path is
// `daemon/routes/native_events.rs`   the handler of the route, from body to response
// `daemon/request_body.rs`           reads the body within its limits of size and time
// `daemon/routes/events.rs`          rejects what comes from a hook, and reads the event
// `orchestrator/dispatch.rs`         has the dialect read it
// `dialect/catalog.rs`               the dialect of the name
// `dialect/native.rs`                a dialect with its own event names; its tables are in `dialect/claude.rs`
// `dialect/native_dialect.rs`        reads and writes by those tables
// `dialect/event_reader.rs`          reads the fields of the event
// `model/json.rs`                    the strict check of the JSON
// `daemon/agent_activity.rs`         notes it as the last event of the agent, for the status and for `record`
// `model/trace.rs`                   the host's traceparent
// `daemon/traces/tracer.rs`          gives the event a span, if traces are on
// `daemon/workspace_locator.rs`      finds the workspace by `cwd`
// `orchestrator/dispatch.rs`         rejects, plans, admits
// `run/directory.rs`                 whether the run is halted, and its record
// `registry/snapshot.rs`             the plan for the event
// `registry/index.rs`                the hooks whose kind and matcher fit
// `model/matcher.rs`                 a matcher compared with the event
// `registry/plan.rs`                 orders them into stages
// `run/record.rs`                    a lease of the run's actor
// `supervisor/mod.rs`                spawns the actor, if the run has none
// `run/message.rs`                   the request to the actor
// `run/actor.rs`                     queues interceptor events, starts a course, launches its steps
// `run/actor_state.rs`               joins an event that is sent again to the first one
// `run/idempotency.rs`               which events are the same, and the outcomes kept for them
// `run/run_state.rs`                 hooks that run once in a run
// `run/course.rs`                    the state machine of the event: stages, patches, verdicts
// `dialect/native_dialect.rs`        what the hook is told
// `pool/mod.rs`                      the pool of the handler's kind
// `pool/hook_limit.rs`               `max_concurrency` of the hook
// `pool/job_queue.rs`                the queue of the pool, and what is shed from it
// `pool/places.rs`                   the places of the pool, some of them for interceptors only
// `pool/workers.rs`                  the workers, and the reading of the reply
// `handler/command/runner.rs`        the mode of the command, its environment
// `handler/command/environment.rs`   the variables that it inherits
// `handler/command/oneshot.rs`       one process for the event
// `handler/command/process.rs`       runs it: timeout, cancellation, exit
// `handler/command/spawn.rs`         spawns it in a process group
// `handler/command/ledger/mod.rs`    records the group, so that it is ended even if hookyard is killed
// `handler/command/streams.rs`       feeds and reads its pipes
// `handler/command/capture.rs`       bounds its output
// `handler/command/group.rs`         kills what it leaves behind
// `model/redaction.rs`               takes secrets out of its output
// `dialect/claude/reply.rs`          reads the reply
// `pool/job.rs`                      returns the conclusion to the actor, whatever happens
// `run/actor.rs`                     takes the conclusion
// `run/settlement.rs`                turns a conclusion into patches and a verdict; a failure counts as its policy says
// `run/course.rs`                    goes on to the next stage or ends
// `run/verdict_merge.rs`             which verdict decides
// `dialect/patch_merge.rs`           merges a patch into the payload
// `model/outcome.rs`                 the outcome
// `run/completion.rs`                remembers the outcome, halts the run, answers the callers
// `run/record.rs`                    waits until a halt is on disk
// `run/announce.rs`                  tells observers and subscribers
// `run/log.rs`                       writes the log lines
// `orchestrator/dispatch.rs`         returns the outcome
// `daemon/audit/confirmations.rs`    waits until the audit has its line, if `audit.required` says so
// `dialect/claude/response.rs`       writes it as Claude Code expects it
// `daemon/routes/native_response.rs` the response

#[cfg(not(unix))]
compile_error!("hookyard needs process groups and Unix sockets; systems other than Unix are not supported");

#[cfg(feature = "daemon")]
mod bundle;
#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
#[cfg(feature = "daemon")]
pub mod daemon;
pub mod dialect;
pub mod handler;
pub mod model;
mod orchestrator;
#[cfg_attr(
    not(all(feature = "cli", feature = "daemon")),
    allow(dead_code, unused_imports, reason = "both forms have the same items in every build")
)]
mod platform;
mod pool;
pub mod registry;
mod root_dir;
mod rule;
pub mod run;
mod store;
mod supervisor;
pub mod telemetry;
pub mod testing;

pub use orchestrator::{
    Builder, CancelSummary, DispatchError, KeptFile, LoadReport, NativeHook, NoticeStream, NoticesLost,
    Orchestrator, Overload, Run, RunCount, RunFilter, RunList, StartError, ToolCall, WorkspaceError,
};
pub use run::{
    ActiveEvent, FinishedEvent, Halt, Notice, OutcomeObserver, RunActivity, RunPhase, RunRef, RunStatus,
};
#[cfg(feature = "cluster")]
pub use store::ClusterError;
#[cfg(feature = "store")]
pub use store::StoreError;

/// The README's Rust is compiled and run like any example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So is that of the page about hosts.
#[cfg(doctest)]
#[doc = include_str!("../docs/hosts.md")]
struct Hosts;

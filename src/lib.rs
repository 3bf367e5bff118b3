//! hookyard runs hooks for AI-agent hosts.
//!
//! A host tells it what is about to happen in a run ("the model wants to call the tool Bash with this input");
//! hookyard finds the hooks that care, runs them, and answers with one [verdict](model::Verdict): go on, go on
//! with these changes, ask a person, don't, or stop the run. [`Orchestrator`] is the door.
//!
//! # The map
//!
//! ```text
//!                         host ─── or `daemon`, for hosts that are other programs
//!                          │ Event                                ▲ Outcome
//!                          ▼                                      │
//!   ┌─ orchestrator ── snapshot.plan(event) ── empty? ───────────▶┤
//!   │                      │ Plan                                 │
//!   │ SpawnRun             ▼                                      │
//!   ▼              RunMessage::Dispatch(Request)                  │
//! supervisor ────▶ run::RunActor ── Course::begin ─▶ Run(steps)   │
//!   │   spawns,            │  ▲                          │        │
//!   │   restarts,          │  └── conclude(step) ◀───────┼────────┤ Done
//!   │   forgets            │ Job                         │        │
//!   │                      ▼                             │        │
//!   └─────────────▶ pool::Pools ── Invocation ──▶ handler::{command, http, prompt, agent, native}
//!     starts               ▲                             │ RawReply
//!                          └── Conclusion ◀── dialect.read_reply(…)
//! ```
//!
//! # Floors
//!
//! A module imports only from lower floors and its own folder; `tests/house.rs` holds it to that.
//!
//! | floor | module | holds |
//! | --- | --- | --- |
//! | 0 | [`model`] | events, hooks, replies, outcomes, and what a dialect owes the core; pure |
//! | 1 | [`dialect`] | native words, the only place that knows them; pure |
//! | 1 | [`registry`] | which hooks an event concerns; pure |
//! | 1 | `telemetry` | metric names, their handles and typed occurrences |
//! | 2 | [`config`] | settings, secrets and hook files, from disk |
//! | 2 | [`handler`] | how one hook is run once: processes, requests, questions to models, closures |
//! | 3 | `pool` | bounded places to run handlers |
//! | 4 | [`run`] | the [course](run::Course) of one event (pure), and the actor of each run |
//! | 5 | `supervisor` | the registry, and who lives |
//! | 6 | `orchestrator` | the library's door |
//! | 7 | [`daemon`] | the door for programs: a socket, its routes, their limits |
//! | 8 | `cli` | the command line |
//!
//! # One event, in reading order
//!
//! `daemon/routes/events.rs` → `dialect` (read event) → `orchestrator/dispatch.rs` → `registry/snapshot.rs` → `run/actor.rs` →
//! `run/course.rs` → `pool/workers.rs` → `handler/command/runner.rs` → `dialect` (read reply) →
//! `run/course.rs` → `model/outcome.rs` → `dialect` (write answer) → `daemon/routes/events.rs`
//!
//! # Invariants
//!
//! - Only `dialect/` knows a native field name.
//! - Nothing of an event stands in the system role of a model.
//! - The core cannot wait and cannot fail: matching, planning, courses and folding are plain functions.
//! - The supervisor reads no file and runs no hook.
//! - `RunActor::handle` never awaits a handler.
//! - Every invocation ends exactly once, whatever becomes of its pool or its process.
//! - No id, tool name or command text is ever a metric label.
//! - A broken hook file removes that hook and nothing else.
//! - An event keeps the snapshot it began with.
//! - What must not be lost is sent to a run's actor only under a lease, so no actor goes away with it unread.
//! - Looking at runs holds none of them up, and keeps none of them from being idle.

#[cfg(not(target_os = "linux"))]
compile_error!("hookyard watches processes through Linux's pidfd; other systems are not supported");

#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
#[cfg(feature = "daemon")]
pub mod daemon;
pub mod dialect;
pub mod handler;
pub mod model;
mod orchestrator;
mod pool;
pub mod registry;
pub mod run;
mod supervisor;
pub mod telemetry;

pub use orchestrator::{
    Builder, Cancelled, DispatchError, LoadReport, NativeHook, Orchestrator, Overload, Run, RunCount,
    RunFilter, RunList, StartError, WorkspaceError,
};
pub use run::{
    ActiveEvent, FinishedEvent, Halt, Notice, OutcomeObserver, RunActivity, RunPhase, RunRef, RunStatus,
};

/// The README's Rust is compiled and run like any example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So is that of the page about hosts.
#[cfg(doctest)]
#[doc = include_str!("../docs/hosts.md")]
struct Hosts;

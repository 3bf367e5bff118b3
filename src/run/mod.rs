//! Runs: one actor for each run with work in flight, and the pure course of an event through its stages.
//! Refuses to execute hooks: that is the pools' part.

mod actor;
mod actor_state;
mod completion;
mod course;
mod decision_id;
mod directory;
mod idempotency;
mod log;
mod message;
mod notify;
mod record;
mod run_state;
mod settlement;
mod status;
mod step_state;
mod verdict_merge;

pub(crate) use actor::{RunActor, RunContext};
pub use course::{Course, Progress};
pub use decision_id::next_decision_id;
pub(crate) use directory::{RunDirectory, RunEntry, RunKey};
pub(crate) use message::{Caller, EventRequest, InFlightGuard, RunMessage, RunRejection};
pub use message::{Notice, RunRef};
pub use notify::{FinishedEvent, OutcomeObserver};
pub use record::Halt;
pub(crate) use record::{LeaseError, RunHandle, RunLease};
pub use status::{ActiveEvent, RunActivity, RunPhase, RunStatus};

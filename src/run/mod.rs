//! Runs: the actor of each run, and the course of an event through the stages of its plan.

mod actor;
mod actor_state;
mod announce;
mod answer_budget;
mod answer_gate;
mod completion;
mod context;
mod course;
mod decision_id;
mod directory;
mod halt;
mod idempotency;
mod launch;
mod log;
mod message;
mod notify;
#[cfg_attr(not(feature = "store"), allow(dead_code, reason = "there is no store in this build"))]
mod outbox;
mod plain_outcome;
mod record;
#[cfg(feature = "daemon")]
mod rehearsal;
mod remembered;
#[cfg(feature = "store")]
mod restore;
mod run_state;
mod settlement;
#[cfg(feature = "cluster")]
mod shared_halts;
mod status;
mod tidy;
mod verdict_merge;

pub(crate) use actor::RunActor;
pub(crate) use answer_budget::AnswerLimits;
pub(crate) use context::{QueueEnds, RunContext};
pub use course::{Course, Progress};
#[cfg(feature = "daemon")]
pub(crate) use decision_id::name_decisions;
pub use decision_id::next_decision_id;
pub(crate) use directory::{RunDirectory, RunEntry};
pub use halt::Halt;
pub(crate) use idempotency::IdempotencyKey;
pub(crate) use message::{
    AdmissionPermit, Caller, EventRequest, EventSender, InFlightGuard, LeaseError, RunHandle, RunLease,
    RunMessage, RunRejection, detached_part_of,
};
pub use message::{Notice, RunRef};
pub use notify::{FinishedEvent, OutcomeObserver};
#[cfg(feature = "cluster")]
pub(crate) use outbox::NotAccepted;
#[cfg(feature = "daemon")]
pub(crate) use outbox::OutboxPhase;
pub(crate) use outbox::{CourseTicket, Outbox, OutboxEntry, OutboxRefusal};
#[cfg(feature = "store")]
pub(crate) use outbox::{DueEvent, OutboxCounts, OutboxLimits};
pub(crate) use record::HaltNotStored;
#[cfg(feature = "daemon")]
pub(crate) use rehearsal::{Rehearsal, RehearsedEvent, RehearsedTrust};
#[cfg(feature = "store")]
pub(crate) use restore::Courier;
#[cfg(feature = "daemon")]
pub(crate) use restore::OutboxOwner;
#[cfg(feature = "cluster")]
pub(crate) use shared_halts::TooManyRuns;
pub use status::{ActiveEvent, RunActivity, RunPhase, RunStatus};

//! Runs: one actor for each run with work in flight, and the pure course of an event through its stages.
//! Refuses to execute hooks: that is the pools' part.

mod actor;
mod answers;
mod course;
mod directory;
mod ending;
mod log;
mod memory;
mod message;
mod news;
mod record;
mod slot;
mod state;
mod status;
mod voices;

pub(crate) use actor::{RunActor, RunContext};
pub use course::{Course, Progress};
pub(crate) use directory::{Directory, Found, RunKey};
pub(crate) use message::{Caller, Held, Refusal, Request, RunMessage};
pub use message::{Notice, RunPlace};
pub use news::{Finished, Witness};
pub use record::Halt;
pub(crate) use record::{Lease, NoLease, RunHandle};
pub use status::{InHand, RunPhase, RunStatus, UnderWay};

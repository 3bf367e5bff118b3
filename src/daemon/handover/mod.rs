//! A daemon replaces another: it takes the listeners over, and the other finishes what it has.
//!
//! ```text
//! successor                                    predecessor
//!     POST /v1/handover {"socket": …}  ───▶     connects to that socket
//!     ◀───  Offer, with the listeners           goes on as before
//!     loads its workspaces
//!     Data, Ready  ───▶                         closes the store of runs; goes on, and reports changes
//!     ◀───  Released
//!     opens the store
//!     Loaded  ───▶                              accepts no more connections; requests on open ones wait
//!     ◀───  Changed, Go
//!     accepts connections
//!     Started  ───▶                             drains; forwards what comes on open connections
//!     ◀───  Changed  …  Flush                   until its last event is answered
//!     Flushed  ───▶
//!     delivers what the outbox still has    ◀── ends
//! ```
//!
//! Among the changes of runs the predecessor reports those of its outbox (`Event`); the successor says when an event is on
//! disk (`Kept`).
//!
//! Before `Go` either side may give up, and the predecessor goes on. After it, the predecessor goes on only if the
//! successor ends before `Started`. A predecessor that is killed before `Go` withholds it no longer. A successor that ends
//! before the predecessor leaves the store to it.

mod forward;
mod predecessor;
mod store;
mod successor;
#[cfg(test)]
mod tests;
mod wire;

pub(super) use forward::forward;
pub(super) use predecessor::offer;
pub(super) use successor::{Replacement, serve_predecessor};
#[cfg(test)]
pub(crate) use tests::SimulatedDaemon;

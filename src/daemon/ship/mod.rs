//! Shipping: audit lines and the state of the daemon, sent to a server of an organisation.
//!
//! Lines wait on disk until the server has taken them, in the order in which they were written. A server that is away, or
//! answers with an error, gets the same lines again, with pauses that grow; what it has taken already may come twice.
//!
//! ```text
//! audit::Writer ── lines ──▶ Spool (files in `data`) ── batches ──▶ Shipper ── POST ──▶ server
//! state, now and then ─────────▲
//! ```

mod body;
mod directory;
mod place;
mod request;
mod shipper;
mod spool;
mod state_line;
#[cfg(test)]
mod tests;

pub(super) use shipper::Shipping;
pub(super) use spool::{Spool, SpoolCounts};
pub(super) use state_line::state_line;

//! The audit: a line of JSON for each outcome, in a file or on standard output.
//!
//! It never delays an event: lines that do not fit into its queue are dropped and counted. With `audit.required`, each
//! answer waits for its line.
//!
//! ```text
//! run::RunActor ── FinishedEvent ──▶ Audit ── bounded queue ──▶ Writer's thread ──▶ AuditSink (file, stdout)
//! ```

mod changed_paths;
mod confirmations;
mod counters;
mod line;
mod queue;
mod rotating_file;
#[cfg(test)]
mod tests;
mod writer;

pub(super) use line::{DenialDetails, DenialLine, UnaskedReason};
pub(super) use queue::Audit;
pub use queue::AuditError;

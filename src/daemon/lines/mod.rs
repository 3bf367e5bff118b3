//! The socket of lines: events as lines of JSON, many at the same time on one connection, answers in any order.
//!
//! ```text
//! connection ── LineBuffer ── line ──▶ LineRequest ──▶ LinesDoor ── decide, as `routes` does
//!      ▲                                                  │
//!      └────────── unsent answers ◀── LineAnswer ◀────────┘
//! ```
//!
//! A line with a readable `id` gets one answer with that `id`, whatever is wrong with it, and the connection goes on. A
//! line without one cannot be answered, and an `id` that is in flight already cannot be told from the first: then the
//! connection takes no more lines, answers what is in flight, and ends, so that nobody waits for an answer forever.

mod answer;
mod buffer;
mod connection;
mod door;
mod error;
mod flight;
mod request;

pub(super) use connection::{LinesEnd, serve};
pub(super) use door::{LinesDoor, ROUTE};

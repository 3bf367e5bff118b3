//! Http hooks: a request to a server, with the envelope as its body. Owns the whole exchange and its bounds;
//! refuses to read the answer, which is the dialects' part.

mod body;
mod client;
mod exchange;
mod failure;
mod runner;

pub(super) use body::{ReadError, beginning, whole};
pub(crate) use client::Clients;
pub(super) use failure::Setback;
pub(crate) use runner::{HttpLimits, HttpRunner};

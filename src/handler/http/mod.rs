//! Http hooks: a request to a server, with the envelope as its body.

mod request;
mod runner;
mod sockets;
mod targets;

pub(crate) use runner::HttpRunner;

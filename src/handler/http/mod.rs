//! Http hooks: a request to a server, with the envelope as its body.

mod request;
mod runner;
mod sockets;

pub(crate) use runner::HttpRunner;

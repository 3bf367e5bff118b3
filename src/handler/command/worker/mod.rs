//! Mode `worker`: processes that stay and serve many events over JSON lines. Owns the protocol and the lives of
//! workers; refuses to read an answer, which is its dialect's part, and to run a hook any other way.

mod fleet;
mod greeting;
mod life;
mod line;
mod link;
mod pipes;
mod terms;

pub(super) use fleet::{Fleet, Served};
pub(super) use terms::{Errors, FleetMeters};

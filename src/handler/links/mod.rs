//! Looks up the links in the paths of an event before rules judge it. It is the one part of rules that asks the disk, and it
//! runs beside the actors, since a disk may hang.

mod crew;
mod look_up;
mod query;

pub(crate) use query::{LinkQuery, look_up};

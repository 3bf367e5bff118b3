//! Bundles that are offered to a machine, and what is kept of them on disk.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

mod kept;
mod level;
mod machine;
mod spoiled;

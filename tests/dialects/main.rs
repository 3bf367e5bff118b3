//! The dialects: how each is read and written, every pair of them, and files that are wrong.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

#[cfg(feature = "cli")]
mod agents;
#[cfg(feature = "cli")]
mod agents_gemini;
mod bad_files;
mod cases;
mod clawd;
#[cfg(feature = "cli")]
mod convert;
mod matrix;
mod openharness;
mod reply_merge;

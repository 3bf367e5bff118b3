//! The dialects: how each is read and written, every pair of them, and files with mistakes.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "cli")]
mod agents;
#[cfg(feature = "cli")]
mod agents_gemini;
mod bad_hook_files;
mod case_files;
mod cases;
mod claude_conditions;
mod clawd;
#[cfg(feature = "cli")]
mod convert;
mod front_matter;
mod levels;
mod matrix;
mod openharness;
mod patch_beside_block;
mod plugins;
mod reply_merge;
mod settings_files;
mod test_workspace;
mod unreadable_place;

//! The OpenHarness dialect: its events and answers, its envelopes and replies, its hook files.

mod answer;
mod envelope;
mod event;
mod handlers;
mod hook_file;
mod mode;
mod reply;
mod requests;
mod speaker;
mod variables;
mod written;

pub use hook_file::read_hook;
pub(crate) use mode::warn_of_mode;
pub use speaker::OpenHarness;
pub use variables::UnsafeVariables;
pub use written::{HookRules, Located, Surroundings};

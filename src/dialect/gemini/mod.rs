//! The dialect of Gemini CLI, which combines the outputs of all hooks into one.

mod combine;
mod definition;
mod output;
mod payload;
mod reply;
mod response;

pub(super) use combine::next_prompt;
pub(super) use definition::GEMINI;
pub(crate) use definition::is_extension_enabled;
pub(super) use output::{GeminiDecision, GeminiOutput};
pub(super) use payload::translate;
pub(super) use reply::object_in;

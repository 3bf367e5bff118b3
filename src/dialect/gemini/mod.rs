//! The dialect of Gemini CLI, which combines the outputs of all hooks into one.

mod combine;
mod definition;
mod output;
mod payload;
mod reply;
mod response;

pub(super) use definition::GEMINI;
pub(crate) use definition::is_extension_enabled;

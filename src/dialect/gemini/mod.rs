//! The dialect of Gemini CLI, whose hooks' answers are folded into one.

mod combine;
mod definition;
mod output;
mod payload;
mod reply;
mod response;

pub(super) use definition::GEMINI;

//! The dialect of ClawdCode.

mod definition;
mod matcher;
mod reply;
mod response;
mod tool_input;

pub(super) use definition::CLAWD;

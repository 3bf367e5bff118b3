//! The dialect of Gemini CLI, whose hooks' answers are folded into one.

mod answer;
mod facts;
mod join;
mod parts;
mod reply;
mod said;

pub(super) use facts::GEMINI;

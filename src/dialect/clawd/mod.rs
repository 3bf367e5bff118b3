//! The dialect of ClawdCode.

mod answer;
mod facts;
mod matcher;
mod reply;
mod subject;

pub(super) use facts::CLAWD;

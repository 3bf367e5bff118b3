//! The dialect of Claude Code, and what hooks and hosts of its family say.

mod answer;
mod facts;
mod judgement;
mod reply;

pub(super) use answer::write;
pub(super) use facts::{CLAUDE, FIELDS, FRAME, KEYS, OWN_FIELDS, project_directory, replace};
pub(super) use judgement::judgement;
pub(super) use reply::{FailingJson, Words, read};

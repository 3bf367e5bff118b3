//! Events of hook files under the names that agents have for them.

use super::{
    super::{claude::CLAUDE, clawd::CLAWD, codebuddy::CODEBUDDY, gemini::GEMINI},
    event,
};
use crate::model::EventKind;

/// The kind that an agent's name for an event means, if OpenHarness has it.
pub(super) fn canonical_kind(name: &str) -> Option<EventKind> {
    let rows = [&CLAUDE, &CODEBUDDY, &CLAWD, &GEMINI].into_iter().filter_map(|native| native.row_named(name));
    rows.map(|row| row.kind).find(|kind| event::has_kind(*kind))
}

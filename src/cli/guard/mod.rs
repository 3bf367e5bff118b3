//! Command hooks that are only a pattern and an exit code, as rules. Pure, but for the script that is read.

#![expect(clippy::similar_names, reason = "guards are tests of texts, and texts of tests")]
#![expect(
    clippy::unused_self,
    reason = "what belongs to a run is a method of it, whether it needs its state or not"
)]

mod answers;
mod expressions;
mod paths;
mod pattern;
mod rule;
mod samples;
mod script;
mod shell;
mod source;
mod text;

pub(super) use pattern::SystemCharacters;
pub(super) use rule::{GuardFailures, GuardRule};
pub(super) use samples::{GuardSample, samples};
pub(super) use source::{GuardSource, ScriptPlaces};
pub(super) use text::Unclear;

use crate::model::Hook;
use paths::ScriptPath;

/// The rule that means the same as a command hook.
///
/// Returns why it is left alone, if it is.
pub(super) fn rule_of(
    hook: &Hook,
    source: &GuardSource,
    characters: SystemCharacters,
) -> Result<GuardRule, Unclear> {
    let paths: Vec<ScriptPath> = match source {
        GuardSource::Shell { text, kind } => shell::paths(text, *kind, characters)?,
        GuardSource::Script { text, language } => script::paths(text, *language)?,
    };
    GuardRule::of(hook, &paths)
}

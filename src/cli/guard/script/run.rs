//! The run of a script: how it goes on from states, and at conditions.

use super::{
    tokens::GuardScriptLanguage,
    values::{ScriptBranches, ScriptCondition, ScriptState, Ways},
};
use crate::cli::guard::{
    paths::{PathBounds, PathFork, ScriptPath},
    text::Unclear,
};

/// Runs a script.
pub(super) struct ScriptRun {
    pub(super) language: GuardScriptLanguage,
    pub(super) bounds: PathBounds,
    pub(super) depth: usize,
    /// The ways that have ended with an error within an expression.
    pub(super) failed: Vec<ScriptState>,
}

impl ScriptRun {
    pub(super) fn of(language: GuardScriptLanguage) -> Self {
        Self { language, bounds: PathBounds::default(), depth: 0, failed: Vec::new() }
    }

    /// Goes on from every state that has not ended.
    pub(super) fn each(
        &mut self,
        states: Vec<ScriptState>,
        go_on: impl Fn(&mut Self, ScriptState) -> Ways,
    ) -> Ways {
        let mut after = Vec::new();
        for state in states {
            if state.goes_on() {
                after.extend(go_on(self, state)?);
            } else {
                after.push(state);
            }
        }
        Ok(after)
    }

    /// Goes on where a condition holds, and where it does not.
    pub(super) fn decided(
        &mut self,
        condition: &ScriptCondition,
        state: ScriptState,
    ) -> Result<ScriptBranches, Unclear> {
        self.bounds.step()?;
        match condition {
            ScriptCondition::Known(true) => Ok(ScriptBranches { holds: vec![state], fails: Vec::new() }),
            ScriptCondition::Known(false) => Ok(ScriptBranches { holds: Vec::new(), fails: vec![state] }),
            ScriptCondition::Test(field, test) => {
                let PathFork { holds, fails } = self.bounds.fork(&state.path, field.clone(), test.clone())?;
                let with =
                    |path: Option<ScriptPath>| path.map(|path| state.with_path(path)).into_iter().collect();
                Ok(ScriptBranches { holds: with(holds), fails: with(fails) })
            }
            ScriptCondition::Not(inner) => {
                let ScriptBranches { holds, fails } = self.decided(inner, state)?;
                Ok(ScriptBranches { holds: fails, fails: holds })
            }
            ScriptCondition::Both(one, other) => {
                let first = self.decided(one, state)?;
                let mut branches = ScriptBranches { holds: Vec::new(), fails: first.fails };
                for state in first.holds {
                    let second = self.decided(other, state)?;
                    branches.holds.extend(second.holds);
                    branches.fails.extend(second.fails);
                }
                Ok(branches)
            }
            ScriptCondition::Either(one, other) => {
                let first = self.decided(one, state)?;
                let mut branches = ScriptBranches { holds: first.holds, fails: Vec::new() };
                for state in first.fails {
                    let second = self.decided(other, state)?;
                    branches.holds.extend(second.holds);
                    branches.fails.extend(second.fails);
                }
                Ok(branches)
            }
        }
    }
}

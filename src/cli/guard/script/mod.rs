//! Guards in Python and JavaScript: what is understood of them is run with a text that is not known.

mod ast;
mod calls;
mod conditions;
mod cursor;
mod evaluate;
mod javascript;
mod printing;
mod python;
mod run;
mod statements;
mod tokens;
mod values;

pub(in crate::cli) use tokens::GuardScriptLanguage;

use super::{
    paths::{PathEnd, ScriptPath},
    text::Unclear,
};
use run::ScriptRun;
use values::{ScriptFlow, ScriptState};

/// The ways through a script.
pub(super) fn paths(text: &str, language: GuardScriptLanguage) -> Result<Vec<ScriptPath>, Unclear> {
    let block = match language {
        GuardScriptLanguage::Python => python::parse(text)?,
        GuardScriptLanguage::JavaScript => javascript::parse(text)?,
    };
    let mut run = ScriptRun::of(language);
    let mut states = run.block(&block, ScriptState::default())?;
    states.append(&mut run.failed);
    let mut ended = Vec::new();
    for mut state in states {
        // What waits for the end of the input.
        let deferred = std::mem::take(&mut state.deferred);
        match deferred {
            Some(function) if state.goes_on() => {
                ended.extend(run.call(&function, Vec::new(), &state)?);
                ended.append(&mut run.failed);
            }
            _ => ended.push(state),
        }
    }
    let paths = ended.into_iter().map(|state| {
        let end = match state.flow {
            ScriptFlow::Failed => PathEnd::Error,
            _ => PathEnd::Exit(0),
        };
        ScriptPath { end: state.path.end.or(Some(end)), ..state.path }
    });
    Ok(paths.collect())
}

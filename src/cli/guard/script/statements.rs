//! Blocks, loops and functions.

use std::rc::Rc;

use super::{
    ast::{CaughtErrors, ScriptExpression, ScriptFunction, ScriptStatement},
    run::ScriptRun,
    tokens::GuardScriptLanguage,
    values::{ScriptFlow, ScriptState, ScriptValue, Ways},
};
use crate::cli::guard::{
    paths::PathEnd,
    text::{GuardText, Unclear},
};

/// How deep functions call each other.
const DEEPEST: usize = 16;

impl ScriptRun {
    pub(super) fn block(&mut self, block: &[ScriptStatement], state: ScriptState) -> Ways {
        // Functions of JavaScript are there before they are written.
        let mut state = state;
        if self.language == GuardScriptLanguage::JavaScript {
            for statement in block {
                if let ScriptStatement::Define(name, function) = statement {
                    state.variables.insert(name.clone(), ScriptValue::Function(Rc::clone(function)));
                }
            }
        }
        let mut states = vec![state];
        for statement in block {
            states = self.each(states, |run, state| run.statement(statement, state))?;
        }
        Ok(states)
    }

    fn statement(&mut self, statement: &ScriptStatement, mut state: ScriptState) -> Ways {
        self.bounds.step()?;
        match statement {
            ScriptStatement::Assign(name, value) => {
                let value = self.evaluate(value, &mut state)?;
                state.variables.insert(name.clone(), value);
                Ok(vec![state])
            }
            ScriptStatement::Unpack(names, value) => {
                for name in names {
                    let value = ScriptExpression::Member(Box::new(value.clone()), name.clone());
                    let value = self.evaluate(&value, &mut state)?;
                    state.variables.insert(name.clone(), value);
                }
                Ok(vec![state])
            }
            ScriptStatement::Append(name, value) => {
                let added = self.evaluate(value, &mut state)?;
                self.append(name, added, &mut state)?;
                Ok(vec![state])
            }
            ScriptStatement::If(branches, otherwise) => self.conditional(branches, otherwise, state),
            ScriptStatement::For(name, list, body) => self.repeated(name, list, body, state),
            ScriptStatement::Define(name, function) => {
                state.variables.insert(name.clone(), ScriptValue::Function(Rc::clone(function)));
                Ok(vec![state])
            }
            ScriptStatement::Return(Some(ScriptExpression::Call(callee, arguments))) => {
                let after = self.called(callee, arguments, state)?;
                Ok(after.into_iter().map(|(value, state)| returned(Some(value), state)).collect())
            }
            ScriptStatement::Return(value) => {
                let value = value.as_ref().map(|value| self.evaluate(value, &mut state)).transpose()?;
                Ok(vec![returned(value, state)])
            }
            ScriptStatement::Try { body, handler, catches } => self.attempt(body, handler, *catches, state),
            ScriptStatement::Expression(ScriptExpression::Call(callee, arguments)) => {
                let after = self.called(callee, arguments, state)?;
                Ok(after.into_iter().map(|(_, state)| state).collect())
            }
            ScriptStatement::Expression(value) => {
                self.evaluate(value, &mut state)?;
                Ok(vec![state])
            }
        }
    }

    /// `name += value`.
    pub(super) fn append(
        &mut self,
        name: &str,
        added: ScriptValue,
        state: &mut ScriptState,
    ) -> Result<(), Unclear> {
        let sum = match (state.variables.get(name), added) {
            (Some(value), ScriptValue::Input) if value.known_text() == Some("") => ScriptValue::Input,
            (Some(ScriptValue::Input), ScriptValue::Input) => ScriptValue::Input,
            (Some(ScriptValue::Text(text)), ScriptValue::Text(more)) => {
                ScriptValue::Text(text.clone().with(more))
            }
            _ => return Unclear::new(format!("what is added to `{name}`")),
        };
        state.variables.insert(name.to_owned(), sum);
        Ok(())
    }

    fn conditional(
        &mut self,
        branches: &[(ScriptExpression, Vec<ScriptStatement>)],
        otherwise: &[ScriptStatement],
        state: ScriptState,
    ) -> Ways {
        let mut after = Vec::new();
        let mut left = vec![state];
        for (condition, body) in branches {
            let mut still = Vec::new();
            for state in left {
                let decided = self.asked(condition, state)?;
                for state in decided.holds {
                    after.extend(self.block(body, state)?);
                }
                still.extend(decided.fails);
            }
            left = still;
        }
        for state in left {
            after.extend(self.block(otherwise, state)?);
        }
        Ok(after)
    }

    fn repeated(
        &mut self,
        name: &str,
        list: &ScriptExpression,
        body: &[ScriptStatement],
        mut state: ScriptState,
    ) -> Ways {
        let items = match self.evaluate(list, &mut state)? {
            ScriptValue::List(items) => items,
            // The parts of the input.
            ScriptValue::Input => vec![ScriptValue::Input],
            _ => return Unclear::new("a loop over a list that is not known"),
        };
        let mut states = vec![state];
        for item in items {
            states = self.each(states, |run, mut state| {
                bind(name, item.clone(), &mut state)?;
                run.block(body, state)
            })?;
        }
        Ok(states)
    }

    fn attempt(
        &mut self,
        body: &[ScriptStatement],
        handler: &[ScriptStatement],
        catches: CaughtErrors,
        state: ScriptState,
    ) -> Ways {
        let before = std::mem::take(&mut self.failed);
        let mut states = self.block(body, state)?;
        let failed = std::mem::replace(&mut self.failed, before);
        let ends = states.iter().any(|state| state.path.end.is_some());
        if catches == CaughtErrors::AndExits && ends {
            return Unclear::new("`except:` that catches the end of the script");
        }
        for mut state in failed {
            if catches == CaughtErrors::OfInput {
                self.failed.push(state);
            } else {
                state.flow = ScriptFlow::On;
                states.extend(self.block(handler, state)?);
            }
        }
        Ok(states)
    }

    /// Calls a function of the script.
    pub(super) fn call(
        &mut self,
        function: &ScriptFunction,
        arguments: Vec<ScriptValue>,
        state: &ScriptState,
    ) -> Ways {
        if self.depth == DEEPEST {
            return Unclear::new("functions that call each other");
        }
        if arguments.len() > function.parameters.len() {
            return Unclear::new("a function with other arguments");
        }
        let mut inner = state.clone();
        let mut arguments = arguments.into_iter();
        for name in &function.parameters {
            bind(name, arguments.next().unwrap_or(ScriptValue::Nothing), &mut inner)?;
        }
        self.depth += 1;
        let after = self.block(&function.body, inner);
        self.depth -= 1;
        Ok(after?
            .into_iter()
            .map(|after| ScriptState { variables: state.variables.clone(), ..after })
            .collect())
    }

    /// Ends the script, with a value that is its exit code.
    pub(super) fn exit(&self, value: &ScriptValue, state: &mut ScriptState) -> Result<(), Unclear> {
        let code = match value {
            ScriptValue::Nothing => 0,
            ScriptValue::Number(code) => i32::try_from(*code).unwrap_or(1),
            // Python prints a text and ends with 1.
            ScriptValue::Text(text) if self.language == GuardScriptLanguage::Python => {
                state.path.err.add(text.clone().with(GuardText::literal("\n")));
                1
            }
            _ => return Unclear::new("an exit code that is not known"),
        };
        state.path.end = Some(PathEnd::Exit(code));
        Ok(())
    }
}

fn returned(value: Option<ScriptValue>, state: ScriptState) -> ScriptState {
    if state.goes_on() {
        ScriptState { flow: ScriptFlow::Returned(value.map(Box::new)), ..state }
    } else {
        state
    }
}

/// Gives a name a value, or several names the fields of one.
fn bind(names: &str, value: ScriptValue, state: &mut ScriptState) -> Result<(), Unclear> {
    if !names.contains(',') {
        state.variables.insert(names.to_owned(), value);
        return Ok(());
    }
    let ScriptValue::Object(fields) = value else { return Unclear::new("fields of what is no object") };
    for name in names.split(',') {
        let field = fields
            .iter()
            .find(|(key, _)| key == name)
            .map_or(ScriptValue::Nothing, |(_, value)| value.clone());
        state.variables.insert(name.to_owned(), field);
    }
    Ok(())
}

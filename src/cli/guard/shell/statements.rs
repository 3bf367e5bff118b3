//! Lists, conditions and loops.

use std::rc::Rc;

use rable::{ListItem, ListOperator, Node, NodeKind};

use super::{Checked, DEEPEST, ShellRun, ShellState, ShellValue, Ways};
use crate::cli::guard::{
    paths::PathEnd,
    text::{GuardText, Unclear},
};

impl ShellRun {
    pub(super) fn statement(&mut self, node: &Node, state: ShellState, checked: Checked) -> Ways {
        self.bounds.step()?;
        match &node.kind {
            NodeKind::Empty | NodeKind::Comment { .. } => Ok(vec![state]),
            NodeKind::List { items } => self.list(items, state, checked),
            NodeKind::If { condition, then_body, else_body, redirects } if redirects.is_empty() => {
                let tested = self.statement(condition, state, Checked::ByScript)?;
                self.each(tested, |run, state| match (state.is_well, else_body) {
                    (true, _) => run.statement(then_body, state, checked),
                    (false, Some(body)) => run.statement(body, state, checked),
                    (false, None) => Ok(vec![state.ended_well(true)]),
                })
            }
            NodeKind::For { var, words: Some(words), body, redirects } if redirects.is_empty() => {
                self.repeated(var, words, body, state, checked)
            }
            NodeKind::Case { word, patterns, redirects } if redirects.is_empty() => {
                self.case(word, patterns, state, checked)
            }
            NodeKind::BraceGroup { body, redirects } if redirects.is_empty() => {
                self.statement(body, state, checked)
            }
            NodeKind::BraceGroup { body, redirects } => {
                self.redirected_group(body, redirects, state, checked)
            }
            NodeKind::Function { name, body } => {
                let mut state = state.ended_well(true);
                state.functions.insert(name.clone(), Rc::new((**body).clone()));
                Ok(vec![state])
            }
            NodeKind::Negation { pipeline } => {
                let tested = self.statement(pipeline, state, Checked::ByScript)?;
                Ok(tested
                    .into_iter()
                    .map(|state| {
                        if state.goes_on() { ShellState { is_well: !state.is_well, ..state } } else { state }
                    })
                    .collect())
            }
            NodeKind::Command { .. } | NodeKind::Pipeline { .. } | NodeKind::ConditionalExpr { .. } => {
                let after = match &node.kind {
                    NodeKind::Command { assignments, words, redirects } => {
                        self.command(assignments, words, redirects, state)?
                    }
                    NodeKind::Pipeline { commands, .. } => self.pipeline(commands, state)?,
                    NodeKind::ConditionalExpr { body, redirects } if redirects.is_empty() => {
                        self.expression(body, state)?
                    }
                    _ => return Unclear::new("a redirection of `[[`"),
                };
                Ok(after.into_iter().map(|state| ended_on_error(state, checked)).collect())
            }
            _ => Unclear::new("a part of the shell that is not understood"),
        }
    }

    fn list(&mut self, items: &[ListItem], state: ShellState, checked: Checked) -> Ways {
        let mut states = vec![state];
        let mut before = None;
        for item in items {
            if item.operator == Some(ListOperator::Background) {
                return Unclear::new("a command in the background");
            }
            let goes_on = matches!(item.operator, Some(ListOperator::And | ListOperator::Or));
            let own = if goes_on { Checked::ByScript } else { checked };
            states = self.each(states, |run, state| match before {
                Some(ListOperator::And) if !state.is_well => Ok(vec![state]),
                Some(ListOperator::Or) if state.is_well => Ok(vec![state]),
                _ => run.statement(&item.command, state, own),
            })?;
            before = item.operator;
        }
        Ok(states)
    }

    fn repeated(
        &mut self,
        name: &str,
        words: &[Node],
        body: &Node,
        state: ShellState,
        checked: Checked,
    ) -> Ways {
        let mut state = state;
        let mut items = Vec::new();
        for word in words {
            items.extend(self.listed(word, &mut state)?);
        }
        let mut states = vec![state.ended_well(true)];
        for item in items {
            states = self.each(states, |run, mut state| {
                state.variables.insert(name.to_owned(), ShellValue::Text(item.clone()));
                run.statement(body, state, checked)
            })?;
        }
        Ok(states)
    }

    /// The words of a loop.
    fn listed(&mut self, word: &Node, state: &mut ShellState) -> Result<Vec<GuardText>, Unclear> {
        let NodeKind::Word { value, .. } = &word.kind else { return Unclear::new("a loop") };
        let array = value.strip_prefix("\"${").and_then(|rest| rest.strip_suffix("[@]}\""));
        match array.map(|name| state.variables.get(name)) {
            Some(Some(ShellValue::List(items))) => Ok(items.clone()),
            Some(_) => Unclear::new("a loop over a list that is not known"),
            None => Ok(vec![self.word(value, state)?]),
        }
    }

    /// Calls a function.
    pub(super) fn call(&mut self, body: &Node, arguments: &[GuardText], state: &ShellState) -> Ways {
        if self.depth == DEEPEST {
            return Unclear::new("functions that call each other");
        }
        let mut inner = state.clone();
        for place in 1..=9_usize {
            let argument = arguments.get(place - 1).cloned().unwrap_or_default();
            inner.variables.insert(place.to_string(), ShellValue::Text(argument));
        }
        self.depth += 1;
        let after = self.statement(body, inner, Checked::ByScript);
        self.depth -= 1;
        let own: Vec<(String, Option<ShellValue>)> = (1..=9_usize)
            .map(|place| (place.to_string(), state.variables.get(&place.to_string()).cloned()))
            .collect();
        Ok(after?
            .into_iter()
            .map(|mut after| {
                after.returns = false;
                for (name, value) in &own {
                    match value {
                        Some(value) => after.variables.insert(name.clone(), value.clone()),
                        None => after.variables.remove(name),
                    };
                }
                after
            })
            .collect())
    }
}

/// The state after a command, which ends the script after `set -e` if it did not do well.
fn ended_on_error(mut state: ShellState, checked: Checked) -> ShellState {
    if state.goes_on() && !state.is_well && state.ends_on_error && checked == Checked::ByShell {
        state.path.end = Some(PathEnd::Exit(1));
    }
    state
}

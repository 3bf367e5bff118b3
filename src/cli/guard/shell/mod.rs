//! Guards in a shell: what is understood of them is run with a text that is not known.

mod commands;
mod conditions;
mod globs;
mod grep;
mod jq;
mod redirections;
mod statements;
mod values;
mod words;

use std::{collections::BTreeMap, rc::Rc};

use rable::Node;

use super::{
    paths::{PathBounds, PathEnd, ScriptPath},
    pattern::SystemCharacters,
    text::{GuardText, Unclear},
};

/// How deep functions call each other.
const DEEPEST: usize = 16;

/// The shell that runs a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum ShellKind {
    /// `sh`, whatever shell that is.
    Posix,
    Bash,
}

/// The ways through a script.
pub(super) fn paths(
    text: &str,
    kind: ShellKind,
    characters: SystemCharacters,
) -> Result<Vec<ScriptPath>, Unclear> {
    let Ok(nodes) = rable::parse(text, false) else {
        return Unclear::new("it cannot be read as a script of a shell");
    };
    let mut run = ShellRun { kind, characters, bounds: PathBounds::default(), depth: 0 };
    let mut states = vec![ShellState::default()];
    for node in &nodes {
        states = run.each(states, |run, state| run.statement(node, state, Checked::ByShell))?;
    }
    let ended = states.into_iter().map(|state| {
        let exit = i32::from(!state.is_well);
        ScriptPath { end: state.path.end.or(Some(PathEnd::Exit(exit))), ..state.path }
    });
    Ok(ended.collect())
}

/// What a variable has.
#[derive(Debug, Clone)]
enum ShellValue {
    /// All of the input.
    Input,
    Text(GuardText),
    List(Vec<GuardText>),
}

/// Where one way through a script is.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "a shell has as many independent states")]
struct ShellState {
    path: ScriptPath,
    variables: BTreeMap<String, ShellValue>,
    functions: BTreeMap<String, Rc<Node>>,
    /// Whether the last command did well.
    is_well: bool,
    has_read_input: bool,
    /// Whether the shell ends at a command that does not do well.
    ends_on_error: bool,
    returns: bool,
}

impl Default for ShellState {
    fn default() -> Self {
        Self {
            path: ScriptPath::default(),
            variables: BTreeMap::new(),
            functions: BTreeMap::new(),
            is_well: true,
            has_read_input: false,
            ends_on_error: false,
            returns: false,
        }
    }
}

impl ShellState {
    fn goes_on(&self) -> bool {
        self.path.end.is_none() && !self.returns
    }

    fn ended_well(self, is_well: bool) -> Self {
        Self { is_well, ..self }
    }
}

/// Who looks whether a command did well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checked {
    /// `if`, `&&` and the like.
    ByScript,
    /// The shell, after `set -e`.
    ByShell,
}

/// Runs a script.
struct ShellRun {
    kind: ShellKind,
    characters: SystemCharacters,
    bounds: PathBounds,
    depth: usize,
}

type Ways = Result<Vec<ShellState>, Unclear>;

impl ShellRun {
    /// Goes on from every state that has not ended.
    fn each(&mut self, states: Vec<ShellState>, go_on: impl Fn(&mut Self, ShellState) -> Ways) -> Ways {
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
}

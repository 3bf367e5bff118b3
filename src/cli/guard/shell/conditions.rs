//! `[ … ]`, `[[ … ]]` and `case`.

use rable::{CasePattern, Node, NodeKind};

use super::{
    Checked, ShellRun, ShellState, ShellValue, Ways, globs,
    words::{self, WordPiece, WordPieceKind, word_text},
};
use crate::cli::guard::{
    pattern::{ForeignPattern, LetterCase, PatternFlavour, PatternPlace},
    text::{FieldTest, GuardText, Unclear},
};

impl ShellRun {
    /// `[ … ]` and `test …`.
    pub(super) fn test(&mut self, words: &[Node], redirects: &[Node], mut state: ShellState) -> Ways {
        if !redirects.is_empty() {
            return Unclear::new("a redirection of a test");
        }
        let mut texts: Vec<&str> = words.iter().skip(1).filter_map(word_text).collect();
        if words.first().and_then(word_text) == Some("[") && texts.pop() != Some("]") {
            return Unclear::new("`[` without its end");
        }
        let is_negated = texts.first() == Some(&"!");
        let texts = if is_negated { &texts[1..] } else { &texts[..] };
        let after = match *texts {
            [operator @ ("-z" | "-n"), word] => {
                let text = self.word(word, &mut state)?;
                self.equal(&text, "", state, operator == "-z")?
            }
            [word] if !word.starts_with('-') => {
                let text = self.word(word, &mut state)?;
                self.equal(&text, "", state, false)?
            }
            [left, operator @ ("=" | "==" | "!="), right] => {
                let left = self.word(left, &mut state)?;
                let right = self.word(right, &mut state)?;
                match (left.known(), right.known()) {
                    (_, Some(text)) => self.equal(&left, text, state, operator != "!=")?,
                    (Some(text), None) => self.equal(&right, text, state, operator != "!=")?,
                    (None, None) => return Unclear::new("it compares two fields"),
                }
            }
            _ => return Unclear::new("a test that is not understood"),
        };
        Ok(if is_negated { negated(after) } else { after })
    }

    /// What is between `[[` and `]]`.
    pub(super) fn expression(&mut self, node: &Node, mut state: ShellState) -> Ways {
        self.bounds.step()?;
        match &node.kind {
            NodeKind::CondParen { inner } => self.expression(inner, state),
            NodeKind::CondNot { operand } => self.expression(operand, state).map(negated),
            NodeKind::CondAnd { left, right } => {
                let tested = self.expression(left, state)?;
                self.each(
                    tested,
                    |run, state| {
                        if state.is_well { run.expression(right, state) } else { Ok(vec![state]) }
                    },
                )
            }
            NodeKind::CondOr { left, right } => {
                let tested = self.expression(left, state)?;
                self.each(
                    tested,
                    |run, state| {
                        if state.is_well { Ok(vec![state]) } else { run.expression(right, state) }
                    },
                )
            }
            NodeKind::UnaryTest { op, operand } if op == "-z" || op == "-n" => {
                let text = self.unsplit(term(operand)?, &mut state)?;
                self.equal(&text, "", state, op == "-z")
            }
            NodeKind::BinaryTest { op, left, right } => self.compared(op, term(left)?, term(right)?, state),
            NodeKind::CondTerm { value, .. } => {
                let text = self.unsplit(value, &mut state)?;
                self.equal(&text, "", state, false)
            }
            _ => Unclear::new("a test that is not understood"),
        }
    }

    fn compared(&mut self, operator: &str, left: &str, right: &str, mut state: ShellState) -> Ways {
        let text = self.unsplit(left, &mut state)?;
        let pieces = words::pieces(right)?;
        let test = match operator {
            "=~" => Some(self.pattern_test(&pieces, &state)?),
            "=" | "==" | "!=" => globs::test(&pieces, &|name| known_variable(&state, name))?,
            _ => return Unclear::new(format!("the test `{operator}`")),
        };
        let after = self.tested(&text, test, state)?;
        Ok(if operator == "!=" { negated(after) } else { after })
    }

    fn pattern_test(&self, pieces: &[WordPiece], state: &ShellState) -> Result<FieldTest, Unclear> {
        let mut text = String::new();
        for piece in pieces {
            match &piece.kind {
                WordPieceKind::Text(part) if piece.is_quoted => text.push_str(&regex_syntax::escape(part)),
                WordPieceKind::Text(part) => text.push_str(part),
                WordPieceKind::Escaped(c) => text.extend(['\\', *c]),
                WordPieceKind::Variable(name) => match known_variable(state, name) {
                    Some(value) if piece.is_quoted => text.push_str(&regex_syntax::escape(&value)),
                    Some(value) => text.push_str(&value),
                    None => return Unclear::new(format!("`{name}` in a pattern")),
                },
                WordPieceKind::Output(_) => return Unclear::new("a command in a pattern"),
            }
        }
        let pattern = ForeignPattern {
            text: &text,
            flavour: PatternFlavour::Bash,
            place: PatternPlace::Anywhere,
            case: LetterCase::Matters,
            characters: self.characters,
        };
        pattern.test()
    }

    pub(super) fn case(
        &mut self,
        word: &Node,
        patterns: &[CasePattern],
        mut state: ShellState,
        checked: Checked,
    ) -> Ways {
        let Some(word) = word_text(word) else { return Unclear::new("a `case`") };
        let text = self.unsplit(word, &mut state)?;
        let mut done = Vec::new();
        let mut left = vec![state];
        for branch in patterns {
            if branch.terminator != ";;" && !branch.terminator.is_empty() {
                return Unclear::new("a `case` that falls through");
            }
            let mut taken = Vec::new();
            for pattern in &branch.patterns {
                let Some(pattern) = word_text(pattern) else { return Unclear::new("a pattern of `case`") };
                let pieces = words::pieces(pattern)?;
                let mut still = Vec::new();
                for state in left {
                    let test = globs::test(&pieces, &|name| known_variable(&state, name))?;
                    let (with, without): (Vec<_>, Vec<_>) =
                        self.tested(&text, test, state)?.into_iter().partition(|state| state.is_well);
                    taken.extend(with);
                    still.extend(without);
                }
                left = still;
            }
            match &branch.body {
                Some(body) => {
                    done.extend(self.each(taken, |run, state| run.statement(body, state, checked))?);
                }
                None => done.extend(taken),
            }
        }
        done.extend(left.into_iter().map(|state| state.ended_well(true)));
        Ok(done)
    }

    /// Goes on well where a text passes a test.
    fn tested(&mut self, text: &GuardText, test: Option<FieldTest>, state: ShellState) -> Ways {
        let Some(test) = test else { return Ok(vec![state.ended_well(true)]) };
        if let Some(known) = text.known() {
            return Ok(vec![state.ended_well(test.holds(known))]);
        }
        match text.only_field() {
            Some(field) => self.first_of(field, &[test], &state),
            None => Unclear::new("a test of a text with a field in it"),
        }
    }

    fn equal(&mut self, text: &GuardText, other: &str, state: ShellState, is_equal: bool) -> Ways {
        let after = self.tested(text, Some(FieldTest::OneOf(vec![other.to_owned()])), state)?;
        Ok(if is_equal { after } else { negated(after) })
    }
}

fn term(node: &Node) -> Result<&str, Unclear> {
    match &node.kind {
        NodeKind::CondTerm { value, .. } | NodeKind::Word { value, .. } => Ok(value),
        _ => Unclear::new("a test that is not understood"),
    }
}

fn known_variable(state: &ShellState, name: &str) -> Option<String> {
    match state.variables.get(name) {
        Some(ShellValue::Text(text)) => text.known().map(str::to_owned),
        _ => None,
    }
}

fn negated(states: Vec<ShellState>) -> Vec<ShellState> {
    states.into_iter().map(|state| ShellState { is_well: !state.is_well, ..state }).collect()
}

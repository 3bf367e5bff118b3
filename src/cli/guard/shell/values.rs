//! What words and commands stand for: texts, and fields of the input.

use rable::{ListOperator, Node, NodeKind};

use super::{
    ShellKind, ShellRun, ShellState, ShellValue, jq,
    redirections::{Redirection, redirection},
    words::{self, WordPieceKind, word_text},
};
use crate::cli::guard::text::{GuardText, TextPiece, Unclear};

impl ShellRun {
    /// A word as a command gets it.
    pub(super) fn word(&mut self, text: &str, state: &mut ShellState) -> Result<GuardText, Unclear> {
        let mut whole = GuardText::default();
        for piece in words::pieces(text)? {
            let part = self.piece(&piece.kind, state)?;
            if !piece.is_quoted {
                let may_split = match (&piece.kind, part.known()) {
                    (WordPieceKind::Text(text), _) => text.contains(['*', '?', '[', '~', '{']),
                    (WordPieceKind::Escaped(_), _) => false,
                    (_, Some(text)) => {
                        text.is_empty() || text.contains(|c: char| c.is_whitespace() || "*?[".contains(c))
                    }
                    (_, None) => true,
                };
                // `[` is a command, and `{a,b}` is only one with a comma.
                if may_split && text != "[" {
                    return Unclear::new(format!("`{text}` without quotes"));
                }
            }
            whole.add(part);
        }
        Ok(whole)
    }

    /// A word where no shell splits it.
    pub(super) fn unsplit(&mut self, text: &str, state: &mut ShellState) -> Result<GuardText, Unclear> {
        let mut whole = GuardText::default();
        for piece in words::pieces(text)? {
            whole.add(self.piece(&piece.kind, state)?);
        }
        Ok(whole)
    }

    pub(super) fn piece(
        &mut self,
        kind: &WordPieceKind,
        state: &mut ShellState,
    ) -> Result<GuardText, Unclear> {
        match kind {
            WordPieceKind::Text(text) => Ok(GuardText::literal(text.clone())),
            WordPieceKind::Escaped(c) => Ok(GuardText::literal(c.to_string())),
            WordPieceKind::Variable(name) => match state.variables.get(name) {
                Some(ShellValue::Text(text)) => Ok(text.clone()),
                Some(ShellValue::Input) => Unclear::new("it uses all of its input"),
                Some(ShellValue::List(_)) => Unclear::new("a list as a text"),
                None => Unclear::new(format!("the variable `{name}`")),
            },
            WordPieceKind::Output(command) => match self.output(command, state)? {
                ShellValue::Text(text) => Ok(text),
                _ => Unclear::new("it uses all of its input"),
            },
        }
    }

    /// What is assigned.
    pub(super) fn assigned(&mut self, text: &str, state: &mut ShellState) -> Result<ShellValue, Unclear> {
        if let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            let items = words::elements(inner)?;
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            return self.words(&items, state).map(ShellValue::List);
        }
        let pieces = words::pieces(text)?;
        let bare: Vec<&WordPieceKind> = pieces
            .iter()
            .map(|piece| &piece.kind)
            .filter(|kind| !matches!(kind, WordPieceKind::Text(text) if text.is_empty()))
            .collect();
        match bare.as_slice() {
            [WordPieceKind::Output(command)] => self.output(command, state),
            [WordPieceKind::Variable(name)]
                if matches!(state.variables.get(name), Some(ShellValue::Input)) =>
            {
                Ok(ShellValue::Input)
            }
            _ => self.unsplit(text, state).map(ShellValue::Text),
        }
    }

    /// What a command in `$(…)` prints, without the line ends at its end.
    fn output(&mut self, command: &str, state: &mut ShellState) -> Result<ShellValue, Unclear> {
        self.bounds.step()?;
        let Ok(nodes) = rable::parse(command, false) else {
            return Unclear::new("a command that cannot be read");
        };
        let [node] = nodes.as_slice() else { return Unclear::new("several commands in `$(…)`") };
        let printed = self.printed(node, state)?;
        state.is_well = true;
        let ShellValue::Text(text) = printed else { return Ok(printed) };
        Ok(ShellValue::Text(cut(text)))
    }

    /// What a command prints that does nothing else. It does well.
    pub(super) fn printed(&mut self, node: &Node, state: &mut ShellState) -> Result<ShellValue, Unclear> {
        match &node.kind {
            NodeKind::Pipeline { commands, .. } => {
                let mut piped = None;
                for command in commands {
                    piped = Some(self.filtered(command, piped, state)?);
                }
                piped.map_or_else(|| Unclear::new("an empty pipe"), Ok)
            }
            // What follows `||` runs only after an error, of which there is none.
            NodeKind::List { items } => match items.as_slice() {
                [first, _] if first.operator == Some(ListOperator::Or) => self.printed(&first.command, state),
                [only] if matches!(only.operator, None | Some(ListOperator::Semi)) => {
                    self.printed(&only.command, state)
                }
                _ => Unclear::new("several commands in `$(…)`"),
            },
            _ => self.filtered(node, None, state),
        }
    }

    /// What a command makes of its input: of what is piped into it, or of the script's.
    pub(super) fn filtered(
        &mut self,
        node: &Node,
        piped: Option<ShellValue>,
        state: &mut ShellState,
    ) -> Result<ShellValue, Unclear> {
        let NodeKind::Command { assignments, words, redirects } = &node.kind else {
            return Unclear::new("a pipe of more than commands");
        };
        if !assignments.is_empty() {
            return Unclear::new("a variable for one command");
        }
        let mut input = piped;
        for redirect in redirects {
            match redirection(redirect)? {
                Redirection::ErrorsAway => {}
                Redirection::Text(word) => input = Some(self.assigned(&word, state)?),
                _ => return Unclear::new("a redirection in a pipe"),
            }
        }
        let (name, arguments) = self.called(words, state)?;
        let known: Vec<&str> = arguments.iter().filter_map(GuardText::known).collect();
        let all_known = known.len() == arguments.len();
        match name.as_str() {
            "cat" if known.is_empty() || known == ["-"] || known == ["/dev/stdin"] => {
                self.input(input, state)
            }
            "jq" if all_known => match self.input(input, state)? {
                ShellValue::Input => jq::printed(&known).map(ShellValue::Text),
                _ => Unclear::new("`jq` of a part of the input"),
            },
            "echo" | "printf" if input.is_none() => match words.get(1..) {
                Some(words) => self.told(&name, words, state),
                None => Unclear::new("`echo` of nothing"),
            },
            _ => Unclear::new(format!("the command `{name}`")),
        }
    }

    fn input(&self, piped: Option<ShellValue>, state: &mut ShellState) -> Result<ShellValue, Unclear> {
        match piped {
            Some(value) => Ok(value),
            None if state.has_read_input => Unclear::new("it reads its input twice"),
            None => {
                state.has_read_input = true;
                Ok(ShellValue::Input)
            }
        }
    }

    /// What `echo` or `printf` prints: all of the input, or a text.
    fn told(&mut self, name: &str, words: &[Node], state: &mut ShellState) -> Result<ShellValue, Unclear> {
        let texts: Vec<&str> = words.iter().filter_map(word_text).collect();
        let given = match (name, texts.as_slice()) {
            ("echo", [word]) | ("printf", ["'%s'" | "\"%s\"" | "%s" | "'%s\\n'" | "\"%s\\n\"", word]) => {
                Some(*word)
            }
            _ => None,
        };
        let variable = given.and_then(|word| word.strip_prefix("\"$")?.strip_suffix('"'));
        let variable = variable.map(|name| name.trim_start_matches('{').trim_end_matches('}'));
        if let Some(ShellValue::Input) = variable.and_then(|name| state.variables.get(name)) {
            if name == "echo" && self.kind == ShellKind::Posix {
                return Unclear::new(
                    "`echo` of sh may change backslashes of the input: `printf '%s'` does not",
                );
            }
            return Ok(ShellValue::Input);
        }
        let arguments = self.words(&texts, state)?;
        if let ("echo", ShellKind::Bash, [text]) = (name, self.kind, arguments.as_slice())
            && text.only_field().is_some()
        {
            // Whoever reads it sees to it that no option of `echo` is taken for a text.
            return Ok(ShellValue::Text(text.clone().with(GuardText::literal("\n"))));
        }
        self.printed_text(name, &arguments).map(ShellValue::Text)
    }

    /// The name of a command, and its arguments.
    pub(super) fn called(
        &mut self,
        words: &[Node],
        state: &mut ShellState,
    ) -> Result<(String, Vec<GuardText>), Unclear> {
        let texts: Vec<&str> = words.iter().filter_map(word_text).collect();
        let Some((name, rest)) = texts.split_first() else { return Unclear::new("a command without a name") };
        let name = self.word(name, state)?;
        let Some(name) = name.known() else { return Unclear::new("a command that is not known") };
        // The input is no text, and only these commands take it.
        if matches!(name, "echo" | "printf") {
            return Ok((name.to_owned(), Vec::new()));
        }
        Ok((name.to_owned(), self.words(rest, state)?))
    }

    pub(super) fn words(
        &mut self,
        words: &[&str],
        state: &mut ShellState,
    ) -> Result<Vec<GuardText>, Unclear> {
        words.iter().map(|word| self.word(word, state)).collect()
    }
}

/// A text without the line ends at its end.
fn cut(mut text: GuardText) -> GuardText {
    loop {
        match text.0.last_mut() {
            Some(TextPiece::Literal(last)) => {
                last.truncate(last.trim_end_matches('\n').len());
                if !last.is_empty() {
                    return text;
                }
                text.0.pop();
            }
            Some(TextPiece::Field(field) | TextPiece::Quoted(field)) => {
                field.is_cut = true;
                return text;
            }
            None => return text,
        }
    }
}

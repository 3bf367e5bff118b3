//! Commands that assign, print and end.

use rable::Node;

use super::{
    Checked, ShellKind, ShellRun, ShellState, ShellValue, Ways,
    redirections::{PrintTarget, Redirection, redirection, target_of},
    words::{self, WordPieceKind, word_text},
};
use crate::cli::guard::{
    paths::PathEnd,
    text::{GuardText, TextPiece, Unclear},
};

impl ShellRun {
    pub(super) fn command(
        &mut self,
        assignments: &[Node],
        words: &[Node],
        redirects: &[Node],
        state: ShellState,
    ) -> Ways {
        let mut state = state;
        if words.is_empty() && redirects.is_empty() {
            state.is_well = true;
            for text in assignments.iter().filter_map(word_text) {
                self.assign(text, &mut state)?;
            }
            return Ok(vec![state]);
        }
        if !assignments.is_empty() && !is_reading(words) {
            return Unclear::new("a variable for one command");
        }
        let name = words.first().and_then(word_text).unwrap_or_default();
        if let Some(body) = state.functions.get(name).cloned() {
            let texts: Vec<&str> = words.iter().skip(1).filter_map(word_text).collect();
            let arguments = self.words(&texts, &mut state)?;
            let target = target_of(redirects)?;
            if target != PrintTarget::Out {
                return Unclear::new("a redirection of a function");
            }
            return self.call(&body, &arguments, &state);
        }
        match name {
            "exit" | "return" => self.end(name, words, state),
            "set" | "shopt" => self.set(words, state),
            "local" | "declare" | "readonly" | "export" => self.declare(name, words, state),
            "read" => self.read(words, redirects, state),
            "true" | ":" => Ok(vec![state.ended_well(true)]),
            "false" => Ok(vec![state.ended_well(false)]),
            "echo" | "printf" | "cat" => self.print(name, words, redirects, state),
            "[" | "test" => self.test(words, redirects, state),
            "grep" | "egrep" | "fgrep" => self.searched(words, redirects, None, state),
            "jq" => self.asked(words, redirects, None, state),
            // What the script needs is there: it is run before anything is proposed.
            "command" if words.get(1).and_then(word_text) == Some("-v") && words.len() == 3 => {
                let is_silent = matches!(target_of(redirects), Ok(PrintTarget::Nowhere));
                if is_silent {
                    Ok(vec![state.ended_well(true)])
                } else {
                    Unclear::new("`command -v` that prints")
                }
            }
            name => Unclear::new(format!("the command `{name}`")),
        }
    }

    fn declare(&mut self, name: &str, words: &[Node], mut state: ShellState) -> Ways {
        for text in words.iter().skip(1).filter_map(word_text) {
            if text.starts_with('-') && text != "-r" && text != "-a" {
                return Unclear::new(format!("`{name} {text}`"));
            }
            if !text.starts_with('-') {
                self.assign(text, &mut state)?;
            }
        }
        Ok(vec![state.ended_well(true)])
    }

    fn assign(&mut self, text: &str, state: &mut ShellState) -> Result<(), Unclear> {
        let Some((name, value)) = text.split_once('=') else {
            state.variables.insert(text.to_owned(), ShellValue::Text(GuardText::default()));
            return Ok(());
        };
        if name.ends_with('+') || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Unclear::new(format!("the assignment of `{name}`"));
        }
        let special = ["PATH", "IFS", "LANG", "BASH_ENV", "ENV"].contains(&name) || name.starts_with("LC_");
        if special {
            return Unclear::new(format!("it sets `{name}`"));
        }
        let value = self.assigned(value, state)?;
        state.variables.insert(name.to_owned(), value);
        Ok(())
    }

    fn end(&mut self, name: &str, words: &[Node], mut state: ShellState) -> Ways {
        let code = match words.get(1).and_then(word_text) {
            None => i32::from(!state.is_well),
            Some(word) => {
                let text = self.word(word, &mut state)?;
                match text.known().and_then(|text| text.parse().ok()) {
                    Some(code) => code,
                    None => return Unclear::new("an exit code that is not known"),
                }
            }
        };
        if name == "return" {
            state.returns = true;
            state.is_well = code == 0;
        } else {
            state.path.end = Some(PathEnd::Exit(code));
        }
        Ok(vec![state])
    }

    fn set(&mut self, words: &[Node], mut state: ShellState) -> Ways {
        let texts: Vec<&str> = words.iter().skip(1).filter_map(word_text).collect();
        for text in &texts {
            match *text {
                "-o" | "pipefail" | "-u" | "-uo" => {}
                "-e" | "-eu" | "-euo" | "-ue" | "-ueo" | "-eo" | "errexit" => state.ends_on_error = true,
                "+e" => state.ends_on_error = false,
                other => return Unclear::new(format!("`set {other}`")),
            }
        }
        Ok(vec![state.ended_well(true)])
    }

    /// `read -r NAME`: all of the input, which is one line.
    fn read(&mut self, words: &[Node], redirects: &[Node], mut state: ShellState) -> Ways {
        let texts: Vec<&str> = words.iter().skip(1).filter_map(word_text).collect();
        match texts.as_slice() {
            ["-r", name] if redirects.is_empty() && !state.has_read_input && !state.ends_on_error => {
                state.has_read_input = true;
                state.variables.insert((*name).to_owned(), ShellValue::Input);
                Ok(vec![state.ended_well(true)])
            }
            _ => Unclear::new("`read` of more than its input"),
        }
    }

    /// Prints a text, or a here-document.
    fn print(&mut self, name: &str, words: &[Node], redirects: &[Node], mut state: ShellState) -> Ways {
        let target = target_of(redirects)?;
        let mut document = None;
        for redirect in redirects {
            if let Redirection::Document { text, is_plain } = redirection(redirect)? {
                document = Some((text, is_plain));
            }
        }
        let texts: Vec<&str> = words.iter().skip(1).filter_map(word_text).collect();
        let text = match (name, document) {
            ("cat", Some((text, is_plain))) if texts.is_empty() => {
                self.document(&text, is_plain, &mut state)?
            }
            // The input is read to its end, and goes nowhere.
            ("cat", None) if texts.is_empty() && target == PrintTarget::Nowhere => {
                state.has_read_input = true;
                return Ok(vec![state.ended_well(true)]);
            }
            ("cat", _) | (_, Some(_)) => return Unclear::new("`cat` of a file, or of its input"),
            (name, None) => {
                let arguments = self.words(&texts, &mut state)?;
                self.printed_text(name, &arguments)?
            }
        };
        match target {
            PrintTarget::Out => state.path.out.add(text),
            PrintTarget::Errors => state.path.err.add(text),
            PrintTarget::Nowhere => {}
        }
        Ok(vec![state.ended_well(true)])
    }

    fn document(&mut self, text: &str, is_plain: bool, state: &mut ShellState) -> Result<GuardText, Unclear> {
        if is_plain {
            return Ok(GuardText::literal(text));
        }
        let mut whole = GuardText::default();
        for piece in words::document_pieces(text)? {
            if matches!(piece.kind, WordPieceKind::Output(_)) {
                return Unclear::new("a command in a here-document");
            }
            whole.add(self.piece(&piece.kind, state)?);
        }
        Ok(whole)
    }

    /// What `echo` or `printf` prints with these arguments.
    pub(super) fn printed_text(&self, name: &str, arguments: &[GuardText]) -> Result<GuardText, Unclear> {
        if name == "printf" {
            return formatted(arguments);
        }
        let (first, rest) = match arguments.split_first() {
            Some((first, rest)) if first.known() == Some("-e") && self.kind == ShellKind::Bash => {
                (Some("-e"), rest)
            }
            Some((first, rest)) if first.known() == Some("-n") => (Some("-n"), rest),
            _ => (None, arguments),
        };
        let mut text = GuardText::default();
        for (at, argument) in rest.iter().enumerate() {
            let begins_with_field = matches!(argument.0.first(), Some(TextPiece::Field(_)));
            let is_option = argument.known().is_some_and(|text| text.starts_with('-') && text.len() > 1);
            if at == 0 && (begins_with_field || is_option) {
                return Unclear::new("`echo` of what may be an option");
            }
            let has_field = argument.known().is_none();
            let has_backslash = argument
                .0
                .iter()
                .any(|piece| matches!(piece, TextPiece::Literal(text) if text.contains('\\')));
            let reads_backslashes = self.kind == ShellKind::Posix || first == Some("-e");
            if reads_backslashes && (has_field || has_backslash) {
                return Unclear::new("`echo` of backslashes, which shells print in different ways");
            }
            text.add(GuardText::literal(if at == 0 { "" } else { " " }));
            text.add(argument.clone());
        }
        Ok(if first == Some("-n") { text } else { text.with(GuardText::literal("\n")) })
    }
}

/// Whether it is `IFS= read …`.
fn is_reading(words: &[Node]) -> bool {
    words.first().and_then(word_text) == Some("read")
}

/// What `printf` prints: `%s` in its format, and line ends.
fn formatted(arguments: &[GuardText]) -> Result<GuardText, Unclear> {
    let Some((format, values)) = arguments.split_first() else { return Unclear::new("`printf` of nothing") };
    let Some(format) = format.known() else { return Unclear::new("`printf` of a format that is not known") };
    let mut values = values.iter();
    let mut text = GuardText::default();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        let part = match c {
            '%' => match chars.next() {
                Some('%') => GuardText::literal("%"),
                Some('s') => values.next().cloned().unwrap_or_default(),
                _ => return Unclear::new("a format of `printf`"),
            },
            '\\' => match chars.next() {
                Some('n') => GuardText::literal("\n"),
                Some('t') => GuardText::literal("\t"),
                Some('"') => GuardText::literal("\""),
                Some('\\') => GuardText::literal("\\"),
                _ => return Unclear::new("a backslash of `printf`"),
            },
            c => GuardText::literal(c.to_string()),
        };
        text.add(part);
    }
    if values.next().is_some() { Unclear::new("`printf` of more than its format has") } else { Ok(text) }
}

impl ShellRun {
    /// A group whose output goes elsewhere.
    pub(super) fn redirected_group(
        &mut self,
        body: &Node,
        redirects: &[Node],
        state: ShellState,
        checked: Checked,
    ) -> Ways {
        let target = target_of(redirects)?;
        let (out, err) = (state.path.out.clone(), state.path.err.clone());
        let mut inner = state;
        inner.path.out = GuardText::default();
        inner.path.err = GuardText::default();
        let after = self.statement(body, inner, checked)?;
        let moved = after.into_iter().map(|mut state| {
            let (own_out, own_err) =
                (std::mem::take(&mut state.path.out), std::mem::take(&mut state.path.err));
            if target == PrintTarget::Errors
                && own_out != GuardText::default()
                && own_err != GuardText::default()
            {
                return Unclear::new("a group that prints in two ways");
            }
            state.path.out = out.clone();
            state.path.err = err.clone().with(own_err);
            match target {
                PrintTarget::Out => state.path.out.add(own_out),
                PrintTarget::Errors => state.path.err.add(own_out),
                PrintTarget::Nowhere => {}
            }
            Ok(state)
        });
        moved.collect()
    }
}

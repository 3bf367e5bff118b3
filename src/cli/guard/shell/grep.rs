//! `grep` and `jq` where a script asks whether they find something.

use rable::{Node, NodeKind};

use super::{
    ShellRun, ShellState, ShellValue, Ways, jq,
    redirections::{Redirection, redirection},
    words::word_text,
};
use crate::cli::guard::{
    pattern::{ForeignPattern, LetterCase, PatternFlavour, PatternPlace},
    text::{FieldTest, GuardField, GuardText, TextPiece, Unclear},
};

/// What `grep` is asked.
struct GrepQuestion {
    patterns: Vec<String>,
    flavour: GrepFlavour,
    case: LetterCase,
    place: PatternPlace,
    is_quiet: bool,
}

/// How `grep` reads its pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GrepFlavour {
    Basic,
    Extended,
    Fixed,
}

impl ShellRun {
    /// `grep` with a text that is piped into it, or a here-string.
    pub(super) fn searched(
        &mut self,
        words: &[Node],
        redirects: &[Node],
        piped: Option<ShellValue>,
        mut state: ShellState,
    ) -> Ways {
        let (input, is_silent) = self.input_of(redirects, piped, &mut state)?;
        let texts: Vec<&str> = words.iter().filter_map(word_text).collect();
        let arguments = self.words(texts.get(1..).unwrap_or_default(), &mut state)?;
        let question = GrepQuestion::of(texts.first().copied().unwrap_or_default(), &arguments)?;
        if !question.is_quiet && !is_silent {
            return Unclear::new("`grep` that prints what it finds");
        }
        let text = match input {
            Some(ShellValue::Text(text)) => text,
            Some(ShellValue::Input) | None => {
                return Unclear::new("it searches all of its input, also what rules do not see");
            }
            Some(ShellValue::List(_)) => return Unclear::new("a list as a text"),
        };
        let tests = question.tests(self.characters)?;
        let field = match text.0.as_slice() {
            [TextPiece::Field(field)] => field.clone(),
            [TextPiece::Field(field), TextPiece::Literal(end)] if end == "\n" => field.clone(),
            _ => return Unclear::new("`grep` of more than one field"),
        };
        // What could be an option of `echo` is no text for it.
        let options = ["-n", "-e", "-E", "-ne", "-en", "-nE", "-neE"];
        if tests.iter().any(|test| options.iter().any(|option| test.holds(option))) {
            return Unclear::new("`grep` for what `echo` takes for an option");
        }
        // Lines have no end of their own.
        self.first_of(&GuardField { is_cut: false, ..field }, &tests, &state)
    }

    /// `jq -e` with a test.
    pub(super) fn asked(
        &mut self,
        words: &[Node],
        redirects: &[Node],
        piped: Option<ShellValue>,
        mut state: ShellState,
    ) -> Ways {
        let (input, is_silent) = self.input_of(redirects, piped, &mut state)?;
        let input = match input {
            None if !state.has_read_input => {
                state.has_read_input = true;
                Some(ShellValue::Input)
            }
            input => input,
        };
        if !matches!(input, Some(ShellValue::Input)) || !is_silent {
            return Unclear::new("`jq` that prints, or reads no input");
        }
        let texts: Vec<&str> = words.iter().skip(1).filter_map(word_text).collect();
        let arguments = self.words(&texts, &mut state)?;
        let known: Vec<&str> = arguments.iter().filter_map(GuardText::known).collect();
        if known.len() != arguments.len() {
            return Unclear::new("a filter of `jq` that is not known");
        }
        let (field, test) = jq::tested(&known)?;
        self.first_of(&field, &[test], &state)
    }

    /// A pipe that ends with a question.
    pub(super) fn pipeline(&mut self, commands: &[Node], mut state: ShellState) -> Ways {
        let Some((last, first)) = commands.split_last() else { return Unclear::new("an empty pipe") };
        let mut piped = None;
        for command in first {
            piped = Some(self.filtered(command, piped, &mut state)?);
        }
        let NodeKind::Command { assignments, words, redirects } = &last.kind else {
            return Unclear::new("a pipe of more than commands");
        };
        let name = words.first().and_then(word_text).unwrap_or_default();
        match name {
            "grep" | "egrep" | "fgrep" if assignments.is_empty() => {
                self.searched(words, redirects, piped, state)
            }
            "jq" if assignments.is_empty() => self.asked(words, redirects, piped, state),
            name => Unclear::new(format!("a pipe into `{name}`")),
        }
    }

    fn input_of(
        &mut self,
        redirects: &[Node],
        piped: Option<ShellValue>,
        state: &mut ShellState,
    ) -> Result<(Option<ShellValue>, bool), Unclear> {
        let (mut input, mut is_silent) = (piped, false);
        for redirect in redirects {
            match redirection(redirect)? {
                Redirection::Text(word) => input = Some(self.assigned(&word, state)?),
                Redirection::ErrorsAway => {}
                Redirection::OutAway | Redirection::AllAway => is_silent = true,
                _ => return Unclear::new("a redirection of a question"),
            }
        }
        Ok((input, is_silent))
    }

    /// Goes on well where one of the tests holds.
    pub(super) fn first_of(&mut self, field: &GuardField, tests: &[FieldTest], state: &ShellState) -> Ways {
        let mut after = Vec::new();
        let mut left = vec![state.clone()];
        for test in tests {
            let mut still = Vec::new();
            for state in left {
                let fork = self.bounds.fork(&state.path, field.clone(), test.clone())?;
                let with = |path| ShellState { path, ..state.clone() };
                after.extend(fork.holds.map(with).map(|state| state.ended_well(true)));
                still.extend(fork.fails.map(with));
            }
            left = still;
        }
        after.extend(left.into_iter().map(|state| state.ended_well(false)));
        Ok(after)
    }
}

impl GrepQuestion {
    fn of(program: &str, arguments: &[GuardText]) -> Result<Self, Unclear> {
        let flavour = match program {
            "egrep" => GrepFlavour::Extended,
            "fgrep" => GrepFlavour::Fixed,
            _ => GrepFlavour::Basic,
        };
        let mut question = Self {
            patterns: Vec::new(),
            flavour,
            case: LetterCase::Matters,
            place: PatternPlace::Anywhere,
            is_quiet: false,
        };
        let mut only_operands = false;
        let mut operands = Vec::new();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let Some(text) = argument.known() else { return Unclear::new("a pattern that is not known") };
            match text {
                "--" if !only_operands => only_operands = true,
                "--quiet" | "--silent" => question.is_quiet = true,
                "-e" if !only_operands => match arguments.next().and_then(GuardText::known) {
                    Some(pattern) => question.patterns.push(pattern.to_owned()),
                    None => return Unclear::new("a pattern that is not known"),
                },
                flags if flags.starts_with('-') && flags.len() > 1 && !only_operands => {
                    if let Some(letters) = flags[1..].strip_suffix('e') {
                        question.flags(letters)?;
                        match arguments.next().and_then(GuardText::known) {
                            Some(pattern) => question.patterns.push(pattern.to_owned()),
                            None => return Unclear::new("a pattern that is not known"),
                        }
                    } else {
                        question.flags(&flags[1..])?;
                    }
                }
                operand => operands.push(operand.to_owned()),
            }
        }
        if question.patterns.is_empty() && !operands.is_empty() {
            question.patterns.push(operands.remove(0));
        }
        if question.patterns.is_empty() || !operands.is_empty() {
            return Unclear::new("`grep` of files");
        }
        Ok(question)
    }

    fn flags(&mut self, letters: &str) -> Result<(), Unclear> {
        for letter in letters.chars() {
            match letter {
                'q' => self.is_quiet = true,
                's' => {}
                'E' => self.flavour = GrepFlavour::Extended,
                'F' => self.flavour = GrepFlavour::Fixed,
                'G' => self.flavour = GrepFlavour::Basic,
                'i' => self.case = LetterCase::Ignored,
                'x' => self.place = PatternPlace::WholeLine,
                other => return Unclear::new(format!("`grep -{other}`")),
            }
        }
        Ok(())
    }

    /// The tests of which one has to hold.
    fn tests(
        &self,
        characters: crate::cli::guard::pattern::SystemCharacters,
    ) -> Result<Vec<FieldTest>, Unclear> {
        let mut tests = Vec::new();
        for pattern in &self.patterns {
            let (text, flavour) = match self.flavour {
                GrepFlavour::Basic => (pattern.clone(), PatternFlavour::GrepBasic),
                GrepFlavour::Extended => (pattern.clone(), PatternFlavour::GrepExtended),
                GrepFlavour::Fixed => (regex_syntax::escape(pattern), PatternFlavour::GrepExtended),
            };
            if pattern.contains('\n') {
                return Unclear::new("a pattern of several lines");
            }
            let (case, place) = (self.case, self.place);
            tests.push(ForeignPattern { text: &text, flavour, place, case, characters }.test()?);
        }
        Ok(tests)
    }
}

//! Reads simple commands: assignments, words and redirections; and tests in double brackets.

use std::rc::Rc;

use super::{
    list::{List, ListPlace},
    piece::Piece,
    quotes,
    reader::{Feed, HereDocument, Reader},
    run::{Call, Input},
    session::{MOST_REDIRECTS, Stop, is_name, is_name_byte},
    word::{self, Field, Word},
};

/// A redirection.
#[derive(Debug, Clone, Default)]
pub(super) struct Redirect {
    pub(super) operator: String,
    pub(super) file: Option<Field>,
    /// Whether it is where input comes from.
    pub(super) is_input: bool,
    /// The text of `<<<`.
    text: Option<Field>,
    document: Option<usize>,
}

/// The operators of redirections; one that begins with another stands before it.
const REDIRECTS: [&str; 12] = ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">&", ">|", ">"];

/// Builtins of shells that set the variables in their arguments.
const SETTERS: [&str; 16] = [
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "let",
    "unset",
    "printf",
    "wait",
    "source",
    ".",
    "shopt",
];

impl<'t> Reader<'t, '_> {
    /// Reads a simple command, or the head of a function.
    pub(super) fn simple(&mut self, list: &mut List) -> Result<(), Stop> {
        let start = self.pos;
        let first = self.session.commands.len();
        // What substitutions in it read.
        let outer = self.scope.feed.clone();
        self.scope.feed = self.input(list);
        let mut call = Call { are_files_known: true, ..Call::default() };
        let mut values = Vec::new();
        loop {
            if let Some(redirect) = self.redirect()? {
                add_redirect(&mut call, redirect)?;
                continue;
            }
            if !self.is_at_word() {
                break;
            }
            let is_first = call.fields.is_empty() && values.is_empty() && self.pos == start;
            let word = self.word()?;
            if is_first && !word.written.ends_with('=') && self.is_function()? {
                self.session.functions.insert(word.written.to_owned());
                self.scope.feed = outer;
                return self.body_of_function(list);
            }
            self.session.understood &= !call.fields.is_empty() || !is_open_subscript(&word);
            match assignment(&word).filter(|_| call.fields.is_empty()) {
                Some((name, is_plain, pieces)) => {
                    let value = self.value(&pieces)?;
                    call.assignments.push((name.to_owned(), value.text.clone()));
                    values.push((name.to_owned(), (value.is_known && is_plain).then_some(value.text)));
                }
                None => word::fields(&word, self.session, &mut call.fields)?,
            }
        }
        self.scope.feed = outer;
        if self.pos == start || self.byte(0) == Some(b'(') {
            return Err(Stop);
        }
        if call.fields.is_empty() && call.redirects.is_empty() {
            let is_kept = self.is_kept(list);
            for (name, value) in values {
                self.session.variables.set(&name, value.filter(|_| is_kept));
            }
            list.last = Some(Feed::of(""));
            list.place = ListPlace::Done;
            return Ok(());
        }
        self.finish(call, list, first)
    }

    /// Runs a command that has been read.
    fn finish(&mut self, mut call: Call, list: &mut List, first: usize) -> Result<(), Stop> {
        if let Some(feed) = self.input(list) {
            if matches!(call.input, Input::Inherited) {
                call.input = match (feed.text, feed.document) {
                    (Some(text), _) => Input::Text(text),
                    (None, Some(document)) => Input::Document(document),
                    (None, None) => Input::Unknown,
                };
            }
            call.piped_from = Some(feed.name.to_string());
        }
        self.expand_alias(&mut call)?;
        if !matches!(call.input, Input::Inherited) {
            // A function reads it somewhere; `exec` gives it to the commands that follow.
            let name = call.fields.first().map(|field| field.text.as_str()).unwrap_or_default();
            let is_exec = name == "exec" && call.fields.len() == 1;
            self.session.understood &= !is_exec && !self.session.functions.contains(name);
        }
        let own = self.session.commands.len();
        let via = self.scope.via.clone();
        self.run(&call, &call.fields, &call.assignments, &via, 0, true)?;
        self.set_variables(&call, list, first);
        let mut feed = Feed::of(self.session.commands.last().map_or("", |command| &command.name));
        if self.session.commands.len() == own + 1 {
            feed = written(feed, &call);
        }
        list.last = Some(feed);
        list.place = ListPlace::Done;
        Ok(())
    }

    /// Whether an assignment that has been read holds for what follows it.
    fn is_kept(&self, list: &List) -> bool {
        let rest = self.rest();
        let is_apart = rest.starts_with(['|', '&']) && !rest.starts_with("&&") && !rest.starts_with("||");
        self.scope.may_assign && list.is_straight() && !is_apart
    }

    /// Whether the head of a function is here, behind its name. Takes it.
    fn is_function(&mut self) -> Result<bool, Stop> {
        let end = self.pos;
        self.skip_blanks();
        if !self.take("(") {
            self.pos = end;
            return Ok(false);
        }
        self.skip_blanks();
        self.take(")").then_some(true).ok_or(Stop)
    }

    /// The value of an assignment. That of an array is not found out.
    fn value(&mut self, pieces: &[Piece]) -> Result<Field, Stop> {
        let start = self.pos;
        if !pieces.is_empty() || !self.take("(") {
            return word::text(pieces, self.session);
        }
        loop {
            self.skip_lines()?;
            if self.take(")") {
                let written = self.slice(start, self.pos).to_owned();
                self.session.charge(written.len())?;
                return Ok(Field { text: written, ..Field::default() });
            }
            if !self.is_at_word() {
                return Err(Stop);
            }
            self.word()?;
        }
    }

    /// Reads a redirection if one is next.
    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, Stop> {
        self.skip_blanks();
        let rest = self.rest();
        let mut number = rest.bytes().take_while(u8::is_ascii_digit).count();
        if rest.starts_with('{') {
            let name = rest.bytes().skip(1).take_while(|byte| is_name_byte(*byte)).count();
            number = if self.byte(name + 1) == Some(b'}') { name + 2 } else { 0 };
        }
        let (descriptor, rest) = rest.split_at(number);
        let is_process = rest.starts_with("<(") || rest.starts_with(">(");
        let operator = REDIRECTS.into_iter().find(|operator| rest.starts_with(operator));
        let Some(operator) = operator.filter(|_| !is_process) else { return Ok(None) };
        if !descriptor.is_empty() && operator.starts_with('&') {
            return Ok(None);
        }
        self.pos += descriptor.len() + operator.len();
        self.skip_blanks();
        if !self.is_at_word() {
            return Err(Stop);
        }
        let word = self.word()?;
        let is_input = operator.starts_with('<') && matches!(descriptor, "" | "0");
        let mut redirect = Redirect { operator: operator.to_owned(), is_input, ..Redirect::default() };
        match operator {
            "<<" | "<<-" => redirect.document = Some(self.document(&word, operator == "<<-")),
            "<<<" => redirect.text = Some(word::text(&word.pieces, self.session)?),
            ">&" | "<&" if word.written.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => {
                // Where another descriptor comes from is not followed.
                redirect.is_input &= word.written != "0";
            }
            _ => {
                let mut file = word::text(&word.pieces, self.session)?;
                file.is_known &= !file.is_pattern;
                redirect.file = Some(file);
            }
        }
        Ok(Some(redirect))
    }

    /// Puts a here-document onto those whose text follows. Answers its number.
    fn document(&mut self, word: &Word<'t>, is_indented: bool) -> usize {
        let delimiter = word.pieces.iter().map(|piece| match piece {
            Piece::Text { text, .. } => text.as_str(),
            Piece::Variable { written, .. } | Piece::Unknown { written, .. } => written.as_str(),
        });
        let is_quoted = word.written.contains(['\'', '"', '\\']);
        self.documents.push(HereDocument {
            delimiter: delimiter.collect(),
            is_quoted,
            is_indented,
            shells: Vec::new(),
        });
        self.passed + self.documents.len() - 1
    }

    /// Puts the value of an alias in its place.
    fn expand_alias(&mut self, call: &mut Call) -> Result<(), Stop> {
        let Some(first) = call.fields.first().filter(|first| first.is_plain) else { return Ok(()) };
        let Some(value) = self.session.aliases.get(&first.text) else { return Ok(()) };
        let is_simple = value.chars().all(|c| c.is_alphanumeric() || " _-./:=@,+".contains(c));
        let words: Vec<_> = value.split_whitespace().map(Field::known).collect();
        let length = value.len();
        self.session.charge(length)?;
        if is_simple && !words.is_empty() {
            drop(call.fields.splice(..1, words));
        } else {
            self.session.understood = false;
        }
        Ok(())
    }

    /// Follows the builtins that set variables.
    fn set_variables(&mut self, call: &Call, list: &List, first: usize) {
        let is_kept = self.is_kept(list);
        let session = &mut *self.session;
        for command in session.commands.iter().skip(first) {
            let name = command.name.as_str();
            if !SETTERS.contains(&name) || name == "printf" && !command.has_flag("v") {
                continue;
            }
            if !command.understood || matches!(name, "source" | ".") {
                session.variables.forget();
            }
            let is_direct = call.fields.first().is_some_and(|field| field.text == name);
            let is_assigning = matches!(name, "export" | "readonly" | "declare" | "typeset");
            let is_plain =
                is_kept && is_direct && is_assigning && !command.args.iter().any(|arg| arg.starts_with('-'));
            for arg in &command.args {
                let (name, value) =
                    arg.split_once('=').map_or((arg.as_str(), None), |(name, value)| (name, Some(value)));
                let name = name.split(['+', '[']).next().unwrap_or_default();
                if value.is_some() || !is_assigning {
                    session.variables.set(name, value.filter(|_| is_plain).map(str::to_owned));
                }
            }
        }
    }

    /// A test between double brackets: its words, which may have substitutions.
    pub(super) fn test(&mut self, list: &mut List) -> Result<(), Stop> {
        let mut fields = vec![Field::known("[[")];
        let mut depth = 0_i32;
        loop {
            self.skip_lines()?;
            let start = self.pos;
            if self.is_at_word() {
                let word = self.word()?;
                if word.written == "]]" {
                    break;
                }
                let field = word::text(&word.pieces, self.session)?;
                fields.push(field);
            } else {
                self.byte(0).ok_or(Stop)?;
                if !self.take("&&") && !self.take("||") {
                    depth += i32::from(self.byte(0) == Some(b'(')) - i32::from(self.byte(0) == Some(b')'));
                    self.session.understood &= depth >= 0;
                    self.pos += 1;
                }
                fields.push(Field::known(self.slice(start, self.pos)));
            }
        }
        let first = self.session.commands.len();
        let call = Call { fields, are_files_known: true, ..Call::default() };
        self.finish(call, list, first)?;
        self.session.understood &= depth == 0;
        self.after_compound(list, first)
    }
}

/// Whether a subscript goes on behind a word: in `x[a=1 b]=2 ls`, a shell assigns and runs `ls`.
fn is_open_subscript(word: &Word<'_>) -> bool {
    let is_element = word.written.split_once('[').is_some_and(|(name, _)| is_name(name));
    let brackets = |bracket| {
        let plain = word.pieces.iter().filter_map(|piece| match piece {
            Piece::Text { text, is_quoted: false } => Some(text.matches(bracket).count()),
            _ => None,
        });
        plain.sum::<usize>()
    };
    is_element && brackets('[') > brackets(']')
}

fn add_redirect(call: &mut Call, redirect: Redirect) -> Result<(), Stop> {
    if redirect.is_input {
        call.input = match (redirect.text, redirect.document, &redirect.file) {
            (Some(text), _, _) if text.is_known => Input::Text(text.text.into()),
            (None, Some(document), _) => Input::Document(document),
            (None, None, Some(_)) => Input::File,
            _ => Input::Unknown,
        };
    }
    if let Some(file) = redirect.file {
        call.are_files_known &= file.is_known;
        call.redirects.push((redirect.operator, file.text));
        if call.redirects.len() > MOST_REDIRECTS {
            return Err(Stop);
        }
    }
    Ok(())
}

/// What a command writes into a pipe.
fn written(feed: Feed, call: &Call) -> Feed {
    let Some((program, args)) = call.fields.split_first() else { return feed };
    if call.fields.iter().any(|field| !field.is_known || field.is_pattern) {
        return feed;
    }
    let args: Vec<_> = args.iter().map(|field| field.text.as_str()).collect();
    let name = program.text.rsplit('/').next().unwrap_or_default();
    match &call.input {
        Input::Document(document) if name == "cat" && matches!(args.as_slice(), [] | ["-"]) => {
            Feed { document: Some(*document), ..feed }
        }
        Input::Text(text) if name == "cat" && matches!(args.as_slice(), [] | ["-"]) => {
            Feed { text: Some(Rc::clone(text)), ..feed }
        }
        _ => Feed { text: quotes::output(name, &args).map(Into::into), ..feed },
    }
}

/// The name, whether all of the value is set, and the value, if a word is an assignment.
fn assignment<'w>(word: &'w Word<'_>) -> Option<(&'w str, bool, Vec<Piece>)> {
    let (first, rest) = word.pieces.split_first()?;
    let Piece::Text { text, is_quoted: false } = first else { return None };
    let (target, value) = text.split_once('=')?;
    let name = target.split(['+', '[']).next().filter(|name| is_name(name))?;
    let between = target.get(name.len()..)?;
    let is_target = between.is_empty() || between == "+" || between.starts_with('[');
    let mut pieces = Vec::with_capacity(word.pieces.len());
    if !value.is_empty() {
        pieces.push(Piece::plain(value));
    }
    pieces.extend_from_slice(rest);
    is_target.then_some((name, between.is_empty(), pieces))
}

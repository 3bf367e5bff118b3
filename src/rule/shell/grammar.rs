//! Reads lists of commands: separators, pipes, and the reserved words around them.

use super::{
    list::{Kind, List, ListPlace, Open, Part},
    reader::{Feed, ListEnd, Reader},
    session::{Stop, is_name},
    word, wrappers,
};

impl Reader<'_, '_> {
    /// What a command here reads.
    pub(super) fn input(&self, list: &List) -> Option<Feed> {
        let outer = list.open.last().and_then(|open| open.feed.as_ref());
        list.feed.as_ref().or(outer).or(self.scope.feed.as_ref()).cloned()
    }

    /// Reads commands up to an end.
    pub(super) fn list(&mut self, end: ListEnd) -> Result<(), Stop> {
        let mut list = List::default();
        loop {
            self.skip_blanks();
            match self.byte(0) {
                None => {
                    self.session.understood &= list.place != ListPlace::Wanted;
                    let is_complete =
                        end == ListEnd::Text && list.open.is_empty() && self.documents.is_empty();
                    return if is_complete { Ok(()) } else { Err(Stop) };
                }
                Some(b')') => {
                    self.pos += 1;
                    if list.open.is_empty() && end == ListEnd::Parenthesis {
                        self.session.understood &= list.place != ListPlace::Wanted;
                        return Ok(());
                    }
                    self.close(&mut list, Kind::Parenthesis)?;
                }
                Some(b'\n') => {
                    self.pos += 1;
                    self.here_documents()?;
                    // A line's end after `&&` and `|` separates nothing.
                    if list.has_command() {
                        list.separate();
                    }
                }
                Some(b';' | b'|' | b'&') if !self.rest().starts_with("&>") => self.operator(&mut list)?,
                Some(b'(') if list.place == ListPlace::Closed => return Err(Stop),
                Some(b'(') => self.parenthesis(&mut list)?,
                Some(_) => self.command(&mut list)?,
            }
        }
    }

    fn operator(&mut self, list: &mut List) -> Result<(), Stop> {
        if self.take(";;&") || self.take(";;") || self.take(";&") {
            self.session.understood &= list.place != ListPlace::Wanted;
            list.separate();
            return if list.open.last().is_some_and(|open| open.kind == Kind::Case) {
                self.pattern(list)
            } else {
                Err(Stop)
            };
        }
        // A shell would refuse the text; another may not.
        self.session.understood &= list.has_command();
        if self.take("&&") || self.take("||") {
            list.begin();
            list.is_conditional = true;
        } else if self.take("|&") || self.take("|") {
            list.feed = list.last.take();
            list.place = ListPlace::Wanted;
        } else {
            self.pos += 1;
            list.separate();
        }
        Ok(())
    }

    fn parenthesis(&mut self, list: &mut List) -> Result<(), Stop> {
        let start = self.pos;
        if self.byte(1) == Some(b'(') && self.arithmetic(1)? {
            // A shell without arithmetic commands, such as dash, runs what is in it.
            self.session.understood &= !reads_as_command(self.slice(start + 2, self.pos - 2));
            let first = self.session.commands.len();
            return self.after_compound(list, first);
        }
        self.pos += 1;
        self.open(list, Kind::Parenthesis);
        Ok(())
    }

    fn open(&mut self, list: &mut List, kind: Kind) {
        let feed = self.input(list);
        let part = if matches!(kind, Kind::If | Kind::Loop) { Part::Condition } else { Part::Body };
        list.open.push(Open { kind, part, first: self.session.commands.len(), feed });
        list.begin();
    }

    fn close(&mut self, list: &mut List, kind: Kind) -> Result<(), Stop> {
        let open = list.open.pop().filter(|open| open.kind == kind).ok_or(Stop)?;
        self.session.understood &= list.place != ListPlace::Wanted && open.part != Part::Condition;
        // What it writes is not what the last command in it writes.
        let name = self.session.commands.get(open.first..).and_then(|inner| inner.last());
        let feed = Feed::of(name.map_or("", |command| &command.name));
        list.separate();
        list.last = Some(feed);
        self.after_compound(list, open.first)
    }

    /// Reads the redirections of a compound command.
    pub(super) fn after_compound(&mut self, list: &mut List, first: usize) -> Result<(), Stop> {
        list.last.get_or_insert_with(|| Feed::of(""));
        list.place = ListPlace::Closed;
        while let Some(redirect) = self.redirect()? {
            if let Some(file) = &redirect.file {
                self.session.understood &= file.is_known;
                self.session.redirect(first, &redirect.operator, &file.text)?;
            }
            let reads_shell = redirect.is_input
                && self
                    .session
                    .commands
                    .get(first..)
                    .is_some_and(|inner| inner.iter().any(|command| wrappers::is_shell(&command.name)));
            // A shell within it may run what it is given.
            self.session.understood &= !reads_shell;
        }
        Ok(())
    }

    /// Reads a command: a reserved word, or a simple command.
    fn command(&mut self, list: &mut List) -> Result<(), Stop> {
        let start = self.pos;
        if self.byte(0).is_some_and(|byte| byte.is_ascii_lowercase() || b"{}![".contains(&byte)) {
            let rest = self.rest();
            let is_end = |c| matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>');
            let word = rest.split(is_end).next().unwrap_or_default();
            self.pos += word.len();
            let closes = matches!(word, "then" | "elif" | "else" | "do" | "fi" | "done" | "esac" | "}");
            if list.place == ListPlace::Closed && !closes {
                return Err(Stop);
            }
            if self.reserved(word, list)? {
                return Ok(());
            }
            self.pos = start;
        }
        if list.place == ListPlace::Closed {
            return Err(Stop);
        }
        self.simple(list)
    }

    /// Reads what a reserved word begins or ends. Answers whether the word, which has been taken, is one.
    fn reserved(&mut self, word: &str, list: &mut List) -> Result<bool, Stop> {
        let top = list.open.last().map(|open| open.kind);
        match word {
            "if" => self.open(list, Kind::If),
            "while" | "until" => self.open(list, Kind::Loop),
            "{" => self.open(list, Kind::Brace),
            "then" if top == Some(Kind::If) => self.enter(list, Part::Body, Part::Condition),
            "elif" if top == Some(Kind::If) => self.enter(list, Part::Condition, Part::Body),
            "else" if top == Some(Kind::If) => self.enter(list, Part::Last, Part::Body),
            "do" if top == Some(Kind::Loop) => self.enter(list, Part::Body, Part::Condition),
            "then" | "elif" | "else" | "do" => return Err(Stop),
            "fi" => self.close(list, Kind::If)?,
            "done" => self.close(list, Kind::Loop)?,
            "esac" => self.close(list, Kind::Case)?,
            "}" => self.close(list, Kind::Brace)?,
            "!" => {
                self.session.understood &= list.feed.is_none();
                list.place = ListPlace::Wanted;
            }
            "for" | "select" => self.words_of_loop(list)?,
            "case" => self.head_of_case(list)?,
            "function" => {
                self.skip_blanks();
                let name = self.word()?;
                if name.written.is_empty() {
                    return Err(Stop);
                }
                self.session.functions.insert(name.written.to_owned());
                self.skip_blanks();
                if self.take("(") {
                    self.skip_blanks();
                    self.take(")").then_some(()).ok_or(Stop)?;
                }
                self.body_of_function(list)?;
            }
            "coproc" => self.coprocess(list)?,
            "time" => return Ok(self.is_time_of_compound()),
            "[[" => self.test(list)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn enter(&mut self, list: &mut List, part: Part, from: Part) {
        self.session.understood &= list.enter(part, from);
    }

    /// The word of `case`, up to its first pattern.
    fn head_of_case(&mut self, list: &mut List) -> Result<(), Stop> {
        self.open(list, Kind::Case);
        self.skip_blanks();
        self.word()?;
        self.skip_lines()?;
        if !self.take("in") {
            return Err(Stop);
        }
        list.separate();
        self.pattern(list)
    }

    /// The head of a function has been read: a compound command is its body.
    pub(super) fn body_of_function(&mut self, list: &mut List) -> Result<(), Stop> {
        self.skip_lines()?;
        let word = self.first_word();
        self.session.understood &= is_compound(word) || self.byte(0) == Some(b'(');
        list.place = ListPlace::Wanted;
        Ok(())
    }

    /// The name and the words of `for` or `select`.
    fn words_of_loop(&mut self, list: &mut List) -> Result<(), Stop> {
        self.open(list, Kind::Loop);
        self.skip_blanks();
        if self.byte(0) == Some(b'(') {
            let is_arithmetic = self.byte(1) == Some(b'(') && self.arithmetic(1)?;
            return if is_arithmetic { self.before_do(list) } else { Err(Stop) };
        }
        let name = self.word()?;
        if !is_name(name.written) {
            return Err(Stop);
        }
        self.session.variables.set(name.written, None);
        self.skip_lines()?;
        if self.rest().starts_with("in") && !self.byte(2).is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            self.pos += 2;
            self.skip_blanks();
            while self.is_at_word() {
                self.word()?;
                self.skip_blanks();
            }
            if !matches!(self.byte(0), Some(b';' | b'\n')) {
                return Err(Stop);
            }
        }
        self.before_do(list)
    }

    /// Goes to what a loop over words repeats.
    fn before_do(&mut self, list: &mut List) -> Result<(), Stop> {
        self.skip_blanks();
        if !self.rest().starts_with(";;") {
            self.take(";");
        }
        self.skip_lines()?;
        list.separate();
        match self.first_word() {
            "do" => {}
            // Braces are its body as well.
            "{" => drop(list.open.pop()),
            _ => self.session.understood = false,
        }
        Ok(())
    }

    /// The next pattern of `case`, or its end.
    fn pattern(&mut self, list: &mut List) -> Result<(), Stop> {
        self.skip_lines()?;
        let is_end = self.rest().strip_prefix("esac").is_some_and(|rest| {
            !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        });
        if is_end {
            self.pos += "esac".len();
            return self.close(list, Kind::Case);
        }
        self.take("(");
        loop {
            self.skip_blanks();
            if !self.is_at_word() {
                return Err(Stop);
            }
            self.word()?;
            self.skip_blanks();
            if self.take(")") {
                list.separate();
                return Ok(());
            }
            self.take("|").then_some(()).ok_or(Stop)?;
        }
    }

    /// The name of a coprocess, which only a compound command has.
    fn coprocess(&mut self, list: &mut List) -> Result<(), Stop> {
        self.skip_blanks();
        list.place = ListPlace::Wanted;
        self.session.understood &= self.byte(0) != Some(b'\n');
        let start = self.pos;
        let word = self.word()?;
        self.skip_blanks();
        if !is_name(word.written) || is_reserved(word.written) || !self.is_at_compound() {
            self.pos = start;
        }
        Ok(())
    }

    /// Whether `time`, which has been read, is about a compound command. Its options are taken.
    fn is_time_of_compound(&mut self) -> bool {
        self.skip_blanks();
        while self.rest().starts_with("-p ") || self.rest().starts_with("-- ") {
            self.pos += 3;
            self.skip_blanks();
        }
        self.is_at_compound()
    }

    fn is_at_compound(&self) -> bool {
        self.byte(0) == Some(b'(') || is_reserved(self.first_word())
    }

    fn first_word(&self) -> &str {
        self.rest().split([' ', '\t', '\n', ';', '(']).next().unwrap_or_default()
    }

    /// Goes over blanks and the ends of lines.
    pub(super) fn skip_lines(&mut self) -> Result<(), Stop> {
        loop {
            self.skip_blanks();
            if !self.take("\n") {
                return Ok(());
            }
            self.here_documents()?;
        }
    }

    /// Reads the texts of here-documents, which begin here.
    fn here_documents(&mut self) -> Result<(), Stop> {
        let documents = std::mem::take(&mut self.documents);
        self.passed += documents.len();
        for document in documents {
            let mut content = String::new();
            loop {
                let rest = self.rest();
                if rest.is_empty() {
                    // A shell takes what there is, with a warning.
                    self.session.understood = false;
                    break;
                }
                let line = rest.split('\n').next().unwrap_or_default();
                self.pos = (self.pos + line.len() + 1).min(self.text.len());
                let line = if document.is_indented { line.trim_start_matches('\t') } else { line };
                if line == document.delimiter {
                    break;
                }
                content.push_str(line);
                content.push('\n');
            }
            self.session.charge(content.len())?;
            let mut content = Some(content);
            if !document.is_quoted {
                let pieces = self.text_within(content.as_deref().unwrap_or_default())?;
                let text = word::text(&pieces, self.session)?;
                content = text.is_known.then_some(text.text);
            }
            for via in &document.shells {
                self.script(content.as_deref(), via, None)?;
            }
        }
        Ok(())
    }
}

/// Whether a word begins a compound command.
fn is_compound(word: &str) -> bool {
    matches!(word, "if" | "while" | "until" | "for" | "select" | "case" | "{" | "[[")
}

/// Whether a word begins a compound command, or stands before one.
fn is_reserved(word: &str) -> bool {
    is_compound(word) || matches!(word, "!" | "function")
}

/// Whether a text between `((` and `))` has a word behind its first one, as a command does and a number does not.
fn reads_as_command(text: &str) -> bool {
    let text = text.trim_start_matches(|sign: char| sign == '(' || sign.is_ascii_whitespace());
    let end = text.find(|sign: char| sign.is_ascii_whitespace()).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    let is_name = first.starts_with(|sign: char| sign.is_ascii_alphabetic() || "_./~".contains(sign));
    let next = rest.trim_start().trim_start_matches('-');
    is_name && next.starts_with(|sign: char| sign.is_ascii_alphabetic() || "_./~$'\"".contains(sign))
}

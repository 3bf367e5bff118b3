//! Reads what begins with `$` or a backtick, and the commands in it.

use super::{
    command::MOST_NESTED,
    piece::Piece,
    reader::{ListEnd, Reader},
    session::{Stop, is_name, is_name_byte},
};

impl Reader<'_, '_> {
    /// Goes one level deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        if self.depth >= MOST_NESTED {
            return Err(Stop);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// The commands up to the parenthesis that closes a substitution.
    pub(super) fn substitution(&mut self) -> Result<(), Stop> {
        // Here-documents that wait for their text belong to the commands outside.
        let documents = std::mem::take(&mut self.documents);
        let may_assign = std::mem::replace(&mut self.scope.may_assign, false);
        let start = self.pos;
        let result = self.nested(|reader| reader.list(ListEnd::Parenthesis));
        // Whose text follows the line's end within the substitution, shells do not agree upon.
        self.session.understood &= documents.is_empty() || !self.slice(start, self.pos).contains('\n');
        self.scope.may_assign = may_assign;
        let is_complete = self.documents.is_empty();
        self.documents = documents;
        if is_complete { result } else { Err(Stop) }
    }

    /// What begins with `$`.
    pub(super) fn dollar(&mut self, is_quoted: bool, pieces: &mut Vec<Piece>) -> Result<(), Stop> {
        let start = self.pos;
        match self.byte(1) {
            Some(b'(') => {
                let is_arithmetic = self.byte(2) == Some(b'(') && self.arithmetic(2)?;
                if !is_arithmetic {
                    self.pos += 2;
                    self.substitution()?;
                }
                pieces.push(Piece::unknown(self.slice(start, self.pos), is_quoted));
            }
            Some(b'{') => self.parameter(is_quoted, pieces)?,
            Some(b'[') => {
                let inner = self.slice(self.pos + 2, self.text.len()).split_once(']').ok_or(Stop)?.0;
                self.text_within(inner)?;
                self.pos += inner.len() + 3;
                // Brackets within brackets are not told apart.
                self.session.understood &= !inner.contains('[');
                pieces.push(Piece::unknown(self.slice(start, self.pos), is_quoted));
            }
            Some(b'\'') if !is_quoted => self.dollar_quote(pieces)?,
            // A text to be translated.
            Some(b'"') if !is_quoted => self.pos += 1,
            Some(first) if is_name_byte(first) || b"@*#?-$!".contains(&first) => {
                let is_long = is_name_byte(first) && !first.is_ascii_digit();
                let rest = self.slice(self.pos + 1, self.text.len());
                let length =
                    if is_long { rest.bytes().take_while(|byte| is_name_byte(*byte)).count() } else { 1 };
                self.pos += 1 + length;
                pieces.push(Piece::variable(rest.get(..length).unwrap_or_default(), "$", "", is_quoted));
            }
            _ => {
                self.pos += 1;
                pieces.push(Piece::quoted("$"));
            }
        }
        Ok(())
    }

    /// What begins with `${`.
    fn parameter(&mut self, is_quoted: bool, pieces: &mut Vec<Piece>) -> Result<(), Stop> {
        let start = self.pos;
        self.pos += 2;
        let length = self.rest().bytes().take_while(|byte| is_name_byte(*byte)).count();
        let name = self.slice(self.pos, self.pos + length);
        if self.byte(length) == Some(b'}') && is_name(name) {
            self.pos += length + 1;
            pieces.push(Piece::variable(name, "${", "}", is_quoted));
            return Ok(());
        }
        self.nested(|reader| reader.parameter_rest(is_quoted))?;
        pieces.push(Piece::unknown(self.slice(start, self.pos), is_quoted));
        Ok(())
    }

    /// The rest of a parameter expansion up to its brace. Its value is not found out, but its commands are.
    fn parameter_rest(&mut self, is_quoted: bool) -> Result<(), Stop> {
        let mut ignored = Vec::new();
        loop {
            match self.byte(0).ok_or(Stop)? {
                b'}' => {
                    self.pos += 1;
                    return Ok(());
                }
                b'\'' if is_quoted => {
                    // Whether it quotes depends on the operator.
                    self.session.understood = false;
                    self.pos += 1;
                }
                b'\'' => {
                    self.pos += 1;
                    self.until("'")?;
                }
                b'"' => {
                    self.pos += 1;
                    self.nested(|reader| reader.expanded(true, &mut ignored))?;
                }
                b'\\' => {
                    self.pos += 1;
                    self.pos += self.rest().chars().next().map_or(0, char::len_utf8);
                }
                b'$' => self.dollar(is_quoted, &mut ignored)?,
                b'`' => self.backticks(is_quoted, &mut ignored)?,
                b'<' | b'>' if !is_quoted && self.byte(1) == Some(b'(') => {
                    self.pos += 2;
                    self.substitution()?;
                }
                _ => self.pos += self.rest().chars().next().map_or(1, char::len_utf8),
            }
        }
    }

    /// Reads a substitution in backticks.
    pub(super) fn backticks(&mut self, is_quoted: bool, pieces: &mut Vec<Piece>) -> Result<(), Stop> {
        let start = self.pos;
        let mut inner = String::new();
        let mut rest = self.slice(self.pos + 1, self.text.len()).chars();
        loop {
            match rest.next().ok_or(Stop)? {
                '`' => break,
                '\\' => {
                    let next = rest.next().ok_or(Stop)?;
                    let is_escaped = matches!(next, '$' | '`' | '\\') || is_quoted && next == '"';
                    if !is_escaped {
                        inner.push('\\');
                    }
                    inner.push(next);
                }
                c => inner.push(c),
            }
        }
        self.pos = self.text.len() - rest.as_str().len();
        self.session.charge(inner.len())?;
        let mut scope = self.scope.clone();
        scope.may_assign = false;
        self.nested(|reader| Reader::new(&inner, scope, reader.depth, reader.session).list(ListEnd::Text))?;
        pieces.push(Piece::unknown(self.slice(start, self.pos), is_quoted));
        Ok(())
    }

    /// Reads arithmetic in double parentheses, the first of which ends at a distance. Answers whether it is arithmetic:
    /// otherwise it is a subshell, and nothing is taken.
    pub(super) fn arithmetic(&mut self, distance: usize) -> Result<bool, Stop> {
        let start = self.pos + distance + 1;
        let mut depth = 1_usize;
        for (at, byte) in self.slice(start, self.text.len()).bytes().enumerate() {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.session.charge(at)?;
                let content = self.slice(start, start + at);
                let is_arithmetic = self.slice(start, self.text.len()).as_bytes().get(at + 1) == Some(&b')');
                if is_arithmetic {
                    // Parentheses in quotes were counted.
                    self.session.understood &= !content.contains(['\'', '"', '\\']);
                    self.text_within(content)?;
                    self.pos = start + at + 2;
                }
                return Ok(is_arithmetic);
            }
        }
        self.session.charge(self.text.len() - self.pos)?;
        Ok(false)
    }

    /// Finds the commands in a text in which expansions are made.
    pub(super) fn text_within(&mut self, text: &str) -> Result<Vec<Piece>, Stop> {
        let mut pieces = Vec::new();
        if text.contains(['$', '`', '\\']) {
            let mut scope = self.scope.clone();
            scope.may_assign = false;
            self.session.charge(text.len())?;
            self.nested(|reader| {
                Reader::new(text, scope, reader.depth, reader.session).expanded(false, &mut pieces)
            })?;
        } else {
            pieces.push(Piece::quoted(text));
        }
        Ok(pieces)
    }
}

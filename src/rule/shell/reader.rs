//! Reads words: quotes, expansions and substitutions, in one pass over the text.

use std::rc::Rc;

use super::{
    piece::Piece,
    quotes,
    session::{Session, Stop},
    word::Word,
};

/// Where a list of commands ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListEnd {
    /// At the end of the text.
    Text,
    /// At the parenthesis of a substitution.
    Parenthesis,
}

/// What is piped into a command.
#[derive(Debug, Clone)]
pub(super) struct Feed {
    /// The program that writes it.
    pub(super) name: Rc<str>,
    /// The text, if it is known.
    pub(super) text: Option<Rc<str>>,
    /// The here-document that it is, by its number in the text.
    pub(super) document: Option<usize>,
}

impl Feed {
    pub(super) fn of(name: &str) -> Self {
        Self { name: name.into(), text: None, document: None }
    }
}

/// Through what a text is run.
#[derive(Debug, Clone)]
pub(super) struct TextScope {
    /// Programs, outermost first.
    pub(super) via: Rc<[String]>,
    /// In how many texts this one is.
    pub(super) texts: usize,
    /// Whether its assignments hold for what follows it.
    pub(super) may_assign: bool,
    /// What its commands read.
    pub(super) feed: Option<Feed>,
}

/// A here-document whose text has not been reached.
#[derive(Debug, Clone)]
pub(super) struct HereDocument {
    pub(super) delimiter: String,
    pub(super) is_quoted: bool,
    pub(super) is_indented: bool,
    /// The shells that run it: the programs through which its commands run.
    pub(super) shells: Vec<Rc<[String]>>,
}

/// Reads one text.
pub(super) struct Reader<'t, 's> {
    pub(super) text: &'t str,
    pub(super) pos: usize,
    /// In how many substitutions and expansions.
    pub(super) depth: usize,
    pub(super) scope: TextScope,
    pub(super) session: &'s mut Session,
    pub(super) documents: Vec<HereDocument>,
    /// How many here-documents have been read.
    pub(super) passed: usize,
}

impl<'t, 's> Reader<'t, 's> {
    pub(super) fn new(text: &'t str, scope: TextScope, depth: usize, session: &'s mut Session) -> Self {
        Self { text, pos: 0, depth, scope, session, documents: Vec::new(), passed: 0 }
    }

    /// The byte at a distance from the position.
    pub(super) fn byte(&self, distance: usize) -> Option<u8> {
        self.text.as_bytes().get(self.pos + distance).copied()
    }

    /// What has not been read.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    /// The text between two positions.
    pub(super) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Takes a text if it is next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.pos += text.len();
        }
        is_next
    }

    /// Goes over blanks, line continuations and a comment.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b' ' | b'\t'), _) => self.pos += 1,
                (Some(b'\\'), Some(b'\n')) => self.pos += 2,
                (Some(b'#'), _) => {
                    let rest = self.rest();
                    self.pos += rest.find('\n').unwrap_or(rest.len());
                    return;
                }
                _ => return,
            }
        }
    }

    /// Whether a word begins at the position.
    pub(super) fn is_at_word(&self) -> bool {
        match self.byte(0) {
            None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')') => false,
            Some(b'<' | b'>') => self.byte(1) == Some(b'('),
            Some(_) => true,
        }
    }

    /// Reads a word.
    pub(super) fn word(&mut self) -> Result<Word<'t>, Stop> {
        let start = self.pos;
        let mut pieces = Vec::new();
        while self.is_at_word() {
            match self.byte(0) {
                Some(b'\'') => {
                    self.pos += 1;
                    let text = self.until("'")?;
                    pieces.push(Piece::quoted(text));
                }
                Some(b'"') => {
                    self.pos += 1;
                    self.double_quoted(&mut pieces)?;
                }
                Some(b'\\') => self.escape(&mut pieces),
                Some(b'$') => self.dollar(false, &mut pieces)?,
                Some(b'`') => self.backticks(false, &mut pieces)?,
                Some(b'<' | b'>') => {
                    let start = self.pos;
                    self.pos += 2;
                    self.substitution()?;
                    pieces.push(Piece::unknown(self.slice(start, self.pos), false));
                }
                _ => {
                    let rest = self.rest();
                    let is_end = |c| {
                        matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
                            || matches!(c, '\'' | '"' | '\\' | '$' | '`')
                    };
                    let (plain, _) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
                    self.pos += plain.len();
                    pieces.push(Piece::plain(plain));
                }
            }
        }
        Ok(Word { pieces, written: self.slice(start, self.pos) })
    }

    /// The text up to an end, which is taken too.
    pub(super) fn until(&mut self, end: &str) -> Result<&'t str, Stop> {
        let (text, _) = self.rest().split_once(end).ok_or(Stop)?;
        self.pos += text.len() + end.len();
        Ok(text)
    }

    /// A backslash outside of quotes.
    fn escape(&mut self, pieces: &mut Vec<Piece>) {
        let mut rest = self.rest().chars();
        rest.next();
        let next = rest.next();
        self.pos += 1 + next.map_or(0, char::len_utf8);
        match next {
            // A line continuation.
            Some('\n') => {}
            Some(c) => pieces.push(Piece::Text { text: c.to_string(), is_quoted: true }),
            None => pieces.push(Piece::quoted("\\")),
        }
    }

    /// The rest of a part in double quotes.
    fn double_quoted(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Stop> {
        // An empty part makes a word as well.
        pieces.push(Piece::quoted(""));
        self.expanded(true, pieces)
    }

    /// Text in which expansions are made: up to a double quote, which is taken, or to the end of the text.
    pub(super) fn expanded(&mut self, is_in_quotes: bool, pieces: &mut Vec<Piece>) -> Result<(), Stop> {
        loop {
            let rest = self.rest();
            let end = |c| matches!(c, '\\' | '$' | '`') || is_in_quotes && c == '"';
            let (plain, after) = rest.split_at(rest.find(end).unwrap_or(rest.len()));
            self.pos += plain.len();
            if !plain.is_empty() {
                pieces.push(Piece::quoted(plain));
            }
            match after.bytes().next() {
                None if is_in_quotes => return Err(Stop),
                None => return Ok(()),
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(b'$') => self.dollar(true, pieces)?,
                Some(b'`') => self.backticks(true, pieces)?,
                Some(_) => match self.byte(1) {
                    Some(b'\n') => self.pos += 2,
                    Some(b'$' | b'`' | b'\\') => {
                        pieces.push(Piece::quoted(self.slice(self.pos + 1, self.pos + 2)));
                        self.pos += 2;
                    }
                    Some(b'"') if is_in_quotes => {
                        pieces.push(Piece::quoted("\""));
                        self.pos += 2;
                    }
                    _ => {
                        pieces.push(Piece::quoted("\\"));
                        self.pos += 1;
                    }
                },
            }
        }
    }

    /// What begins with `$'`.
    pub(super) fn dollar_quote(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Stop> {
        let start = self.pos;
        self.pos += 2;
        let rest = self.rest();
        let mut is_escaped = false;
        let end = rest.bytes().position(|byte| {
            let is_end = byte == b'\'' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        });
        let content = rest.get(..end.ok_or(Stop)?).ok_or(Stop)?;
        self.pos += content.len() + 1;
        pieces.push(match quotes::decoded(content) {
            Some(text) => Piece::Text { text, is_quoted: true },
            None => Piece::unknown(self.slice(start, self.pos), true),
        });
        Ok(())
    }
}

//! Words of a shell: quotes, variables and substitutions.

use rable::{Node, NodeKind};

use super::super::text::Unclear;

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WordPiece {
    pub(super) kind: WordPieceKind,
    pub(super) is_quoted: bool,
}

/// What a part of a word is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordPieceKind {
    Text(String),
    /// A character after a backslash without quotes.
    Escaped(char),
    /// A variable.
    Variable(String),
    /// A command whose output it is.
    Output(String),
}

/// Takes a word apart. `text` is as it is written.
pub(super) fn pieces(text: &str) -> Result<Vec<WordPiece>, Unclear> {
    let mut reader = WordReader { rest: text, pieces: Vec::new() };
    while let Some(c) = reader.next() {
        match c {
            '\'' => {
                let Some((inner, rest)) = reader.rest.split_once('\'') else { return unread() };
                reader.rest = rest;
                reader.text(inner, true);
            }
            '"' => reader.quoted()?,
            '\\' => match reader.next() {
                Some('\n') => {}
                Some(c) => reader.push(WordPieceKind::Escaped(c), false),
                None => return unread(),
            },
            '$' => reader.dollar(false)?,
            '`' => return Unclear::new("a command in backquotes"),
            c => reader.text(c.encode_utf8(&mut [0; 4]), false),
        }
    }
    Ok(reader.pieces)
}

/// The parts of a here-document whose word is not quoted.
pub(super) fn document_pieces(text: &str) -> Result<Vec<WordPiece>, Unclear> {
    let mut reader = WordReader { rest: text, pieces: Vec::new() };
    while let Some(c) = reader.next() {
        match c {
            '\\' | '`' => return Unclear::new("a backslash or a command in a here-document"),
            '$' => reader.dollar(true)?,
            c => reader.text(c.encode_utf8(&mut [0; 4]), true),
        }
    }
    Ok(reader.pieces)
}

/// The words of an array: what is between its parentheses.
pub(super) fn elements(text: &str) -> Result<Vec<String>, Unclear> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => {
                word.push(c);
                word.extend(chars.next());
            }
            ('\'' | '"', None) => {
                quote = Some(c);
                word.push(c);
            }
            (c, Some(open)) => {
                quote = quote.filter(|_| c != open);
                word.push(c);
            }
            ('#', None) if word.is_empty() => while chars.next_if(|c| *c != '\n').is_some() {},
            ('(' | ')' | '[', None) => return Unclear::new("an array with more than words"),
            (c, None) if c.is_ascii_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (c, None) => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

fn unread<T>() -> Result<T, Unclear> {
    Unclear::new("a word that is not understood")
}

struct WordReader<'t> {
    rest: &'t str,
    pieces: Vec<WordPiece>,
}

impl WordReader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn push(&mut self, kind: WordPieceKind, is_quoted: bool) {
        self.pieces.push(WordPiece { kind, is_quoted });
    }

    fn text(&mut self, more: &str, is_quoted: bool) {
        if let Some(WordPiece { kind: WordPieceKind::Text(text), is_quoted: was }) = self.pieces.last_mut()
            && *was == is_quoted
        {
            text.push_str(more);
        } else {
            self.push(WordPieceKind::Text(more.to_owned()), is_quoted);
        }
    }

    fn quoted(&mut self) -> Result<(), Unclear> {
        self.text("", true);
        loop {
            match self.next() {
                None => return unread(),
                Some('"') => return Ok(()),
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.text(c.encode_utf8(&mut [0; 4]), true),
                    Some(c) => self.text(&format!("\\{c}"), true),
                    None => return unread(),
                },
                Some('$') => self.dollar(true)?,
                Some('`') => return Unclear::new("a command in backquotes"),
                Some(c) => self.text(c.encode_utf8(&mut [0; 4]), true),
            }
        }
    }

    fn dollar(&mut self, is_quoted: bool) -> Result<(), Unclear> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some(inner) = self.rest.strip_prefix('{') {
            let Some((name, rest)) = inner.split_once('}') else { return unread() };
            let bare = name.strip_suffix("[@]").unwrap_or(name);
            if bare.is_empty() || !bare.chars().all(is_name) {
                return Unclear::new(format!("`${{{name}}}`"));
            }
            self.rest = rest;
            self.push(WordPieceKind::Variable(name.to_owned()), is_quoted);
            return Ok(());
        }
        if self.rest.starts_with('(') {
            let Some(length) = closing(self.rest) else { return unread() };
            let inner = self.rest[1..length].to_owned();
            self.rest = &self.rest[length + 1..];
            if inner.starts_with('(') {
                return Unclear::new("arithmetic");
            }
            self.push(WordPieceKind::Output(inner), is_quoted);
            return Ok(());
        }
        let length = match self.rest.chars().next() {
            Some(c) if c.is_ascii_digit() => 1,
            Some(c) if is_name(c) => self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len()),
            Some('\'' | '"') if !is_quoted => return Unclear::new("`$'`"),
            Some(c) if "@*#?-$!".contains(c) => return Unclear::new(format!("`${c}`")),
            _ => {
                self.text("$", is_quoted);
                return Ok(());
            }
        };
        let name = self.rest[..length].to_owned();
        self.rest = &self.rest[length..];
        self.push(WordPieceKind::Variable(name), is_quoted);
        Ok(())
    }
}

/// Where the parenthesis is closed that a text begins with.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (at, c) in text.char_indices() {
        match (c, quote) {
            _ if std::mem::take(&mut is_escaped) => {}
            ('\\', None | Some('"')) => is_escaped = true,
            // Quotes within quotes within a substitution are a new level for a shell; such words are not read.
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) => quote = quote.filter(|_| c != open),
            ('(', None) => depth += 1,
            (')', None) => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The text of a word as it is written.
pub(super) fn word_text(node: &Node) -> Option<&str> {
    match &node.kind {
        NodeKind::Word { value, .. } => Some(value),
        _ => None,
    }
}

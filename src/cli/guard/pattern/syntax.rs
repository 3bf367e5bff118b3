//! Reads a pattern of any flavour. Whatever is not the same everywhere, or not known here, is an error.

use super::flavour::{LetterCase, PatternFlavour};

/// How deep groups may be.
const DEEPEST: usize = 32;

/// The most repetitions that a pattern counts.
const MOST_REPETITIONS: u32 = 255;

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PatternNode {
    Char(char),
    Any,
    Class(CharClass),
    Start,
    End,
    /// The end of the text and nothing else, `\Z` of Python.
    TextEnd,
    WordEdge,
    NoWordEdge,
    WordStart,
    WordEnd,
    Sequence(Vec<PatternNode>),
    Either(Vec<PatternNode>),
    Repeat(Box<PatternNode>, u32, Option<u32>),
}

/// A set of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CharClass {
    pub(super) is_negated: bool,
    pub(super) items: Vec<ClassItem>,
}

/// A part of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClassItem {
    Range(char, char),
    Space,
    Digit,
    Word,
    /// `[:alpha:]`.
    Named(String),
}

impl PatternNode {
    /// The text that it is, if it is one.
    pub(super) fn literal(&self) -> Option<String> {
        match self {
            Self::Char(c) => Some(c.to_string()),
            Self::Sequence(nodes) => nodes.iter().map(Self::literal).collect(),
            _ => None,
        }
    }
}

/// Reads a pattern, and whether it says itself that case is ignored.
pub(super) fn parse(text: &str, flavour: PatternFlavour) -> Result<(PatternNode, LetterCase), String> {
    let (rest, case) = match text.strip_prefix("(?i)") {
        Some(rest) if flavour == PatternFlavour::Python => (rest, LetterCase::Ignored),
        _ => (text, LetterCase::Matters),
    };
    let mut parser = PatternParser { rest: rest.chars().collect(), at: 0, flavour, depth: 0 };
    let node = parser.either()?;
    match parser.peek() {
        None => Ok((node, case)),
        Some(c) => Err(format!("`{c}` is not understood")),
    }
}

struct PatternParser {
    rest: Vec<char>,
    at: usize,
    flavour: PatternFlavour,
    depth: usize,
}

impl PatternParser {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn starts(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(n, c)| self.rest.get(self.at + n) == Some(&c))
    }

    fn eat(&mut self, text: &str) -> bool {
        let is_there = self.starts(text);
        if is_there {
            self.at += text.chars().count();
        }
        is_there
    }

    fn is_basic(&self) -> bool {
        self.flavour == PatternFlavour::GrepBasic
    }

    /// An operator, which the basic syntax writes with a backslash.
    fn operator(&self, operator: char) -> String {
        if self.is_basic() { format!("\\{operator}") } else { operator.to_string() }
    }

    fn either(&mut self) -> Result<PatternNode, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("its groups are too deep".to_owned());
        }
        let bar = self.operator('|');
        let mut branches = vec![self.sequence()?];
        while self.eat(&bar) {
            branches.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(if branches.len() == 1 { branches.remove(0) } else { PatternNode::Either(branches) })
    }

    fn sequence(&mut self) -> Result<PatternNode, String> {
        let (bar, close) = (self.operator('|'), self.operator(')'));
        let mut nodes = Vec::new();
        while self.peek().is_some() && !self.starts(&bar) && !(self.depth > 1 && self.starts(&close)) {
            let is_first = nodes.is_empty();
            let node = self.atom(is_first)?;
            nodes.push(self.repeated(node)?);
        }
        if nodes.is_empty() && self.flavour.is_posix() {
            return Err("an empty part is not the same everywhere".to_owned());
        }
        Ok(PatternNode::Sequence(nodes))
    }

    fn atom(&mut self, is_first: bool) -> Result<PatternNode, String> {
        let open = self.operator('(');
        if self.eat(&open) {
            return self.group();
        }
        let Some(c) = self.peek() else { return Err("it ends too early".to_owned()) };
        self.at += 1;
        let ends =
            self.peek().is_none() || self.starts(&self.operator('|')) || self.starts(&self.operator(')'));
        Ok(match c {
            '\\' => return self.escape(),
            '[' => PatternNode::Class(self.class()?),
            '.' => PatternNode::Any,
            '^' if !self.is_basic() || is_first => PatternNode::Start,
            '$' if !self.is_basic() || ends => PatternNode::End,
            '*' if self.is_basic() && is_first => PatternNode::Char('*'),
            '*' => return Err("`*` repeats nothing".to_owned()),
            '+' | '?' | '(' | ')' | '{' | '|' if !self.is_basic() => {
                return Err(format!("`{c}` repeats nothing, or is not understood"));
            }
            '\n' if self.flavour.is_by_line() => return Err("it has several lines".to_owned()),
            c => PatternNode::Char(c),
        })
    }

    fn group(&mut self) -> Result<PatternNode, String> {
        if self.starts("?") && !self.is_basic() {
            let is_plain = self.eat("?:");
            if !is_plain && self.eat("?P<") {
                while self.peek().is_some_and(|c| c != '>') {
                    self.at += 1;
                }
                self.at += 1;
            } else if !is_plain {
                return Err("it looks ahead or behind, or sets flags".to_owned());
            }
            if self.flavour.is_posix() {
                return Err("`(?` is none of its syntax".to_owned());
            }
        }
        let node = self.either()?;
        let close = self.operator(')');
        if self.eat(&close) { Ok(node) } else { Err("a group is not closed".to_owned()) }
    }

    fn repeated(&mut self, node: PatternNode) -> Result<PatternNode, String> {
        let mut node = node;
        let mut times = 0;
        while let Some((least, most)) = self.repetition()? {
            times += 1;
            let is_edge = matches!(
                node,
                PatternNode::Start | PatternNode::End | PatternNode::TextEnd | PatternNode::WordEdge
            );
            if times > 1 || is_edge {
                return Err("what is repeated is not understood".to_owned());
            }
            // A lazy repetition finds another match, and finds one in the same texts.
            if !self.flavour.is_posix() && !self.eat("?") && self.starts("+") {
                return Err("a possessive repetition".to_owned());
            }
            node = PatternNode::Repeat(Box::new(node), least, most);
        }
        Ok(node)
    }

    fn repetition(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        let (plus, maybe, open) = (self.operator('+'), self.operator('?'), self.operator('{'));
        if self.eat("*") {
            return Ok(Some((0, None)));
        }
        if self.eat(&plus) {
            return Ok(Some((1, None)));
        }
        if self.eat(&maybe) {
            return Ok(Some((0, Some(1))));
        }
        if !self.eat(&open) {
            return Ok(None);
        }
        let least = self.number()?;
        let most = if !self.eat(",") {
            Some(least)
        } else if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            Some(self.number()?)
        } else {
            None
        };
        let close = self.operator('}');
        if !self.eat(&close) || most.is_some_and(|most| most < least) {
            return Err("`{` counts nothing".to_owned());
        }
        Ok(Some((least, most)))
    }

    fn number(&mut self) -> Result<u32, String> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let digits: String = self.rest[start..self.at].iter().collect();
        let number = digits.parse().ok().filter(|number| *number <= MOST_REPETITIONS);
        number.ok_or_else(|| "`{` counts nothing, or too much".to_owned())
    }

    fn escape(&mut self) -> Result<PatternNode, String> {
        let Some(c) = self.peek() else { return Err("it ends with a backslash".to_owned()) };
        self.at += 1;
        let unknown = || Err(format!("`\\{c}` is not understood"));
        if let Some(item) = shorthand(c, self.flavour) {
            let is_negated = c.is_ascii_uppercase();
            return Ok(PatternNode::Class(CharClass { is_negated, items: vec![item] }));
        }
        Ok(match c {
            'b' => PatternNode::WordEdge,
            'B' => PatternNode::NoWordEdge,
            '<' if self.flavour.is_posix() => PatternNode::WordStart,
            '>' if self.flavour.is_posix() => PatternNode::WordEnd,
            'A' if self.flavour == PatternFlavour::Python => PatternNode::Start,
            'Z' if self.flavour == PatternFlavour::Python => PatternNode::TextEnd,
            'n' if !self.flavour.is_posix() => PatternNode::Char('\n'),
            't' if !self.flavour.is_posix() => PatternNode::Char('\t'),
            'r' if !self.flavour.is_posix() => PatternNode::Char('\r'),
            '`' | '\'' if self.flavour.is_posix() => return unknown(),
            c if c.is_ascii_punctuation() || c == ' ' => {
                // What the basic syntax escapes to make an operator of it is read before.
                if self.is_basic() && "(){}|+?".contains(c) {
                    return unknown();
                }
                PatternNode::Char(c)
            }
            _ => return unknown(),
        })
    }

    fn class(&mut self) -> Result<CharClass, String> {
        let is_negated = self.eat("^");
        let mut items = Vec::new();
        loop {
            let Some(c) = self.peek() else { return Err("a set is not closed".to_owned()) };
            self.at += 1;
            let first = match c {
                ']' if !items.is_empty() => return Ok(CharClass { is_negated, items }),
                ']' if !self.flavour.is_posix() => return Err("an empty set".to_owned()),
                '[' if self.flavour.is_posix() && self.eat(":") => {
                    items.push(self.named_class()?);
                    continue;
                }
                '[' if self.flavour.is_posix() && (self.starts(".") || self.starts("=")) => {
                    return Err("a set of a language".to_owned());
                }
                '\\' if !self.flavour.is_posix() => match self.class_escape()? {
                    Ok(c) => c,
                    Err(item) => {
                        items.push(item);
                        continue;
                    }
                },
                c => c,
            };
            items.push(self.range(first)?);
        }
    }

    fn range(&mut self, first: char) -> Result<ClassItem, String> {
        let goes_on = self.starts("-") && self.rest.get(self.at + 1).is_some_and(|c| *c != ']');
        if !goes_on {
            return Ok(ClassItem::Range(first, first));
        }
        self.at += 1;
        let last = match self.peek() {
            Some('\\') if !self.flavour.is_posix() => {
                self.at += 1;
                self.class_escape()?.map_err(|_| "a range without an end".to_owned())?
            }
            Some('[') if self.flavour.is_posix() => return Err("a range without an end".to_owned()),
            Some(c) => {
                self.at += 1;
                c
            }
            None => return Err("a set is not closed".to_owned()),
        };
        // Whether a range in a locale has other letters differs.
        let is_plain = first.is_ascii() && last.is_ascii();
        if first > last || (self.flavour.is_posix() && !is_plain) {
            return Err("a range that is not understood".to_owned());
        }
        Ok(ClassItem::Range(first, last))
    }

    /// A character after a backslash in a set, or what stands for several.
    fn class_escape(&mut self) -> Result<Result<char, ClassItem>, String> {
        let Some(c) = self.peek() else { return Err("a set is not closed".to_owned()) };
        self.at += 1;
        if let Some(item) = shorthand(c, self.flavour) {
            return if c.is_ascii_lowercase() { Ok(Err(item)) } else { Err(format!("`\\{c}` in a set")) };
        }
        Ok(Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            c if c.is_ascii_punctuation() || c == ' ' => c,
            _ => return Err(format!("`\\{c}` in a set")),
        }))
    }

    fn named_class(&mut self) -> Result<ClassItem, String> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_lowercase()) {
            self.at += 1;
        }
        let name: String = self.rest[start..self.at].iter().collect();
        if !self.eat(":]") {
            return Err("a named set is not closed".to_owned());
        }
        match name.as_str() {
            "space" => Ok(ClassItem::Space),
            "digit" => Ok(ClassItem::Range('0', '9')),
            "blank" | "alpha" | "alnum" | "upper" | "lower" | "xdigit" | "punct" => {
                Ok(ClassItem::Named(name))
            }
            _ => Err(format!("`[:{name}:]` is not understood")),
        }
    }
}

/// A letter that stands for a set.
fn shorthand(letter: char, flavour: PatternFlavour) -> Option<ClassItem> {
    match letter.to_ascii_lowercase() {
        's' => Some(ClassItem::Space),
        'w' => Some(ClassItem::Word),
        'd' if !flavour.is_posix() => Some(ClassItem::Digit),
        _ => None,
    }
}

impl PatternFlavour {
    /// Whether it is of the C library.
    pub(super) fn is_posix(self) -> bool {
        matches!(self, Self::GrepBasic | Self::GrepExtended | Self::Bash)
    }
}

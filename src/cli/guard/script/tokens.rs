//! The words and signs of Python and JavaScript.

use super::super::text::Unclear;

/// The most tokens of a script.
const MOST_TOKENS: usize = 8_000;

/// Which of the two it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum GuardScriptLanguage {
    Python,
    JavaScript,
}

/// A word or sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScriptToken {
    Name(String),
    Text(String),
    /// A text with expressions in it: what is between them, and they.
    Template(Vec<TemplatePart>),
    Number(i64),
    Regex {
        source: String,
        flags: String,
    },
    Sign(&'static str),
    /// The end of a line of Python, and how far the next one is indented.
    Line(usize),
}

/// A part of a text with expressions in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TemplatePart {
    Text(String),
    Expression(String),
}

const SIGNS: [&str; 44] = [
    "===", "!==", "...", "**=", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "+=", "-=", "->", ":=",
    "**", "//", "++", "--", "(", ")", "[", "]", "{", "}", ",", ":", ";", ".", "=", "+", "-", "*", "/", "%",
    "!", "<", ">", "?", "|", "&", "@",
];

/// Takes a script apart.
pub(super) fn tokens(text: &str, language: GuardScriptLanguage) -> Result<Vec<ScriptToken>, Unclear> {
    let text = text.replace("\r\n", "\n");
    let mut lexer = ScriptLexer { rest: &text, language, depth: 0, tokens: Vec::new() };
    if language == GuardScriptLanguage::Python {
        lexer.line();
    }
    if lexer.rest.starts_with("#!") {
        lexer.skip_line();
    }
    while !lexer.rest.is_empty() {
        lexer.next()?;
        if lexer.tokens.len() > MOST_TOKENS {
            return Unclear::new("it is too long");
        }
    }
    Ok(lexer.tokens)
}

struct ScriptLexer<'t> {
    rest: &'t str,
    language: GuardScriptLanguage,
    depth: usize,
    tokens: Vec<ScriptToken>,
}

impl ScriptLexer<'_> {
    fn is_python(&self) -> bool {
        self.language == GuardScriptLanguage::Python
    }

    fn skip_line(&mut self) {
        self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
    }

    /// The indentation of the next line that is not empty.
    fn line(&mut self) {
        loop {
            let indent = self.rest.len() - self.rest.trim_start_matches(' ').len();
            let after = &self.rest[indent..];
            if after.starts_with('#') {
                self.skip_line();
            } else if !after.starts_with('\n') {
                self.rest = after;
                if let Some(ScriptToken::Line(_)) = self.tokens.last() {
                    self.tokens.pop();
                }
                return self.tokens.push(ScriptToken::Line(indent));
            } else {
                self.rest = after;
            }
            match self.rest.strip_prefix('\n') {
                Some(rest) => self.rest = rest,
                None => return,
            }
        }
    }

    fn next(&mut self) -> Result<(), Unclear> {
        let Some(c) = self.rest.chars().next() else { return Ok(()) };
        if c == '\n' && self.is_python() && self.depth == 0 {
            self.rest = &self.rest[1..];
            self.line();
            return Ok(());
        }
        if c == '\t' && self.is_python() {
            return Unclear::new("it is indented with tabs");
        }
        if c.is_whitespace() {
            self.rest = &self.rest[c.len_utf8()..];
            return Ok(());
        }
        if self.comment()? || self.word(c)? || self.text(c)? || self.regex(c)? {
            return Ok(());
        }
        let Some(sign) = SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) else {
            return Unclear::new(format!("`{c}`"));
        };
        // Of `a?.5:b` nobody makes a guard.
        match *sign {
            "(" | "[" | "{" => self.depth += 1,
            ")" | "]" | "}" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.rest = &self.rest[sign.len()..];
        self.tokens.push(ScriptToken::Sign(sign));
        Ok(())
    }

    fn comment(&mut self) -> Result<bool, Unclear> {
        if self.is_python() {
            if let Some(rest) = self.rest.strip_prefix("\\\n") {
                self.rest = rest;
                return Ok(true);
            }
            if self.rest.starts_with('#') {
                self.skip_line();
                return Ok(true);
            }
            return Ok(false);
        }
        if self.rest.starts_with("//") {
            self.skip_line();
            return Ok(true);
        }
        if let Some(inner) = self.rest.strip_prefix("/*") {
            let Some((_, rest)) = inner.split_once("*/") else {
                return Unclear::new("a comment without an end");
            };
            self.rest = rest;
            return Ok(true);
        }
        Ok(false)
    }

    fn word(&mut self, c: char) -> Result<bool, Unclear> {
        if !(c.is_ascii_alphanumeric() || c == '_' || c == '$') {
            return Ok(false);
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        if self.is_python() && rest.starts_with(['"', '\'']) && word.len() <= 2 {
            let prefix = word.to_ascii_lowercase();
            self.rest = rest;
            return self.python_text(&prefix).map(|()| true);
        }
        let token = if c.is_ascii_digit() {
            match word.parse() {
                Ok(number) => ScriptToken::Number(number),
                Err(_) => return Unclear::new(format!("the number {word}")),
            }
        } else {
            ScriptToken::Name(word.to_owned())
        };
        self.rest = rest;
        self.tokens.push(token);
        Ok(true)
    }

    fn text(&mut self, c: char) -> Result<bool, Unclear> {
        match (self.language, c) {
            (GuardScriptLanguage::Python, '"' | '\'') => self.python_text("").map(|()| true),
            (GuardScriptLanguage::JavaScript, '"' | '\'' | '`') => {
                self.rest = &self.rest[1..];
                let (raw, rest) = until(self.rest, c.encode_utf8(&mut [0; 4]))?;
                self.rest = rest;
                let token = if c == '`' { template(raw, "${")? } else { ScriptToken::Text(unescaped(raw)?) };
                self.tokens.push(token);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn python_text(&mut self, prefix: &str) -> Result<(), Unclear> {
        let quote = match self.rest {
            rest if rest.starts_with("\"\"\"") => "\"\"\"",
            rest if rest.starts_with("'''") => "'''",
            rest if rest.starts_with('"') => "\"",
            _ => "'",
        };
        let (raw, rest) = until(&self.rest[quote.len()..], quote)?;
        self.rest = rest;
        if raw.contains("\\\n") {
            return Unclear::new("a text that goes on in the next line");
        }
        let token = match prefix {
            "r" => ScriptToken::Text(raw.to_owned()),
            "" | "u" => ScriptToken::Text(unescaped(raw)?),
            "f" => template(raw, "{")?,
            _ => return Unclear::new(format!("a text with `{prefix}`")),
        };
        // Texts that follow each other are one.
        match (self.tokens.last_mut(), token) {
            (Some(ScriptToken::Text(before)), ScriptToken::Text(more)) => before.push_str(&more),
            (Some(ScriptToken::Text(_) | ScriptToken::Template(_)), token) => {
                let Some(before) = self.tokens.pop() else { return Ok(()) };
                let mut parts = parts_of(before);
                parts.extend(parts_of(token));
                self.tokens.push(ScriptToken::Template(parts));
            }
            (_, token) => self.tokens.push(token),
        }
        Ok(())
    }

    /// A pattern between slashes, where no number is divided.
    fn regex(&mut self, c: char) -> Result<bool, Unclear> {
        let divides = matches!(
            self.tokens.last(),
            Some(ScriptToken::Name(_) | ScriptToken::Number(_) | ScriptToken::Sign(")" | "]" | "}"))
        ) && !matches!(self.tokens.last(), Some(ScriptToken::Name(name)) if name == "return");
        if self.is_python() || c != '/' || divides {
            return Ok(false);
        }
        let (mut is_escaped, mut is_in_set) = (false, false);
        for (at, c) in self.rest.char_indices().skip(1) {
            match c {
                '\n' => break,
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '[' => is_in_set = true,
                ']' => is_in_set = false,
                '/' if !is_in_set => {
                    let source = self.rest[1..at].to_owned();
                    let rest = &self.rest[at + 1..];
                    let length = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
                    let flags = rest[..length].to_owned();
                    self.rest = &rest[length..];
                    self.tokens.push(ScriptToken::Regex { source, flags });
                    return Ok(true);
                }
                _ => {}
            }
        }
        Unclear::new("a pattern without an end")
    }
}

/// The text up to a quote, and what follows it.
fn until<'t>(text: &'t str, quote: &str) -> Result<(&'t str, &'t str), Unclear> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if text[at..].starts_with(quote) {
            return Ok((&text[..at], &text[at + quote.len()..]));
        } else if c == '\n' && quote.len() == 1 && quote != "`" {
            break;
        }
    }
    Unclear::new("a text without an end")
}

fn unescaped(raw: &str) -> Result<String, Unclear> {
    let mut text = String::new();
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some(c @ ('\\' | '\'' | '"' | '`' | '$')) => text.push(c),
            other => return Unclear::new(format!("`\\{}` in a text", other.unwrap_or(' '))),
        }
    }
    Ok(text)
}

/// A text with expressions, each after `open` and up to a brace.
fn template(raw: &str, open: &str) -> Result<ScriptToken, Unclear> {
    let mut parts = Vec::new();
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once(open) {
        if open == "{" && (after.starts_with('{') || before.contains('}')) {
            return Unclear::new("braces in a text");
        }
        let Some((inner, after)) = after.split_once('}') else {
            return Unclear::new("a text with an open brace");
        };
        if inner.contains(['{', '!', ':', '\\']) {
            return Unclear::new("an expression in a text");
        }
        parts.push(TemplatePart::Text(unescaped(before)?));
        parts.push(TemplatePart::Expression(inner.to_owned()));
        rest = after;
    }
    if open == "{" && rest.contains('}') {
        return Unclear::new("braces in a text");
    }
    parts.push(TemplatePart::Text(unescaped(rest)?));
    Ok(ScriptToken::Template(parts))
}

fn parts_of(token: ScriptToken) -> Vec<TemplatePart> {
    match token {
        ScriptToken::Text(text) => vec![TemplatePart::Text(text)],
        ScriptToken::Template(parts) => parts,
        _ => Vec::new(),
    }
}

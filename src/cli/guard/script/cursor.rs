//! Where a parser is in the tokens, and the expressions that both languages have.

use super::{
    ast::ScriptExpression,
    tokens::{GuardScriptLanguage, ScriptToken, TemplatePart, tokens},
};
use crate::cli::guard::text::Unclear;

/// How deep expressions and blocks may be.
const DEEPEST: usize = 48;

/// The tokens, and where the parser is.
pub(super) struct TokenCursor {
    tokens: Vec<ScriptToken>,
    at: usize,
    pub(super) language: GuardScriptLanguage,
    depth: usize,
}

type Parsed = Result<ScriptExpression, Unclear>;

impl TokenCursor {
    pub(super) fn of(text: &str, language: GuardScriptLanguage) -> Result<Self, Unclear> {
        Ok(Self { tokens: tokens(text, language)?, at: 0, language, depth: 0 })
    }

    pub(super) fn peek(&self) -> Option<&ScriptToken> {
        self.tokens.get(self.at)
    }

    pub(super) fn after(&self, distance: usize) -> Option<&ScriptToken> {
        self.tokens.get(self.at + distance)
    }

    pub(super) fn next(&mut self) -> Option<ScriptToken> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    pub(super) fn place(&self) -> usize {
        self.at
    }

    pub(super) fn back_to(&mut self, place: usize) {
        self.at = place;
    }

    pub(super) fn is_at(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(ScriptToken::Sign(is)) if *is == sign)
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let is_there = self.is_at(sign);
        self.at += usize::from(is_there);
        is_there
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(ScriptToken::Name(is)) if is == word)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        self.at += usize::from(is_there);
        is_there
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Unclear> {
        if self.eat(sign) { Ok(()) } else { self.unread(&format!("no `{sign}`")) }
    }

    pub(super) fn name(&mut self) -> Result<String, Unclear> {
        match self.next() {
            Some(ScriptToken::Name(name)) => Ok(name),
            _ => self.unread("no name"),
        }
    }

    pub(super) fn unread<T>(&self, why: &str) -> Result<T, Unclear> {
        let at = match self.tokens.get(self.at.saturating_sub(1)) {
            Some(ScriptToken::Name(name)) => format!(" at `{name}`"),
            Some(ScriptToken::Sign(sign)) => format!(" at `{sign}`"),
            _ => String::new(),
        };
        Unclear::new(format!("a part that is not understood{at}: {why}"))
    }

    /// One level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, Unclear>,
    ) -> Result<T, Unclear> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Unclear::new("it is nested too deep");
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    pub(super) fn expression(&mut self) -> Parsed {
        self.deeper(Self::choice)
    }

    fn choice(&mut self) -> Parsed {
        let one = self.either()?;
        if !self.eat_word_of_python("if") {
            return Ok(one);
        }
        let condition = self.either()?;
        if !self.eat_word("else") {
            return self.unread("no `else`");
        }
        let other = self.expression()?;
        let (condition, one, other) = (Box::new(condition), Box::new(one), Box::new(other));
        Ok(ScriptExpression::Choice { condition, one, other })
    }

    fn either(&mut self) -> Parsed {
        let mut left = self.both()?;
        loop {
            if self.eat("||") || self.eat_word_of_python("or") {
                left = ScriptExpression::Or(Box::new(left), Box::new(self.both()?));
            } else if self.eat("??") {
                left = ScriptExpression::Otherwise(Box::new(left), Box::new(self.both()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn eat_word_of_python(&mut self, word: &str) -> bool {
        self.language == GuardScriptLanguage::Python && self.eat_word(word)
    }

    fn both(&mut self) -> Parsed {
        let mut left = self.negation()?;
        while self.eat("&&") || self.eat_word_of_python("and") {
            left = ScriptExpression::And(Box::new(left), Box::new(self.negation()?));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Parsed {
        if self.eat_word_of_python("not") {
            return self.deeper(Self::negation).map(ScriptExpression::negated);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.sum()?;
        let is_equal = self.eat("===") || self.eat("==");
        if is_equal || self.eat("!==") || self.eat("!=") {
            let equal = ScriptExpression::Equal(Box::new(left), Box::new(self.sum()?));
            return Ok(if is_equal { equal } else { equal.negated() });
        }
        if self.language == GuardScriptLanguage::JavaScript {
            return Ok(left);
        }
        if self.eat_word("is") {
            let is_negated = self.eat_word("not");
            let equal = ScriptExpression::Equal(Box::new(left), Box::new(self.sum()?));
            return Ok(if is_negated { equal.negated() } else { equal });
        }
        let is_negated =
            self.is_word("not") && matches!(self.after(1), Some(ScriptToken::Name(name)) if name == "in");
        if is_negated {
            self.next();
        }
        if is_negated || (self.is_word("in") && self.language == GuardScriptLanguage::Python) {
            self.next();
            let found = ScriptExpression::In(Box::new(left), Box::new(self.sum()?));
            return Ok(if is_negated { found.negated() } else { found });
        }
        Ok(left)
    }

    fn sum(&mut self) -> Parsed {
        let first = self.unary()?;
        let mut parts = vec![first];
        while self.eat("+") {
            parts.push(self.unary()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { ScriptExpression::Add(parts) })
    }

    fn unary(&mut self) -> Parsed {
        if self.language == GuardScriptLanguage::JavaScript && self.eat("!") {
            return self.deeper(Self::unary).map(ScriptExpression::negated);
        }
        if self.language == GuardScriptLanguage::JavaScript && self.eat_word("typeof") {
            let of = self.deeper(Self::unary)?;
            return Ok(ScriptExpression::Call(
                Box::new(ScriptExpression::Name("typeof".to_owned())),
                vec![of],
            ));
        }
        if self.eat_word("await") {
            return self.deeper(Self::unary);
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Parsed {
        let mut left = self.primary()?;
        loop {
            if self.eat(".") {
                left = ScriptExpression::Member(Box::new(left), self.name()?);
            } else if self.eat("?.") {
                left = if self.eat("[") {
                    let key = self.expression()?;
                    self.expect("]")?;
                    ScriptExpression::Index(Box::new(left), Box::new(key))
                } else {
                    ScriptExpression::Member(Box::new(left), self.name()?)
                };
            } else if self.eat("[") {
                let key = self.expression()?;
                self.expect("]")?;
                left = ScriptExpression::Index(Box::new(left), Box::new(key));
            } else if self.eat("(") {
                left = ScriptExpression::Call(Box::new(left), self.arguments()?);
            } else {
                return Ok(left);
            }
        }
    }

    fn arguments(&mut self) -> Result<Vec<ScriptExpression>, Unclear> {
        let mut arguments = Vec::new();
        while !self.eat(")") {
            let is_named = self.language == GuardScriptLanguage::Python
                && matches!(
                    (self.peek(), self.after(1)),
                    (Some(ScriptToken::Name(_)), Some(ScriptToken::Sign("=")))
                );
            let argument = if is_named {
                let name = self.name()?;
                self.expect("=")?;
                ScriptExpression::Named(name, Box::new(self.expression()?))
            } else {
                self.argument()?
            };
            let argument = if self.language == GuardScriptLanguage::Python && self.eat_word("for") {
                let name = self.name()?;
                if !self.eat_word("in") {
                    return self.unread("no `in`");
                }
                let list = self.expression()?;
                ScriptExpression::Each { item: Box::new(argument), name, list: Box::new(list) }
            } else {
                argument
            };
            arguments.push(argument);
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(arguments)
    }

    fn argument(&mut self) -> Parsed {
        match self.language {
            GuardScriptLanguage::Python => self.expression(),
            GuardScriptLanguage::JavaScript => self.javascript_value(),
        }
    }

    fn primary(&mut self) -> Parsed {
        if self.eat("(") {
            let inner = self.argument()?;
            // `(a, b)` is a list of Python.
            if self.language == GuardScriptLanguage::Python && self.is_at(",") {
                return self.list(inner, ")");
            }
            self.expect(")")?;
            return Ok(inner);
        }
        if self.eat("[") {
            if self.eat("]") {
                return Ok(ScriptExpression::List(Vec::new()));
            }
            let first = self.argument()?;
            return self.list(first, "]");
        }
        if self.eat("{") {
            return self.object();
        }
        match self.next() {
            Some(ScriptToken::Text(text)) => Ok(ScriptExpression::Text(text)),
            Some(ScriptToken::Number(number)) => Ok(ScriptExpression::Number(number)),
            Some(ScriptToken::Regex { source, flags }) => Ok(ScriptExpression::Regex { source, flags }),
            Some(ScriptToken::Template(parts)) => self.template(parts),
            Some(ScriptToken::Name(name)) => Ok(match name.as_str() {
                "True" | "true" => ScriptExpression::Truth(true),
                "False" | "false" => ScriptExpression::Truth(false),
                "None" | "null" | "undefined" => ScriptExpression::Nothing,
                "lambda" | "new" | "delete" | "void" | "yield" => return self.unread("no guard has it"),
                _ => ScriptExpression::Name(name),
            }),
            _ => self.unread("no value"),
        }
    }

    fn list(&mut self, first: ScriptExpression, end: &str) -> Parsed {
        let mut items = vec![first];
        while self.eat(",") {
            if self.is_at(end) {
                break;
            }
            items.push(self.argument()?);
        }
        self.expect(end)?;
        Ok(ScriptExpression::List(items))
    }

    /// An object, or a set of Python.
    fn object(&mut self) -> Parsed {
        let mut entries = Vec::new();
        while !self.eat("}") {
            let key = match self.next() {
                Some(ScriptToken::Text(text)) => text,
                Some(ScriptToken::Name(name)) if self.language == GuardScriptLanguage::JavaScript => name,
                _ => return self.unread("a key"),
            };
            if self.eat(":") {
                entries.push((key, self.argument()?));
            } else if self.language == GuardScriptLanguage::JavaScript {
                entries.push((key.clone(), ScriptExpression::Name(key)));
            } else if entries.is_empty() {
                return self.list(ScriptExpression::Text(key), "}");
            } else {
                return self.unread("an object");
            }
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(ScriptExpression::Object(entries))
    }

    fn template(&self, parts: Vec<TemplatePart>) -> Parsed {
        let mut texts = vec![ScriptExpression::Text(String::new())];
        for part in parts {
            texts.push(match part {
                TemplatePart::Text(text) => ScriptExpression::Text(text),
                TemplatePart::Expression(text) => {
                    let mut inner = Self::of(&text, self.language)?;
                    while matches!(inner.peek(), Some(ScriptToken::Line(_))) {
                        inner.next();
                    }
                    let parsed = inner.expression()?;
                    if inner.peek().is_some() {
                        return inner.unread("an expression in a text");
                    }
                    parsed
                }
            });
        }
        Ok(ScriptExpression::Add(texts))
    }
}

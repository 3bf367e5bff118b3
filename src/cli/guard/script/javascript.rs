//! Statements of JavaScript.

use std::rc::Rc;

use super::{
    ast::{CaughtErrors, ScriptBlock, ScriptExpression, ScriptFunction, ScriptStatement},
    cursor::TokenCursor,
    tokens::{GuardScriptLanguage, ScriptToken},
};
use crate::cli::guard::text::Unclear;

/// The modules that do nothing when they are loaded.
const HARMLESS: [&str; 4] = ["fs", "path", "process", "buffer"];

/// Reads a script.
pub(super) fn parse(text: &str) -> Result<ScriptBlock, Unclear> {
    let mut cursor = TokenCursor::of(text, GuardScriptLanguage::JavaScript)?;
    let mut statements = Vec::new();
    while cursor.peek().is_some() {
        statement(&mut cursor, &mut statements)?;
    }
    Ok(statements)
}

impl TokenCursor {
    /// A value: an expression, or a function. A method, because expressions have functions in them, and functions expressions.
    pub(super) fn javascript_value(&mut self) -> Result<ScriptExpression, Unclear> {
        let start = self.place();
        self.eat_word("async");
        if self.eat_word("function") {
            if matches!(self.peek(), Some(ScriptToken::Name(_))) {
                self.next();
            }
            self.expect("(")?;
            let parameters = parameters(self)?;
            let body = braces(self)?;
            return Ok(ScriptExpression::Function(Rc::new(ScriptFunction { parameters, body })));
        }
        if let Some(parameters) = arrow(self) {
            let body = if self.is_at("{") {
                braces(self)?
            } else {
                vec![ScriptStatement::Return(Some(assignment_or_value(self)?))]
            };
            return Ok(ScriptExpression::Function(Rc::new(ScriptFunction { parameters, body })));
        }
        self.back_to(start);
        self.expression()
    }
}

/// The body of an arrow: `data += chunk` stands there too.
fn assignment_or_value(cursor: &mut TokenCursor) -> Result<ScriptExpression, Unclear> {
    let is_in_brackets = cursor.is_at("(")
        && matches!(
            (cursor.after(1), cursor.after(2)),
            (Some(ScriptToken::Name(_)), Some(ScriptToken::Sign("+=")))
        );
    if is_in_brackets {
        cursor.next();
    }
    if let (Some(ScriptToken::Name(name)), Some(ScriptToken::Sign("+="))) =
        (cursor.peek().cloned(), cursor.after(1))
    {
        cursor.next();
        cursor.next();
        let added = cursor.expression()?;
        if is_in_brackets {
            cursor.expect(")")?;
        }
        let append = ScriptExpression::Member(Box::new(ScriptExpression::Name(name)), "+=".to_owned());
        return Ok(ScriptExpression::Call(Box::new(append), vec![added]));
    }
    cursor.javascript_value()
}

/// The parameters of an arrow function; none if it is none.
fn arrow(cursor: &mut TokenCursor) -> Option<Vec<String>> {
    let start = cursor.place();
    let found = match cursor.next() {
        Some(ScriptToken::Name(name)) => Some(vec![name]),
        Some(ScriptToken::Sign("(")) => parameters(cursor).ok(),
        _ => None,
    };
    let found = found.filter(|_| cursor.eat("=>"));
    if found.is_none() {
        cursor.back_to(start);
    }
    found
}

fn parameters(cursor: &mut TokenCursor) -> Result<Vec<String>, Unclear> {
    let mut names = Vec::new();
    while !cursor.eat(")") {
        if cursor.eat("{") {
            // `({ pattern, reason })`: the fields of the only parameter.
            names.push(unpacked(cursor)?.join(","));
        } else {
            names.push(cursor.name()?);
        }
        if !cursor.eat(",") {
            cursor.expect(")")?;
            break;
        }
    }
    Ok(names)
}

fn braces(cursor: &mut TokenCursor) -> Result<ScriptBlock, Unclear> {
    cursor.expect("{")?;
    let mut statements = Vec::new();
    while !cursor.eat("}") {
        if cursor.peek().is_none() {
            return cursor.unread("a brace that is not closed");
        }
        cursor.deeper(|cursor| statement(cursor, &mut statements))?;
    }
    Ok(statements)
}

/// A block, or one statement.
fn body(cursor: &mut TokenCursor) -> Result<ScriptBlock, Unclear> {
    if cursor.is_at("{") {
        return braces(cursor);
    }
    let mut statements = Vec::new();
    cursor.deeper(|cursor| statement(cursor, &mut statements))?;
    Ok(statements)
}

fn statement(cursor: &mut TokenCursor, into: &mut ScriptBlock) -> Result<(), Unclear> {
    if cursor.eat(";") {
        return Ok(());
    }
    if let Some(ScriptToken::Text(text)) = cursor.peek()
        && text == "use strict"
    {
        cursor.next();
        return Ok(());
    }
    if cursor.eat_word("import") {
        return import(cursor);
    }
    if cursor.eat_word("if") {
        into.push(conditional(cursor)?);
    } else if cursor.eat_word("for") {
        into.push(repeated(cursor)?);
    } else if cursor.eat_word("try") {
        let body = braces(cursor)?;
        if !cursor.eat_word("catch") {
            return cursor.unread("`try` without `catch`");
        }
        if cursor.eat("(") {
            cursor.name()?;
            cursor.expect(")")?;
        }
        let handler = braces(cursor)?;
        into.push(ScriptStatement::Try { body, handler, catches: CaughtErrors::All });
    } else if cursor.eat_word("return") {
        let is_bare = cursor.is_at(";") || cursor.is_at("}");
        let value = if is_bare { None } else { Some(cursor.javascript_value()?) };
        into.push(ScriptStatement::Return(value));
    } else if cursor.eat_word("const") || cursor.eat_word("let") || cursor.eat_word("var") {
        declaration(cursor, into)?;
    } else {
        return other(cursor, into);
    }
    Ok(())
}

fn other(cursor: &mut TokenCursor, into: &mut ScriptBlock) -> Result<(), Unclear> {
    let is_async = cursor.is_word("async");
    let is_function = cursor.is_word("function")
        || (is_async && matches!(cursor.after(1), Some(ScriptToken::Name(name)) if name == "function"));
    if is_function {
        cursor.eat_word("async");
        cursor.next();
        let name = cursor.name()?;
        cursor.expect("(")?;
        let parameters = parameters(cursor)?;
        let body = braces(cursor)?;
        into.push(ScriptStatement::Define(name, Rc::new(ScriptFunction { parameters, body })));
        return Ok(());
    }
    if let (Some(ScriptToken::Name(name)), Some(ScriptToken::Sign(sign @ ("=" | "+=")))) =
        (cursor.peek().cloned(), cursor.after(1).cloned())
    {
        cursor.next();
        cursor.next();
        let value = cursor.javascript_value()?;
        into.push(if sign == "=" {
            ScriptStatement::Assign(name, value)
        } else {
            ScriptStatement::Append(name, value)
        });
        return Ok(());
    }
    into.push(ScriptStatement::Expression(cursor.expression()?));
    Ok(())
}

fn conditional(cursor: &mut TokenCursor) -> Result<ScriptStatement, Unclear> {
    let mut branches = Vec::new();
    loop {
        cursor.expect("(")?;
        let condition = cursor.expression()?;
        cursor.expect(")")?;
        branches.push((condition, body(cursor)?));
        cursor.eat(";");
        if !cursor.eat_word("else") {
            return Ok(ScriptStatement::If(branches, Vec::new()));
        }
        if !cursor.eat_word("if") {
            let otherwise = body(cursor)?;
            return Ok(ScriptStatement::If(branches, otherwise));
        }
    }
}

fn repeated(cursor: &mut TokenCursor) -> Result<ScriptStatement, Unclear> {
    cursor.eat_word("await");
    cursor.expect("(")?;
    if !(cursor.eat_word("const") || cursor.eat_word("let") || cursor.eat_word("var")) {
        return cursor.unread("a loop");
    }
    let name = match () {
        () if cursor.eat("{") => unpacked(cursor)?.join(","),
        () if cursor.eat("[") => return cursor.unread("a loop"),
        () => cursor.name()?,
    };
    if !cursor.eat_word("of") {
        return cursor.unread("a loop that counts");
    }
    let list = cursor.expression()?;
    cursor.expect(")")?;
    Ok(ScriptStatement::For(name, list, body(cursor)?))
}

/// The names between braces.
fn unpacked(cursor: &mut TokenCursor) -> Result<Vec<String>, Unclear> {
    let mut names = Vec::new();
    while !cursor.eat("}") {
        names.push(cursor.name()?);
        if !cursor.eat(",") {
            cursor.expect("}")?;
            break;
        }
    }
    Ok(names)
}

fn declaration(cursor: &mut TokenCursor, into: &mut ScriptBlock) -> Result<(), Unclear> {
    loop {
        let names = if cursor.eat("{") { Err(unpacked(cursor)?) } else { Ok(cursor.name()?) };
        let value = if cursor.eat("=") { cursor.javascript_value()? } else { ScriptExpression::Nothing };
        into.push(match (names, value) {
            // A module, whatever it is called.
            (Ok(name), value) if value.dotted().as_deref() == Some(name.as_str()) && is_module(&value) => {
                if !cursor.eat(",") {
                    return Ok(());
                }
                continue;
            }
            (_, value) if is_module(&value) => {
                if !cursor.eat(",") {
                    return Ok(());
                }
                continue;
            }
            (Ok(name), ScriptExpression::Function(function)) => ScriptStatement::Define(name, function),
            (Ok(name), value) => ScriptStatement::Assign(name, value),
            (Err(names), value) => ScriptStatement::Unpack(names, value),
        });
        if !cursor.eat(",") {
            return Ok(());
        }
    }
}

/// Whether it is a module that does nothing when it is loaded.
fn is_module(value: &ScriptExpression) -> bool {
    let ScriptExpression::Call(callee, _) = value else { return false };
    let is_required = matches!(callee.as_ref(), ScriptExpression::Name(name) if name == "require");
    is_required && value.dotted().is_some_and(|name| HARMLESS.contains(&name.as_str()))
}

/// `import fs from 'node:fs'`.
fn import(cursor: &mut TokenCursor) -> Result<(), Unclear> {
    while let Some(token) = cursor.next() {
        match token {
            ScriptToken::Text(module) if HARMLESS.contains(&module.trim_start_matches("node:")) => {
                return Ok(());
            }
            ScriptToken::Text(module) => return Unclear::new(format!("the module `{module}`")),
            ScriptToken::Name(name) if name == "as" => return cursor.unread("`as`"),
            ScriptToken::Name(_) | ScriptToken::Sign("{" | "}" | "," | "*") => {}
            _ => break,
        }
    }
    cursor.unread("what is imported")
}

//! Statements of Python.

use std::rc::Rc;

use super::{
    ast::{CaughtErrors, ScriptBlock, ScriptExpression, ScriptFunction, ScriptStatement},
    cursor::TokenCursor,
    tokens::{GuardScriptLanguage, ScriptToken},
};
use crate::cli::guard::text::Unclear;

/// The errors that a wrong input makes.
const INPUT_ERRORS: [&str; 4] = ["json.JSONDecodeError", "JSONDecodeError", "ValueError", "EOFError"];

/// Reads a script.
pub(super) fn parse(text: &str) -> Result<ScriptBlock, Unclear> {
    let mut cursor = TokenCursor::of(text, GuardScriptLanguage::Python)?;
    let block = block(&mut cursor, 0)?;
    if cursor.peek().is_some() { cursor.unread("its indentation") } else { Ok(block) }
}

/// The statements with an indentation.
fn block(cursor: &mut TokenCursor, indent: usize) -> Result<ScriptBlock, Unclear> {
    let mut statements = Vec::new();
    while let Some(ScriptToken::Line(is)) = cursor.peek() {
        if *is != indent {
            break;
        }
        cursor.next();
        if cursor.peek().is_none() {
            break;
        }
        cursor.deeper(|cursor| statement(cursor, indent, &mut statements))?;
    }
    Ok(statements)
}

/// What follows a colon: a deeper block, or statements on the same line.
fn body(cursor: &mut TokenCursor, indent: usize) -> Result<ScriptBlock, Unclear> {
    cursor.expect(":")?;
    match cursor.peek() {
        Some(ScriptToken::Line(deeper)) if *deeper > indent => {
            let deeper = *deeper;
            block(cursor, deeper)
        }
        Some(ScriptToken::Line(_)) | None => cursor.unread("an empty block"),
        Some(_) => {
            let mut statements = Vec::new();
            simple(cursor, &mut statements)?;
            Ok(statements)
        }
    }
}

fn statement(cursor: &mut TokenCursor, indent: usize, into: &mut ScriptBlock) -> Result<(), Unclear> {
    if cursor.eat_word("if") {
        into.push(conditional(cursor, indent)?);
    } else if cursor.eat_word("for") {
        let name = cursor.name()?;
        if !cursor.eat_word("in") {
            return cursor.unread("no `in`");
        }
        let list = cursor.expression()?;
        into.push(ScriptStatement::For(name, list, body(cursor, indent)?));
    } else if cursor.eat_word("def") {
        into.push(function(cursor, indent)?);
    } else if cursor.eat_word("try") {
        into.push(attempt(cursor, indent)?);
    } else {
        simple(cursor, into)?;
    }
    Ok(())
}

/// Whether the next line goes on with a word, with this indentation.
fn goes_on(cursor: &mut TokenCursor, indent: usize, word: &str) -> bool {
    let is_line = matches!(cursor.peek(), Some(ScriptToken::Line(is)) if *is == indent);
    let is_word = matches!(cursor.after(1), Some(ScriptToken::Name(is)) if is == word);
    if is_line && is_word {
        cursor.next();
        cursor.next();
    }
    is_line && is_word
}

fn conditional(cursor: &mut TokenCursor, indent: usize) -> Result<ScriptStatement, Unclear> {
    let condition = cursor.expression()?;
    let mut branches = vec![(condition, body(cursor, indent)?)];
    while goes_on(cursor, indent, "elif") {
        let condition = cursor.expression()?;
        branches.push((condition, body(cursor, indent)?));
    }
    let otherwise = if goes_on(cursor, indent, "else") { body(cursor, indent)? } else { Vec::new() };
    Ok(ScriptStatement::If(branches, otherwise))
}

fn function(cursor: &mut TokenCursor, indent: usize) -> Result<ScriptStatement, Unclear> {
    let name = cursor.name()?;
    cursor.expect("(")?;
    let mut parameters = Vec::new();
    while !cursor.eat(")") {
        parameters.push(cursor.name()?);
        if cursor.eat(":") {
            annotation(cursor)?;
        }
        if !cursor.eat(",") {
            cursor.expect(")")?;
            break;
        }
    }
    if cursor.eat("->") {
        annotation(cursor)?;
    }
    let body = body(cursor, indent)?;
    Ok(ScriptStatement::Define(name, Rc::new(ScriptFunction { parameters, body })))
}

/// A type, which changes nothing.
fn annotation(cursor: &mut TokenCursor) -> Result<(), Unclear> {
    match cursor.next() {
        Some(ScriptToken::Name(_)) => {}
        _ => return cursor.unread("a type"),
    }
    if cursor.eat("[") {
        while !cursor.eat("]") {
            if cursor.next().is_none() {
                return cursor.unread("a type");
            }
        }
    }
    Ok(())
}

fn attempt(cursor: &mut TokenCursor, indent: usize) -> Result<ScriptStatement, Unclear> {
    let tried = body(cursor, indent)?;
    if !goes_on(cursor, indent, "except") {
        return cursor.unread("`try` without `except`");
    }
    let mut names = Vec::new();
    let mut is_bare = true;
    while !cursor.is_at(":") {
        is_bare = false;
        match cursor.next() {
            Some(ScriptToken::Name(name)) if name == "as" => {
                cursor.name()?;
            }
            Some(ScriptToken::Name(name)) => names.push(name),
            Some(ScriptToken::Sign("." | "," | "(" | ")")) => {}
            _ => return cursor.unread("what is caught"),
        }
    }
    let catches = match names.last().map(String::as_str) {
        _ if is_bare => CaughtErrors::AndExits,
        _ if names.iter().any(|name| name == "Exception") => CaughtErrors::All,
        _ if names.iter().all(|name| name == "json" || INPUT_ERRORS.contains(&name.as_str())) => {
            CaughtErrors::OfInput
        }
        _ => return cursor.unread("what is caught"),
    };
    let handler = body(cursor, indent)?;
    if goes_on(cursor, indent, "except")
        || goes_on(cursor, indent, "finally")
        || goes_on(cursor, indent, "else")
    {
        return cursor.unread("more than one `except`");
    }
    Ok(ScriptStatement::Try { body: tried, handler, catches })
}

/// Statements on one line.
fn simple(cursor: &mut TokenCursor, into: &mut ScriptBlock) -> Result<(), Unclear> {
    loop {
        one(cursor, into)?;
        if !cursor.eat(";") {
            break;
        }
        if matches!(cursor.peek(), None | Some(ScriptToken::Line(_))) {
            break;
        }
    }
    match cursor.peek() {
        None | Some(ScriptToken::Line(_)) => Ok(()),
        _ => {
            cursor.next();
            cursor.unread("a statement")
        }
    }
}

fn one(cursor: &mut TokenCursor, into: &mut ScriptBlock) -> Result<(), Unclear> {
    if cursor.eat_word("import") || cursor.eat_word("from") {
        return import(cursor);
    }
    if cursor.eat_word("pass") {
        return Ok(());
    }
    if cursor.eat_word("return") {
        let is_bare = matches!(cursor.peek(), None | Some(ScriptToken::Line(_) | ScriptToken::Sign(";")));
        let value = if is_bare { None } else { Some(cursor.expression()?) };
        into.push(ScriptStatement::Return(value));
        return Ok(());
    }
    let left = cursor.expression()?;
    if let ScriptExpression::Name(name) = &left {
        if cursor.eat(":") {
            annotation(cursor)?;
        }
        if cursor.eat("=") {
            into.push(ScriptStatement::Assign(name.clone(), cursor.expression()?));
            return Ok(());
        }
        if cursor.eat("+=") {
            into.push(ScriptStatement::Append(name.clone(), cursor.expression()?));
            return Ok(());
        }
    }
    // A text alone is a comment.
    if !matches!(left, ScriptExpression::Text(_)) {
        into.push(choice(left));
    }
    Ok(())
}

/// `a() if b else c()`, and `sys.exit(2 if b else 0)`, as conditions.
fn choice(expression: ScriptExpression) -> ScriptStatement {
    let branch = |condition: ScriptExpression, one: ScriptExpression, other: ScriptExpression| {
        ScriptStatement::If(
            vec![(condition, vec![ScriptStatement::Expression(one)])],
            vec![ScriptStatement::Expression(other)],
        )
    };
    match expression {
        ScriptExpression::Choice { condition, one, other } => branch(*condition, *one, *other),
        ScriptExpression::Call(callee, mut arguments) => match (arguments.pop(), arguments.is_empty()) {
            (Some(ScriptExpression::Choice { condition, one, other }), true) => {
                let call = |argument| ScriptExpression::Call(callee.clone(), vec![argument]);
                branch(*condition, call(*one), call(*other))
            }
            (last, _) => {
                arguments.extend(last);
                ScriptStatement::Expression(ScriptExpression::Call(callee, arguments))
            }
        },
        other => ScriptStatement::Expression(other),
    }
}

/// `import json, sys`: modules that do nothing when they are imported.
fn import(cursor: &mut TokenCursor) -> Result<(), Unclear> {
    const HARMLESS: [&str; 6] = ["json", "sys", "re", "os", "pathlib", "__future__"];
    cursor.back_to(cursor.place() - 1);
    let is_from = cursor.eat_word("from");
    if !is_from {
        cursor.next();
    }
    let mut is_module = true;
    while let Some(token) = cursor.peek().cloned() {
        match token {
            ScriptToken::Name(name) if is_from && name == "import" => is_module = false,
            ScriptToken::Name(name) if name == "as" => return cursor.unread("`as`"),
            ScriptToken::Name(name) if is_module && !HARMLESS.contains(&name.as_str()) => {
                return Unclear::new(format!("the module `{name}`"));
            }
            ScriptToken::Name(_) | ScriptToken::Sign("," | "(" | ")") => {}
            ScriptToken::Line(_) | ScriptToken::Sign(";") => break,
            _ => return cursor.unread("what is imported"),
        }
        cursor.next();
    }
    Ok(())
}

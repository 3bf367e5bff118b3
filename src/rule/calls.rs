//! Checks the calls of functions, and compiles the patterns that they are given.

use super::{
    expression::{Expression, ExpressionKind, KnownPattern, Literal},
    functions::{self, FUNCTIONS, Form, Function},
    globs::Globs,
    mistake::RuleMistake,
    scope::{Checked, RuleScope, wants},
    types::Type,
};
use crate::model::{Matcher, MatcherError};

/// Checks one call. Of a method, the first argument is what stands before the dot.
pub(super) fn call(name: &str, form: Form, arguments: Vec<Expression>, scope: &RuleScope<'_>) -> Checked {
    match (name, form) {
        ("matches", _) => return matches(arguments, scope),
        ("glob", Form::Call) => return glob(arguments, scope),
        _ => {}
    }
    let function = functions::named(name).ok_or_else(|| unknown(name))?;
    if function.form != Form::Either && function.form != form {
        let how = match function.form {
            Form::Method => format!("write it behind its first argument: `text.{name}(…)`"),
            Form::Call | Form::Either => format!("write `{name}(…)`"),
        };
        return Err(RuleMistake::new(format!("`{name}` is called in another way"), how));
    }
    check_arguments(function, form, &arguments)?;
    Ok((ExpressionKind::Call(function, arguments.into()), (function.result)()))
}

fn unknown(name: &str) -> RuleMistake {
    const WITH_PATTERNS: [&str; 2] = ["matches", "glob"];
    const MACROS: [&str; 6] = ["all", "exists", "exists_one", "filter", "map", "has"];
    if MACROS.contains(&name) {
        let help = "macros are written `list.exists(x, condition)` and `has(object.field)`";
        return RuleMistake::new(format!("`{name}` with other arguments than it takes"), help);
    }
    RuleMistake::unknown(
        "function",
        name,
        FUNCTIONS.iter().map(|function| function.name).chain(WITH_PATTERNS),
    )
}

fn check_arguments(function: &Function, form: Form, arguments: &[Expression]) -> Result<(), RuleMistake> {
    let wanted = function.arguments.len();
    let is_fitting = if function.repeats { arguments.len() >= wanted } else { arguments.len() == wanted };
    if !is_fitting {
        // What stands before the dot is not in the parentheses.
        let own = usize::from(form == Form::Method);
        let message = format!("`{}` has {} arguments", function.name, arguments.len() - own);
        return Err(RuleMistake::new(message, format!("it takes {}: {}", wanted - own, function.about)));
    }
    let last = function.arguments.last();
    let types = function.arguments.iter().chain(std::iter::repeat_with(|| last).flatten());
    for (argument, wanted) in arguments.iter().zip(types) {
        wants(argument, &wanted())?;
    }
    Ok(())
}

fn two(name: &str, arguments: Vec<Expression>) -> Result<[Expression; 2], RuleMistake> {
    let count = arguments.len();
    <[Expression; 2]>::try_from(arguments).map_err(|_| {
        RuleMistake::new(format!("`{name}` has {count} arguments"), "it takes a text and a pattern")
    })
}

/// The texts that an expression is, if they are known now: a literal, a list of literals, or the name of one.
fn constants<'e>(expression: &'e Expression, scope: &'e RuleScope<'_>) -> Option<Vec<&'e str>> {
    match &expression.kind {
        ExpressionKind::Literal(Literal::Text(text)) => Some(vec![text]),
        ExpressionKind::Let(at) => constants(&scope.named[*at].expression, scope),
        ExpressionKind::List(items) => {
            let texts = items.iter().map(|item| match constants(item, scope)?.as_slice() {
                [text] => Some(*text),
                _ => None,
            });
            texts.collect()
        }
        _ => None,
    }
}

/// The named expressions that a constant is made of.
fn named_in(constant: &Expression) -> Vec<usize> {
    let parts = constant.parts().into_iter().flat_map(named_in);
    constant.named().iter().copied().chain(parts).collect()
}

fn matches(arguments: Vec<Expression>, scope: &RuleScope<'_>) -> Checked {
    let [text, pattern] = two("matches", arguments)?;
    wants(&text, &Type::String)?;
    let found = constants(&pattern, scope);
    let Some([source]) = found.as_deref() else {
        return Err(RuleMistake::new(
            "the pattern is not known when the rule is loaded",
            "write it as a string, or as a `let` that is one",
        ));
    };
    let compiled = Matcher::search(source).map_err(|error| pattern_mistake(&error))?;
    let pattern = KnownPattern { compiled, named: named_in(&pattern).into() };
    Ok((ExpressionKind::Matches(Box::new(text), Box::new(pattern)), Type::Bool))
}

fn pattern_mistake(error: &MatcherError) -> RuleMistake {
    let help = match error {
        MatcherError::Syntax { .. } => "the syntax is that of RE2 and of the Rust crate `regex`",
        MatcherError::TooLong(_) | MatcherError::TooLarge | MatcherError::Glob(_) => {
            "match more, and look closer with other tests"
        }
    };
    RuleMistake::new(format!("not a pattern: {error}"), help)
}

fn glob(arguments: Vec<Expression>, scope: &RuleScope<'_>) -> Checked {
    let [text, patterns] = two("glob", arguments)?;
    wants(&text, &Type::String)?;
    let Some(sources) = constants(&patterns, scope) else {
        return Err(RuleMistake::new(
            "the patterns are not known when the rule is loaded",
            "write a string or a list of strings, or a `let` that is one",
        ));
    };
    let patterns = KnownPattern { compiled: Globs::new(&sources)?, named: named_in(&patterns).into() };
    Ok((ExpressionKind::Glob(Box::new(text), Box::new(patterns)), Type::Bool))
}

//! Looks for what works in an expression, and cannot be meant: comparisons that never hold, and letters that only look
//! like others.

use super::{
    expression::{Comparison, Expression, ExpressionKind, Literal},
    mistake::{RuleMistake, TextPlace},
    types::Type,
};

/// Reports comparisons with constants that what they are compared with never has.
pub(super) fn impossible(expression: &Expression) -> Vec<RuleMistake> {
    let own = impossible_here(expression).map(|mistake| mistake.at(expression.place));
    let inner = expression.parts().into_iter().flat_map(impossible);
    own.into_iter().chain(inner).collect()
}

fn impossible_here(expression: &Expression) -> Option<RuleMistake> {
    let (of, constants) = match &expression.kind {
        ExpressionKind::Call(function, arguments) if function.name == "has_flag" => {
            let (_, names) = arguments.split_first()?;
            let name = names
                .iter()
                .filter_map(constant_text)
                .find(|name| name.len() > 1 && name.starts_with('-'))?;
            let help =
                format!("write it without its dashes: `has_flag(\"{}\")`", name.trim_start_matches('-'));
            return Some(RuleMistake::new("`has_flag` knows flags without their dashes", help));
        }
        ExpressionKind::Call(function, arguments) => match (function.name, &**arguments) {
            ("contains" | "startsWith" | "endsWith", [of, constant]) => (of, vec![constant]),
            _ => return None,
        },
        ExpressionKind::Compare(Comparison::Equal | Comparison::NotEqual, sides) => {
            match constant_text(&sides[0]) {
                Some(_) => (&sides[1], vec![&sides[0]]),
                None => (&sides[0], vec![&sides[1]]),
            }
        }
        ExpressionKind::In(parts) => match &parts[1].kind {
            ExpressionKind::List(items) => (&parts[0], items.iter().collect()),
            _ => return no_operand(&parts[1], constant_text(&parts[0])?),
        },
        _ => return None,
    };
    let mut constants = constants.into_iter().filter_map(constant_text);
    constants.find_map(|constant| never_has(of, constant))
}

/// What is wrong where a value never has a text.
fn never_has(of: &Expression, constant: &str) -> Option<RuleMistake> {
    let never =
        |what: &str, help: String| Some(RuleMistake::new(format!("{what} never has {constant:?}"), help));
    match &of.kind {
        ExpressionKind::Element(parts) => no_operand(&parts[0], constant),
        ExpressionKind::Field(object, field)
            if object.result == Type::Command && &**field == "name" && constant.contains('/') =>
        {
            let name = constant.rsplit('/').next().unwrap_or_default();
            never("the name of a command", format!("it has no directory: compare it with {name:?}"))
        }
        ExpressionKind::Call(function, _) => {
            let (is_wrong, right): (fn(&u8) -> bool, _) = match function.name {
                "lowerAscii" => (u8::is_ascii_uppercase, constant.to_ascii_lowercase()),
                "upperAscii" => (u8::is_ascii_lowercase, constant.to_ascii_uppercase()),
                _ => return None,
            };
            let what = format!("a text of `{}`", function.name);
            constant.bytes().any(|byte| is_wrong(&byte)).then(|| never(&what, format!("write {right:?}")))?
        }
        _ => None,
    }
}

/// What is wrong where a flag is looked for among the operands of a command.
fn no_operand(list: &Expression, constant: &str) -> Option<RuleMistake> {
    let is_operands = matches!(&list.kind, ExpressionKind::Field(object, field)
        if object.result == Type::Command && &**field == "operands");
    let flag = constant.trim_start_matches('-');
    if !is_operands || flag.is_empty() || flag.len() == constant.len() {
        return None;
    }
    let help = format!("if the flag is meant, ask for it: `has_flag(\"{flag}\")`");
    let message = format!("among `operands`, {constant:?} is no flag, but a name behind `--`");
    Some(RuleMistake::new(message, help))
}

fn constant_text(expression: &Expression) -> Option<&str> {
    match &expression.kind {
        ExpressionKind::Literal(Literal::Text(text)) => Some(text),
        _ => None,
    }
}

/// Reports constants in which letters of several alphabets stand beside each other in one word.
pub(super) fn lookalikes(expression: &Expression) -> Vec<RuleMistake> {
    let mut found = Vec::new();
    collect_lookalikes(expression, &mut found);
    found
}

fn collect_lookalikes(expression: &Expression, found: &mut Vec<RuleMistake>) {
    if let ExpressionKind::Literal(Literal::Text(text)) = &expression.kind {
        found.extend(lookalike(text).map(|c| mistake(c, expression.place)));
    }
    expression.parts().into_iter().for_each(|part| collect_lookalikes(part, found));
}

fn mistake(c: char, place: TextPlace) -> RuleMistake {
    let message = format!("`{}` only looks like a letter of the word that it stands in", c.escape_unicode());
    RuleMistake::new(message, "programs and paths are not written so; type the word again").at(place)
}

/// A letter of the Greek or Cyrillic alphabet, or a wide one, in a word with Latin letters.
fn lookalike(text: &str) -> Option<char> {
    let is_foreign =
        |c: &char| matches!(c, '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}' | '\u{ff21}'..='\u{ff5a}');
    let words = text.split(|c: char| !c.is_alphanumeric());
    let mut mixed = words.filter(|word| word.chars().any(|c| c.is_ascii_alphabetic()));
    mixed.find_map(|word| word.chars().find(is_foreign))
}

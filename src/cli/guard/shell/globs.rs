//! Patterns of `case` and `[[ … == … ]]`, as tests.

use super::words::{WordPiece, WordPieceKind};
use crate::cli::guard::{
    pattern::escaped,
    text::{FieldTest, Unclear},
};

/// A part of a pattern of a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobPart {
    Text(String),
    Anything,
    One,
    /// A set, as rules write it.
    Set(String),
}

/// The test that a pattern is. `None` for one that everything matches.
pub(super) fn test(
    pieces: &[WordPiece],
    value_of: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<FieldTest>, Unclear> {
    let parts = parts(pieces, value_of)?;
    let plain: Vec<Option<&str>> = parts
        .iter()
        .map(|part| match part {
            GlobPart::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let has_only_stars = parts.iter().all(|part| matches!(part, GlobPart::Text(_) | GlobPart::Anything));
    Ok(Some(match plain.as_slice() {
        [] => FieldTest::OneOf(vec![String::new()]),
        [None] if has_only_stars => return Ok(None),
        [Some(text)] => FieldTest::OneOf(vec![(*text).to_owned()]),
        [None, Some(text), None] if has_only_stars => FieldTest::Contains((*text).to_owned()),
        [Some(text), None] if has_only_stars => FieldTest::StartsWith((*text).to_owned()),
        [None, Some(text)] if has_only_stars => FieldTest::EndsWith((*text).to_owned()),
        _ => FieldTest::Matches(pattern(&parts)),
    }))
}

/// The pattern of a rule. Stars at an end need not be tried.
fn pattern(parts: &[GlobPart]) -> String {
    let (start, parts) = match parts {
        [GlobPart::Anything, rest @ ..] => ("(?s)", rest),
        parts => (r"(?s)\A", parts),
    };
    let (end, parts) = match parts {
        [rest @ .., GlobPart::Anything] => ("", rest),
        parts => (r"\n*\z", parts),
    };
    let written: Vec<String> = parts
        .iter()
        .map(|part| match part {
            GlobPart::Text(text) => escaped(text),
            GlobPart::Anything => ".*".to_owned(),
            GlobPart::One => ".".to_owned(),
            GlobPart::Set(set) => set.clone(),
        })
        .collect();
    format!("{start}{}{end}", written.concat())
}

fn parts(pieces: &[WordPiece], value_of: &dyn Fn(&str) -> Option<String>) -> Result<Vec<GlobPart>, Unclear> {
    let mut parts = Vec::new();
    for piece in pieces {
        let (text, is_quoted) = match &piece.kind {
            WordPieceKind::Text(text) => (text.clone(), piece.is_quoted),
            WordPieceKind::Escaped(c) => (c.to_string(), true),
            WordPieceKind::Variable(name) => match value_of(name) {
                Some(text) => (text, piece.is_quoted),
                None => return Unclear::new(format!("`{name}` in a pattern")),
            },
            WordPieceKind::Output(_) => return Unclear::new("a command in a pattern"),
        };
        if is_quoted {
            add_text(&mut parts, &text);
        } else {
            unquoted(&text, &mut parts)?;
        }
    }
    Ok(parts)
}

fn add_text(parts: &mut Vec<GlobPart>, more: &str) {
    match parts.last_mut() {
        Some(GlobPart::Text(text)) => text.push_str(more),
        _ if more.is_empty() => {}
        _ => parts.push(GlobPart::Text(more.to_owned())),
    }
}

fn unquoted(text: &str, parts: &mut Vec<GlobPart>) -> Result<(), Unclear> {
    if text.contains(['(', ')', '|', '\\']) {
        return Unclear::new(format!("the pattern `{text}`"));
    }
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '*' if parts.last() == Some(&GlobPart::Anything) => {}
            '*' => parts.push(GlobPart::Anything),
            '?' => parts.push(GlobPart::One),
            '[' => {
                let Some((set, after)) = rest.split_once(']') else {
                    return Unclear::new("a set in a pattern");
                };
                parts.push(GlobPart::Set(self::set(set)?));
                rest = after;
            }
            c => add_text(parts, c.encode_utf8(&mut [0; 4])),
        }
    }
    Ok(())
}

/// A set of single ASCII characters.
fn set(inner: &str) -> Result<String, Unclear> {
    let (sign, chars) = match inner.strip_prefix(['!', '^']) {
        Some(chars) => ("^", chars),
        None => ("", inner),
    };
    if chars.is_empty() || !chars.chars().all(|c| c.is_ascii_alphanumeric() || " /._,:;=@%+".contains(c)) {
        return Unclear::new("a set in a pattern");
    }
    Ok(format!("[{sign}{chars}]"))
}

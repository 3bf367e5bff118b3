//! Words: their pieces, and what they expand to.

use super::{
    braces,
    command::LONGEST_TEXT,
    piece::Piece,
    session::{Session, Stop},
};

/// A word as it is read.
#[derive(Debug, Clone)]
pub(super) struct Word<'t> {
    pub(super) pieces: Vec<Piece>,
    /// The word with its quotes.
    pub(super) written: &'t str,
}

/// A word of a command after expansion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) text: String,
    /// Whether all of it is known.
    pub(super) is_known: bool,
    /// Whether it is a pattern for names of files.
    pub(super) is_pattern: bool,
    /// Whether it stands in the text without quotes and expansions, so that it can be an alias or a function.
    pub(super) is_plain: bool,
}

impl Field {
    pub(super) fn known(text: &str) -> Self {
        Self { text: text.to_owned(), is_known: true, is_pattern: false, is_plain: false }
    }

    fn empty() -> Self {
        Self::known("")
    }
}

/// What a word of a command expands to: braces, variables, and the fields that the value of a variable is split into.
pub(super) fn fields(word: &Word<'_>, session: &mut Session, fields: &mut Vec<Field>) -> Result<(), Stop> {
    if let [Piece::Text { text, is_quoted: false }] = word.pieces.as_slice()
        && (!text.contains('{') || text == "{}")
    {
        session.charge(text.len() + 1)?;
        let is_pattern = is_pattern(text);
        fields.push(Field { text: text.clone(), is_known: true, is_pattern, is_plain: true });
        return Ok(());
    }
    let has_braces = word
        .pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Text { text, is_quoted: false } if text.contains('{')));
    if !has_braces {
        return split(&word.pieces, session, fields);
    }
    if let Some(words) = braces::expanded(&word.pieces) {
        return words.iter().try_for_each(|pieces| split(pieces, session, fields));
    }
    session.charge(word.written.len())?;
    fields.push(Field { text: word.written.to_owned(), ..Field::default() });
    Ok(())
}

/// The text of a word that is not split: the value of an assignment, the file of a redirection.
pub(super) fn text(pieces: &[Piece], session: &mut Session) -> Result<Field, Stop> {
    let mut field = Field::empty();
    for piece in pieces {
        session.charge(1)?;
        match piece {
            Piece::Text { text, is_quoted } => {
                field.text.push_str(text);
                field.is_pattern |= !is_quoted && is_pattern(text);
            }
            Piece::Variable { name, written, .. } => match session.variables.value(name) {
                Some(value) => field.text.push_str(value),
                None => add_unknown(&mut field, written),
            },
            Piece::Unknown { written, .. } => add_unknown(&mut field, written),
        }
        if field.text.len() > LONGEST_TEXT {
            return Err(Stop);
        }
    }
    session.charge(field.text.len())?;
    Ok(field)
}

fn split(pieces: &[Piece], session: &mut Session, fields: &mut Vec<Field>) -> Result<(), Stop> {
    let mut current: Option<Field> = None;
    for piece in pieces {
        match piece {
            Piece::Text { text, is_quoted } => {
                session.charge(text.len() + 1)?;
                let field = current.get_or_insert_with(Field::empty);
                field.text.push_str(text);
                field.is_pattern |= !is_quoted && is_pattern(text);
            }
            Piece::Variable { name, written, is_quoted } => {
                let Some(value) = session.variables.value(name).map(str::to_owned) else {
                    session.charge(written.len())?;
                    add_unknown(current.get_or_insert_with(Field::empty), written);
                    continue;
                };
                session.charge(value.len() + 1)?;
                if *is_quoted {
                    current.get_or_insert_with(Field::empty).text.push_str(&value);
                } else {
                    split_value(&value, &mut current, fields);
                }
            }
            Piece::Unknown { written, .. } => {
                session.charge(written.len())?;
                add_unknown(current.get_or_insert_with(Field::empty), written);
            }
        }
    }
    fields.extend(current);
    Ok(())
}

/// Splits the value of a variable into fields, as it stands in no quotes.
fn split_value(value: &str, current: &mut Option<Field>, fields: &mut Vec<Field>) {
    let is_blank = |c| matches!(c, ' ' | '\t' | '\n');
    if value.starts_with(is_blank) {
        fields.extend(current.take());
    }
    let mut parts = value.split(is_blank).filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        let field = current.get_or_insert_with(Field::empty);
        field.text.push_str(part);
        field.is_pattern |= is_pattern(part);
        if parts.peek().is_some() || value.ends_with(is_blank) {
            fields.extend(current.take());
        }
    }
}

fn add_unknown(field: &mut Field, written: &str) {
    field.text.push_str(written);
    field.is_known = false;
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[']) && !matches!(text, "[" | "[[")
}

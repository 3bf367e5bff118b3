//! Brace expansion: `{a,b}` and `{1..3}`.

use super::piece::Piece;

/// How many words one word may expand to.
const MOST_WORDS: usize = 256;

/// How many braces a word may have that is expanded.
const MOST_BRACES: usize = 32;

/// How many characters all words that a word expands to may have.
const MOST_CHARACTERS: usize = 16 * 1024;

/// A character of a word, or a part that is not text.
#[derive(Clone, PartialEq)]
enum Atom<'p> {
    /// A character that may be part of braces.
    Plain(char),
    Quoted(&'p str),
    Other(&'p Piece),
}

/// The words that a word expands to. Nothing if they are too many.
pub(super) fn expanded(pieces: &[Piece]) -> Option<Vec<Vec<Piece>>> {
    let mut atoms = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text { text, is_quoted: false } => atoms.extend(text.chars().map(Atom::Plain)),
            Piece::Text { text, .. } => atoms.push(Atom::Quoted(text)),
            piece => atoms.push(Atom::Other(piece)),
        }
    }
    if !atoms.windows(2).any(|pair| *pair == [Atom::Plain('.'), Atom::Plain('.')])
        && !atoms.contains(&Atom::Plain(','))
    {
        return Some(vec![pieces.to_vec()]);
    }
    if atoms.iter().filter(|atom| **atom == Atom::Plain('{')).count() > MOST_BRACES {
        return None;
    }
    let words = expand(&atoms)?;
    Some(words.iter().map(|atoms| joined(atoms)).collect())
}

/// Expands the first braces that have alternatives, then what is in them and behind them.
fn expand<'p>(atoms: &[Atom<'p>]) -> Option<Vec<Vec<Atom<'p>>>> {
    for (open, _) in atoms.iter().enumerate().filter(|(_, atom)| **atom == Atom::Plain('{')) {
        let Some((close, commas)) = matching(atoms, open) else { continue };
        let inner = &atoms[open + 1..close];
        let mut alternatives = Vec::new();
        if commas.is_empty() {
            let Some(range) = range(inner) else { continue };
            alternatives = range?;
        } else {
            let mut start = open + 1;
            for end in commas.into_iter().chain([close]) {
                alternatives.extend(expand(&atoms[start..end])?);
                start = end + 1;
            }
        }
        return combined(&atoms[..open], &alternatives, &expand(&atoms[close + 1..])?);
    }
    Some(vec![atoms.to_vec()])
}

/// All combinations of a beginning, alternatives and ends.
fn combined<'p>(
    before: &[Atom<'p>],
    alternatives: &[Vec<Atom<'p>>],
    ends: &[Vec<Atom<'p>>],
) -> Option<Vec<Vec<Atom<'p>>>> {
    let mut words = Vec::new();
    let mut characters = 0;
    for alternative in alternatives {
        for end in ends {
            characters += before.len() + alternative.len() + end.len();
            if words.len() >= MOST_WORDS || characters > MOST_CHARACTERS {
                return None;
            }
            words.push([before, alternative.as_slice(), end.as_slice()].concat());
        }
    }
    Some(words)
}

/// The brace that closes one, and the commas between its alternatives.
fn matching(atoms: &[Atom<'_>], open: usize) -> Option<(usize, Vec<usize>)> {
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    for (at, atom) in atoms.iter().enumerate().skip(open) {
        match atom {
            Atom::Plain('{') => depth += 1,
            Atom::Plain('}') => depth -= 1,
            Atom::Plain(',') if depth == 1 => commas.push(at),
            _ => {}
        }
        if depth == 0 {
            return Some((at, commas));
        }
    }
    None
}

/// The words of `1..3` or `a..e..2`: nothing if it is no range, nothing inside if there are too many.
#[expect(clippy::option_option, reason = "no range at all is another thing than one that is too large")]
fn range<'p>(atoms: &[Atom<'p>]) -> Option<Option<Vec<Vec<Atom<'p>>>>> {
    let text: String = atoms
        .iter()
        .map(|atom| if let Atom::Plain(c) = atom { Some(*c) } else { None })
        .collect::<Option<_>>()?;
    let parts: Vec<&str> = text.split("..").collect();
    let ([first, last] | [first, last, _]) = parts.as_slice() else { return None };
    let step = parts.get(2).map_or(Some(1), |step| step.parse::<i64>().ok())?;
    let (from, to, are_letters) = match (first.parse::<i64>(), last.parse::<i64>()) {
        (Ok(from), Ok(to)) => (from, to, false),
        _ => (letter(first)?, letter(last)?, true),
    };
    let width = [first, last].iter().filter(|part| is_padded(part)).map(|part| part.len()).max().unwrap_or(0);
    let step = step.unsigned_abs().max(1);
    let count = from.abs_diff(to) / step;
    if count >= MOST_WORDS as u64 {
        return Some(None);
    }
    let words = (0..=count).filter_map(|at| {
        let distance = i64::try_from(at.checked_mul(step)?).ok()?;
        let value = if from <= to { from.checked_add(distance)? } else { from.checked_sub(distance)? };
        let text = if are_letters {
            char::from(u8::try_from(value).ok()?).to_string()
        } else {
            format!("{value:0width$}")
        };
        Some(text.chars().map(Atom::Plain).collect())
    });
    Some(Some(words.collect()))
}

fn is_padded(part: &str) -> bool {
    let digits = part.strip_prefix('-').unwrap_or(part);
    digits.len() > 1 && digits.starts_with('0')
}

fn letter(text: &str) -> Option<i64> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_alphabetic() => Some(i64::from(*byte)),
        _ => None,
    }
}

/// The pieces of a word.
fn joined(atoms: &[Atom<'_>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for atom in atoms {
        match (atom, pieces.last_mut()) {
            (Atom::Plain(c), Some(Piece::Text { text, is_quoted: false })) => text.push(*c),
            (Atom::Plain(c), _) => pieces.push(Piece::plain(&c.to_string())),
            (Atom::Quoted(text), _) => pieces.push(Piece::quoted(text)),
            (Atom::Other(piece), _) => pieces.push((*piece).clone()),
        }
    }
    pieces
}

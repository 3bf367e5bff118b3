//! Mutations of texts: what an accident or an attacker does to them.

use crate::random::Random;

/// The longest mutation, in bytes.
const LONGEST: usize = 16 << 10;

/// Pieces that mean something to some reader.
const PIECES: [&[u8]; 40] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"'",
    b":",
    b",",
    b"\n",
    b"\r\n",
    b"\t",
    b"  ",
    b"- ",
    b"? ",
    b"# ",
    b"|\n",
    b">-\n",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!binary ",
    b"!x ",
    b"---\n",
    b"...\n",
    b"%TAG ! x\n",
    b"null",
    b"true",
    b"-1",
    b"1e400",
    b"18446744073709551616",
    b"\\ud800",
    b"\\u0000",
    b"\0",
    b"\x1b[2J",
    b"\xff\xfe",
    "\u{feff}".as_bytes(),
    "\u{202e}".as_bytes(),
    "\u{2028}".as_bytes(),
    "\u{85}".as_bytes(),
    b"\\",
];

/// A text of the corpus, changed in a few places.
pub(crate) fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut text = corpus[random.index(corpus.len())].clone();
    for _ in 0..=random.index(6) {
        let at = random.index(text.len() + 1);
        let end = at + random.index(text.len() - at + 1).min(random.index(64));
        match random.below(8) {
            0 => text.truncate(at),
            1 => drop(text.drain(at..end)),
            2 => insert(&mut text, at, PIECES[random.index(PIECES.len())]),
            3 => {
                let piece = text[at..end].to_vec();
                insert(&mut text, at, &piece.repeat(1 + random.index(40)));
            }
            4 if at < text.len() => text[at] ^= 1 << random.below(8),
            5 if at < text.len() => text[at] = u8::try_from(random.below(256)).expect("a byte"),
            6 => {
                let other = &corpus[random.index(corpus.len())];
                let from = random.index(other.len() + 1);
                let to = from + random.index(other.len() - from + 1);
                insert(&mut text, at, &other[from..to]);
            }
            _ => {
                let piece = PIECES[random.index(PIECES.len())];
                insert(&mut text, at, &piece.repeat(1 + random.index(300)));
            }
        }
        text.truncate(LONGEST);
    }
    text
}

fn insert(text: &mut Vec<u8>, at: usize, piece: &[u8]) {
    text.splice(at..at, piece.iter().copied());
}

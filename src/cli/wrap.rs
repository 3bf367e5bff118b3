//! Breaks text into lines that fit. Owns where a line may end: between words; refuses to break a word, which
//! then has a line of its own.

/// The words in lines of at most `width` characters.
pub(super) fn lines<'a>(words: impl IntoIterator<Item = &'a str>, width: usize, gap: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut room = 0;
    for word in words {
        let needed = word.chars().count() + gap.len();
        match lines.last_mut() {
            Some(line) if needed <= room => {
                line.push_str(gap);
                line.push_str(word);
                room -= needed;
            }
            _ => {
                lines.push(word.to_owned());
                room = (width + gap.len()).saturating_sub(needed);
            }
        }
    }
    lines
}

/// A text that keeps its lines, each broken to fit beside an indent, which all but the first get.
pub(super) fn hanging(text: &str, width: Option<usize>, indent: usize) -> String {
    let fit = |line: &str| match width {
        Some(width) => lines(line.split(' '), width.saturating_sub(indent), " "),
        None => vec![line.to_owned()],
    };
    text.lines().flat_map(fit).collect::<Vec<_>>().join(&format!("\n{}", " ".repeat(indent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words() {
        assert_eq!(hanging("one two  three", Some(9), 2), "one two\n   three");
        assert_eq!(hanging("one\nseventeen-letters x", Some(9), 2), "one\n  seventeen-letters\n  x");
        assert_eq!(hanging("one two", None, 2), "one two");
        assert_eq!(lines(["a 1", "b 2", "c 3"], 8, "  "), ["a 1  b 2", "c 3"]);
    }
}

//! Breaks text into lines between words. A word that is too long gets a line of its own.

/// Stands for a space at which no line may end, until the text is printed. Private use: no text has it.
const GLUE: char = '\u{e000}';

/// A longer code span may be broken: on a narrow terminal it would leave most of the line before it empty.
const LONGEST_SPAN: usize = 60;

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

/// A text that keeps its lines, each broken to fit beside an indent, which all but the first get. Code spans, and
/// numbers with their units, stay on one line.
pub(super) fn hanging(text: &str, width: Option<usize>, indent: usize) -> String {
    let separator = format!("\n{}", " ".repeat(indent));
    let Some(width) = width else { return text.lines().collect::<Vec<_>>().join(&separator) };
    let mut broken = Vec::new();
    for line in text.lines() {
        broken.extend(lines(glue(line).split(' '), width.saturating_sub(indent), " "));
    }
    unglue(&broken.join(&separator))
}

/// A text whose code spans and numbers with units have no spaces, for a printer that breaks lines itself. What it
/// prints must go through [`unglue`].
pub(super) fn glue(text: &str) -> String {
    let mut glued = String::with_capacity(text.len());
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            glued.push('`');
        }
        let is_span = index % 2 == 1;
        if is_span && !part.contains('\n') && part.chars().count() <= LONGEST_SPAN {
            glued.push_str(&part.replace(' ', &GLUE.to_string()));
        } else {
            glue_units(part, &mut glued);
        }
    }
    glued
}

/// A line that a printer must not break at all. What it prints must go through [`unglue`].
pub(super) fn glue_line(line: &str) -> String {
    line.replace(' ', &GLUE.to_string())
}

/// The text with its spaces back.
pub(super) fn unglue(text: &str) -> String {
    text.replace(GLUE, " ")
}

/// Adds a text, with no break between a number and its unit.
fn glue_units(text: &str, glued: &mut String) {
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 {
            let is_after_number = glued.ends_with(|c: char| c.is_ascii_digit());
            glued.push(if is_after_number && is_unit(word) { GLUE } else { ' ' });
        }
        glued.push_str(word);
    }
}

/// Whether a word, without the punctuation after it, is a unit.
fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '%');
    matches!(word, "µs" | "ms" | "s" | "min" | "h" | "d" | "B" | "KiB" | "MiB" | "GiB" | "bytes" | "%")
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

    #[test]
    fn code_spans_and_numbers_with_units_are_not_broken() {
        assert_eq!(hanging("run `hookyard check` now", Some(12), 0), "run\n`hookyard check`\nnow");
        assert_eq!(hanging("it takes 10 ms, or more", Some(12), 0), "it takes\n10 ms, or\nmore");
        assert_eq!(hanging("it takes 10 events", Some(11), 0), "it takes 10\nevents");
        let long = format!("`{}`", "word ".repeat(20));
        assert!(hanging(&long, Some(20), 0).lines().all(|line| line.chars().count() <= 20));
    }
}

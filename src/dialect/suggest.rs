//! Suggestions for misspelt names, and texts shortened for messages.

/// How alike two words must be, from 0 to 1, to be worth a suggestion. It favours common beginnings, so the
/// number of differing letters has a bound of its own.
const ALIKE: f64 = 0.8;

/// The known name closest to the given one, if it is close.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = shorten(word, 64).to_lowercase();
    known
        .iter()
        .filter_map(|&candidate| Some((likeness(&lower, &candidate.to_lowercase())?, candidate)))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

fn likeness(word: &str, candidate: &str) -> Option<f64> {
    let abbreviates = word.len() >= 4 && candidate.starts_with(word);
    let differs_little = strsim::osa_distance(word, candidate) <= 2.max(candidate.len() / 4);
    let likeness = strsim::jaro_winkler(word, candidate);
    (likeness >= ALIKE && (abbreviates || differs_little)).then_some(likeness)
}

/// The help for an unknown name: the closest known one, or all of them.
pub(crate) fn did_you_mean(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", listed(known)),
    }
}

/// The names in backticks, separated by commas.
pub(crate) fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// At most `longest` characters of a text on one line, with control characters escaped, so that a message
/// can neither flood a terminal nor drive it.
pub(crate) fn shorten(text: &str, longest: usize) -> String {
    let mut short = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == longest {
            short.push('…');
            break;
        }
        if c.is_control() || is_invisible(c) {
            short.extend(c.escape_default());
        } else {
            short.push(c);
        }
    }
    short
}

/// Characters that reorder or hide their neighbours.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_words_are_suggested_and_others_listed() {
        let known = ["capabilities", "matcher", "name"];
        assert_eq!(nearest("capabilites", &known), Some("capabilities"));
        assert_eq!(nearest("Matcher", &known), Some("matcher"));
        assert_eq!(nearest("post", &["GET", "POST"]), Some("POST"));
        assert_eq!(nearest("timeout", &["timeout_seconds"]), Some("timeout_seconds"));
        assert_eq!(nearest("rewrite_everything", &["rewrite_context"]), None);
        assert_eq!(did_you_mean("zzz", &known), "known are `capabilities`, `matcher`, `name`");
    }

    #[test]
    fn excerpts_are_short_and_harmless() {
        assert_eq!(shorten("a\u{1b}[31m\u{202e}b", 80), "a\\u{1b}[31m\\u{202e}b");
        assert_eq!(shorten("abcdef", 3), "abc…");
    }
}

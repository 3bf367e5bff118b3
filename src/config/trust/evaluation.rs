//! What programs evaluate in their words: options that name code or files, and arithmetic. In arithmetic, a shell runs
//! `$(…)` in the index of an array, also where it comes out of a variable. Pure.

/// Operators of `test` that compare texts or files.
const TEXT_OPERATORS: [&str; 8] = ["=", "==", "!=", "<", ">", "-ef", "-nt", "-ot"];

/// Those that compare numbers, which some shells evaluate.
const NUMBER_OPERATORS: [&str; 6] = ["-eq", "-ge", "-gt", "-le", "-lt", "-ne"];

/// Those that ask about one text or one file.
const UNARY_OPERATORS: &str = "abcdefghknprsuwxzGLNOS";

/// Variables whose values shells evaluate when they are set.
const NUMBER_VARIABLES: [&str; 9] =
    ["COLUMNS", "HISTCMD", "LINENO", "LINES", "OPTIND", "RANDOM", "SECONDS", "SRANDOM", "TMOUT"];

/// A word as it is written, and its text if that is known before it runs.
pub(super) type WrittenWord<'w> = (&'w str, Option<&'w str>);

/// The word with which a program evaluates another one, or reads files that no word names.
pub(super) fn evaluated<'w>(name: &str, words: &[WrittenWord<'w>]) -> Option<&'w str> {
    let mut literal = words.iter().filter_map(|(_, text)| *text);
    // A cluster of short options with one of these letters.
    let has_letter =
        |word: &str, letter: char| word.starts_with('-') && !word.starts_with("--") && word.contains(letter);
    match name {
        "test" | "[" => literal.find(|word| *word == "-v" || may_substitute(word)).or_else(|| tested(words)),
        "wait" => literal.find(|word| has_letter(word, 'p')).or_else(|| first_unknown(words)),
        "exit" | "return" => words.iter().find(|word| !is_number(word)).map(|(raw, _)| *raw),
        "printf" => printed(words),
        "jq" => literal.find(|word| has_letter(word, 'L') || word.starts_with("--library-path")),
        "grep" | "egrep" | "fgrep" => recursion(&words.iter().map(|(_, text)| *text).collect::<Vec<_>>()),
        _ => None,
    }
}

/// Whether a shell may evaluate the value that a variable gets, now or when it is used in arithmetic.
pub(super) fn is_evaluated_in(name: &str, value: Option<&str>) -> bool {
    value.is_some_and(may_substitute) || (NUMBER_VARIABLES.contains(&name) && !is_number(&("", value)))
}

fn may_substitute(text: &str) -> bool {
    ["$(", "${", "$[", "`"].iter().any(|start| text.contains(start))
}

fn first_unknown<'w>(words: &[WrittenWord<'w>]) -> Option<&'w str> {
    words.iter().find(|(_, text)| text.is_none()).map(|(raw, _)| *raw)
}

fn is_number((_, text): &WrittenWord<'_>) -> bool {
    let digits = text.map(|text| text.strip_prefix(['-', '+']).unwrap_or(text));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a word is exactly one for its program, whatever a variable in it has.
fn is_one_word((raw, text): &WrittenWord<'_>) -> bool {
    let inner = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    text.is_some() || inner.is_some_and(|inner| !inner.contains('"') && !inner.contains("$@"))
}

/// The word of `test` that a shell may evaluate: a number that is none yet, or any that could be an operator.
fn tested<'w>(words: &[WrittenWord<'w>]) -> Option<&'w str> {
    let is_text = |word: &WrittenWord<'_>, known: &[&str]| word.1.is_some_and(|text| known.contains(&text));
    for (at, word) in words.iter().enumerate() {
        if is_text(word, &NUMBER_OPERATORS) {
            let operands = [at.checked_sub(1).and_then(|before| words.get(before)), words.get(at + 1)];
            if let Some((raw, _)) = operands.into_iter().flatten().find(|operand| !is_number(operand)) {
                return Some(raw);
            }
        }
    }
    let words = words.strip_suffix(&[("]", Some("]"))]).unwrap_or(words);
    let words = words.strip_prefix(&[("!", Some("!"))]).unwrap_or(words);
    let is_unary = |text: &str| {
        text.strip_prefix('-').is_some_and(|letter| letter.len() == 1 && UNARY_OPERATORS.contains(letter))
    };
    let is_understood = match words {
        [_] => true,
        [(_, Some(operator)), _] => is_unary(operator),
        [_, operator, _] => is_text(operator, &TEXT_OPERATORS) || is_text(operator, &NUMBER_OPERATORS),
        _ => false,
    };
    if is_understood && words.iter().all(is_one_word) { None } else { first_unknown(words) }
}

/// The word of `printf` that names a variable to set, or that a shell may evaluate as a number.
fn printed<'w>(words: &[WrittenWord<'w>]) -> Option<&'w str> {
    let words = words.strip_prefix(&[("--", Some("--"))]).unwrap_or(words);
    let ((raw, format), values) = words.split_first()?;
    match format {
        Some(format) if !format.starts_with("-v") => {
            let value = values.iter().find(|word| !is_number(word));
            value.filter(|_| !has_texts_alone(format)).map(|(raw, _)| *raw)
        }
        _ => Some(raw),
    }
}

/// Whether a format of `printf` has no places for numbers.
fn has_texts_alone(format: &str) -> bool {
    format.split('%').skip(1).all(|place| {
        let place = place.trim_start_matches(|c: char| c.is_ascii_digit() || "-+ #.".contains(c));
        // Empty between the two of `%%`.
        place.is_empty() || place.starts_with(['b', 'c', 'q', 's'])
    })
}

/// The option with which `grep` reads directories.
fn recursion<'w>(words: &[Option<&'w str>]) -> Option<&'w str> {
    const LONG: [&str; 3] = ["--recursive", "--dereference-recursive", "--directories"];
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let Some(word) = word else { continue };
        if word == "--" {
            return None;
        }
        if word.starts_with("--") {
            let option = word.split('=').next().unwrap_or(word);
            // An option may be shortened.
            if LONG.iter().any(|long| long.starts_with(option)) {
                return Some(word);
            }
            if ["--regexp", "--file"].contains(&word) {
                words.next();
            }
            continue;
        }
        for (at, letter) in word.strip_prefix('-').unwrap_or_default().char_indices() {
            match letter {
                'r' | 'R' | 'd' => return Some(word),
                // The rest of the word is its value, or the next word.
                'A' | 'B' | 'C' | 'D' | 'e' | 'f' | 'm' => {
                    if at + 2 == word.len() {
                        words.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    None
}

/// Whether a filter of `jq` has the word that names a module.
pub(super) fn names_module(filter: &str) -> bool {
    let mut words = filter.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.any(|word| word == "include" || word == "import")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_without_numbers_are_known() {
        for (format, is_known) in [
            ("%s\\n", true),
            ("100%% %-10.3s%b", true),
            ("none", true),
            ("%d", false),
            ("%s %*s", false),
            ("%(x)T", false),
            ("%i", false),
            ("%%d %x", false),
        ] {
            assert_eq!(has_texts_alone(format), is_known, "{format}");
        }
    }
}

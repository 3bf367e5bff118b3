//! The words of a shell line, as far as they are known before it runs. Pure.

use std::ops::Range;

/// A word of a shell line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// Where it stands in the line.
    pub(super) range: Range<usize>,
    /// Its text; unknown where the shell expands something in it.
    pub(super) text: Option<String>,
    /// Whether it is the name of a program.
    pub(super) is_program: bool,
}

/// Reads the words of a line. `variable` returns the value of a variable that is known.
pub(super) fn shell_words(line: &str, variable: &dyn Fn(&str) -> Option<String>) -> Vec<ShellWord> {
    let mut reader = Reader { line, position: 0, variable };
    let mut words = Vec::new();
    let mut is_program = true;
    while let Some(next) = reader.peek() {
        match next {
            ' ' | '\t' | '<' | '>' => reader.skip(next),
            '\n' | ';' | '|' | '&' | '(' | ')' | '{' | '}' => {
                reader.skip(next);
                is_program = true;
            }
            '#' => reader.skip_line(),
            _ => {
                let mut word = reader.word();
                let text = &line[word.range.clone()];
                let comes_before = KEYWORDS.contains(&text) || is_assignment(text);
                word.is_program = is_program && !comes_before;
                is_program = is_program && comes_before;
                words.push(word);
            }
        }
    }
    words
}

/// Words after which another command follows.
const KEYWORDS: [&str; 11] =
    ["if", "then", "else", "elif", "do", "while", "until", "!", "exec", "time", "command"];

fn is_assignment(text: &str) -> bool {
    let name = text.split('=').next().unwrap_or_default();
    text.contains('=') && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

struct Reader<'a> {
    line: &'a str,
    position: usize,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.line[self.position..].chars().next()
    }

    fn skip(&mut self, c: char) {
        self.position += c.len_utf8();
    }

    fn skip_line(&mut self) {
        let rest = &self.line[self.position..];
        self.position += rest.find('\n').unwrap_or(rest.len());
    }

    fn word(&mut self) -> ShellWord {
        let start = self.position;
        let mut text = Some(String::new());
        let mut quote = None;
        while let Some(c) = self.peek() {
            match (c, quote) {
                (' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '<' | '>', None) => break,
                ('\'' | '"', None) => {
                    quote = Some(c);
                    self.skip(c);
                }
                (c, Some(open)) if c == open => {
                    quote = None;
                    self.skip(c);
                }
                ('\\', None | Some('"')) => {
                    self.skip('\\');
                    if let Some(escaped) = self.peek() {
                        self.skip(escaped);
                        push(&mut text, escaped);
                    }
                }
                ('$', None | Some('"')) => {
                    let value = self.expansion();
                    text = text.zip(value).map(|(text, value)| text + &value);
                }
                ('`', None | Some('"')) | ('*' | '?' | '[', None) => {
                    self.skip(c);
                    text = None;
                }
                ('~', None) if self.position == start => {
                    self.skip(c);
                    text = None;
                }
                _ => {
                    self.skip(c);
                    push(&mut text, c);
                }
            }
        }
        ShellWord { range: start..self.position, text, is_program: false }
    }

    /// The value of a variable that is known; everything else that `$` begins is unknown.
    fn expansion(&mut self) -> Option<String> {
        self.skip('$');
        let rest = &self.line[self.position..];
        let (name, length) = if let Some(inner) = rest.strip_prefix('{') {
            let name = inner.split_once('}').map(|(name, _)| name)?;
            (name, name.len() + 2)
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            (&rest[..end], end)
        };
        let value = (self.variable)(name)?;
        self.position += length;
        Some(value)
    }
}

fn push(text: &mut Option<String>, c: char) {
    if let Some(text) = text {
        text.push(c);
    }
}

/// A text as one word of a shell line.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<(String, bool)> {
        let variable = |name: &str| (name == "ROOT").then(|| "/w w".to_owned());
        let shown = |word: ShellWord| (word.text.unwrap_or_else(|| "?".into()), word.is_program);
        shell_words(line, &variable).into_iter().map(shown).collect()
    }

    #[test]
    fn words_are_read_as_a_shell_reads_them() {
        let text = |line: &str| words(line).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
        assert_eq!(text(r#"sh "$ROOT"/.claude/x.sh 'a b' c\ d"#), ["sh", "/w w/.claude/x.sh", "a b", "c d"]);
        assert_eq!(
            text("${ROOT}/x $OTHER/y $(pwd)/z *.sh ~/a `b`"),
            ["/w w/x", "?", "?", "pwd", "/z", "?", "?", "?"]
        );
        assert_eq!(text("a # b\nc"), ["a", "c"]);
        assert_eq!(text(r#"a '$ROOT' "\$ROOT""#), ["a", "$ROOT", "$ROOT"]);
    }

    #[test]
    fn programs_are_told_from_their_arguments() {
        let programs =
            |line: &str| words(line).into_iter().filter(|word| word.1).map(|word| word.0).collect::<Vec<_>>();
        assert_eq!(
            programs("A=1 node x.mjs && cd y; if grep -q z | npm run a; then make; fi"),
            ["node", "cd", "grep", "npm", "make", "fi"]
        );
    }
}

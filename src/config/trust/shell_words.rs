//! The simple commands of a shell line, with their words as far as they are known before it runs, and where a word can
//! lead. Pure.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What a shell line has: its commands, and the first construct in it that is more than simple commands.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShellLine {
    pub(super) commands: Vec<SimpleCommand>,
    /// Such as a substitution; what runs is then known only when the line runs.
    pub(super) complex: Option<&'static str>,
}

/// A program with its words, or assignments alone.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    /// The operator before it; empty for the first command of a line or of a group.
    pub(super) operator: &'static str,
    pub(super) assignments: Vec<ShellWord>,
    pub(super) words: Vec<ShellWord>,
    /// The files that it reads by `<`.
    pub(super) inputs: Vec<ShellWord>,
}

/// A word of a shell line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// Where it stands in the line.
    pub(super) range: Range<usize>,
    /// Its text; unknown where the shell expands something in it.
    pub(super) text: Option<String>,
}

/// Where a word of a command leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WordPath {
    /// Nothing is there.
    Absent,
    /// A file of the workspace.
    File(PathBuf),
    /// A directory of the workspace.
    Directory,
    /// A link of the workspace to a file outside of it.
    LinksOut { target: PathBuf },
    /// A file of the system.
    System,
    /// Something else, which `why` describes as it follows the word.
    Elsewhere { why: &'static str },
}

/// Looks up what is on disk.
pub(super) trait WordLookup {
    /// Where a word leads from a directory.
    fn path(&self, directory: &Path, text: &str) -> WordPath;
    /// The directory of the workspace that a word names.
    fn directory(&self, directory: &Path, text: &str) -> Option<PathBuf>;
    /// The first line of a file of the workspace, if it can be read.
    fn interpreter_line(&self, file: &Path) -> Option<Arc<str>>;
    /// The text of a file of the workspace, if it is one and not too large.
    fn text(&self, file: &Path) -> Option<String>;
}

/// Words after which another command follows, or that end a list of commands.
const KEYWORDS: [&str; 12] =
    ["if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "{", "}"];

/// Words that begin what is no list of simple commands.
const COMPOUNDS: [&str; 7] = ["for", "case", "select", "function", "[[", "coproc", "esac"];

/// Operators between commands, the longer ones first.
const OPERATORS: [&str; 6] = ["&&", "||", "|", ";", "&", "\n"];

/// Reads a line as a POSIX shell does. `variable` returns the value of a variable that is known.
pub(super) fn shell_line(line: &str, variable: &dyn Fn(&str) -> Option<String>) -> ShellLine {
    let mut reader = Reader { line, position: 0, variable, complex: None };
    let mut commands = Vec::new();
    let mut command = SimpleCommand::default();
    while let Some(next) = reader.peek() {
        let is_start = command.words.is_empty() && command.assignments.is_empty();
        match next {
            ' ' | '\t' => reader.skip(next),
            '\\' if reader.rest().starts_with("\\\n") => reader.position += 2,
            '#' => reader.skip_line(),
            '(' | ')' if is_start || next == ')' => {
                reader.skip(next);
                finish(&mut command, "", &mut commands);
            }
            '(' => {
                reader.skip(next);
                reader.note("a function or a pattern");
            }
            '<' | '>' => reader.redirection(&mut command),
            '\n' | ';' | '|' | '&' => {
                let operator = reader.operator();
                finish(&mut command, operator, &mut commands);
            }
            _ => reader.take_word(&mut command, &mut commands),
        }
    }
    finish(&mut command, "", &mut commands);
    ShellLine { commands, complex: reader.complex }
}

/// Ends a command. `operator` joins the next one to it.
fn finish(command: &mut SimpleCommand, operator: &'static str, commands: &mut Vec<SimpleCommand>) {
    let next = SimpleCommand { operator, ..SimpleCommand::default() };
    let ended = std::mem::replace(command, next);
    if ended.words.is_empty() && ended.assignments.is_empty() && ended.inputs.is_empty() {
        // Nothing stood between two operators: what follows is joined by both.
        if operator.is_empty() {
            command.operator = ended.operator;
        }
    } else {
        commands.push(ended);
    }
}

/// The name and the text of the value of an assignment.
pub(super) fn assignment(line: &str, word: &ShellWord) -> Option<(String, Option<String>)> {
    let raw = &line[word.range.clone()];
    let (name, _) = raw.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let value = word.text.as_deref().map(|text| text.get(name.len() + 1..).unwrap_or_default().to_owned());
    is_name.then(|| (name.to_owned(), value))
}

struct Reader<'a> {
    line: &'a str,
    position: usize,
    variable: &'a dyn Fn(&str) -> Option<String>,
    complex: Option<&'static str>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &'a str {
        &self.line[self.position..]
    }

    fn skip(&mut self, c: char) {
        self.position += c.len_utf8();
    }

    fn skip_line(&mut self) {
        let rest = self.rest();
        self.position += rest.find('\n').unwrap_or(rest.len());
    }

    fn note(&mut self, construct: &'static str) {
        self.complex.get_or_insert(construct);
    }

    fn operator(&mut self) -> &'static str {
        if self.rest().starts_with(";;") {
            self.note("`case`");
        }
        let operator = OPERATORS.into_iter().find(|operator| self.rest().starts_with(operator));
        let operator = operator.unwrap_or(";");
        self.position += operator.len();
        operator
    }

    /// A redirection: files that are written are no part of what runs.
    fn redirection(&mut self, command: &mut SimpleCommand) {
        let rest = self.rest();
        let is_input = rest.starts_with('<');
        if rest.starts_with("<<") {
            self.note("a here-document");
        }
        let length = rest.find(|c| !"<>&|".contains(c)).unwrap_or(rest.len());
        let is_duplicate = rest[..length].ends_with('&');
        self.position += length;
        while let Some(blank @ (' ' | '\t')) = self.peek() {
            self.skip(blank);
        }
        if self.peek() == Some('(') {
            self.note("a process substitution");
        }
        let target = self.word();
        if is_input && !is_duplicate {
            command.inputs.push(target);
        }
    }

    fn take_word(&mut self, command: &mut SimpleCommand, commands: &mut Vec<SimpleCommand>) {
        let word = self.word();
        let raw = &self.line[word.range.clone()];
        let is_descriptor = raw.bytes().all(|b| b.is_ascii_digit()) && self.rest().starts_with(['<', '>']);
        if is_descriptor {
            return;
        }
        if raw.starts_with('{') && raw.ends_with('}') && self.rest().starts_with(['<', '>']) {
            self.note("a descriptor in a variable");
        }
        if !command.words.is_empty() {
            command.words.push(word);
        } else if command.assignments.is_empty() && KEYWORDS.contains(&raw) {
            finish(command, "", commands);
        } else if command.assignments.is_empty() && COMPOUNDS.contains(&raw) {
            self.note("a loop or a choice");
            command.words.push(word);
        } else if assignment(self.line, &word).is_some() {
            command.assignments.push(word);
        } else {
            command.words.push(word);
        }
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
                ('\\', None | Some('"')) => self.escape(quote, &mut text),
                ('$', None | Some('"')) => {
                    let value = self.expansion(quote);
                    text = text.zip(value).map(|(text, value)| text + &value);
                }
                ('`', None | Some('"')) => {
                    self.note("a command substitution");
                    self.skip(c);
                    text = None;
                }
                ('*' | '?' | '[' | ']' | '{' | '}', None) => {
                    self.skip(c);
                    // Alone, they are words of their own: `[` is a program, and braces group commands.
                    let is_alone = start + 1 == self.position
                        && self.peek().is_none_or(|next| " \t\n;|&".contains(next));
                    text = if is_alone && !"*?".contains(c) { Some(c.to_string()) } else { None };
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
        if quote.is_some() {
            self.note("a quotation without an end");
        }
        ShellWord { range: start..self.position, text }
    }

    fn escape(&mut self, quote: Option<char>, text: &mut Option<String>) {
        self.skip('\\');
        let Some(escaped) = self.peek() else { return };
        self.skip(escaped);
        match (escaped, quote) {
            // The line goes on.
            ('\n', _) => {}
            ('$' | '`' | '"' | '\\', _) | (_, None) => push(text, escaped),
            (_, Some(_)) => {
                push(text, '\\');
                push(text, escaped);
            }
        }
    }

    /// The value of a variable that is known; everything else that `$` begins is unknown.
    fn expansion(&mut self, quote: Option<char>) -> Option<String> {
        self.skip('$');
        let rest = self.rest();
        let construct = match rest.chars().next() {
            Some('(') => Some("a command substitution"),
            Some('[') => Some("an arithmetic expansion"),
            // Other shells read it as two words.
            Some('\'' | '"') if quote.is_none() => Some("a quotation of bash"),
            _ => None,
        };
        if let Some(construct) = construct {
            self.note(construct);
            return None;
        }
        let (name, length) = if let Some(inner) = rest.strip_prefix('{') {
            let Some((name, _)) = inner.split_once('}') else {
                self.note("a quotation without an end");
                return None;
            };
            (name, name.len() + 2)
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            (&rest[..end], end)
        };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            if length > 0 {
                self.note("an expansion");
            }
            return None;
        }
        self.position += length;
        (self.variable)(name)
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

/// The command about the trust in a workspace. It names the directory: whoever reads it may be in another one, and hooks of
/// a workspace around it are agreed to there.
pub(in crate::config) fn trust_command(root: &Path, flags: &str) -> String {
    let root = root.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@".contains(c);
    let root = if root.chars().all(is_plain) { root } else { quoted(&root) };
    format!("`hookyard trust --workspace {root}{flags}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> ShellLine {
        shell_line(line, &|name| (name == "ROOT").then(|| "/w w".to_owned()))
    }

    fn texts(words: &[ShellWord]) -> Vec<&str> {
        words.iter().map(|word| word.text.as_deref().unwrap_or("?")).collect()
    }

    fn words(line: &str) -> Vec<String> {
        let read = read(line);
        let all = read.commands.iter().flat_map(|command| texts(&command.words));
        all.map(str::to_owned).collect()
    }

    #[test]
    fn words_are_read_as_a_shell_reads_them() {
        assert_eq!(words(r#"sh "$ROOT"/.claude/x.sh 'a b' c\ d"#), ["sh", "/w w/.claude/x.sh", "a b", "c d"]);
        assert_eq!(words("${ROOT}/x $OTHER/y *.sh ~/a {a,b}"), ["/w w/x", "?", "?", "?", "?"]);
        assert_eq!(words("a # b\nc"), ["a", "c"]);
        assert_eq!(words(r#"a '$ROOT' "\$ROOT" "\n" x\y"#), ["a", "$ROOT", "$ROOT", "\\n", "xy"]);
        assert_eq!(words("a \\\n b"), ["a", "b"]);
        assert_eq!(words("[ -f x ]"), ["[", "-f", "x", "]"]);
    }

    #[test]
    fn commands_have_their_words_assignments_and_inputs() {
        let ShellLine { commands, complex } =
            read("A=1 node x.mjs 2>&1 <in >out && cd y; if grep -q z | tee a; then exit 2; fi");
        assert_eq!(complex, None);
        let programs: Vec<_> = commands.iter().map(|command| texts(&command.words).join(" ")).collect();
        assert_eq!(programs, ["node x.mjs", "cd y", "grep -q z", "tee a", "exit 2"]);
        let operators: Vec<_> = commands.iter().map(|command| command.operator).collect();
        assert_eq!(operators, ["", "&&", ";", "|", ";"]);
        assert_eq!(texts(&commands[0].assignments), ["A=1"]);
        assert_eq!(texts(&commands[0].inputs), ["in"]);
    }

    #[test]
    fn what_is_more_than_simple_commands_is_noted() {
        for line in [
            "cat $(ls)",
            "cat `ls`",
            "echo \"$(ls)\"",
            "sh <(ls)",
            "sh <<EOF\nls\nEOF",
            "for x in a; do sh $x; done",
            "case a in a) sh b;; esac",
            "f() { sh a; }",
            "echo ${X:-a}",
            "echo 'a",
            "echo $((1+1))",
            "echo $@",
            "echo $[X]",
            "echo \"$[X]\"",
            "echo $'\\''; sh a #'",
            "echo $\"a\"",
            "echo {a[X]}>b",
            "[[ -f x ]]",
        ] {
            let is_unknown = read(line).commands.iter().any(|command| texts(&command.words).contains(&"?"));
            assert!(read(line).complex.is_some() || is_unknown, "{line}");
        }
    }
}

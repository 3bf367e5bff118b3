//! Finds what a command hook runs: a line of a shell, or a script of its workspace.

use std::path::{Path, PathBuf};

use rable::NodeKind;

use super::{script::GuardScriptLanguage, shell::ShellKind, text::Unclear};
use crate::{
    config::{self, Settings},
    model::{CommandHandler, CommandLine},
};

/// The longest script that is read.
const LONGEST: usize = 32 << 10;

/// How deep brackets, and the words of a shell that open something, may be: parsers call themselves for each.
const DEEPEST: usize = 64;

/// What a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum GuardSource {
    Shell { text: String, kind: ShellKind },
    Script { text: String, language: GuardScriptLanguage },
}

/// Where scripts may be, and what variables name the first of these directories.
#[derive(Debug, Clone)]
pub(in crate::cli) struct ScriptPlaces {
    /// The workspace, and the private copies of what people have agreed to.
    roots: Vec<PathBuf>,
}

impl GuardSource {
    /// What a command runs.
    ///
    /// Returns why it is not read: it is elsewhere, too long, or of a language that is not read.
    pub(in crate::cli) fn of(command: &CommandHandler, places: &ScriptPlaces) -> Result<Self, Unclear> {
        if command.environment.iter().any(|(name, _)| name != config::NO_COMPILED_CODE) {
            return Unclear::new("it has variables of its own");
        }
        let source = match &command.line {
            CommandLine::Shell(line) => places.of_line(line, ShellKind::Posix, &command.cwd)?,
            CommandLine::Exec { program, args } => {
                let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                match (name, args.as_slice()) {
                    ("bash", [flag, line]) if flag == "-c" => {
                        places.of_line(line, ShellKind::Bash, &command.cwd)?
                    }
                    ("sh" | "dash", [flag, line]) if flag == "-c" => {
                        places.of_line(line, ShellKind::Posix, &command.cwd)?
                    }
                    _ => {
                        let words =
                            std::iter::once(program.display().to_string()).chain(args.iter().cloned());
                        places.of_words(&words.collect::<Vec<_>>(), &command.cwd)?
                    }
                }
            }
        };
        source.bounded()
    }

    fn text(&self) -> &str {
        match self {
            Self::Shell { text, .. } | Self::Script { text, .. } => text,
        }
    }

    fn bounded(self) -> Result<Self, Unclear> {
        if self.text().len() > LONGEST {
            return Unclear::new("it is too long");
        }
        if nests_too_deep(self.text()) { Unclear::new("it is nested too deep") } else { Ok(self) }
    }
}

impl ScriptPlaces {
    /// Those of a workspace.
    pub(in crate::cli) fn of(root: &Path, settings: &Settings) -> Self {
        let copies = config::private_copies(settings, &|name| std::env::var(name).ok());
        Self { roots: std::iter::once(root.to_owned()).chain(copies).collect() }
    }

    /// What a line of a shell runs: one program with a script, or itself.
    fn of_line(&self, line: &str, kind: ShellKind, cwd: &Path) -> Result<GuardSource, Unclear> {
        let itself = || GuardSource::Shell { text: line.to_owned(), kind };
        if line.len() > LONGEST || nests_too_deep(line) {
            return Unclear::new("it is too long, or nested too deep");
        }
        let Ok(nodes) = rable::parse(line, false) else { return Ok(itself()) };
        let [node] = nodes.as_slice() else { return Ok(itself()) };
        let NodeKind::Command { assignments, words, redirects } = &node.kind else { return Ok(itself()) };
        if !assignments.is_empty() || !redirects.is_empty() {
            return Ok(itself());
        }
        let words: Option<Vec<String>> = words
            .iter()
            .map(|word| match &word.kind {
                NodeKind::Word { value, .. } => self.plain(value),
                _ => None,
            })
            .collect();
        let Some(mut words) = words else { return Ok(itself()) };
        if words.first().is_some_and(|word| word == "exec") {
            words.remove(0);
        }
        let is_program = words.first().is_some_and(|word| word.contains('/') || language_of(word).is_some());
        if is_program { self.of_words(&words, cwd) } else { Ok(itself()) }
    }

    /// A word without its quotes, and with the variable of the workspace's directory.
    fn plain(&self, word: &str) -> Option<String> {
        let mut text = word.to_owned();
        let root = self.roots.first()?.to_str()?;
        for name in [
            "CLAUDE_PROJECT_DIR",
            "OPENHARNESS_WORKSPACE_ROOT",
            "CODEBUDDY_PROJECT_DIR",
            "GEMINI_PROJECT_DIR",
            "QWEN_PROJECT_DIR",
            "FACTORY_PROJECT_DIR",
        ] {
            text = text
                .replace(&format!("${{{name}}}"), root)
                .replace(&format!("${name}/"), &format!("{root}/"));
            text = text.replace(&format!("${name}\"/"), &format!("{root}\"/"));
        }
        let has_line =
            text.starts_with('\'') && text.ends_with('\'') && !text[1..text.len() - 1].contains('\'');
        if has_line && text.len() > 1 {
            return Some(text[1..text.len() - 1].to_owned());
        }
        let text = text.replace('"', "");
        (!text.contains(['$', '`', '\'', '\\', '*', '?', '~', '<', '>', '(', ')'])).then_some(text)
    }

    /// What a program with its arguments runs.
    fn of_words(&self, words: &[String], cwd: &Path) -> Result<GuardSource, Unclear> {
        let [program, rest @ ..] = words else { return Unclear::new("it runs nothing") };
        let name = program.rsplit('/').next().unwrap_or(program);
        let Some(language) = language_of(name) else {
            return match rest {
                [] if program.contains('/') => self.with_first_line(program, cwd),
                _ => Unclear::new(format!("the program `{name}`")),
            };
        };
        match rest {
            [flag, text] if matches!(flag.as_str(), "-c" | "-e") => Ok(language.source(text.clone())),
            [file] if !file.starts_with('-') => {
                if Path::new(file).extension().is_some_and(|ending| ending == "ts" || ending == "mts") {
                    return Unclear::new("a script in TypeScript");
                }
                Ok(language.source(self.read(file, cwd)?))
            }
            _ => Unclear::new(format!("`{name}` with other arguments")),
        }
    }

    /// A script whose first line names its interpreter.
    fn with_first_line(&self, file: &str, cwd: &Path) -> Result<GuardSource, Unclear> {
        let text = self.read(file, cwd)?;
        let first = text.lines().next().unwrap_or_default();
        let words: Vec<&str> = first.strip_prefix("#!").unwrap_or_default().split_whitespace().collect();
        let name = match words.as_slice() {
            ["/usr/bin/env" | "/bin/env", name] => name,
            [path] => path.rsplit('/').next().unwrap_or(path),
            _ => return Unclear::new("a first line that names no interpreter that is known"),
        };
        match language_of(name) {
            Some(language) => Ok(language.source(text)),
            None => Unclear::new(format!("a script for `{name}`")),
        }
    }

    fn read(&self, file: &str, cwd: &Path) -> Result<String, Unclear> {
        let path = cwd.join(file);
        let found = self.roots.iter().find_map(|root| {
            let relative = path.strip_prefix(root).ok()?.to_str()?;
            config::workspace_text(root, relative)
        });
        match found {
            Some(text) => Ok(text),
            None => Unclear::new("its script is not in the workspace, or cannot be read"),
        }
    }
}

/// A language by its interpreter.
#[derive(Debug, Clone, Copy)]
enum GuardLanguage {
    Shell(ShellKind),
    Script(GuardScriptLanguage),
}

impl GuardLanguage {
    fn source(self, text: String) -> GuardSource {
        match self {
            Self::Shell(kind) => GuardSource::Shell { text, kind },
            Self::Script(language) => GuardSource::Script { text, language },
        }
    }
}

fn language_of(program: &str) -> Option<GuardLanguage> {
    Some(match program {
        "bash" => GuardLanguage::Shell(ShellKind::Bash),
        "sh" | "dash" => GuardLanguage::Shell(ShellKind::Posix),
        "python" | "python3" => GuardLanguage::Script(GuardScriptLanguage::Python),
        "node" | "nodejs" => GuardLanguage::Script(GuardScriptLanguage::JavaScript),
        _ => return None,
    })
}

/// Whether a text opens too much before it closes it.
fn nests_too_deep(text: &str) -> bool {
    let (mut brackets, mut words) = (0_usize, 0_usize);
    let mut deepest = 0;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => brackets += 1,
            ')' | ']' | '}' => brackets = brackets.saturating_sub(1),
            _ => continue,
        }
        deepest = deepest.max(brackets);
    }
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        match word {
            "if" | "elif" | "for" | "while" | "until" | "case" | "select" | "coproc" | "time"
            | "function" => words += 1,
            "fi" | "esac" | "done" => words = words.saturating_sub(1),
            _ => continue,
        }
        deepest = deepest.max(words);
    }
    deepest > DEEPEST || text.matches("! ").count() > DEEPEST * 2
}

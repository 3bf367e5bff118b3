//! What a hook's command runs: the files that it names, and everything in it that the agreement to these files does
//! not cover. Only simple commands of known programs with literal words are covered. Pure.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    evaluation,
    programs::{self, ProgramKind},
    shell_words::{ShellLine, ShellWord, WordLookup, WordPath, assignment},
};

/// What a command runs.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// The words that name files of the workspace: the word's place, and the file.
    pub(super) named: Vec<(Range<usize>, PathBuf)>,
    /// What is not covered.
    pub(super) outside: Vec<String>,
}

/// Examines the commands of a shell line that starts in a directory. `known` are the variables whose values were
/// used to read it.
pub(super) fn of_line(
    line: &str,
    read: &ShellLine,
    directory: &Path,
    known: &[String],
    lookup: &dyn WordLookup,
) -> Coverage {
    let mut examiner = Examiner { line, lookup, directory: directory.into(), found: Coverage::default() };
    if let Some(construct) = read.complex {
        examiner.outside(format!("{construct} in the command is known only when it runs"));
    }
    let is_sequence = line.trim_start().starts_with("cd")
        && read.commands.get(1).is_none_or(|command| command.operator == "&&")
        && read.commands.iter().all(|command| matches!(command.operator, "" | "&&" | "|"));
    for (at, command) in read.commands.iter().enumerate() {
        for word in &command.assignments {
            examiner.assignment(word, known, !command.words.is_empty());
        }
        for input in &command.inputs {
            examiner.argument(input);
        }
        let place = if at == 0 && is_sequence { Place::Leads } else { Place::Follows };
        examiner.command(&command.words, known, place);
    }
    examiner.found
}

/// Examines a program that is started without a shell, with its words.
pub(super) fn of_words(words: &[String], directory: &Path, lookup: &dyn WordLookup) -> Coverage {
    let mut line = String::new();
    let mut read = Vec::new();
    for word in words {
        let start = line.len();
        line.push_str(word);
        read.push(ShellWord { range: start..line.len(), text: Some(word.clone()) });
        line.push(' ');
    }
    let mut examiner =
        Examiner { line: &line, lookup, directory: directory.into(), found: Coverage::default() };
    examiner.command(&read, &[], Place::Follows);
    examiner.found
}

/// Why a variable of a hook's environment decides what is run, if it does.
pub(super) fn of_variable(name: &str) -> Option<String> {
    programs::decides_what_runs(name).then(|| format!("`{name}` may make programs run other files"))
}

/// Whether a command decides where all others of its line run.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Leads,
    Follows,
}

struct Examiner<'a> {
    line: &'a str,
    lookup: &'a dyn WordLookup,
    directory: PathBuf,
    found: Coverage,
}

impl Examiner<'_> {
    fn outside(&mut self, why: String) {
        self.found.outside.push(why);
    }

    fn shown(&self, word: &ShellWord) -> &str {
        &self.line[word.range.clone()]
    }

    fn unknown(&mut self, word: &ShellWord) {
        let why = format!("`{}` is known only when it runs", self.shown(word));
        self.outside(why);
    }

    fn command(&mut self, words: &[ShellWord], known: &[String], place: Place) {
        let Some((program, arguments)) = words.split_first() else { return };
        let Some(text) = program.text.clone() else { return self.unknown(program) };
        let name = text.rsplit('/').next().unwrap_or_default().to_owned();
        if text.contains('/') && !self.program_file(program, &text) {
            return;
        }
        let line = self.line;
        let raw = arguments.iter().map(|word| (&line[word.range.clone()], word.text.as_deref()));
        if let Some(word) = evaluation::evaluated(&name, &raw.collect::<Vec<_>>()) {
            self.outside(format!("`{name}` with `{word}` may run or read other files"));
        }
        if name == "jq" {
            self.modules_of_jq(arguments);
        }
        let is_own = text.contains('/') && !self.is_of_system(&text);
        if (text.contains('/') && programs::is_builtin(&name)) || (is_own && programs::is_bounded(&name)) {
            // A file with the name of a builtin, or of a program of the system, is none.
            return self.arguments(arguments);
        }
        match programs::kind(&name) {
            ProgramKind::Wrapper if name == "command" && has_text(arguments.first(), "-v") => {}
            ProgramKind::Writer => self.writer(arguments),
            ProgramKind::Reader if name == "jq" => {
                // The filter `.` is no directory.
                let files = arguments.iter().filter(|word| !has_text(Some(word), "."));
                files.for_each(|word| self.argument(word));
            }
            ProgramKind::Reader => self.arguments(arguments),
            ProgramKind::Interpreter => self.interpreter(&name, arguments),
            ProgramKind::Wrapper if is_own => self.outside(format!("what `{text}` runs here is not known")),
            ProgramKind::Wrapper => match programs::wrapped(&name, &texts(arguments)) {
                Some(start) => {
                    for word in &arguments[..start] {
                        self.assignment(word, known, true);
                    }
                    self.command(&arguments[start..], known, Place::Follows);
                }
                None => self.outside(format!("what `{name}` runs here is not known")),
            },
            ProgramKind::Source => self.source(&name, arguments),
            ProgramKind::Export => arguments.iter().for_each(|word| self.export(word, known)),
            ProgramKind::Set if !texts(arguments).iter().all(|text| text.is_some_and(is_shell_option)) => {
                self.outside("`set` changes how the shell reads the command".to_owned());
            }
            ProgramKind::Plain | ProgramKind::Set => {}
            ProgramKind::ChangeDirectory => self.change_directory(arguments, place),
            ProgramKind::Runner => self.outside(format!("`{name}` runs what files of the workspace say")),
            ProgramKind::Indirect => self.outside(format!("`{name}` decides what runs only when it runs")),
            ProgramKind::Unknown if text.contains('/') => self.arguments(arguments),
            ProgramKind::Unknown => self.outside(format!("what `{name}` runs and reads is not known")),
        }
    }

    /// Takes in the file of a program. Returns whether its arguments are still to be examined.
    fn program_file(&mut self, word: &ShellWord, text: &str) -> bool {
        match self.lookup.path(&self.directory, text) {
            WordPath::File(file) => {
                if let Some(line) = self.lookup.interpreter_line(&file) {
                    self.interpreter_line(text, &line);
                }
                self.found.named.push((word.range.clone(), file));
                true
            }
            WordPath::LinksOut { target } => {
                self.outside(format!("`{text}` is a link to `{}`, outside the workspace", target.display()));
                true
            }
            WordPath::System => {
                let name = text.rsplit('/').next().unwrap_or_default();
                if programs::kind(name) == ProgramKind::Unknown {
                    self.outside(format!("what `{text}` runs and reads is not known"));
                }
                true
            }
            WordPath::Absent => {
                self.outside(format!("`{text}` is not there yet"));
                false
            }
            WordPath::Directory => {
                self.outside(format!("`{text}` is a directory"));
                false
            }
            WordPath::Elsewhere { why } => {
                self.outside(format!("`{text}` {why}"));
                false
            }
        }
    }

    fn is_of_system(&self, text: &str) -> bool {
        self.lookup.path(&self.directory, text) == WordPath::System
    }

    /// Modules that filters of `jq` name, in words or in files.
    fn modules_of_jq(&mut self, words: &[ShellWord]) {
        let has_modules = words.iter().filter_map(|word| word.text.as_deref()).any(|text| {
            evaluation::names_module(text)
                || match self.lookup.path(&self.directory, text) {
                    WordPath::File(file) => {
                        self.lookup.text(&file).is_none_or(|text| evaluation::names_module(&text))
                    }
                    _ => false,
                }
        });
        if has_modules {
            self.outside("`jq` reads modules that its filter names".to_owned());
        }
    }

    /// The line of a script that says what runs it. Only `env` searches the `PATH`: the kernel takes a bare name from
    /// the working directory.
    fn interpreter_line(&mut self, script: &str, line: &str) {
        let Some(interpreter) = line.strip_prefix("#!") else { return };
        let mut words = interpreter.split([' ', '\t']).filter(|word| !word.is_empty());
        let mut program = words.next().unwrap_or_default();
        let mut options: Vec<&str> = words.collect();
        let mut is_of_system = program.starts_with('/') && self.is_of_system(program);
        if program.rsplit('/').next() == Some("env") {
            options.retain(|word| *word != "-S");
            program = if options.is_empty() { "" } else { options.remove(0) };
            is_of_system &=
                !program.contains('/') || (program.starts_with('/') && self.is_of_system(program));
        }
        let name = program.rsplit('/').next().unwrap_or_default();
        let is_plain = options.iter().all(|option| programs::is_harmless_option(name, option));
        if !(is_of_system && is_plain && programs::kind(name) == ProgramKind::Interpreter) {
            self.outside(format!(
                "the first line of `{script}` starts `{interpreter}`",
                interpreter = interpreter.trim()
            ));
        }
    }

    fn export(&mut self, word: &ShellWord, known: &[String]) {
        match assignment(self.line, word) {
            Some(_) => self.assignment(word, known, true),
            None => self.outside(format!("what `export {}` passes on is not known", self.shown(word))),
        }
    }

    fn assignment(&mut self, word: &ShellWord, known: &[String], reaches_program: bool) {
        let Some((name, value)) = assignment(self.line, word) else { return };
        if evaluation::is_evaluated_in(&name, value.as_deref()) {
            self.outside(format!("a shell may evaluate what `{name}` is set to"));
        }
        if known.contains(&name) {
            self.outside(format!("it sets `{name}`"));
        } else if programs::decides_what_runs(&name) {
            self.outside(of_variable(&name).unwrap_or_default());
        } else if reaches_program {
            // The program may run or read what the variable names.
            match value {
                None => self.unknown(word),
                Some(value) => self.unless_plain(&value),
            }
        }
    }

    /// Notes a text that names a file where it cannot be led to the private copy.
    fn unless_plain(&mut self, text: &str) {
        match self.lookup.path(&self.directory, text) {
            WordPath::Absent if self.can_appear(text) => {
                self.outside(format!("`{text}` is not there yet"));
            }
            WordPath::System | WordPath::Absent => {}
            WordPath::File(_) | WordPath::Directory | WordPath::LinksOut { .. } => {
                self.outside(format!("`{text}` of the workspace is reached through a variable or an option"));
            }
            WordPath::Elsewhere { why } => self.outside(format!("`{text}` {why}")),
        }
    }

    fn arguments(&mut self, words: &[ShellWord]) {
        for word in words {
            self.argument(word);
        }
    }

    /// A word that a program may open as a file.
    fn argument(&mut self, word: &ShellWord) {
        let Some(text) = word.text.clone() else { return self.unknown(word) };
        if text.starts_with('-') {
            let attached = text.split_once('=').map(|(_, value)| value);
            let short = text.get(2..).filter(|_| !text.starts_with("--"));
            for value in attached.into_iter().chain(short).filter(|value| !value.is_empty()) {
                self.unless_plain(value);
            }
            return;
        }
        match self.lookup.path(&self.directory, &text) {
            WordPath::File(file) => self.found.named.push((word.range.clone(), file)),
            WordPath::Absent if self.can_appear(&text) => {
                self.outside(format!("`{text}` is not there yet"));
            }
            WordPath::System | WordPath::Absent => {}
            WordPath::Directory => self.outside(format!("it may read everything in `{text}`")),
            WordPath::LinksOut { target } => {
                self.outside(format!("`{text}` is a link to `{}`, outside the workspace", target.display()));
            }
            WordPath::Elsewhere { why } => self.outside(format!("`{text}` {why}")),
        }
    }

    /// Whether a text without a file is probably a path: the directory that it names is there.
    fn can_appear(&self, text: &str) -> bool {
        text.rsplit_once('/').is_some_and(|(parent, _)| {
            !parent.is_empty() && self.lookup.path(&self.directory, parent) == WordPath::Directory
        })
    }

    /// A program that only writes the files it names.
    fn writer(&mut self, words: &[ShellWord]) {
        words.iter().filter(|word| word.text.is_none()).for_each(|word| self.unknown(word));
    }

    /// An interpreter: its options, the script that it runs, and the arguments of the script.
    fn interpreter(&mut self, name: &str, words: &[ShellWord]) {
        let mut start = 0;
        while let Some(option) = words.get(start).and_then(|word| word.text.as_deref()) {
            if !option.starts_with(['-', '+']) {
                break;
            }
            if !programs::is_harmless_option(name, option) {
                self.outside(format!("`{name}` with `{option}` may run other files"));
                return self.arguments(&words[start..]);
            }
            start += 1;
            // `-o pipefail`, of shells.
            if option.ends_with('o') && has_text(words.get(start), "pipefail") {
                start += 1;
            }
        }
        let Some((script, arguments)) = words[start..].split_first() else {
            return self.outside(format!("`{name}` runs what it reads from its input"));
        };
        match script.text.clone() {
            None => self.unknown(script),
            Some(text) => match self.lookup.path(&self.directory, &text) {
                WordPath::File(file) => {
                    // These obey the first line of a script also where they are named.
                    if matches!(name, "perl" | "ruby")
                        && let Some(line) = self.lookup.interpreter_line(&file)
                    {
                        self.interpreter_line(&text, &line);
                    }
                    self.found.named.push((script.range.clone(), file));
                }
                WordPath::System => {}
                WordPath::Absent => self.outside(format!("`{text}` is not there yet")),
                WordPath::Directory => self.outside(format!("`{name}` runs what is in `{text}`")),
                _ => self.argument(script),
            },
        }
        self.arguments(arguments);
    }

    /// A script that the shell itself runs.
    fn source(&mut self, name: &str, words: &[ShellWord]) {
        let Some((script, arguments)) = words.split_first() else { return };
        match script.text.as_deref() {
            None => self.unknown(script),
            Some(text) => match self.lookup.path(&self.directory, text) {
                // Without a slash, the shell searches the `PATH`.
                WordPath::File(file) if text.contains('/') => {
                    self.found.named.push((script.range.clone(), file));
                }
                _ => self.outside(format!("`{name} {text}` runs what is found when it runs")),
            },
        }
        self.arguments(arguments);
    }

    /// Follows `cd` where every later command of the line runs only in that directory.
    fn change_directory(&mut self, words: &[ShellWord], place: Place) {
        let target = match words {
            [word] => word.text.as_deref().and_then(|text| self.lookup.directory(&self.directory, text)),
            _ => None,
        };
        match target {
            Some(target) if target == self.directory || place == Place::Leads => self.directory = target,
            _ => self.outside("`cd` decides what runs only when it runs".to_owned()),
        }
    }
}

fn texts(words: &[ShellWord]) -> Vec<Option<&str>> {
    words.iter().map(|word| word.text.as_deref()).collect()
}

fn has_text(word: Option<&ShellWord>, text: &str) -> bool {
    word.and_then(|word| word.text.as_deref()) == Some(text)
}

/// Whether a word of `set` changes only when the shell ends.
fn is_shell_option(text: &str) -> bool {
    programs::is_harmless_option("sh", text) || text == "pipefail"
}

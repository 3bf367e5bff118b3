//! What is known while a text is read: commands found, variables, aliases, and how much may still be read.

use std::collections::{HashMap, HashSet};

use super::command::{MOST_COMMANDS, ShellCommand};

/// How many bytes words may expand to, and texts within texts may have, all together.
const MOST_EXPANDED: usize = 512 * 1024;

/// How many redirections a command may have.
pub(super) const MOST_REDIRECTS: usize = 64;

/// Reading ends: the text has an error, or is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop;

/// What is known while a text is read.
pub(super) struct Session {
    pub(super) commands: Vec<ShellCommand>,
    pub(super) understood: bool,
    pub(super) variables: ShellVariables,
    pub(super) aliases: HashMap<String, String>,
    pub(super) functions: HashSet<String>,
    left: usize,
}

impl Session {
    pub(super) fn new(text: &str) -> Self {
        Self {
            commands: Vec::new(),
            understood: true,
            variables: ShellVariables::of(text),
            aliases: HashMap::new(),
            functions: HashSet::new(),
            left: MOST_EXPANDED,
        }
    }

    /// Takes bytes from what may still be read.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), Stop> {
        self.left = self.left.checked_sub(bytes).ok_or(Stop)?;
        Ok(())
    }

    /// Reports a command.
    pub(super) fn report(&mut self, command: ShellCommand) -> Result<(), Stop> {
        if self.commands.len() >= MOST_COMMANDS {
            return Err(Stop);
        }
        self.understood &= command.understood;
        self.commands.push(command);
        Ok(())
    }

    /// Adds a redirection to the commands from one on.
    pub(super) fn redirect(&mut self, first: usize, operator: &str, file: &str) -> Result<(), Stop> {
        let count = self.commands.len().saturating_sub(first);
        self.charge(count * file.len())?;
        for command in self.commands.get_mut(first..).unwrap_or_default() {
            if command.redirects.len() >= MOST_REDIRECTS {
                return Err(Stop);
            }
            command.redirects.push((operator.to_owned(), file.to_owned()));
        }
        Ok(())
    }
}

/// The variables of a shell.
pub(super) struct ShellVariables {
    /// Values of variables; nothing if a value is not known.
    values: HashMap<String, Option<String>>,
    /// How often names stand in the text other than in `$NAME` and `${NAME…}`; counted when first needed.
    counts: Option<HashMap<String, usize>>,
    text: String,
    /// Whether anything may have been set.
    is_unclear: bool,
}

impl ShellVariables {
    pub(super) fn of(text: &str) -> Self {
        // Without `$` no variable is used.
        let text = if text.contains('$') { text.to_owned() } else { String::new() };
        Self { values: HashMap::new(), counts: None, text, is_unclear: false }
    }

    /// Sets a variable. Nothing as value means that it is not known any more.
    pub(super) fn set(&mut self, name: &str, value: Option<String>) {
        let value = if self.values.contains_key(name) { None } else { value };
        self.values.insert(name.to_owned(), value);
    }

    /// From now on nothing is known.
    pub(super) fn forget(&mut self) {
        self.is_unclear = true;
    }

    /// The value of a variable, if its name stands once in the text outside of expansions: where it is set.
    pub(super) fn value(&mut self, name: &str) -> Option<&str> {
        if self.is_unclear {
            return None;
        }
        let counts = self.counts.get_or_insert_with(|| count_names(&self.text));
        let is_split_as_usual = !counts.contains_key("IFS") && !self.values.contains_key("IFS");
        if name == "IFS" {
            return is_split_as_usual.then_some(" \t\n");
        }
        let is_set_once = counts.get(name).copied().unwrap_or_default() <= 1;
        let value = self.values.get(name)?.as_deref()?;
        (is_set_once && is_split_as_usual).then_some(value)
    }
}

/// How often names stand in a text other than in `$NAME` and `${NAME…}`. `${NAME=…}` counts.
fn count_names(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    let bytes = text.as_bytes();
    let mut pos = 0;
    while let Some(&byte) = bytes.get(pos) {
        if !is_name_byte(byte) {
            pos += 1;
            continue;
        }
        let start = pos;
        while bytes.get(pos).copied().is_some_and(is_name_byte) {
            pos += 1;
        }
        let before = text.get(..start).unwrap_or_default();
        let after = text.get(pos..).unwrap_or_default();
        let is_expansion = before.ends_with('$') || before.ends_with("${");
        let is_default_set = before.ends_with("${") && (after.starts_with('=') || after.starts_with(":="));
        if !is_expansion || is_default_set {
            *counts.entry(text.get(start..pos).unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Whether a byte can stand in the name of a variable.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a text is the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.bytes().all(is_name_byte) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

//! Commands with the paths that their words lead to in the place of these: what `cat link` reads, and what `> link` writes.

use super::{
    context::CallContext,
    failure::EvaluationError,
    paths::normalized_among,
    shell::ShellCommand,
    words::{directory_flag, is_change_of_directory, is_unknown, path_ranges},
};

/// The most directories that one text changes to.
pub(super) const MOST_DIRECTORIES: usize = 16;

/// A directory that words may count from.
#[derive(Clone)]
struct Base {
    /// As it is written.
    written: String,
    /// The same from where the directory of the event leads on. A word that leads elsewhere has a link in it.
    expected: String,
}

impl Base {
    fn joined(&self, path: &str) -> Self {
        let written =
            if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.written) };
        Self { written, expected: normalized_among(path, &self.expected, &[]) }
    }
}

/// The commands in which a word leads elsewhere than it says, with where it leads.
///
/// Returns an error if that is not known of a word.
pub(super) fn led<'c>(
    commands: impl Iterator<Item = &'c ShellCommand>,
    directory: &str,
    context: &CallContext<'_>,
) -> Result<Vec<ShellCommand>, EvaluationError> {
    let mut bases = vec![Base { written: directory.to_owned(), expected: context.leads(directory, "/")? }];
    let mut found: Vec<ShellCommand> = Vec::new();
    for command in commands {
        let own: Vec<Base> = match directory_flag(&command.args) {
            Some(path) => bases.iter().map(|base| base.joined(path)).collect(),
            None => Vec::new(),
        };
        for base in bases.iter().chain(&own) {
            let led = replaced(command, base, context)?;
            found.extend(led.filter(|led| !found.contains(led)));
        }
        if is_change_of_directory(&command.name)
            && let Some(path) = command.operands().first()
        {
            if bases.len() > MOST_DIRECTORIES {
                return Err(EvaluationError::TooLong);
            }
            let next: Vec<Base> = bases.last().map(|base| base.joined(path)).into_iter().collect();
            bases.extend(next);
        }
    }
    Ok(found)
}

/// A command with where its arguments and files lead from a directory on; none if they lead where they say. Which program it runs is not
/// looked up: that takes the search path.
fn replaced(
    command: &ShellCommand,
    base: &Base,
    context: &CallContext<'_>,
) -> Result<Option<ShellCommand>, EvaluationError> {
    let mut led = command.clone();
    let mut is_led = false;
    for (arg, written) in led.args.iter_mut().zip(&command.args) {
        if let Some(path) = led_word(written, base, context)? {
            *arg = path;
            is_led = true;
        }
    }
    led.redirects.clear();
    for (operator, file) in &command.redirects {
        let Some(path) = led_word(file, base, context)? else { continue };
        if !operator.contains('>') {
            // What it reads has no other place among its words.
            led.args.push(path.clone());
        }
        led.redirects.push((operator.clone(), path));
        is_led = true;
    }
    Ok(is_led.then_some(led))
}

/// A word with where the path in it leads, if that is elsewhere.
fn led_word(word: &str, base: &Base, context: &CallContext<'_>) -> Result<Option<String>, EvaluationError> {
    let ranges = if is_unknown(word) { Vec::new() } else { path_ranges(word) };
    for range in ranges {
        let path = &word[range.clone()];
        context.budget.take(2)?;
        context.budget.read(path.len() + base.written.len())?;
        let leads = context.leads(path, &base.written)?;
        if leads != normalized_among(path, &base.expected, context.names()) {
            return Ok(Some(format!("{}{leads}{}", &word[..range.start], &word[range.end..])));
        }
    }
    Ok(None)
}

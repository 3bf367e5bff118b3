//! Commands with the paths that their words lead to in the place of these: what `cat link` reads, and what `> link` writes.

use super::{
    context::CallContext,
    failure::EvaluationError,
    paths::normalized_among,
    shell::ShellCommand,
    words::{Directories, changed_directory, directory_flag, is_no_path, path_ranges},
};

/// A directory that words may count from.
#[derive(Clone, PartialEq)]
struct Base {
    /// As shells keep it, without its `..`. A word that leads elsewhere than from there has a link in it.
    written: String,
    /// Where it leads.
    real: String,
}

impl Base {
    /// An absolute directory, and where it leads.
    fn of(directory: &str, context: &CallContext<'_>) -> Result<Self, EvaluationError> {
        let real = context.leads(directory, "/")?;
        Ok(Self { written: normalized_among(directory, "/", &[]), real })
    }

    /// The directories that a change from here may lead to: for shells, `..` is what is above the directory as it is written; for
    /// other programs, and `cd -P`, it is what is above where it leads.
    fn changed(&self, path: &str, context: &CallContext<'_>) -> Result<Vec<Self>, EvaluationError> {
        let kept = Self::of(&normalized_among(path, &self.written, &[]), context)?;
        let mut led = vec![kept];
        if path.contains("..") {
            let real = context.leads(path, &self.real)?;
            led.push(Self { written: real.clone(), real });
        }
        Ok(led)
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
    let mut bases = Directories::new(vec![Base::of(directory, context)?]);
    let mut found: Vec<ShellCommand> = Vec::new();
    for command in commands {
        let own = match directory_flag(&command.args) {
            Some(path) => changed_to(path, &bases, context)?,
            None => Vec::new(),
        };
        for base in bases.known().iter().chain(&own) {
            let led = replaced(command, base, context)?;
            found.extend(led.filter(|led| !found.contains(led)));
        }
        if let Some(path) = changed_directory(command)
            && !bases.add(changed_to(path, &bases, context)?)
        {
            return Err(EvaluationError::TooLong);
        }
    }
    Ok(found)
}

fn changed_to(
    path: &str,
    bases: &Directories<Base>,
    context: &CallContext<'_>,
) -> Result<Vec<Base>, EvaluationError> {
    let mut led = Vec::new();
    for base in bases.known() {
        context.budget.take(2)?;
        context.budget.read(2 * (path.len() + base.written.len()))?;
        led.extend(base.changed(path, context)?);
    }
    Ok(led)
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
    let ranges = if is_no_path(word) { Vec::new() } else { path_ranges(word) };
    for range in ranges {
        let path = &word[range.clone()];
        context.budget.take(2)?;
        context.budget.read(path.len() + base.real.len())?;
        let leads = context.leads(path, &base.real)?;
        if leads != normalized_among(path, &base.written, context.names()) {
            return Ok(Some(format!("{}{leads}{}", &word[..range.start], &word[range.end..])));
        }
    }
    Ok(None)
}

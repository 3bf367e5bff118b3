//! Where the command of a wrapper stands behind its options.

use super::{super::word::Field, table::Options};

/// What a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::rule::shell) enum InnerRun {
    /// Some of its arguments, with variables.
    Command { start: usize, end: usize, assignments: Vec<(String, String)>, is_complete: bool },
    /// A text, in a shell of its own.
    Text(String),
    /// A text, in the shell itself.
    Evaluated(String),
    /// A text, whenever a name is used as a command.
    Alias(String, String),
    /// What it reads.
    Input,
    /// Something that cannot be told.
    Unclear,
}

/// Whether one of the first arguments, which are flags, is this one.
pub(super) fn has(args: &[Field], flag: &str) -> bool {
    args.iter().take_while(|arg| arg.text.starts_with('-') && arg.text != "--").any(|arg| arg.text == flag)
}

/// The command behind options, operands and assignments.
pub(super) fn plain(args: &[Field], options: &Options) -> Vec<InnerRun> {
    let mut start = behind_options(args, options) + options.operands;
    let mut assignments = Vec::new();
    if options.has_assignments {
        assignments = assigned(args, &mut start);
    }
    if start < args.len() {
        vec![InnerRun::Command { start, end: args.len(), assignments, is_complete: !options.is_appended_to }]
    } else {
        Vec::new()
    }
}

/// The variables that are set from an argument on, which is moved behind them.
pub(super) fn assigned(args: &[Field], start: &mut usize) -> Vec<(String, String)> {
    let mut assignments = Vec::new();
    while let Some((name, value)) = args.get(*start).and_then(|arg| arg.text.split_once('=')) {
        assignments.push((name.to_owned(), value.to_owned()));
        *start += 1;
    }
    assignments
}

/// The number of the first argument that is no option.
pub(super) fn behind_options(args: &[Field], options: &Options) -> usize {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if text == "--" {
            return at + 1;
        }
        let Some(flag) = text.strip_prefix('-').filter(|flag| !flag.is_empty()) else { return at };
        at += 1;
        let takes_next = match flag.strip_prefix('-') {
            Some(long) => options.long.contains(&long),
            None => takes_next(flag, options),
        };
        at += usize::from(takes_next);
    }
    at
}

/// Whether the value of the last of some short options is the next argument.
fn takes_next(flags: &str, options: &Options) -> bool {
    // Some programs have long options behind a single dash.
    options.long.contains(&flags)
        || flags.find(|flag: char| options.short.contains(flag)).is_some_and(|at| at + 1 == flags.len())
}

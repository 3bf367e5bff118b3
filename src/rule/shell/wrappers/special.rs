//! Programs whose command is not simply what stands behind their options.

use super::{
    options::{InnerRun, assigned, behind_options, plain},
    table::{self, Options},
};
use crate::rule::shell::word::Field;

/// Whether an operand of a shell means what it reads, whatever directory a system has for open files.
fn is_standard_input(operand: &str) -> bool {
    matches!(operand, "-" | "/dev/stdin") || operand.ends_with("/fd/0")
}

/// The texts of some arguments with spaces between them.
fn joined(args: &[Field]) -> String {
    args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// The arguments without `--` before them.
fn behind_dashes(args: &[Field]) -> &[Field] {
    match args {
        [dashes, rest @ ..] if dashes.text == "--" => rest,
        args => args,
    }
}

/// The text of `-c`, or what a shell reads.
pub(super) fn shell(args: &[Field]) -> Vec<InnerRun> {
    let mut runs = Vec::new();
    let mut at = 0;
    let mut takes_text = false;
    let mut reads = false;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        let is_option = text.starts_with('-') || text.starts_with('+');
        if !is_option || text == "-" || text == "--" {
            at += usize::from(text == "--" || text == "-" && takes_text);
            break;
        }
        at += 1;
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            match (name, value) {
                ("command" | "init-command", Some(value)) => runs.push(InnerRun::Text(value.to_owned())),
                ("command", None) => takes_text = true,
                (name, None) => at += usize::from(table::SHELL.long.contains(&name)),
                _ => {}
            }
            continue;
        }
        takes_text |= text.starts_with('-') && text.contains('c');
        reads |= text.starts_with('-') && text.contains('s');
        // `-o` and `-O` each take an argument.
        at += text.chars().skip(1).filter(|flag| table::SHELL.short.contains(*flag)).count();
    }
    let operand = args.get(at);
    if takes_text {
        runs.extend(operand.map(|text| InnerRun::Text(text.text.clone())));
    } else if runs.is_empty()
        && (reads || operand.is_none_or(|file| is_standard_input(&file.text)))
        && !matches!(args, [only] if matches!(only.text.as_str(), "--version" | "--help"))
    {
        runs.push(InnerRun::Input);
    }
    runs
}

/// `eval`.
pub(super) fn evaluated(args: &[Field]) -> Vec<InnerRun> {
    let args = behind_dashes(args);
    if args.is_empty() { Vec::new() } else { vec![InnerRun::Evaluated(joined(args))] }
}

/// `alias`.
pub(super) fn aliases(args: &[Field]) -> Vec<InnerRun> {
    let aliases = args.iter().filter_map(|arg| arg.text.split_once('='));
    aliases.map(|(name, value)| InnerRun::Alias(name.to_owned(), value.to_owned())).collect()
}

/// `trap`, whose first argument is a text.
pub(super) fn trap(args: &[Field]) -> Vec<InnerRun> {
    let args = behind_dashes(args);
    match args {
        [text, _, ..] if !text.text.starts_with('-') => vec![InnerRun::Evaluated(text.text.clone())],
        _ => Vec::new(),
    }
}

/// `env`, whose `-S` has a command in one argument.
pub(super) fn environment(args: &[Field]) -> Vec<InnerRun> {
    let options = &table::ENV;
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        if text == "-" {
            at += 1;
            continue;
        }
        if let Some(split) = split_string(text) {
            let (split, behind) = match split {
                "" => (args.get(at + 1).map_or("", |arg| arg.text.as_str()), at + 2),
                split => (split, at + 1),
            };
            let rest = joined(args.get(behind..).unwrap_or_default());
            // What it splits by is close to what a shell does; `env` itself begins the line because of assignments.
            return vec![InnerRun::Text(format!("{split} {rest}"))];
        }
        if !text.starts_with('-') || text == "--" {
            break;
        }
        let step = behind_options(args.get(at..=at).unwrap_or_default(), options);
        at += if step > 1 { 2 } else { 1 };
    }
    at += usize::from(args.get(at).is_some_and(|arg| arg.text == "--"));
    let assignments = assigned(args, &mut at);
    if at < args.len() {
        vec![InnerRun::Command { start: at, end: args.len(), assignments, is_complete: true }]
    } else {
        Vec::new()
    }
}

/// The value of `-S`, also in a cluster; empty if it is the next argument.
fn split_string(text: &str) -> Option<&str> {
    if let Some(long) = text.strip_prefix("--split-string") {
        return Some(long.strip_prefix('=').unwrap_or(long));
    }
    let flags = text.strip_prefix('-').filter(|flags| !flags.starts_with('-'))?;
    let (before, value) = flags.split_once('S')?;
    before.chars().all(|flag| "iv0".contains(flag)).then_some(value)
}

/// `find -exec`: the words up to `;`, or `+`.
pub(super) fn find(args: &[Field], flags: &[&str]) -> Vec<InnerRun> {
    let mut runs = Vec::new();
    let mut at = 0;
    while at < args.len() {
        if !flags.contains(&args[at].text.as_str()) {
            at += 1;
            continue;
        }
        let start = at + 1;
        let is_end =
            |end: usize| args[end].text == ";" || args[end].text == "+" && args[end - 1].text == "{}";
        let end = (start..args.len()).find(|end| is_end(*end)).unwrap_or(args.len());
        if start < end {
            // The names of files are not known.
            let is_complete = args[start..end].iter().all(|arg| !arg.text.contains("{}"));
            if args[start].text.contains("{}") {
                runs.push(InnerRun::Unclear);
            }
            runs.push(InnerRun::Command { start, end, assignments: Vec::new(), is_complete });
        }
        at = end + 1;
    }
    runs
}

/// `su` and `runuser`.
pub(super) fn switch_user(name: &str, args: &[Field]) -> Vec<InnerRun> {
    if let Some(text) = text_option(args, &["--command", "--session-command"]) {
        return vec![InnerRun::Text(text)];
    }
    let has_user = args.iter().any(|arg| arg.text == "-u" || arg.text.starts_with("--user"));
    if name == "runuser" && has_user {
        return plain(args, &table::SWITCH_USER);
    }
    // A shell of the user, which reads.
    let behind = behind_options(args, &table::SWITCH_USER);
    let operands = args.get(behind..).unwrap_or_default().iter().filter(|arg| arg.text != "-").count();
    if operands <= 1 { vec![InnerRun::Input] } else { vec![InnerRun::Unclear] }
}

/// `script`: a text behind `-c`, or a command.
pub(super) fn script(args: &[Field]) -> Vec<InnerRun> {
    match text_option(args, &["--command"]) {
        Some(text) => vec![InnerRun::Text(text)],
        None => plain(args, &table::SCRIPT),
    }
}

/// `flock`: a text behind the file and `-c`, or a command.
pub(super) fn flock(args: &[Field]) -> Vec<InnerRun> {
    let behind = behind_options(args, &table::FLOCK) + table::FLOCK.operands;
    match args.get(behind..) {
        Some([flag, text, ..]) if matches!(flag.text.as_str(), "-c" | "--command") => {
            vec![InnerRun::Text(text.text.clone())]
        }
        _ => plain(args, &table::FLOCK),
    }
}

/// The text of `-c`, alone or at the end of a cluster, or of a long option.
fn text_option(args: &[Field], long: &[&str]) -> Option<String> {
    for (at, arg) in args.iter().enumerate() {
        let text = arg.text.as_str();
        let is_long = long.contains(&text);
        let is_short = text.starts_with('-') && !text.starts_with("--") && text.ends_with('c');
        if is_long || is_short {
            return args.get(at + 1).map(|text| text.text.clone());
        }
        let attached = long.iter().find_map(|name| text.strip_prefix(name)?.strip_prefix('='));
        if let Some(text) = attached.or_else(|| text.strip_prefix("-c")) {
            return Some(text.to_owned());
        }
    }
    None
}

/// The arguments behind options and operands, joined to a text.
fn text_behind(args: &[Field], options: &Options) -> Vec<InnerRun> {
    let start = behind_options(args, options) + options.operands;
    match args.get(start..) {
        None | Some([]) => Vec::new(),
        Some(words) => vec![InnerRun::Text(joined(words))],
    }
}

/// `watch`, which joins its arguments.
pub(super) fn watch(args: &[Field]) -> Vec<InnerRun> {
    text_behind(args, &table::WATCH)
}

/// `ssh`: the command is a text for the shell of the other machine, or what it reads. Options may follow the host too.
pub(super) fn remote(args: &[Field]) -> Vec<InnerRun> {
    let host = behind_options(args, &table::SSH);
    let rest = args.get(host + 1..).unwrap_or_default();
    let without = Options { operands: 0, ..table::SSH };
    let runs = text_behind(rest, &without);
    if runs.is_empty() { vec![InnerRun::Input] } else { runs }
}

/// `parallel`: arguments are put into a text, or are texts themselves.
pub(super) fn parallel(args: &[Field]) -> Vec<InnerRun> {
    let start = behind_options(args, &table::PARALLEL);
    let rest = args.get(start..).unwrap_or_default();
    let end = rest.iter().position(|arg| arg.text.starts_with(":::")).unwrap_or(rest.len());
    let (command, inputs) = rest.split_at(end);
    if !command.is_empty() {
        return vec![InnerRun::Text(joined(command)), InnerRun::Unclear];
    }
    let texts =
        inputs.iter().filter(|arg| !arg.text.starts_with(":::")).map(|arg| InnerRun::Text(arg.text.clone()));
    let runs: Vec<_> = texts.collect();
    let is_read_from_file = inputs.first().is_none_or(|arg| arg.text.starts_with("::::"));
    if is_read_from_file { vec![InnerRun::Unclear] } else { runs }
}

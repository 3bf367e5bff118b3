//! The functions of rules. This table is the only place that lists them.

use super::{
    context::CallContext, failure::EvaluationError, led_commands, paths, secrets, shell, texts, types::Type,
    value::RuleValue,
};

/// What a function does with its arguments.
pub(super) type Body =
    for<'a> fn(&CallContext<'a>, &[RuleValue<'a>]) -> Result<RuleValue<'a>, EvaluationError>;

/// A function, or a method of its first argument.
pub(super) struct Function {
    /// Its name, with the group that it belongs to: `shell.commands`.
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) arguments: &'static [fn() -> Type],
    /// Whether the last argument may be given any number of times.
    pub(super) repeats: bool,
    pub(super) result: fn() -> Type,
    /// How many steps it takes about, for the estimate of a rule's cost.
    pub(super) cost: u64,
    pub(super) body: Body,
    /// What it does, for the documentation.
    pub(super) about: &'static str,
}

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `name(argument)`
    Call,
    /// `argument.name()`
    Method,
    /// In both ways.
    Either,
}

fn any() -> Type {
    Type::Any
}
fn bool() -> Type {
    Type::Bool
}
fn int() -> Type {
    Type::Int
}
fn double() -> Type {
    Type::Double
}
fn string() -> Type {
    Type::String
}
fn strings() -> Type {
    Type::list(Type::String)
}
fn command() -> Type {
    Type::Command
}
fn commands() -> Type {
    Type::list(Type::Command)
}
fn found_secrets() -> Type {
    Type::list(Type::Secret)
}

macro_rules! functions {
    ($($name:literal $form:ident($($argument:ident),*) $($repeats:literal)? -> $result:ident, $cost:literal, $body:expr, $about:literal;)*) => {
        pub(super) static FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            form: Form::$form,
            arguments: &[$($argument),*],
            repeats: functions!(@repeats $($repeats)?),
            result: $result,
            cost: $cost,
            body: $body,
            about: $about,
        },)*];
    };
    (@repeats) => { false };
    (@repeats $repeats:literal) => { true };
}

functions! {
    "size" Either(any) -> int, 1, size, "characters of a string, elements of a list, keys of a map";
    "string" Call(any) -> string, 2, to_string, "a number, a boolean or a string as a string";
    "int" Call(any) -> int, 1, to_int, "a number or the text of one as an integer";
    "double" Call(any) -> double, 1, to_double, "a number or the text of one as a double";
    "contains" Method(string, string) -> bool, 4, contains, "whether a string has the other in it";
    "startsWith" Method(string, string) -> bool, 1, |_, arguments| {
        Ok(RuleValue::Bool(text(arguments, 0)?.starts_with(text(arguments, 1)?)))
    }, "whether a string begins with the other";
    "endsWith" Method(string, string) -> bool, 1, |_, arguments| {
        Ok(RuleValue::Bool(text(arguments, 0)?.ends_with(text(arguments, 1)?)))
    }, "whether a string ends with the other";
    "lowerAscii" Method(string) -> string, 4, |context, arguments| {
        let given = text(arguments, 0)?;
        context.budget.read(given.len())?;
        Ok(RuleValue::Text(given.to_ascii_lowercase().into()))
    }, "the string with its letters `A` to `Z` in lower case";
    "upperAscii" Method(string) -> string, 4, |context, arguments| {
        let given = text(arguments, 0)?;
        context.budget.read(given.len())?;
        Ok(RuleValue::Text(given.to_ascii_uppercase().into()))
    }, "the string with its letters `a` to `z` in upper case";
    "trim" Method(string) -> string, 2, |context, arguments| {
        let given = text(arguments, 0)?;
        context.budget.read(given.len())?;
        Ok(RuleValue::Text(given.trim().to_owned().into()))
    }, "the string without blanks at its ends";
    "split" Method(string, string) -> strings, 8, split, "the parts of a string between the other";
    "lines" Method(string) -> strings, 8, |context, arguments| {
        let given = text(arguments, 0)?;
        context.budget.read(given.len())?;
        context.list(given.lines().map(str::to_owned))
    }, "the lines of a string";
    "join" Method(strings, string) -> string, 8, join, "the strings of a list with the other between them";
    "replace" Method(string, string, string) -> string, 8, replace, "the string with the third for each of the second";
    "first" Method(string, int) -> string, 2, |context, arguments| {
        let given = text(arguments, 0)?;
        let count = usize::try_from(integer(arguments, 1)?).unwrap_or_default();
        context.budget.read(count.min(given.len()))?;
        Ok(RuleValue::Text(given.chars().take(count).collect::<String>().into()))
    }, "at most that many characters from the beginning of a string";
    "shell.commands" Call(string) -> commands, 400, |context, arguments| {
        let given = text(arguments, 0)?;
        context.budget.read(64 * given.len().min(shell::LONGEST_TEXT))?;
        let found = context.shell(given);
        Ok(RuleValue::List(found.commands.iter().map(|command| RuleValue::Command(command.clone())).collect()))
    }, "the commands that a shell would run for a text";
    "shell.understood" Call(string) -> bool, 400, |context, arguments| {
        let given = text(arguments, 0)?;
        context.budget.read(64 * given.len().min(shell::LONGEST_TEXT))?;
        Ok(RuleValue::Bool(context.shell(given).understood))
    }, "whether all of its commands are known";
    "shell.resolved" Call(string, string) -> commands, 800, |context, arguments| {
        let (given, directory) = (text(arguments, 0)?, path(arguments, 1)?);
        context.budget.read(64 * given.len().min(shell::LONGEST_TEXT))?;
        let found = context.shell(given);
        let led = led_commands::led(found.commands.iter().map(|command| &**command), directory, context)?;
        Ok(RuleValue::List(led.into_iter().map(|command| RuleValue::Command(command.into())).collect()))
    }, "those of the commands in which a word leads elsewhere by a link, from a directory on, with where it leads in its place";
    "has_flag" Method(command, string) "…" -> bool, 8, |context, arguments| {
        let RuleValue::Command(command) = &arguments[0] else { return Err(wrong(&arguments[0], "a command")) };
        for at in 1..arguments.len() {
            context.budget.spend_on_elements(command.args.len());
            if command.has_flag(text(arguments, at)?) {
                return Ok(RuleValue::Bool(true));
            }
        }
        Ok(RuleValue::Bool(false))
    }, "whether a command has one of these flags: `force` is `--force`, `f` is `-f`, also in `-rf`";
    "path.normalize" Call(string, string) -> string, 8, |context, arguments| {
        let (path, directory) = (path(arguments, 0)?, path(arguments, 1)?);
        context.budget.read(path.len() + directory.len())?;
        Ok(RuleValue::Text(paths::normalized_among(path, directory, context.names()).into()))
    }, "a path without `.` and `..` as it is written, from a directory on where it is relative";
    "path.within" Call(string, string) -> bool, 8, |context, arguments| {
        let (path, directory) = (path(arguments, 0)?, path(arguments, 1)?);
        context.budget.read(path.len() + directory.len())?;
        Ok(RuleValue::Bool(context.leads_within(path, directory)?))
    }, "whether a path leads into a directory, or to it: where its links lead is what counts";
    "path.touches" Call(string, string) -> bool, 16, |context, arguments| {
        let (path, directory) = (path(arguments, 0)?, path(arguments, 1)?);
        context.budget.read(2 * (path.len() + directory.len()))?;
        let is_written_within = paths::is_written_within(path, directory, context.names());
        Ok(RuleValue::Bool(is_written_within || context.leads_within(path, directory)?))
    }, "whether a path is a directory, or something in it, as it is written or where its links lead: for what is to be protected";
    "path.resolve" Call(string, string) -> string, 8, |context, arguments| {
        let (path, directory) = (path(arguments, 0)?, path(arguments, 1)?);
        context.budget.read(path.len() + directory.len())?;
        Ok(RuleValue::Text(context.leads(path, directory)?.into()))
    }, "where a path leads once its links are followed, from a directory on where it is relative";
    "path.name" Call(string) -> string, 2, |context, arguments| {
        let path = text(arguments, 0)?;
        context.budget.read(path.len())?;
        Ok(RuleValue::Text(paths::file_name(path).to_owned().into()))
    }, "the last part of a path";
    "url.host" Call(string) -> string, 8, |context, arguments| {
        let address = text(arguments, 0)?;
        context.budget.read(16 * address.len())?;
        Ok(RuleValue::Text(paths::url_host(address).into()))
    }, "the host of an address in lower case; empty if it has none";
    "ip.private" Call(string) -> bool, 4, |context, arguments| {
        let host = text(arguments, 0)?;
        context.budget.read(16 * host.len())?;
        Ok(RuleValue::Bool(paths::is_private_host(host)))
    }, "whether a host is this machine, a private or link-local address, or one for metadata of a cloud";
    "secrets.find" Call(string) -> found_secrets, 100, |context, arguments| {
        let given = text(arguments, 0)?;
        context.budget.read(8 * given.len())?;
        Ok(RuleValue::List(secrets::find(given).into_iter().map(|found| RuleValue::Secret(found.into())).collect()))
    }, "what looks like a secret in a text";
    "texts" Call(any) -> string, 100, |context, arguments| {
        texts::joined(&arguments[0], context.budget).map(|text| RuleValue::Text(text.into()))
    }, "all strings of a value, each in a line of its own: keys and values of an object, and the elements of a list";
    "secrets.redact" Call(any) -> any, 100, |context, arguments| {
        texts::redacted(&arguments[0], context.budget)
    }, "the value with the kind of each secret in its place, also in the strings of a list or an object, but not in its keys";
    "run.count" Call(string) -> int, 8, |context, arguments| {
        let key = text(arguments, 0)?;
        context.budget.read(key.len())?;
        Ok(RuleValue::Int(context.count(key)?.into()))
    }, "counts this event under a key, once; the number of events of the run that the hook has counted so, this one included";
    "run.seen" Call(string) -> bool, 8, |context, arguments| {
        let key = text(arguments, 0)?;
        context.budget.read(key.len())?;
        Ok(RuleValue::Bool(context.count(key)? > 1))
    }, "counts this event under a key in the same way; whether an earlier event of the run was";
    "now" Call() -> int, 1, |context, _| context.minutes().map(RuleValue::Int), "minutes since 1970, in UTC";
}

/// The functions of a name, whatever their arguments.
pub(super) fn named(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

/// Whether functions have this name before the dot.
pub(super) fn is_group(name: &str) -> bool {
    FUNCTIONS.iter().any(|function| function.name.split_once('.').is_some_and(|(group, _)| group == name))
}

fn wrong(value: &RuleValue<'_>, wanted: &'static str) -> EvaluationError {
    EvaluationError::WrongType { found: value.kind(), wanted }
}

fn text<'v>(arguments: &'v [RuleValue<'_>], at: usize) -> Result<&'v str, EvaluationError> {
    match &arguments[at] {
        RuleValue::Text(text) => Ok(text),
        other => Err(wrong(other, "a string")),
    }
}

/// A path that does not depend on whose home is meant.
fn path<'v>(arguments: &'v [RuleValue<'_>], at: usize) -> Result<&'v str, EvaluationError> {
    let path = text(arguments, at)?;
    if path.starts_with('~') { Err(EvaluationError::UnknownHome) } else { Ok(path) }
}

fn integer(arguments: &[RuleValue<'_>], at: usize) -> Result<i64, EvaluationError> {
    match &arguments[at] {
        RuleValue::Int(number) => Ok(*number),
        other => Err(wrong(other, "an integer")),
    }
}

fn size<'a>(
    context: &CallContext<'a>,
    arguments: &[RuleValue<'a>],
) -> Result<RuleValue<'a>, EvaluationError> {
    if let RuleValue::Text(text) = &arguments[0] {
        context.budget.read(text.len())?;
    }
    let size = arguments[0].size().ok_or_else(|| wrong(&arguments[0], "a string, a list or a map"))?;
    Ok(RuleValue::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn to_string<'a>(_: &CallContext<'a>, arguments: &[RuleValue<'a>]) -> Result<RuleValue<'a>, EvaluationError> {
    Ok(match &arguments[0] {
        RuleValue::Text(text) => RuleValue::Text(text.clone()),
        RuleValue::Bool(value) => RuleValue::Text(value.to_string().into()),
        RuleValue::Int(value) => RuleValue::Text(value.to_string().into()),
        RuleValue::Double(value) => RuleValue::Text(value.to_string().into()),
        other => return Err(wrong(other, "a number, a boolean or a string")),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a double in the range of integers, without its fraction"
)]
fn to_int<'a>(_: &CallContext<'a>, arguments: &[RuleValue<'a>]) -> Result<RuleValue<'a>, EvaluationError> {
    // The largest double below 2^63.
    const LARGEST: f64 = 9_223_372_036_854_774_784.0;
    match &arguments[0] {
        RuleValue::Int(value) => Ok(RuleValue::Int(*value)),
        RuleValue::Double(value) if (-LARGEST..=LARGEST).contains(value) => {
            Ok(RuleValue::Int(value.trunc() as i64))
        }
        RuleValue::Text(text) => text.parse().map(RuleValue::Int).map_err(|_| EvaluationError::NoNumber),
        RuleValue::Double(_) => Err(EvaluationError::Overflow),
        other => Err(wrong(other, "a number or a string")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a conversion to a double rounds")]
fn to_double<'a>(_: &CallContext<'a>, arguments: &[RuleValue<'a>]) -> Result<RuleValue<'a>, EvaluationError> {
    match &arguments[0] {
        RuleValue::Int(value) => Ok(RuleValue::Double(*value as f64)),
        RuleValue::Double(value) => Ok(RuleValue::Double(*value)),
        RuleValue::Text(text) => text.parse().map(RuleValue::Double).map_err(|_| EvaluationError::NoNumber),
        other => Err(wrong(other, "a number or a string")),
    }
}

fn contains<'a>(
    context: &CallContext<'a>,
    arguments: &[RuleValue<'a>],
) -> Result<RuleValue<'a>, EvaluationError> {
    let (given, part) = (text(arguments, 0)?, text(arguments, 1)?);
    context.budget.read(given.len())?;
    Ok(RuleValue::Bool(given.contains(part)))
}

fn split<'a>(
    context: &CallContext<'a>,
    arguments: &[RuleValue<'a>],
) -> Result<RuleValue<'a>, EvaluationError> {
    let (given, separator) = (text(arguments, 0)?, text(arguments, 1)?);
    context.budget.read(given.len())?;
    context.list(given.split(separator).map(str::to_owned))
}

fn join<'a>(
    context: &CallContext<'a>,
    arguments: &[RuleValue<'a>],
) -> Result<RuleValue<'a>, EvaluationError> {
    let separator = text(arguments, 1)?;
    let mut joined = String::new();
    for at in 0..arguments[0].size().unwrap_or_default() {
        let Some(item) = arguments[0].item(at) else { continue };
        let RuleValue::Text(item) = &item else { return Err(wrong(&item, "a string")) };
        if at > 0 {
            joined.push_str(separator);
        }
        joined.push_str(item);
        context.budget.text_of(joined.len())?;
    }
    Ok(RuleValue::Text(joined.into()))
}

fn replace<'a>(
    context: &CallContext<'a>,
    arguments: &[RuleValue<'a>],
) -> Result<RuleValue<'a>, EvaluationError> {
    let (given, from, to) = (text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?);
    context.budget.read(given.len())?;
    let count = if from.is_empty() { given.len() + 1 } else { given.matches(from).count() };
    context.budget.text_of(given.len() + count * to.len())?;
    Ok(RuleValue::Text(given.replace(from, to).into()))
}

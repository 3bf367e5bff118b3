//! The `handler` of a hook file: six types, each as written and as run. A handler that could not run is an error:
//! a guard that silently never runs is worse than none.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use super::{
    super::{Mapping, Mistake, Value, suggest::shorten},
    hook_context::HookContext,
    lookup::{
        HookRules, ReferenceLookup, ResolvedPath, UnsafeVariables, allow_handler_keys, bounded_entries,
        check_program, check_scripts,
    },
    mode,
    models::{RawAgentHandler, RawPromptHandler},
    rego_handler::RawRegoHandler,
    requests::{self, RawHttpHandler},
    rule_handler::RawRuleHandler,
    sandbox, variables,
};
use crate::model::{CommandHandler, CommandLine, CommandMode, Handler, HandlerKind, SecretText};

/// The longest single argument of a program, in bytes, as Linux has it.
const LONGEST_ARGUMENT: usize = 128 << 10;

/// The most that arguments and variables of a program may take together, in bytes: half of the usual limit,
/// because hookyard's own variables come on top.
const LONGEST_COMMAND: usize = 1 << 20;

/// Characters that mean something to a shell, so that a line's first word may not be its program.
const SHELL_SYNTAX: &str = "'\"\\$`|&;<>()*?[]#~=%!{}";

/// Words that a shell knows itself.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif",
    "else", "esac", "eval", "exec", "exit", "export", "false", "fg", "fi", "for", "getopts", "hash", "if",
    "in", "jobs", "kill", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source",
    "test", "then", "time", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "until",
    "wait", "while",
];

/// A handler as its file has it.
pub(super) struct RawHandler<'d> {
    timeout: Option<Value<'d>>,
    max_concurrency: Option<Value<'d>>,
    what: RawHandlerKind<'d>,
}

enum RawHandlerKind<'d> {
    Command(Box<RawCommand<'d>>),
    Http(RawHttpHandler<'d>),
    Prompt(RawPromptHandler<'d>),
    Agent(RawAgentHandler<'d>),
    Rule(RawRuleHandler<'d>),
    Rego(RawRegoHandler<'d>),
}

struct RawCommand<'d> {
    handler: Mapping<'d>,
    line: Option<Value<'d>>,
    args: Option<Value<'d>>,
    cwd: Option<Value<'d>>,
    /// `None` if it was refused.
    mode: Option<CommandMode>,
    environment: Vec<Value<'d>>,
    sandbox: Option<Value<'d>>,
}

/// A handler and its timeout, checked.
pub(super) struct PreparedHandler {
    pub(super) handler: Handler,
    pub(super) timeout: Duration,
    pub(super) max_concurrency: Option<NonZeroUsize>,
}

/// Reads the keys of a handler.
pub(super) fn read<'d>(handler: &Mapping<'d>) -> Option<RawHandler<'d>> {
    use HandlerKind::{Agent, Command, Http, Prompt, Rego, Rule};
    let kind = handler.require("type", "type: command")?;
    let kinds = [Command, Http, Prompt, Agent, Rule, Rego].map(|kind| (kind.as_str(), kind));
    let what = match kind.choice(&kinds)? {
        Http => RawHandlerKind::Http(RawHttpHandler::read(handler)),
        Prompt => RawHandlerKind::Prompt(RawPromptHandler::read(handler)),
        Agent => RawHandlerKind::Agent(RawAgentHandler::read(handler)),
        Rule => RawHandlerKind::Rule(RawRuleHandler::read(handler)),
        Rego => RawHandlerKind::Rego(RawRegoHandler::read(handler)),
        Command | HandlerKind::Native => RawHandlerKind::Command(Box::new(RawCommand::read(handler))),
    };
    let (timeout, max_concurrency) = (handler.get("timeout_seconds"), handler.get("max_concurrency"));
    Some(RawHandler { timeout, max_concurrency, what })
}

impl<'d> RawHandler<'d> {
    /// What decides in it that an event does not simply go on, as far as its file says so: a condition of a rule.
    pub(super) fn condition(&self) -> Option<Value<'d>> {
        match &self.what {
            RawHandlerKind::Rule(rule) => rule.condition(),
            _ => None,
        }
    }

    /// Where it names policies, whose failures its file has to settle.
    pub(super) fn policies(&self) -> Option<Value<'d>> {
        match &self.what {
            RawHandlerKind::Rego(rego) => rego.policies(),
            _ => None,
        }
    }

    /// The handler as it is run, or `None` if anything about it is wrong.
    pub(super) fn prepare(
        &self,
        hook: HookContext<'_>,
        rules: &HookRules,
        resolver: &dyn ReferenceLookup,
    ) -> Option<PreparedHandler> {
        let timeout = match &self.timeout {
            Some(value) => timeout(value, rules.max_timeout),
            None => Some(rules.default_timeout),
        };
        let handler = match &self.what {
            RawHandlerKind::Command(command) => command.prepare(rules, resolver).map(Handler::Command),
            RawHandlerKind::Http(http) => http.prepare(rules, resolver).map(Handler::Http),
            RawHandlerKind::Prompt(prompt) => prompt.prepare(resolver).map(Handler::Prompt),
            RawHandlerKind::Agent(agent) => agent.prepare(resolver).map(Handler::Agent),
            RawHandlerKind::Rule(rule) => rule.prepare(hook, resolver).map(Handler::Rule),
            RawHandlerKind::Rego(rego) => rego.prepare(hook.capabilities, resolver).map(Handler::Rego),
        };
        let max_concurrency = match &self.max_concurrency {
            Some(value) => mode::count(value, usize::MAX).map(Some),
            None => Some(None),
        };
        Some(PreparedHandler { handler: handler?, timeout: timeout?, max_concurrency: max_concurrency? })
    }
}

fn timeout(value: &Value<'_>, longest: Duration) -> Option<Duration> {
    let number = value.number()?;
    let timeout = Duration::try_from_secs_f64(number).ok().filter(|timeout| !timeout.is_zero());
    let message = match timeout {
        Some(timeout) if timeout <= longest => return Some(timeout),
        None if number.is_nan() || number <= 0.0 => "`timeout_seconds` must be more than 0",
        None if number.is_infinite() => "`timeout_seconds` must be a finite number",
        None if number < 1.0 => "`timeout_seconds` is less than a nanosecond",
        Some(_) | None => {
            let allowed = seconds(longest);
            let message =
                format!("`timeout_seconds` is longer than the {allowed} allowed, and is cut to that");
            value.warn("timeout", message, "shorten it, or raise `max_timeout` in the settings");
            return Some(longest);
        }
    };
    value.error("timeout", message, "write seconds, such as `5` or `0.5`");
    None
}

/// A duration as a message shows it.
fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

impl<'d> RawCommand<'d> {
    fn read(handler: &Mapping<'d>) -> Self {
        let own = ["command", "args", "cwd", "environment", "sandbox"];
        allow_handler_keys(handler, &[&own[..], &mode::KEYS].concat());
        let environment = handler.get("environment").and_then(|value| bounded_entries(&value));
        Self {
            handler: handler.clone(),
            line: handler.get("command"),
            args: handler.get("args"),
            cwd: handler.get("cwd"),
            mode: mode::read(handler),
            environment: environment.unwrap_or_default(),
            sandbox: handler.get("sandbox"),
        }
    }

    fn prepare(&self, rules: &HookRules, resolver: &dyn ReferenceLookup) -> Option<CommandHandler> {
        let cwd = self.cwd(resolver);
        let place = cwd.clone().unwrap_or_default();
        let line = match (&self.line, &self.args) {
            (Some(line), None) => shell(line, &place, resolver),
            (None, Some(args)) => exec(args, &place, resolver),
            (Some(_), Some(args)) => {
                args.error("command", "`command` and `args` cannot be used together", "keep one of the two");
                None
            }
            (None, None) => {
                let message = "`command` is missing";
                let mistake = Mistake::error("missing-key", self.handler.span(), message);
                self.handler
                    .document()
                    .report(mistake.help("a shell line, or `args` for a program without a shell"));
                None
            }
        };
        let expanded = |value: &Value<'_>| requests::expanded(value, argument(value)?, resolver);
        let variables = self.environment.iter().map(|value| variable(value, rules, &expanded));
        let environment = variables.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>();
        let sandbox = match &self.sandbox {
            Some(value) => sandbox::read(value, resolver).map(Some),
            None => Some(None),
        };
        let handler = CommandHandler {
            line: line?,
            cwd: cwd?,
            environment: environment?,
            mode: self.mode?,
            sandbox: sandbox?,
        };
        self.fits(&handler).then_some(handler)
    }

    fn cwd(&self, resolver: &dyn ReferenceLookup) -> Option<PathBuf> {
        let located = match &self.cwd {
            Some(value) => (resolver.directory(value.text()?), value),
            None => return self.root(resolver),
        };
        match located {
            (ResolvedPath::Found(path), _) => Some(path),
            (ResolvedPath::Missing(path, why), value) => {
                let help = "create it; until then the hook will end `spawn_failed`";
                value.warn("cwd", format!("`cwd`: {why}"), help);
                Some(path)
            }
            (ResolvedPath::Refused(why), value) => {
                value.error("cwd", format!("`cwd`: {why}"), "name a directory inside the workspace");
                None
            }
        }
    }

    /// The directory of a command that names none.
    fn root(&self, resolver: &dyn ReferenceLookup) -> Option<PathBuf> {
        match resolver.directory("") {
            ResolvedPath::Found(path) | ResolvedPath::Missing(path, _) => Some(path),
            ResolvedPath::Refused(why) => {
                let mistake = Mistake::error("cwd", self.handler.span(), format!("the workspace: {why}"));
                self.handler.document().report(mistake.help("check its permissions, and reload"));
                None
            }
        }
    }

    fn fits(&self, handler: &CommandHandler) -> bool {
        let line = match &handler.line {
            CommandLine::Shell(line) => line.len(),
            CommandLine::Exec { args, .. } => args.iter().map(|arg| arg.len() + 1).sum(),
        };
        let variables: usize = handler.environment.iter().map(|(n, v)| n.len() + v.expose().len() + 2).sum();
        let total = line + variables;
        if total > LONGEST_COMMAND {
            let message =
                format!("arguments and variables take {total} bytes; at most {LONGEST_COMMAND} are allowed");
            let mistake = Mistake::error("too-large", self.handler.span(), message);
            self.handler.document().report(mistake.help("put the data in a file"));
        }
        total <= LONGEST_COMMAND
    }
}

/// A text for a program: without NUL, which would cut it, and no longer than a system takes.
pub(in crate::dialect) fn argument<'d>(value: &Value<'d>) -> Option<&'d str> {
    let text = value.text()?;
    let name = value.name();
    if text.contains('\0') {
        value.error(
            "nul",
            format!("`{name}` contains a NUL character"),
            "remove it; no program can be given one",
        );
        return None;
    }
    if text.len() >= LONGEST_ARGUMENT {
        let message =
            format!("`{name}` is {} bytes long; at most {} are allowed", text.len(), LONGEST_ARGUMENT - 1);
        value.error("too-large", message, "put it in a script");
        return None;
    }
    Some(text)
}

/// The line of a shell command. One that runs nothing is an error: a shell ends it with success, or with a syntax error
/// whose exit code reads as a block.
pub(in crate::dialect) fn shell_line<'d>(value: &Value<'d>) -> Option<&'d str> {
    let line = argument(value)?;
    if !is_empty_for_shell(line) {
        return Some(line);
    }
    let message = if line.trim().is_empty() {
        "`command` is empty"
    } else {
        "`command` is empty for the shell: there are only comments and separators"
    };
    value.error("command", message, "write the line that the shell runs");
    None
}

/// Whether a line consists of white space, comments and separators. Anything else is left to the shell.
fn is_empty_for_shell(line: &str) -> bool {
    let is_separator = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|');
    line.lines().all(|line| line.trim_start_matches(is_separator).chars().next().is_none_or(|c| c == '#'))
}

/// Whether a shell does more with a text than split it into words.
pub(in crate::dialect) fn has_shell_syntax(text: &str) -> bool {
    text.contains(|c| SHELL_SYNTAX.contains(c))
}

/// Whether the first word of a line is the name of a program, as it stands.
pub(in crate::dialect) fn names_program(word: &str) -> bool {
    !word.is_empty() && !has_shell_syntax(word) && !SHELL_WORDS.contains(&word)
}

fn shell(value: &Value<'_>, cwd: &std::path::Path, resolver: &dyn ReferenceLookup) -> Option<CommandLine> {
    if value.is_list() {
        let help = "write `args` instead of `command`: the program and its arguments as a list";
        value.error("wrong-type", "`command` must be a string, not a list", help);
        return None;
    }
    let line = shell_line(value)?;
    let first = line.split_whitespace().next().unwrap_or_default();
    let is_plain = names_program(first);
    if is_plain {
        check_program(value, first, cwd, resolver);
    }
    if !has_shell_syntax(line) {
        let arguments: Vec<_> = line.split_whitespace().skip(1).collect();
        check_scripts(std::slice::from_ref(value), first, &arguments, cwd, resolver);
    }
    Some(CommandLine::Shell(line.to_owned()))
}

fn exec(value: &Value<'_>, cwd: &std::path::Path, resolver: &dyn ReferenceLookup) -> Option<CommandLine> {
    let items = value.list()?;
    let args = items.iter().map(argument).collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>()?;
    let (Some((first, rest)), Some(place)) = (args.split_first(), items.first()) else {
        value.error("command", "`args` is empty", "the first is the program");
        return None;
    };
    let program = match resolver.program(first, cwd) {
        ResolvedPath::Found(path) => path,
        ResolvedPath::Missing(path, why) => {
            place.warn("program", why, "the hook will end `spawn_failed`");
            path
        }
        ResolvedPath::Refused(why) => {
            place.error(
                "program",
                why,
                "name a program inside the workspace, in the `PATH`, or by its absolute path",
            );
            return None;
        }
    };
    check_scripts(&items[1..], place.text()?, rest, cwd, resolver);
    Some(CommandLine::Exec { program, args: rest.iter().map(|&arg| arg.to_owned()).collect() })
}

/// A variable for a program, with what `expanded` makes of its value.
pub(in crate::dialect) fn variable(
    value: &Value<'_>,
    rules: &HookRules,
    expanded: &dyn Fn(&Value<'_>) -> Option<SecretText>,
) -> Option<(String, SecretText)> {
    let name = value.name();
    let shown = shorten(name, 64);
    if !variables::is_name(name) {
        let message = format!("`{shown}` is not a valid name of a variable");
        value.error_at(
            value.key_span(),
            "environment",
            message,
            "use `A-Z a-z 0-9 _`, not beginning with a digit",
        );
        return None;
    }
    if rules.unsafe_variables == UnsafeVariables::Refused && variables::is_unsafe(name) {
        let message = format!("`{shown}` may not be set: it makes programs run other code");
        let help = "remove it, or set `allow_unsafe_environment: true` in the settings";
        value.error_at(value.key_span(), "environment", message, help);
        return None;
    }
    let expanded = expanded(value)?;
    if expanded.expose().contains('\0') {
        let message = format!("the value of `{shown}` contains a NUL character");
        value.error("nul", message, "no program can be given one");
        return None;
    }
    Some((name.to_owned(), expanded))
}

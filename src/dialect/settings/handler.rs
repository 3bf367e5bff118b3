//! The handler of a hook in a settings file. One that could not run is left out with a warning.

use std::{num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

use super::{
    super::{
        document::{Mapping, Value},
        event_table::EventRow,
        openharness::{
            ResolvedPath, argument, bounded_entries, check_program, check_scripts, has_shell_syntax,
            http_address, http_header, names_program, shell_line, variable,
        },
        suggest::{did_you_mean, shorten},
    },
    context::{FileContext, TextPart, text_parts, warn_misspelt_keys},
    format::{HookIdentity, Shell, StartDirectory},
    plugins::{PLUGIN_OPTION, PLUGIN_VARIABLES, PluginFormat},
};
use crate::model::{
    Address, Agent, AgentHandler, AgentTool, CommandHandler, CommandLine, CommandMode, Handler, HandlerKind,
    HttpHandler, HttpMethod, Model, PromptHandler, Scope, SecretText,
};

/// The model of the settings that hooks without a `model` ask.
const USUAL_MODEL: &str = "default";

/// How often the model of an agent is asked.
const AGENT_TURNS: NonZeroUsize = NonZeroUsize::new(16).expect("not zero");

/// A handler, checked.
pub(super) struct SettingsHandler {
    pub(super) handler: Handler,
    pub(super) timeout: Duration,
    /// The timeout that the hook has of its own.
    pub(super) own_timeout: Option<Duration>,
    /// What makes it the same as another one.
    pub(super) identity: Arc<str>,
}

/// The handler of a hook, or `None` if anything about it is wrong, which has been reported.
pub(super) fn read(context: &FileContext<'_>, row: &EventRow, item: &Mapping<'_>) -> Option<SettingsHandler> {
    warn_misspelt_keys(item, context.native.settings.keys.hook);
    let kind = match item.get("type") {
        None if context.native.settings.keys.allows_bare_hooks() => HandlerKind::Command,
        _ => kind(context, &item.require("type", "\"type\": \"command\"")?)?,
    };
    let longest = context.rules.max_timeout;
    let own_timeout = match context.get(item, "timeoutSec").or_else(|| item.get("timeout")) {
        Some(value) => Some(context.native.settings.timeouts.unit_of(kind).read(
            &value,
            longest,
            "the hook is not loaded",
        )?),
        None => None,
    };
    let usual = || context.native.settings.timeouts.usual(row, kind).min(longest);
    let timeout = own_timeout.unwrap_or_else(usual);
    let (handler, identity) = match kind {
        HandlerKind::Http => http(context, item)?,
        HandlerKind::Command => command(context, item)?,
        HandlerKind::Prompt => prompt(context, item)?,
        HandlerKind::Agent => agent(context, item)?,
        HandlerKind::Rule | HandlerKind::Rego | HandlerKind::Native => return None,
    };
    let identity = match (context.native.settings.identity, context.get(item, "name")) {
        (HookIdentity::Handler, _) => identity,
        (HookIdentity::NameAndHandler, Some(name)) => format!("{}\0{identity}", name.text()?),
        (HookIdentity::NameAndHandler, None) => format!("\0{identity}"),
    };
    // The same command of two plugins runs in two directories.
    let identity = match context.plugin {
        Some(plugin) => format!("{}\0{identity}", plugin.id),
        None => identity,
    };
    Some(SettingsHandler { handler, timeout, own_timeout, identity: identity.into() })
}

fn kind(context: &FileContext<'_>, value: &Value<'_>) -> Option<HandlerKind> {
    let (text, types) = (value.text()?, context.native.settings.types);
    let kind = types.iter().copied().find(|kind| kind.as_str() == text);
    if kind.is_none() {
        let known: Vec<&str> = types.iter().map(|kind| kind.as_str()).collect();
        let message = format!("unknown type `{}`; the hook is not loaded", shorten(text, 64));
        value.error("unknown-type", message, did_you_mean(text, &known));
    }
    kind
}

fn prompt(context: &FileContext<'_>, item: &Mapping<'_>) -> Option<(Handler, String)> {
    let (text, model) = (question(item)?, model(context, item)?);
    let identity = format!("prompt {}\0{text}", model.reference);
    Some((Handler::Prompt(PromptHandler { prompt: text.into(), model }), identity))
}

/// An agent of a settings file has no file of its own: a role that fits every task, and every tool.
fn agent(context: &FileContext<'_>, item: &Mapping<'_>) -> Option<(Handler, String)> {
    let (text, model) = (question(item)?, model(context, item)?);
    let identity = format!("agent {}\0{text}", model.reference);
    let agent = Agent {
        name: "agent".to_owned(),
        description: None,
        system: "You check whether something holds. Look around before you judge.".to_owned(),
        model,
        tools: AgentTool::ALL.to_vec(),
        max_turns: AGENT_TURNS,
    };
    Some((Handler::Agent(AgentHandler { agent: Arc::new(agent), task: text.into() }), identity))
}

fn question(item: &Mapping<'_>) -> Option<String> {
    let value = item.require("prompt", "\"prompt\": \"Is this safe? $ARGUMENTS\"")?;
    let text = value.text()?;
    if text.trim().is_empty() {
        value.error("text", "`prompt` is empty", "write the question");
        return None;
    }
    Some(text.to_owned())
}

/// The model that a hook names, or the one for hooks that name none.
fn model(context: &FileContext<'_>, item: &Mapping<'_>) -> Option<Model> {
    let (value, reference) = match item.get("model") {
        Some(value) => (value.clone(), value.text()?),
        None => (item.get("type")?, USUAL_MODEL),
    };
    match context.resolver.model(reference) {
        Ok(model) => Some(model),
        Err((message, help)) => {
            value.error("model", format!("{message}; the hook is not loaded"), help);
            None
        }
    }
}

fn command(context: &FileContext<'_>, item: &Mapping<'_>) -> Option<(Handler, String)> {
    let value = match context.get(item, "bash") {
        Some(value) => value,
        None => item.require("command", "\"command\": \"./check.sh\"")?,
    };
    let text = if context.get(item, "args").is_some() { argument(&value)? } else { shell_line(&value)? };
    if text.trim().is_empty() {
        value.error("command", "`command` is empty", "write the program");
        return None;
    }
    let cwd = directory(context, item, &value)?;
    let root = cwd.display().to_string();
    check_plugin_variables(context, &value, text)?;
    let own =
        context.plugin.into_iter().flat_map(|plugin| &plugin.variables).filter(|variable| variable.is_set);
    let mut environment: Vec<(String, SecretText)> =
        own.map(|variable| (variable.name.to_owned(), variable.value.as_str().into())).collect();
    if let Some(variables) = context.get(item, "env") {
        for value in bounded_entries(&variables)? {
            environment.push(variable(&value, context.rules, &|value| Some(argument(value)?.into()))?);
        }
    }
    let line = match context.get(item, "args") {
        Some(args) => exec(context, &value, &args, &root)?,
        None => shell(context, item, &value, &root)?,
    };
    let identity = match &line {
        CommandLine::Shell(line) => format!("sh {line}"),
        CommandLine::Exec { program, args } => format!("exec {}\0{}", program.display(), args.join("\0")),
    };
    let handler = CommandHandler { line, cwd, environment, mode: CommandMode::Oneshot, sandbox: None };
    Some((Handler::Command(handler), identity))
}

/// The directory that a command runs in: the workspace, or the one below it that the hook names; or that of the file.
fn directory(context: &FileContext<'_>, item: &Mapping<'_>, command: &Value<'_>) -> Option<PathBuf> {
    let is_beside_file = context.native.settings.directory == StartDirectory::OfUserFile
        && matches!(context.scope, Scope::User | Scope::Managed);
    if let Some(directory) = context.file.parent().filter(|_| is_beside_file) {
        return Some(directory.to_owned());
    }
    let named = context.get(item, "cwd");
    let path = named.as_ref().map_or(Some(""), Value::text)?;
    match context.resolver.directory(path) {
        ResolvedPath::Found(cwd) => Some(cwd),
        ResolvedPath::Missing(cwd, why) => {
            if let Some(named) = named {
                named.warn("cwd", why, "the hook will end `spawn_failed`");
            }
            Some(cwd)
        }
        ResolvedPath::Refused(why) => {
            match named {
                Some(named) => named.error("cwd", why, "name a directory inside the workspace"),
                None => {
                    command.error(
                        "cwd",
                        format!("the workspace: {why}"),
                        "check its permissions, and reload",
                    );
                }
            }
            None
        }
    }
}

/// Checks that a command has what it needs of a plugin. Returns none if the hook cannot run.
fn check_plugin_variables(context: &FileContext<'_>, value: &Value<'_>, text: &str) -> Option<()> {
    if context.plugin.is_some() && text.contains(PLUGIN_OPTION) {
        let message =
            "the command has an option of its plugin, which only the agent knows; the hook is not loaded";
        value.error("plugin", message, "leave this hook to the agent");
        return None;
    }
    let is_of_plugins = matches!(context.native.settings.plugins, PluginFormat::Plugins(_));
    let named = PLUGIN_VARIABLES.into_iter().find(|name| text.contains(&format!("${{{name}}}")));
    if let Some(name) = named.filter(|_| is_of_plugins && context.plugin.is_none()) {
        let message = format!("`${{{name}}}` is set for hooks of plugins only; the hook will fail");
        value.warn("plugin", message, "name the directory, or move the hook to the plugin");
    }
    Some(())
}

fn shell(
    context: &FileContext<'_>,
    item: &Mapping<'_>,
    value: &Value<'_>,
    root: &str,
) -> Option<CommandLine> {
    let line = value.text()?;
    check_line(context, value, line, root);
    let shell = match context.get(item, "shell") {
        Some(shell) => match shell.text()? {
            "sh" => Shell::Sh,
            "bash" => Shell::Bash,
            other => {
                let message = format!("the shell `{}` is not available here", shorten(other, 64));
                shell.error("shell", message, "the hook is not loaded; use `bash`");
                return None;
            }
        },
        None => context.native.settings.shell,
    };
    Some(match shell {
        Shell::Sh => CommandLine::Shell(line.to_owned()),
        Shell::Bash => {
            // An agent whose lines are all Bash's puts the values of these variables into them, quoted.
            let settings = &context.native.settings;
            let own = [settings.project_variables, context.native.host_variables].concat();
            let names = if settings.shell == Shell::Bash { own } else { Vec::new() };
            let args = vec!["-c".to_owned(), quoted_variables(line, &names)];
            CommandLine::Exec { program: "/bin/bash".into(), args }
        }
    })
}

/// A line in which variables outside of quotes are in quotes, so that a space in a directory splits nothing.
fn quoted_variables(line: &str, names: &[&str]) -> String {
    let mut written = String::with_capacity(line.len());
    let mut quote = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let variable = names.iter().find(|name| c == '$' && rest[1..].starts_with(**name));
        let taken = match variable {
            Some(name) if quote.is_none() => {
                written.extend(["\"$", name, "\""]);
                1 + name.len()
            }
            _ => {
                let escaped = if c == '\\' && quote != Some('\'') { rest[1..].chars().next() } else { None };
                quote = match quote {
                    None if matches!(c, '\'' | '"') => Some(c),
                    Some(open) if open == c => None,
                    open => open,
                };
                written.push(c);
                written.extend(escaped);
                c.len_utf8() + escaped.map_or(0, char::len_utf8)
            }
        };
        rest = &rest[taken..];
    }
    written
}

/// Warns of a missing program and missing scripts, where the line names them plainly.
fn check_line(context: &FileContext<'_>, value: &Value<'_>, line: &str, root: &str) {
    let line = line.replace('"', "");
    let words: Vec<_> = line.split_whitespace().map(|word| in_project(context, word, root)).collect();
    // Without the directory, whose name may have characters that mean something to a shell elsewhere.
    let is_plain = |text: &str| !has_shell_syntax(&in_project(context, text, ""));
    let (Some(first), Some(written)) = (words.first(), line.split_whitespace().next()) else { return };
    if !is_plain(written) || !names_program(&in_project(context, written, "/project")) {
        return;
    }
    let cwd = std::path::Path::new(root);
    check_program(value, first, cwd, context.resolver);
    if is_plain(&line) {
        let arguments: Vec<_> = words[1..].iter().map(String::as_str).collect();
        check_scripts(std::slice::from_ref(value), first, &arguments, cwd, context.resolver);
    }
}

/// A text with the project's directory in it.
fn in_project(context: &FileContext<'_>, text: &str, root: &str) -> String {
    let of_project = context.native.settings.project_variables.iter().map(|name| (*name, root));
    let of_plugin = context.plugin.into_iter().flat_map(|plugin| &plugin.variables);
    let of_plugin =
        of_plugin.filter(|variable| variable.is_set).map(|variable| (variable.name, &*variable.value));
    of_project.chain(of_plugin).fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value)
    })
}

fn exec(context: &FileContext<'_>, program: &Value<'_>, args: &Value<'_>, root: &str) -> Option<CommandLine> {
    let items = args.list()?;
    let args = items.iter().map(argument).collect::<Option<Vec<_>>>()?;
    let args = args.into_iter().map(|text| in_project(context, text, root)).collect();
    let name = in_project(context, program.text()?, root);
    match context.resolver.program(&name, std::path::Path::new(root)) {
        ResolvedPath::Found(program) => Some(CommandLine::Exec { program, args }),
        ResolvedPath::Missing(path, why) => {
            program.warn("program", why, "the hook will end `spawn_failed`");
            Some(CommandLine::Exec { program: path, args })
        }
        ResolvedPath::Refused(why) => {
            let help = "name a program inside the workspace, in the `PATH`, or by its absolute path";
            program.error("program", why, help);
            None
        }
    }
}

fn http(context: &FileContext<'_>, item: &Mapping<'_>) -> Option<(Handler, String)> {
    let url = item.require("url", "\"url\": \"http://127.0.0.1:8080/hooks\"")?;
    if Address::parse(url.text()?).is_ok_and(|address| address.is_own()) {
        url.note("connection", "this entry sends the agent's events to hookyard; hookyard does not run it");
        return None;
    }
    let address = http_address(&url, context.rules)?;
    let mut allowed = Vec::new();
    if let Some(names) = item.get("allowedEnvVars") {
        for name in names.list()? {
            allowed.push(name.text()?.to_owned());
        }
    }
    let mut headers = Vec::new();
    if let Some(written) = item.get("headers") {
        for value in bounded_entries(&written)? {
            headers.push(http_header(&value, |text| Some(expanded(context, text, &allowed)))?);
        }
    }
    let identity = format!("http {address}");
    Some((Handler::Http(HttpHandler { address, method: HttpMethod::Post, headers }), identity))
}

/// A header's value with the variables in it that the hook may see; others expand to nothing.
fn expanded(context: &FileContext<'_>, text: &str, allowed: &[String]) -> SecretText {
    let mut found = SecretText::default();
    for part in text_parts(text) {
        match part {
            TextPart::Text(text) => found.push(text),
            TextPart::Variable(name) if allowed.iter().any(|known| known == name) => {
                context.resolver.variable(name).into_iter().for_each(|value| found.push(value));
            }
            TextPart::Variable(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_outside_of_quotes_are_quoted() {
        let cases = [
            ("$P/x.sh a", r#""$P"/x.sh a"#),
            (r#""$P/x.sh" '$P' $P"#, r#""$P/x.sh" '$P' "$P""#),
            (r#"\$P "a\"$P" ${P} it\'s $P"#, r#"\$P "a\"$P" ${P} it\'s "$P""#),
        ];
        for (line, expected) in cases {
            assert_eq!(quoted_variables(line, &["P"]), expected);
        }
    }
}

//! The input and the result of a conversion, a hook during it in hookyard's terms, and its variables in those of another
//! dialect.

use std::{collections::HashSet, path::PathBuf, time::Duration};

use serde::Serialize;

use super::{
    super::catalog::{DialectImpl, implementation},
    matcher::PortableMatcher,
};
use crate::model::{DialectName, EventKind, FailurePolicy, Strategy};

/// A file with hooks, as it was found.
#[derive(Debug)]
pub struct HookConfigFile {
    /// Its path below the workspace, for remarks.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConvertedFile {
    /// Its path below the workspace.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

/// Something that was not carried over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversionRemark {
    /// The hook, by its name or its place.
    pub hook: String,
    /// What was lost, and what that means.
    pub message: String,
    /// Whether the whole hook is left out.
    pub left_out: bool,
}

/// The hooks of one dialect in the form of another.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conversion {
    /// The files, in order.
    pub files: Vec<ConvertedFile>,
    /// How many hooks are in them; one for several events may have become several.
    pub hooks: usize,
    /// What was not carried over, in order of the hooks.
    pub remarks: Vec<ConversionRemark>,
}

/// A hook during a conversion.
#[derive(Debug, Clone)]
pub(super) struct PortableHook {
    pub(super) name: String,
    pub(super) events: Vec<PortableEvent>,
    pub(super) matcher: PortableMatcher,
    /// Whether it waits for the hooks before it, and sees their patches.
    pub(super) order: Strategy,
    pub(super) handler: PortableHandler,
    pub(super) timeout: Duration,
    pub(super) priority: i64,
    pub(super) on_error: FailurePolicy,
    pub(super) on_timeout: FailurePolicy,
    /// The names of the targets it may change; `None` where its dialect lets every hook change all of them.
    pub(super) capabilities: Option<Vec<String>>,
}

/// An event that a hook wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PortableEvent {
    pub(super) kind: EventKind,
    /// The event's own name, where it has no kind of its own.
    pub(super) host_event: Option<String>,
}

/// What a hook runs.
#[derive(Debug, Clone)]
pub(super) enum PortableHandler {
    Command {
        run: PortableCommand,
        cwd: Option<String>,
        environment: Vec<(String, String)>,
    },
    Http {
        url: String,
        method: String,
        headers: Vec<(String, String)>,
    },
    Prompt {
        text: String,
        model: Option<String>,
    },
    /// An agent with a file of its own, or one that is only its task.
    Agent {
        agent: Option<String>,
        task: String,
        model: Option<String>,
    },
}

/// The form of a command.
#[derive(Debug, Clone)]
pub(super) enum PortableCommand {
    Shell(String),
    Exec(Vec<String>),
}

impl PortableCommand {
    /// A line for bash.
    pub(super) fn bash(line: String) -> Self {
        Self::Exec(vec!["bash".to_owned(), "-c".to_owned(), line])
    }

    /// The line for bash, if it is one.
    pub(super) fn bash_line(&self) -> Option<&str> {
        match self {
            Self::Exec(args) => match args.as_slice() {
                [bash, flag, line] if bash.ends_with("bash") && flag == "-c" => Some(line),
                _ => None,
            },
            Self::Shell(_) => None,
        }
    }
}

/// What was lost in the conversion.
#[derive(Debug, Default)]
pub(super) struct ConversionLosses {
    pub(super) remarks: Vec<ConversionRemark>,
}

impl ConversionLosses {
    /// A part of a hook is not carried over.
    pub(super) fn partial(&mut self, hook: &str, message: impl Into<String>) {
        self.remarks.push(ConversionRemark {
            hook: hook.to_owned(),
            message: message.into(),
            left_out: false,
        });
    }

    /// Some events of a hook are not there; without any, nor is the hook.
    pub(super) fn missing_events(
        &mut self,
        hook: &str,
        dialect: DialectName,
        missing: &[&PortableEvent],
        kept: usize,
    ) {
        let name = |event: &&PortableEvent| {
            format!("`{}`", event.host_event.as_deref().unwrap_or(event.kind.as_str()))
        };
        let names: Vec<String> = missing.iter().map(name).collect();
        let message = format!("{dialect} has no event for {}", names.join(", "));
        match (missing.len(), kept) {
            (0, _) => {}
            (_, 0) => self.omitted(hook, message),
            _ => self.partial(hook, message),
        }
    }

    /// A hook is not carried over.
    pub(super) fn omitted(&mut self, hook: &str, message: impl Into<String>) {
        self.remarks.push(ConversionRemark {
            hook: hook.to_owned(),
            message: message.into(),
            left_out: true,
        });
    }
}

/// A name for a hook without one: that of its script, or else that of its event.
pub(super) fn name_of(handler: &PortableHandler, event: &str) -> String {
    let line = match handler {
        PortableHandler::Command { run: PortableCommand::Shell(line), .. } => line.clone(),
        PortableHandler::Command { run: PortableCommand::Exec(args), .. } => args.join(" "),
        PortableHandler::Http { .. } | PortableHandler::Prompt { .. } | PortableHandler::Agent { .. } => {
            String::new()
        }
    };
    let words = line.split(|c: char| c.is_whitespace() || "\"'`;|&()".contains(c));
    let script = words.filter(|word| word.contains('/') && !word.starts_with('-')).find_map(|word| {
        let file = word.rsplit('/').next()?;
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        Some(sanitized_name(stem))
            .filter(|name| !name.is_empty() && !["sh", "bash", "env"].contains(&name.as_str()))
    });
    script.unwrap_or_else(|| sanitized_name(event))
}

/// A text as a name may be.
pub(super) fn sanitized_name(text: &str) -> String {
    let kept = text.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' });
    kept.collect::<String>().trim_matches(['-', '.']).chars().take(48).collect()
}

/// Gives hooks of one name numbers, so that each has its own.
pub(super) fn make_names_unique(hooks: &mut [PortableHook]) {
    let mut taken = HashSet::new();
    for hook in hooks {
        let stem = hook.name.clone();
        let mut number = 1;
        while !taken.insert(hook.name.clone()) {
            number += 1;
            hook.name = format!("{stem}-{number}");
        }
    }
}

/// The variable of the workspace's directory, where a dialect has no table.
const WORKSPACE: &str = "OPENHARNESS_WORKSPACE_ROOT";

/// Variables of one event, which only hooks of one dialect have.
const OF_ONE_EVENT: [&str; 4] = ["HOOKYARD_EVENT", "HOOKYARD_DEADLINE_MS", "GEMINI_CWD", "GEMINI_SESSION_ID"];

/// Writes the other dialect's variables in a hook's command, and reports those that have no counterpart.
pub(super) fn rename_variables(
    hook: &mut PortableHook,
    from: DialectName,
    to: DialectName,
    losses: &mut ConversionLosses,
) {
    let PortableHandler::Command { run, .. } = &mut hook.handler else { return };
    let texts: Vec<&mut String> = match run {
        PortableCommand::Shell(line) => vec![line],
        PortableCommand::Exec(args) => args.iter_mut().collect(),
    };
    let Some(new) = directories(to).first().copied() else { return };
    let known = directories(to);
    for text in texts {
        for old in directories(from).iter().filter(|old| !known.contains(old)) {
            *text = text.replace(&format!("${{{old}}}"), &format!("${{{new}}}"));
            *text = replaced(text, old, new);
        }
        for name in OF_ONE_EVENT.iter().filter(|name| to != from && text.contains(&format!("${name}"))) {
            losses.partial(&hook.name, format!("`${name}` is not set there; the input has the value"));
        }
    }
}

fn directories(dialect: DialectName) -> &'static [&'static str] {
    match implementation(dialect) {
        DialectImpl::Plain(_) => &[WORKSPACE],
        DialectImpl::Native(native) => native.settings.project_variables,
    }
}

/// `$OLD` as `$NEW`, but not the beginning of a longer name.
fn replaced(text: &str, old: &str, new: &str) -> String {
    let wanted = format!("${old}");
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(&wanted) {
        let after = &rest[start + wanted.len()..];
        let goes_on = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        kept.push_str(&rest[..start]);
        kept.push_str(if goes_on { &wanted } else { "$" });
        if !goes_on {
            kept.push_str(new);
        }
        rest = after;
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_are_renamed() {
        assert_eq!(replaced("$A/x $AB \"$A\" $A", "A", "B2"), "$B2/x $AB \"$B2\" $B2");
        assert_eq!(replaced("nothing", "A", "B"), "nothing");
    }
}

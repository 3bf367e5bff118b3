//! A hook during a conversion, in hookyard's terms.

use std::{collections::HashSet, time::Duration};

use super::{ConversionRemark, matcher::PortableMatcher};
use crate::model::{DialectName, EventKind, FailurePolicy, Strategy};

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

//! The switches of settings files that disable hooks.

use super::{
    super::document::{Mapping, Value},
    format::DisableSyntax,
};

/// What a file says that disables all hooks with `enabled`.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(super) const NOT_ENABLED: &str = "`enabled` is false";

/// Keys beside the events that seem to switch hooks off, where an agent has its switches elsewhere.
const SWITCHES: [&str; 2] = ["enabled", "disabled"];

/// The position of a key or a value in its file, from 1; 0 if it is not in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyPosition {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl KeyPosition {
    /// The position of a value.
    pub(crate) fn of(value: &Value<'_>) -> Self {
        let (line, column) = value.document().position(value.span());
        Self { line, column }
    }

    /// The position of the key of a value.
    pub(crate) fn of_key(value: &Value<'_>) -> Self {
        let (line, column) = value.document().position(value.key_span());
        Self { line, column }
    }
}

/// The switches of one settings file.
#[derive(Debug, Default)]
pub(super) struct DisableSwitches {
    /// Whether the file switches all hooks off, or on again.
    pub(super) all: Option<(bool, KeyPosition)>,
    /// The names and commands of hooks that it switches off.
    pub(super) named: Vec<(String, KeyPosition)>,
}

impl DisableSyntax {
    /// The key with which a file disables all hooks.
    pub(in crate::dialect) fn word(self) -> &'static str {
        match self {
            Self::All(flag) | Self::BesideEvents(flag) | Self::Own(flag) => flag,
            Self::AllOrSome(_) => "enabled: false",
            Self::Never => "",
        }
    }

    /// What a file says that disables all hooks.
    #[cfg(all(feature = "cli", feature = "daemon"))]
    pub(super) fn phrase(self) -> String {
        match self {
            Self::AllOrSome(_) => NOT_ENABLED.to_owned(),
            _ => format!("`{}` is true", self.word()),
        }
    }

    /// Where a file switches its own hooks off, if it does.
    pub(super) fn own(self, root: &Mapping<'_>) -> Option<KeyPosition> {
        let Self::Own(flag) = self else { return None };
        let (off, position) = switch(&root.get(flag)?)?;
        off.then_some(position)
    }

    /// Warns of switches among these keys beside the events, where agents take them for nothing.
    pub(super) fn warn_of_misplaced(self, hooks: &Mapping<'_>, beside: &[&str]) {
        for key in SWITCHES.into_iter().filter(|key| beside.contains(key)) {
            if let Some(value) = hooks.get(key) {
                let message = format!("`{key}` beside the events does nothing: the hooks run");
                let help = match self {
                    Self::AllOrSome(section) => format!("move it to `{section}`, beside `hooks`"),
                    _ => format!("`{}`, beside `hooks`, disables all hooks", self.word()),
                };
                value.warn_key("misplaced", message, help);
            }
        }
    }

    /// The switches of a file.
    pub(super) fn read(self, root: &Mapping<'_>, hooks: Option<&Mapping<'_>>) -> DisableSwitches {
        let section = match self {
            Self::All(flag) => {
                return DisableSwitches {
                    all: root.get(flag).and_then(|value| switch(&value)),
                    named: Vec::new(),
                };
            }
            Self::BesideEvents(flag) => {
                let value = hooks.and_then(|hooks| hooks.get(flag));
                return DisableSwitches { all: value.and_then(|value| switch(&value)), named: Vec::new() };
            }
            Self::Own(_) | Self::Never => return DisableSwitches::default(),
            Self::AllOrSome(section) => root.get(section).and_then(|value| value.mapping()),
        };
        let mut found = DisableSwitches::default();
        if let Some(section) = section {
            let all = section.get("enabled").and_then(|value| switch(&value));
            found.all = all.map(|(enabled, position)| (!enabled, position));
            let list = section.get("disabled").and_then(|value| value.list()).unwrap_or_default();
            found.named.extend(list.iter().filter_map(named));
        }
        found
    }
}

/// The name of a hook in a list, and its position.
fn named(item: &Value<'_>) -> Option<(String, KeyPosition)> {
    Some((item.text()?.to_owned(), KeyPosition::of(item)))
}

/// The value of a flag, and the position of its key.
pub(super) fn switch(value: &Value<'_>) -> Option<(bool, KeyPosition)> {
    Some((value.flag()?, KeyPosition::of_key(value)))
}

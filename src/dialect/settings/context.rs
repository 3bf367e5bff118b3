//! What the readers of a settings file share: the file they read, a hook as it is found there, and variables in texts, `$NAME`
//! and `${NAME}`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::super::{
    document::{Mapping, Value},
    native::NativeDialect,
    openharness::{HookRules, ReferenceLookup, ResolvedPath},
    suggest::{nearest, shorten},
};
use super::tool_rule::RuleRoots;
use crate::model::{Hook, PluginSource, Scope};

/// A hook of a settings file.
#[derive(Debug)]
pub struct SettingsHook {
    /// The hook.
    pub hook: Hook,
    /// The event it is configured for, as its dialect calls it.
    pub event: &'static str,
    /// What files may call it: its command, and its name if it has one.
    pub aliases: Vec<String>,
    /// The timeout that it has of its own.
    pub own_timeout: Option<Duration>,
}

/// What every hook of a file has in common.
pub(super) struct FileContext<'a> {
    pub(super) native: &'static NativeDialect,
    pub(super) file: &'a Path,
    pub(super) scope: Scope,
    pub(super) rules: &'a HookRules,
    pub(super) resolver: &'a dyn ReferenceLookup,
    /// The plugin that the file is of.
    pub(super) plugin: Option<&'a Arc<PluginSource>>,
    /// The part of the names of its hooks that says of which agent's text it is.
    pub(super) agent: Option<&'a str>,
}

impl FileContext<'_> {
    /// The directories that rules about files begin at.
    pub(super) fn rule_roots(&self) -> RuleRoots {
        let project = match self.resolver.directory("") {
            ResolvedPath::Found(root) | ResolvedPath::Missing(root, _) => Some(root),
            ResolvedPath::Refused(_) => None,
        };
        let home = self.resolver.variable("HOME").map(|home| PathBuf::from(home.expose()));
        RuleRoots { project, home }
    }

    /// A hook's value of a key, if its dialect has the key.
    pub(super) fn get<'d>(&self, item: &Mapping<'d>, key: &str) -> Option<Value<'d>> {
        item.get(key).filter(|_| self.native.settings.keys.hook.contains(&key))
    }
}

/// Warns of keys that look like slips of known ones. Others are left to whom they belong.
pub(in crate::dialect) fn warn_misspelt_keys(mapping: &Mapping<'_>, known: &[&str]) {
    for value in mapping.values().filter(|value| !known.contains(&value.name())) {
        if let Some(near) = nearest(value.name(), known) {
            let message = format!("unknown key `{}`", shorten(value.name(), 64));
            value.warn_key("unknown-key", message, format!("did you mean `{near}`?"));
        }
    }
}

/// Reports a setting of all hooks that is one letter or so away from a known one.
pub(super) fn unknown_setting(value: &Value<'_>, near: &str) {
    let message = format!("unknown key `{}`", shorten(value.name(), 64));
    value.error_at(value.key_span(), "unknown-key", message, format!("did you mean `{near}`?"));
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum TextPart<'t> {
    /// Literal text.
    Text(&'t str),
    /// The name of a variable.
    Variable(&'t str),
}

/// The parts of a text, in order.
pub(in crate::dialect) fn text_parts(text: &str) -> Vec<TextPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        parts.push(TextPart::Text(&rest[..start]));
        let after = &rest[start + 1..];
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let plain = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
        let (name, next) = braced.unwrap_or_else(|| after.split_at(plain));
        parts.push(if name.is_empty() { TextPart::Text("$") } else { TextPart::Variable(name) });
        rest = next;
    }
    parts.push(TextPart::Text(rest));
    parts.retain(|part| *part != TextPart::Text(""));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_told_from_text() {
        use TextPart::{Text, Variable};
        assert_eq!(
            text_parts("a $B-${C}d"),
            [Text("a "), Variable("B"), Text("-"), Variable("C"), Text("d")]
        );
        assert_eq!(text_parts("$"), [Text("$")]);
        assert_eq!(
            text_parts("5 $ ${} ${x"),
            [Text("5 "), Text("$"), Text(" "), Text("$"), Text(" "), Text("$"), Text("{x")]
        );
        assert_eq!(text_parts(""), []);
    }
}

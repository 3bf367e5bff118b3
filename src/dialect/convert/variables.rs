//! Renames variables in commands for the target dialect.

use super::{
    super::catalog::{DialectImpl, implementation},
    portable_hook::{ConversionLosses, PortableCommand, PortableHandler, PortableHook},
};
use crate::model::DialectName;

/// The variable of the workspace's directory, where a dialect has no table.
const WORKSPACE: &str = "OPENHARNESS_WORKSPACE_ROOT";

/// Variables of one event, which only hooks of one dialect have.
const OF_ONE_EVENT: [&str; 4] = ["HOOKYARD_EVENT", "HOOKYARD_DEADLINE_MS", "GEMINI_CWD", "GEMINI_SESSION_ID"];

/// Writes the other dialect's variables in a hook's command, and reports those that have no counterpart.
pub(super) fn rename(
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

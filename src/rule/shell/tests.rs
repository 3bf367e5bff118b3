//! Texts, and the commands that are found in them.

mod bounds;
mod dodges;
mod laws;
mod refused;
mod structure;
mod values;
mod wrappers;

use super::{ShellCommand, ShellCommands, commands};

/// Checks rows of texts and what is found in them, and reports all that differ.
fn check(rows: &[(&str, &str)]) {
    let different = rows.iter().filter_map(|(text, expected)| {
        let found = shown(&commands(text));
        (found != *expected).then(|| format!("{text:?}\n  expected {expected}\n  found    {found}"))
    });
    let different: Vec<_> = different.collect();
    assert!(different.is_empty(), "{} of {}:\n{}", different.len(), rows.len(), different.join("\n"));
}

/// Checks whether all of each text is understood, and reports those that differ.
fn check_understood(texts: &[&str], expected: bool) {
    let different: Vec<_> = texts.iter().filter(|text| commands(text).understood != expected).collect();
    assert!(different.is_empty(), "understood, or not, against what was expected: {different:#?}");
}

/// Commands with ` ; ` between them; after `?` if not all of the text was understood.
fn shown(found: &ShellCommands) -> String {
    let commands: Vec<_> = found.commands.iter().map(shown_command).collect();
    format!("{}{}", if found.understood { "" } else { "? " }, commands.join(" ; "))
}

/// `?` if it is not understood, `sudo>` for what it runs through, variables, the name (in parentheses as it is written
/// if it is not known), arguments, redirections, and `<curl` for what is piped into it.
fn shown_command(command: &ShellCommand) -> String {
    let mut words = Vec::new();
    words.extend(command.assignments.iter().map(|(name, value)| format!("{name}={value}")));
    words.push(if command.name.is_empty() { format!("({})", command.path) } else { command.name.clone() });
    words.extend(command.args.iter().map(|arg| {
        if arg.is_empty() || arg.contains([' ', '\n', '\t']) { format!("{arg:?}") } else { arg.clone() }
    }));
    words.extend(command.redirects.iter().map(|(operator, file)| format!("{operator}{file}")));
    words.extend(command.piped_from.iter().map(|name| format!("<{name}")));
    let via = command.via.iter().fold(String::new(), |via, name| via + name + ">");
    format!("{}{via}{}", if command.understood { "" } else { "?" }, words.join(" "))
}

fn only(text: &str) -> ShellCommand {
    let mut found = commands(text);
    assert_eq!(found.commands.len(), 1, "{text}");
    found.commands.remove(0)
}

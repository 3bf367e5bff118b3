//! Commands of the program for workspaces that tests have just written: they run their hooks without asking a person.

/// The commands that load a workspace.
const LOADING: [&str; 8] = ["check", "list", "explain", "fire", "replay", "serve", "convert", "new"];

/// The flags that switch trust off.
pub(crate) const OFF: [&str; 2] = ["--set", "trust=off"];

/// The arguments, with trust switched off if their command loads a workspace.
pub(crate) fn without_trust<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    match arguments {
        [command, rest @ ..] if LOADING.contains(command) => [&[*command], &OFF[..], rest].concat(),
        _ => arguments.to_vec(),
    }
}

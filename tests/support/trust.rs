//! Commands of the program for workspaces that tests have just written: they run their hooks without asking a person.

/// The commands that load a workspace.
const LOADING: [&str; 7] = ["check", "list", "explain", "fire", "replay", "serve", "convert"];

/// The flags that switch trust off.
pub(crate) const OFF: [&str; 2] = ["--set", "trust=off"];

/// The arguments, with trust switched off if their command loads a workspace.
pub(crate) fn without_trust<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut all = arguments.to_vec();
    if arguments.first().is_some_and(|command| LOADING.contains(command)) {
        all.extend(OFF);
    }
    all
}

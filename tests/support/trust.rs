//! Workspaces that tests have just written: their hooks run without asking a person.

use std::path::Path;

use hookyard::{
    Orchestrator,
    config::{Settings, TrustPolicy},
};

/// An orchestrator with the hooks of a directory.
pub(crate) async fn orchestrator_in(workspace: &Path) -> Orchestrator {
    orchestrator_with(workspace, Settings::default()).await
}

/// An orchestrator with the hooks of a directory and these settings.
pub(crate) async fn orchestrator_with(workspace: &Path, settings: Settings) -> Orchestrator {
    let builder = Orchestrator::builder().trust(TrustPolicy::Off).settings(settings);
    builder.workspace(workspace).start().await.unwrap()
}

/// The commands that load a workspace.
const LOADING: [&str; 13] = [
    "check", "list", "explain", "fire", "replay", "test", "enable", "disable", "tune", "serve", "convert",
    "new", "bench",
];

/// The flags that switch trust off.
pub(crate) const OFF: [&str; 2] = ["--set", "trust=off"];

/// The arguments, with trust switched off if their command loads a workspace.
pub(crate) fn without_trust<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    match arguments {
        [command, rest @ ..] if LOADING.contains(command) => [&[*command], &OFF[..], rest].concat(),
        _ => arguments.to_vec(),
    }
}

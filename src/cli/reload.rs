//! `reload`: make the daemon read its hook files and tokens again.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{
    daemon_flag::{ControlSocketFlags, WorkspaceIdFlag},
    escape,
    exit::{CliResult, Exit},
    flags::JsonFlag,
    screen::Screen,
    status::last_good_fact,
    table::Page,
    units::plural,
};
use crate::daemon::LastGoodFile;

const FOOTER: &str = "\
Examples:
  hookyard reload
  hookyard reload --workspace-id shop

Exit codes: 0 all files were read; 1 a file has errors, or the daemon is down.";

/// Reload the daemon's hook files and tokens
///
/// In-flight events keep the hooks they began with. A file that is broken now keeps its last good rules, and a token that
/// cannot be read stays valid. A token that was replaced is no longer valid.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct ReloadCommand {
    #[command(flatten)]
    workspace: WorkspaceIdFlag,

    #[command(flatten)]
    sockets: ControlSocketFlags,

    #[command(flatten)]
    output: JsonFlag,
}

/// The result of a reload.
#[derive(Debug, Serialize, Deserialize)]
struct Reloaded {
    workspaces: Vec<ReloadedWorkspace>,
    token_errors: Vec<String>,
}

/// The result for a workspace.
#[derive(Debug, Serialize, Deserialize)]
struct ReloadedWorkspace {
    id: String,
    root: String,
    version: u64,
    #[serde(default)]
    content: String,
    hooks: usize,
    errors: usize,
    kept: Vec<String>,
    #[serde(default)]
    last_good: Vec<LastGoodFile>,
    changes: HookChanges,
}

/// Names of hooks.
#[derive(Debug, Serialize, Deserialize)]
struct HookChanges {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

impl ReloadCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let client = self.sockets.interactive_client();
        let query = self.workspace.query(&client)?.map(|query| format!("?{query}"));
        let path = format!("/v1/reload{}", query.unwrap_or_default());
        let reloaded: Reloaded = client.ask("POST", &path, None)?;
        if self.output.json {
            screen.print_json(&reloaded)?;
        } else {
            if reloaded.workspaces.is_empty() {
                screen.note("the daemon has no workspaces yet");
            }
            let text = view(&reloaded, screen);
            if !text.is_empty() {
                screen.print(&text)?;
            }
        }
        let broken = reloaded.workspaces.iter().any(|workspace| workspace.errors > 0)
            || !reloaded.token_errors.is_empty();
        Ok(if broken { Exit::Failed } else { Exit::Done })
    }
}

fn view(reloaded: &Reloaded, screen: &Screen) -> String {
    let mut page = Page::default();
    for workspace in &reloaded.workspaces {
        add_workspace(workspace, &mut page, screen);
    }
    for error in &reloaded.token_errors {
        page.line(&format!("{} {}", screen.out.paint.red("token"), escape::line(error)));
    }
    page.into_text()
}

fn add_workspace(workspace: &ReloadedWorkspace, page: &mut Page, screen: &Screen) {
    let paint = screen.out.paint;
    let hooks = plural(workspace.hooks, "hook");
    let HookChanges { added, removed, changed } = &workspace.changes;
    let is_same = [added, removed, changed].iter().all(|names| names.is_empty());
    let same = if is_same { ", none changed" } else { "" };
    let content = escape::line(&workspace.content);
    let version = format!("version {}, content {content}", workspace.version);
    page.line(&format!(
        "{}  {hooks}{same}  {}",
        paint.bold(&escape::line(&workspace.id)),
        paint.dim(&version)
    ));
    for (word, names) in [("added", added), ("removed", removed), ("changed", changed)] {
        if !names.is_empty() {
            page.line(&format!("  {word} {}", escape::line(&names.join(", "))));
        }
    }
    if workspace.errors > 0 {
        let errors = plural(workspace.errors, "error");
        let check = format!("`hookyard check --workspace {}` shows them", escape::line(&workspace.root));
        page.line(&format!("  {} {errors}; {check}", paint.red("broken")));
    }
    for file in &workspace.last_good {
        page.line(&format!("  {}", escape::line(&last_good_fact(file))));
    }
}

//! `reload`: make the daemon read its hook files again.

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{
    daemon_flag::{ControlSocketFlags, WorkspaceIdFlag},
    escape,
    exit::{CliResult, Exit},
    flags::JsonFlag,
    page::Page,
    screen::Screen,
    units::plural,
};

const FOOTER: &str = "\
Examples:
  hookyard reload
  hookyard reload --workspace-id shop

Exit codes: 0 all files were read; 1 a file has errors, or the daemon is down.";

/// Reload the daemon's hook files
///
/// In-flight events keep the hooks they began with. A file that is broken now keeps its previous rules.
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
        let reloaded: Vec<ReloadedWorkspace> = client.ask("POST", &path, None)?;
        if self.output.json {
            screen.print_json(&reloaded)?;
        } else if reloaded.is_empty() {
            screen.note("the daemon has no workspaces yet");
        } else {
            let mut page = Page::default();
            for workspace in &reloaded {
                add_workspace(workspace, &mut page, screen);
            }
            screen.print(&page.into_text())?;
        }
        let broken = reloaded.iter().any(|workspace| workspace.errors > 0);
        Ok(if broken { Exit::Failed } else { Exit::Done })
    }
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
    for file in &workspace.kept {
        page.line(&format!("  {} keeps its previous rules", escape::line(file)));
    }
}

//! `workspaces`: list the workspaces of a daemon, register one or remove one.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    daemon_flag::{ControlSocketFlags, ServedWorkspace},
    escape,
    exit::{CliError, CliResult, Exit},
    flags::JsonFlag,
    paths::shell_quoted,
    screen::Screen,
    table::{AdaptiveTable, EMPTY_CELL},
    units::plural_u64,
};
use crate::{
    daemon::{DaemonStatus, NotLoadedWorkspace, percent_encoded},
    model::{WorkspaceId, io_reason},
};

const FOOTER: &str = "\
Examples:
  hookyard workspaces
  hookyard workspaces --json | jq -r '.workspaces[].root'
  hookyard workspaces add ~/projects/shop
  hookyard workspaces add . --id shop
  hookyard workspaces rm shop

`add` and `rm` need the right to control the daemon. Their effect lasts until the daemon ends: the next one registers the \
`workspaces` of its settings again. A directory below `workspace_roots`, or of a connected agent, is registered again by its \
next event.

Exit codes: 0 the workspace is registered or removed, also if it was before; 1 the daemon is down, or has no such workspace to remove.";

/// List the daemon's workspaces, register one or remove one
///
/// A daemon runs the hooks of its workspaces only. Removing one ends the hooks that run in it.
#[derive(Debug, Args)]
#[command(after_help = FOOTER, args_conflicts_with_subcommands = true)]
pub(super) struct WorkspacesCommand {
    #[command(subcommand)]
    action: Option<WorkspacesAction>,

    #[command(flatten)]
    list: DaemonFlags,
}

/// The daemon, and the form of its answer.
#[derive(Debug, Args)]
struct DaemonFlags {
    #[command(flatten)]
    sockets: ControlSocketFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Debug, Subcommand)]
enum WorkspacesAction {
    /// List the workspaces
    List(DaemonFlags),
    /// Register a directory
    Add(AddAction),
    /// Remove a workspace; its hooks no longer run
    Rm(RemoveAction),
}

#[derive(Debug, Args)]
struct AddAction {
    /// Directory with hook files
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Id of the workspace; default: the name of the directory
    #[arg(long, value_name = "ID", value_parser = id)]
    id: Option<WorkspaceId>,

    /// `chat` runs no hooks; default: what the settings of the workspace say
    #[arg(long, value_name = "KIND")]
    kind: Option<KindChoice>,

    #[command(flatten)]
    daemon: DaemonFlags,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum KindChoice {
    /// For work on files
    Project,
    /// For conversation
    Chat,
}

#[derive(Debug, Args)]
struct RemoveAction {
    /// Id of the workspace, or its directory
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    daemon: DaemonFlags,
}

/// All workspaces of a daemon.
#[derive(Debug, Serialize)]
struct WorkspacesListing {
    workspaces: Vec<ServedWorkspace>,
    not_loaded: Vec<NotLoadedWorkspace>,
}

/// What became of one workspace.
#[derive(Debug, Serialize)]
struct WorkspaceChange<'a> {
    id: &'a str,
    changed: bool,
}

fn id(text: &str) -> Result<WorkspaceId, String> {
    WorkspaceId::new(text).map_err(|error| error.to_string())
}

impl WorkspacesCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        match self.action {
            None => list(&self.list, screen),
            Some(WorkspacesAction::List(flags)) => list(&flags, screen),
            Some(WorkspacesAction::Add(add)) => add.run(screen),
            Some(WorkspacesAction::Rm(remove)) => remove.run(screen),
        }
    }
}

fn list(flags: &DaemonFlags, screen: &Screen) -> CliResult {
    let client = flags.sockets.event_socket.interactive_client();
    let status: DaemonStatus = client.ask("GET", "/v1/status", None)?;
    let workspaces = ServedWorkspace::all(&client)?;
    let listing = WorkspacesListing { workspaces, not_loaded: status.not_loaded };
    if flags.output.json {
        screen.print_json(&listing)?;
    } else if listing.workspaces.is_empty() && listing.not_loaded.is_empty() {
        screen.note("the daemon has no workspaces; `hookyard workspaces add PATH` registers one");
    } else {
        screen.print(&table(&listing, screen))?;
    }
    Ok(Exit::Done)
}

fn table(listing: &WorkspacesListing, screen: &Screen) -> String {
    let header = vec!["id", "hooks", "errors", "kind", "directory"];
    let mut table = AdaptiveTable::new(header, screen.out.paint).text_columns(&["kind", "directory"]);
    for workspace in &listing.workspaces {
        let cell = |key: &str| match workspace.rest.get(key) {
            Some(Value::String(text)) => escape::line(text).into_owned(),
            Some(value @ Value::Number(_)) if value != &json!(0) => value.to_string(),
            _ => EMPTY_CELL.to_owned(),
        };
        table.add(vec![
            escape::line(&workspace.id).into_owned(),
            cell("hooks"),
            cell("errors"),
            cell("kind"),
            escape::line(&workspace.root).into_owned(),
        ]);
    }
    for workspace in &listing.not_loaded {
        table.add(vec![
            escape::line(&workspace.id).into_owned(),
            EMPTY_CELL.to_owned(),
            EMPTY_CELL.to_owned(),
            "not loaded".to_owned(),
            escape::line(&workspace.root).into_owned(),
        ]);
    }
    table.render("kind", screen.table_width())
}

impl AddAction {
    fn run(self, screen: &Screen) -> CliResult {
        let root = directory(&self.path)?;
        let client = self.daemon.sockets.interactive_client();
        let known = ServedWorkspace::all(&client)?;
        let id = self.id.clone().unwrap_or_else(|| WorkspaceId::of_directory(Path::new(&root)));
        if let Some(there) = self.same(&known, &root) {
            let change = WorkspaceChange { id: &there.id, changed: false };
            return self.daemon.report(&change, &format!("{root} is registered already"), screen);
        }
        if let Some(other) = known.iter().find(|other| other.id == id.as_str() && other.root != root) {
            let what = format!("the id `{id}` is that of {}", escape::line(&other.root));
            let help =
                format!("name another: `hookyard workspaces add {} --id ID`", shell_quoted(&self.path));
            return Err(CliError::with_help(what, help));
        }
        let kind = self.kind.map(|kind| match kind {
            KindChoice::Project => "project",
            KindChoice::Chat => "chat",
        });
        let body = json!({ "root": root, "kind": kind }).to_string();
        let path = format!("/v1/workspaces/{}", percent_encoded(id.as_str()));
        let made: ServedWorkspace = client.ask("PUT", &path, Some(body.as_bytes()))?;
        let number = |key: &str| made.rest.get(key).and_then(Value::as_u64).unwrap_or_default();
        let hooks = plural_u64(number("hooks"), "hook");
        let done = format!("registered {root} with {hooks}");
        self.daemon.report(&WorkspaceChange { id: &made.id, changed: true }, &done, screen)?;
        if number("errors") > 0 {
            let errors = plural_u64(number("errors"), "error");
            let check = format!("`hookyard check --workspace {}`", shell_quoted(&self.path));
            screen.note(&format!("note: {errors} in hook files; not all hooks are in force; run {check}"));
        }
        Ok(Exit::Done)
    }

    /// The workspace that is registered as it is to be.
    fn same<'w>(&self, known: &'w [ServedWorkspace], root: &str) -> Option<&'w ServedWorkspace> {
        let id = self.id.as_ref().map(WorkspaceId::as_str);
        let mut here = known.iter().filter(|other| other.root == root);
        here.find(|other| self.kind.is_none() && id.is_none_or(|id| other.id == id))
    }
}

/// The directory to register, without symbolic links.
fn directory(path: &Path) -> Result<String, CliError> {
    let name = escape::path(path);
    let root = path.canonicalize().map_err(|error| {
        CliError::new(format!("the directory `{name}` cannot be used: {}", io_reason(&error)))
    })?;
    if !root.is_dir() {
        return Err(CliError::new(format!("`{name}` is not a directory")));
    }
    let root = root.into_os_string().into_string();
    root.map_err(|_| CliError::new(format!("the path of `{name}` is not UTF-8, and so has no form in JSON")))
}

impl RemoveAction {
    fn run(self, screen: &Screen) -> CliResult {
        let client = self.daemon.sockets.interactive_client();
        let known = ServedWorkspace::all(&client)?;
        // One that is not loaded is not listed, and can be removed all the same.
        let id = ServedWorkspace::named(&known, &self.id).map_or(&self.id, |workspace| &workspace.id);
        let answer = client.send("DELETE", &format!("/v1/workspaces/{}", percent_encoded(id)), None)?;
        if answer.status == 404 {
            return Err(ServedWorkspace::unknown(&known, id));
        }
        if !(200..300).contains(&answer.status) {
            return Err(answer.error_response().into());
        }
        self.daemon.report(&WorkspaceChange { id, changed: true }, "removed", screen)
    }
}

impl DaemonFlags {
    /// Says what became of a workspace.
    fn report(&self, change: &WorkspaceChange<'_>, what: &str, screen: &Screen) -> CliResult {
        if self.output.json {
            screen.print_json(change)?;
        } else {
            screen.print(&escape::line(&format!("{}: {what}", change.id)))?;
        }
        Ok(Exit::Done)
    }
}

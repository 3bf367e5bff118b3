//! `serve --check`: what a start would find, without serving.

use std::path::Path;

use clap::Args;
use serde::Serialize;

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    screen::Screen,
    table::Page,
    units::plural,
    wrap,
};
use crate::{
    WorkspaceError,
    config::{
        self, LastGoodStore, LoadContext, LoadedWorkspace, RegisteredWorkspace, Settings, WorkspaceSettings,
    },
    daemon::{RunningDaemon, StartFinding, StartFindingLevel, preflight, real_directory},
    model::{Diagnostic, Severity, WorkspaceId},
};

/// Where the text of a finding begins: after its level.
const INDENT: usize = 9;

/// The flags of a start that is only checked.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ServeCheckFlags {
    /// Check all that a start needs, and serve nothing: settings, tokens, sockets, addresses, audit, data, the store of a cluster and workspaces
    #[arg(long)]
    pub(super) check: bool,

    /// With `--check`: fail on warnings and on errors in hook files too
    #[arg(long, requires = "check")]
    strict: bool,

    /// With `--check`: print JSON
    #[arg(long, requires = "check")]
    json: bool,
}

/// What a start would find.
#[derive(Serialize)]
struct StartReport<'a> {
    /// Whether the daemon would start, once the running one has stopped.
    starts: bool,
    /// The daemon that runs already.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<RunningDaemon>,
    findings: &'a [StartFinding],
}

impl ServeCheckFlags {
    /// Shows what a daemon with these settings would find when it starts. `given` is what is wrong with the settings.
    pub(super) fn run(
        self,
        settings: &Result<Settings, CliError>,
        given: &[Diagnostic],
        replaces: bool,
        screen: &Screen,
    ) -> CliResult {
        let mut findings: Vec<StartFinding> = given.iter().map(of_settings).collect();
        let mut running = None;
        match settings {
            Ok(settings) => {
                let environment = |name: &str| std::env::var(name).ok();
                let found = preflight(settings, &environment, replaces);
                findings.extend(found.findings);
                running = found.running;
                #[cfg(feature = "cluster")]
                findings.extend(store_of_cluster(settings));
                findings.extend(workspaces(settings, &environment));
            }
            Err(CliError::Message { what, help }) => {
                let finding = StartFinding::error("settings", what);
                findings.push(StartFinding { help: help.clone(), ..finding });
            }
            Err(_) => {}
        }
        let starts = findings.iter().all(|finding| finding.level != StartFindingLevel::Error);
        if self.json {
            screen.print_json(&StartReport { starts, running, findings: &findings })?;
        } else {
            screen.print(&view(&findings, &verdict(starts, running), screen))?;
        }
        let is_clean = findings.iter().all(|finding| finding.level == StartFindingLevel::Ok);
        Ok(if is_clean || (starts && !self.strict) { Exit::Done } else { Exit::Failed })
    }
}

/// What a start would find of the store of the cluster. Blocks.
#[cfg(feature = "cluster")]
fn store_of_cluster(settings: &Settings) -> Vec<StartFinding> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(crate::daemon::check_store(settings)),
        Err(error) => vec![StartFinding::error("cluster.store", error.to_string())],
    }
}

/// The last sentence, before the numbers.
fn verdict(starts: bool, running: Option<RunningDaemon>) -> String {
    match (starts, running) {
        (false, _) => "the daemon would not start".to_owned(),
        (true, None) => "the daemon would start".to_owned(),
        (true, Some(RunningDaemon { pid, replaced: true })) => {
            format!("the daemon would start and replace pid {pid}")
        }
        (true, Some(RunningDaemon { pid, replaced: false })) => {
            format!("the daemon would start once pid {pid} has stopped, and not before")
        }
    }
}

/// The findings, each on lines of its own, and their numbers after a last sentence.
pub(super) fn view(findings: &[StartFinding], verdict: &str, screen: &Screen) -> String {
    let paint = screen.out.paint;
    let mut page = Page::default();
    for StartFinding { level, subject, message, help } in findings {
        let help = help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        let text = format!("{subject}: {message}{help}");
        let text = wrap::hanging(&escape::line(&text), screen.table_width(), INDENT);
        let word = match level {
            StartFindingLevel::Ok => paint.dim("ok       "),
            StartFindingLevel::Note => paint.dim("note     "),
            StartFindingLevel::Warning => paint.severity(Severity::Warning, "warning  "),
            StartFindingLevel::Error => paint.severity(Severity::Error, "error    "),
        };
        page.line(&format!("{word}{text}"));
    }
    let count = |level: StartFindingLevel| findings.iter().filter(|finding| finding.level == level).count();
    let errors = plural(count(StartFindingLevel::Error), "error");
    let warnings = plural(count(StartFindingLevel::Warning), "warning");
    page.line(&format!("{verdict}: {errors}, {warnings}"));
    page.into_text()
}

fn of_settings(diagnostic: &Diagnostic) -> StartFinding {
    let message = diagnostic.to_string();
    match diagnostic.severity {
        Severity::Error => StartFinding::error("settings", message),
        Severity::Warning => StartFinding::warning("settings", message),
        Severity::Info => StartFinding::ok("settings", message),
    }
}

/// Loads the workspaces of the settings as the daemon would. What is wrong with one keeps no daemon from starting.
fn workspaces(settings: &Settings, environment: &dyn Fn(&str) -> Option<String>) -> Vec<StartFinding> {
    let mut findings = Vec::new();
    let mut registered: Vec<RegisteredWorkspace> = Vec::new();
    let most = settings.limits.workspaces.get();
    for (id, given) in &settings.workspaces {
        match real_directory(&given.root) {
            Ok(_) if registered.len() >= most => {
                let why = WorkspaceError::TooMany(most);
                findings.push(
                    StartFinding::warning("workspace", format!("{id} cannot be loaded: {why}"))
                        .help("its events are refused"),
                );
            }
            Ok(root) => {
                if let Some(twin) = registered.iter().find(|known| known.settings.root == root) {
                    let message = format!("{id} has the directory of {}, {}", twin.id, root.display());
                    let help = "its events are refused; keep one of the two";
                    findings.push(StartFinding::warning("workspace", message).help(help));
                } else {
                    let settings = WorkspaceSettings { root, ..given.clone() };
                    registered.push(RegisteredWorkspace { id: id.clone(), settings });
                }
            }
            Err(why) => {
                let message = format!("{id} cannot be loaded: {}: {why}", given.root.display());
                findings.push(
                    StartFinding::warning("workspace", message)
                        .help("its events are refused until it can be"),
                );
            }
        }
    }
    let data = config::data_directory(settings, environment);
    let store = data.map(|data| LastGoodStore::read_only(&data));
    for workspace in &registered {
        findings.extend(load(workspace, &registered, settings, environment, store.as_ref()));
    }
    findings
}

fn load(
    workspace: &RegisteredWorkspace,
    registered: &[RegisteredWorkspace],
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
    store: Option<&LastGoodStore>,
) -> Vec<StartFinding> {
    let around = |root: &Path| {
        let is_around = |known: &&RegisteredWorkspace| {
            known.settings.root != root && root.starts_with(&known.settings.root)
        };
        registered.iter().filter(is_around).cloned().collect()
    };
    let managed = config::managed_level(settings, environment, &|_| true);
    let context = LoadContext {
        registered: &around,
        last_good: store,
        managed: managed.as_ref(),
        ..LoadContext::new(environment)
    };
    let RegisteredWorkspace { id, settings: given } = workspace;
    let mut loaded = config::load_in_context(given, Some(id), settings, &context);
    let LoadedWorkspace { workspace: place, outer, hooks, diagnostics, required, .. } = &mut loaded;
    let required = [required.clone(), settings.required.clone()].concat();
    let (_, missing) = config::require(&required, place, outer, hooks, diagnostics);
    loaded.warn(missing);
    let problems = loaded.diagnostics.iter().filter(|diagnostic| diagnostic.severity != Severity::Info);
    let mut findings: Vec<StartFinding> = problems.map(|diagnostic| of_file(id, diagnostic)).collect();
    let remarks = loaded.diagnostics.iter().filter(|diagnostic| diagnostic.code == Diagnostic::LAST_GOOD);
    let remarks = remarks.filter(|diagnostic| diagnostic.severity == Severity::Info);
    findings.extend(remarks.map(|diagnostic| StartFinding::ok("workspace", format!("{id}: {diagnostic}"))));
    if findings.is_empty() {
        let hooks = plural(loaded.hooks.len(), "hook");
        findings.push(StartFinding::ok("workspace", format!("{id}, {}: {hooks}", given.root.display())));
    }
    findings
}

fn of_file(id: &WorkspaceId, diagnostic: &Diagnostic) -> StartFinding {
    StartFinding::warning("workspace", format!("{id}: {diagnostic}"))
}

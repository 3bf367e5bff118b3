//! `check`: find mistakes in the files of a workspace. No hook gets an event.

use std::{borrow::Cow, path::Path};

use clap::Args;
use serde::Serialize;

#[cfg(feature = "daemon")]
use super::doctor;
use super::{
    cluster_check::ClusterFlag,
    diagnostics,
    exit::{CliResult, Exit},
    flags::{JsonFlag, WorkspaceFlags},
    paths::display_path,
    screen::Screen,
    table::Page,
    units::plural,
    worker_probe,
    workspace::LocatedWorkspace,
};
use crate::{
    config::LoadedWorkspace,
    model::{Diagnostic, Handler, Hook, Severity, path_texts},
    platform::{KernelSandbox, kernel_sandbox},
};

/// More files than this are counted, not listed, unless `--verbose` is given.
const MOST_LISTED: usize = 12;

const FOOTER: &str = "\
Examples:
  hookyard check
  hookyard check --workspace ~/projects/shop --verbose
  hookyard check --no-start
  hookyard check --strict
  hookyard check --config /etc/hookyard/hookyard.yaml
  hookyard check --json | jq '.diagnostics[].message'

Exit codes: 0 all hooks are loaded, though there may be warnings without `--strict`; 1 errors, a hook is not loaded, or \
with `--strict` a warning.";

/// Check the hook files of a workspace
///
/// Reads every hook file as a host would, and shows each mistake with its line and how to correct it. A mistake
/// disables its own hook and no other, unless a daemon has loaded the file before. Workers of hooks with `mode: worker`
/// are started once to see whether they say hello, then stopped. Other hooks are not run.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct CheckCommand {
    #[command(flatten)]
    workspace: WorkspaceFlags,

    /// List every file that was read, however many there are
    #[arg(long, short)]
    verbose: bool,

    /// Fail on warnings too
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    cluster: ClusterFlag,

    /// Start no worker; run nothing of the workspace
    #[arg(long)]
    no_start: bool,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Serialize)]
struct CheckReport<'a> {
    hooks: usize,
    switched_off: usize,
    files: Vec<Cow<'a, str>>,
    /// Files that hooks refer to and that do not exist, or are not in the workspace.
    missing_files: Vec<Cow<'a, str>>,
    diagnostics: &'a [&'a Diagnostic],
    /// What the kernel can restrict in sandboxes.
    sandbox: KernelSandbox,
}

impl CheckCommand {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let found = match LocatedWorkspace::find_or_settings(&self.workspace)? {
            Ok(found) => found,
            Err(diagnostics) => return self.check_settings(&diagnostics, screen),
        };
        let mut loaded = found.load();
        if !self.no_start {
            match worker_probe::probe_workers(&loaded, &found.settings).await? {
                Ok(warnings) => loaded.warn(warnings),
                Err(exit) => return Ok(exit),
            }
        }
        let remarks = found.last_good_remarks(&loaded);
        if !remarks.is_empty() {
            // What the daemon knows counts.
            loaded.diagnostics.retain(|known| known.code != Diagnostic::LAST_GOOD);
        }
        loaded.warn(remarks);
        #[cfg(feature = "daemon")]
        {
            let doubled = doctor::double_runs(&loaded.hooks).into_iter().map(|doubled| doubled.diagnostic);
            let doubled = doubled.collect();
            loaded.warn(doubled);
        }
        let of_nodes = self.cluster.warnings(&loaded.hooks, &found.settings);
        loaded.warn(of_nodes);
        let diagnostics = found.diagnostics.iter().chain(&loaded.diagnostics);
        let diagnostics: Vec<_> = diagnostics.cloned().map(as_error).collect();
        let diagnostics: Vec<&Diagnostic> = diagnostics.iter().collect();
        if self.output.json {
            let switched_off = switched_off(&loaded);
            let hooks = loaded.hooks.len() - switched_off;
            let sandbox = kernel_sandbox();
            screen.print_json(&CheckReport {
                hooks,
                switched_off,
                files: path_texts(&loaded.files),
                missing_files: path_texts(&loaded.missing_files),
                diagnostics: &diagnostics,
                sandbox,
            })?;
        } else {
            screen.print(&self.report(&diagnostics, &loaded, screen))?;
            if loaded.files.is_empty() {
                screen.note(&found.no_files_note());
            }
        }
        Ok(self.exit_code(&diagnostics))
    }

    fn exit_code(&self, diagnostics: &[&Diagnostic]) -> Exit {
        let is_fatal = |diagnostic: &&Diagnostic| match diagnostic.severity {
            Severity::Error => true,
            Severity::Warning => self.strict,
            Severity::Info => false,
        };
        if diagnostics.iter().any(is_fatal) { Exit::Failed } else { Exit::Done }
    }

    /// Checks a settings file where there is no workspace.
    fn check_settings(&self, diagnostics: &[Diagnostic], screen: &Screen) -> CliResult {
        let diagnostics: Vec<_> = diagnostics.iter().cloned().map(as_error).collect();
        let diagnostics: Vec<_> = diagnostics.iter().collect();
        if self.output.json {
            let sandbox = kernel_sandbox();
            let diagnostics = &diagnostics;
            screen.print_json(&CheckReport {
                hooks: 0,
                switched_off: 0,
                files: Vec::new(),
                missing_files: Vec::new(),
                diagnostics,
                sandbox,
            })?;
        } else {
            let mut page = diagnostics_page(&diagnostics, None, screen);
            page.line(&format!("settings: {}", problem_counts(&diagnostics, screen)));
            screen.print(&page.into_text())?;
        }
        screen.note("note: no workspace found, so only the settings were checked");
        Ok(self.exit_code(&diagnostics))
    }

    fn report(&self, diagnostics: &[&Diagnostic], loaded: &LoadedWorkspace, screen: &Screen) -> String {
        let mut page = diagnostics_page(diagnostics, Some(&loaded.workspace.root), screen);
        if self.verbose || loaded.files.len() <= MOST_LISTED {
            for file in &loaded.files {
                page.line(&format!("{} {}", screen.out.paint.dim("read"), display_path(file)));
            }
        }
        for file in &loaded.missing_files {
            page.line(&format!("{} {}", screen.out.paint.yellow("missing"), display_path(file)));
        }
        if self.verbose || loaded.hooks.iter().any(has_sandbox) {
            page.line(&sandbox_line());
        }
        page.line(&summary(diagnostics, loaded, screen));
        page.into_text()
    }
}

fn has_sandbox(hook: &Hook) -> bool {
    matches!(&hook.handler, Handler::Command(command) if command.sandbox.is_some())
}

/// What this machine can do for hooks in sandboxes. Sockets as a whole and limits work on every kernel.
fn sandbox_line() -> String {
    match kernel_sandbox().describe() {
        (can, cannot) if cannot.is_empty() => format!("sandboxes: this kernel restricts {}", can.join(", ")),
        (can, cannot) if can.is_empty() => {
            format!("sandboxes: this kernel cannot restrict {}", cannot.join(", "))
        }
        (can, cannot) => {
            format!("sandboxes: this kernel restricts {}, but not {}", can.join(", "), cannot.join(", "))
        }
    }
}

/// A page that begins with the diagnostics.
fn diagnostics_page(diagnostics: &[&Diagnostic], root: Option<&Path>, screen: &Screen) -> Page {
    let mut page = Page::default();
    for diagnostic in diagnostics {
        page.line(&diagnostics::render(diagnostic, root, screen.out.paint, screen.width()));
    }
    page
}

/// Shows what costs a hook as an error. Loading warns of mistakes in the settings files of agents, which other programs
/// read too; here they are what was looked for.
fn as_error(diagnostic: Diagnostic) -> Diagnostic {
    if diagnostic.skipped { Diagnostic { severity: Severity::Error, ..diagnostic } } else { diagnostic }
}

fn summary(diagnostics: &[&Diagnostic], loaded: &LoadedWorkspace, screen: &Screen) -> String {
    let off = switched_off(loaded);
    let hooks = plural(loaded.hooks.len() - off, "hook");
    let files = plural(loaded.files.len(), "file");
    let off = if off > 0 { format!(" {off} switched off,") } else { String::new() };
    format!("{hooks} loaded,{off} {files} read, {}", problem_counts(diagnostics, screen))
}

/// How many hooks a switch of some file disables.
fn switched_off(loaded: &LoadedWorkspace) -> usize {
    loaded.hooks.iter().filter(|hook| hook.execution.switches.disabled_by.is_some()).count()
}

fn problem_counts(diagnostics: &[&Diagnostic], screen: &Screen) -> String {
    let errors = colored_count(diagnostics, Severity::Error, "error", screen);
    let warnings = colored_count(diagnostics, Severity::Warning, "warning", screen);
    format!("{errors}, {warnings}")
}

fn colored_count(diagnostics: &[&Diagnostic], severity: Severity, noun: &str, screen: &Screen) -> String {
    let number = count(diagnostics, severity);
    let text = plural(number, noun);
    if number == 0 { text } else { screen.out.paint.severity(severity, &text) }
}

fn count(diagnostics: &[&Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
}

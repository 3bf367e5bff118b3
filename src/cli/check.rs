//! `check`: everything that is wrong with the files of a workspace. Gives no hook an event.

use clap::Args;
use serde::Serialize;

use super::{
    diagnostics,
    exit::{CliResult, Exit},
    flags::{JsonFlag, WorkspaceFlags},
    page::Page,
    paths::display_path,
    screen::Screen,
    units::plural,
    worker_probe,
    workspace::LocatedWorkspace,
};
use crate::{
    config::LoadedWorkspace,
    model::{Diagnostic, Severity},
};

/// More files than this are counted instead of named.
const FEW_FILES: usize = 12;

const EXAMPLES: &str = "\
Examples:
  hookyard check
  hookyard check --workspace ~/projects/shop --verbose
  hookyard check --no-start
  hookyard check --config /etc/hookyard/hookyard.yaml
  hookyard check --json | jq '.diagnostics[].message'

Exit code 1 means that there are errors; warnings alone are no failure.";

/// Says what is wrong with the hook files of a workspace
///
/// Reads every hook file as a host would and shows each mistake with its line and what to do about it. A
/// mistake costs its own hook and no other. The workers of hooks with `mode: worker` are started once, to see
/// whether they say hello, and stopped; other hooks are not run.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckCommand {
    #[command(flatten)]
    workspace: WorkspaceFlags,

    /// Names every file that was read, however many there are
    #[arg(long, short)]
    verbose: bool,

    /// Starts no worker: nothing of the workspace is run
    #[arg(long)]
    no_start: bool,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Serialize)]
struct CheckReport<'a> {
    hooks: usize,
    files: &'a [std::path::PathBuf],
    diagnostics: Vec<&'a Diagnostic>,
}

impl CheckCommand {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let found = match LocatedWorkspace::find_or_settings(&self.workspace)? {
            Ok(found) => found,
            Err(diagnostics) => return self.settings_alone(&diagnostics, screen),
        };
        let mut loaded = found.load();
        if !self.no_start {
            match worker_probe::probe_workers(&loaded, &found.settings).await? {
                Ok(warnings) => loaded.warn(warnings),
                Err(exit) => return Ok(exit),
            }
        }
        let diagnostics: Vec<&Diagnostic> = found.diagnostics.iter().chain(&loaded.diagnostics).collect();
        let exit_status = exit_status(&diagnostics);
        if self.output.json {
            let hooks = loaded.hooks.len();
            screen.print_json(&CheckReport { hooks, files: &loaded.files, diagnostics })?;
        } else {
            screen.print(&self.report(&diagnostics, &loaded, screen))?;
            if loaded.files.is_empty() {
                screen.note(&found.no_files());
            }
        }
        Ok(exit_status)
    }

    /// Says what is wrong with a settings file, where there is no workspace.
    fn settings_alone(&self, diagnostics: &[Diagnostic], screen: &Screen) -> CliResult {
        let diagnostics: Vec<_> = diagnostics.iter().collect();
        if self.output.json {
            screen.print_json(&CheckReport { hooks: 0, files: &[], diagnostics: diagnostics.clone() })?;
        } else {
            let mut page = diagnostics_page(&diagnostics, screen);
            page.line(&format!("settings: {}", problem_counts(&diagnostics, screen)));
            screen.print(&page.into_text())?;
        }
        screen.note("note: there is no workspace here, so only the settings were checked");
        Ok(exit_status(&diagnostics))
    }

    fn report(&self, diagnostics: &[&Diagnostic], loaded: &LoadedWorkspace, screen: &Screen) -> String {
        let mut page = diagnostics_page(diagnostics, screen);
        if self.verbose || loaded.files.len() <= FEW_FILES {
            for file in &loaded.files {
                page.line(&format!("{} {}", screen.out.paint.dim("read"), display_path(file)));
            }
        }
        page.line(&summary(diagnostics, loaded, screen));
        page.into_text()
    }
}

/// A page that begins with what is wrong.
fn diagnostics_page(diagnostics: &[&Diagnostic], screen: &Screen) -> Page {
    let mut page = Page::default();
    for diagnostic in diagnostics {
        page.line(&diagnostics::render(diagnostic, screen.out.paint, screen.width()));
    }
    page
}

fn exit_status(diagnostics: &[&Diagnostic]) -> Exit {
    let has_errors = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    if has_errors { Exit::Failed } else { Exit::Done }
}

fn summary(diagnostics: &[&Diagnostic], loaded: &LoadedWorkspace, screen: &Screen) -> String {
    let (hooks, files) = (plural(loaded.hooks.len(), "hook"), plural(loaded.files.len(), "file"));
    format!("{hooks} loaded, {files} read, {}", problem_counts(diagnostics, screen))
}

fn problem_counts(diagnostics: &[&Diagnostic], screen: &Screen) -> String {
    let paint = screen.out.paint;
    let number = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
    let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
    let colored = |number, severity, text: String| match number {
        0 => text,
        _ => paint.severity(severity, &text),
    };
    format!(
        "{}, {}",
        colored(errors, Severity::Error, plural(errors, "error")),
        colored(warnings, Severity::Warning, plural(warnings, "warning")),
    )
}

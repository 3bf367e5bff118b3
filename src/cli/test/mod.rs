//! `test`: run the hooks for the events of case files, and compare their outcomes with what each case expects.

mod case_links;
mod cases;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{JsonFlag, TrustFlag, WorkspaceFlags},
    paths::display_path,
    screen::Screen,
    session::CommandSession,
    table::Page,
    units::{plural, precise_duration},
    workspace::LocatedWorkspace,
    wrap,
};
use crate::model::{DialectName, Outcome, io_reason};
use case_links::CaseDirectory;
use cases::{Case, CaseFile, Difference};

/// Where the case files of a workspace are.
const DIRECTORY: &str = ".openharness/tests";

/// Where the text about a failed case begins.
const INDENT: usize = 8;

const FOOTER: &str = "\
Examples:
  hookyard test
  hookyard test guard.yaml --trust-workspace
  hookyard test --json | jq '.cases[] | select(.passed | not)'

A case file is YAML or JSON:
  cases:
    - name: a force push is blocked
      event:
        event: before_tool_dispatch
        tool_name: Bash
        tool_input: { command: git push -f }
      expect: { verdict: block, reason: force }

`expect` names a `verdict` and, if they matter, a part of the `reason`, the hook that decided (`by`), the final values of \
what hooks changed (`patched`), parts of `notes`, and the names of all `hooks` that ran. `dialect` is the format of the \
event, by default `canonical`. `links` makes symbolic links, from a name to a target, in a directory of the case, where its \
event happens. Each case is a run of its own unless it has a `session_id` and `run_id`.

Exit codes: 0 all cases passed; 1 a case failed, a file cannot be used, or there are no cases.";

/// Run the hooks for the events of case files and compare the outcomes
///
/// Without FILE, takes the files in `.openharness/tests` of the workspace, in the order of their names. Cases run one after
/// the other.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct TestCommand {
    /// File with cases
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    trust: TrustFlag,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

/// The result of all files.
#[derive(Debug, Default, Serialize)]
struct TestReport {
    cases: Vec<CaseResult>,
    /// Files that cannot be used, and why.
    unusable: Vec<UnusableFile>,
}

#[derive(Debug, Default, Serialize)]
struct CaseResult {
    file: String,
    name: String,
    passed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<Difference>,
    /// Why there is no outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(rename = "duration_ms", serialize_with = "crate::model::milliseconds")]
    duration: Duration,
}

#[derive(Debug, Serialize)]
struct UnusableFile {
    file: String,
    why: String,
}

impl TestCommand {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let found = LocatedWorkspace::find_valid(&self.workspace, screen)?.trusting(self.trust);
        let workspace = self.files.is_empty().then_some(&*found.root);
        let files = workspace.map_or_else(|| Ok(self.files.clone()), files_of)?;
        let mut report = TestReport::default();
        let mut read = Vec::new();
        for file in files {
            match CaseFile::read(&file, workspace) {
                Ok(cases) => read.push((file, cases)),
                Err(why) => report.unusable.push(UnusableFile { file: display_path(&file), why }),
            }
        }
        let mut session = CommandSession::start(&found).await?;
        found.note_problems(&session.report.diagnostics, &session.report.files, screen);
        let player = CasePlayer::of(&session, &found.root);
        if let Err(exit) = session.until_signal(player.play(&read, &mut report.cases)).await {
            let progress = format!("after {}", plural(report.cases.len(), "case"));
            return Ok(session.abort(exit, &progress, screen).await);
        }
        if let Err(exit) = session.stop(screen).await {
            return Ok(exit);
        }
        if self.output.json {
            screen.print_json(&report)?;
        } else {
            screen.print(&report.page(screen))?;
        }
        for UnusableFile { file, why } in &report.unusable {
            screen.error(&format!("{}: {}", escape::line(file), escape::line(why)), None);
        }
        if report.cases.is_empty() && report.unusable.is_empty() {
            screen.error("the files have no cases", Some("`hookyard test --help` has an example"));
        }
        Ok(if report.is_success() { Exit::Done } else { Exit::Failed })
    }
}

/// The case files of a workspace.
///
/// Returns an error if there are none.
fn files_of(root: &Path) -> Result<Vec<PathBuf>, CliError> {
    let directory = root.join(DIRECTORY);
    let name = display_path(&directory);
    let entries = directory.read_dir().map_err(|error| {
        let what = format!("{name} cannot be read: {}", io_reason(&error));
        CliError::with_help(what, "put case files there, or name them: `hookyard test FILE`")
    })?;
    let is_case_file = |path: &PathBuf| {
        path.extension()
            .and_then(|end| end.to_str())
            .is_some_and(|end| ["yaml", "yml", "json"].contains(&end))
    };
    let files: BTreeSet<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_case_file).collect();
    if files.is_empty() {
        let what = format!("{name} has no case files");
        return Err(CliError::with_help(what, "their names end with .yaml, .yml or .json"));
    }
    Ok(files.into_iter().collect())
}

/// Runs the hooks of one workspace for cases.
struct CasePlayer {
    orchestrator: crate::Orchestrator,
    workspace: crate::model::WorkspaceId,
    redactor: crate::model::Redactor,
    /// The directory of the workspace.
    root: PathBuf,
}

impl CasePlayer {
    fn of(session: &CommandSession, root: &Path) -> Self {
        Self {
            orchestrator: session.orchestrator.clone(),
            workspace: session.workspace.clone(),
            redactor: session.redactor.clone(),
            root: root.to_owned(),
        }
    }

    async fn play(&self, files: &[(PathBuf, CaseFile)], results: &mut Vec<CaseResult>) {
        for (file, cases) in files {
            for case in &cases.cases {
                let begun = Instant::now();
                let dialect = case.dialect.unwrap_or(cases.dialect).0;
                let answer = self.ask(case, dialect, results.len() + 1).await;
                results.push(self.judge(file, case, answer, begun.elapsed()));
            }
        }
    }

    /// The outcome of a case, whose number makes a run of its own.
    ///
    /// Returns why there is none.
    async fn ask(&self, case: &Case, dialect: DialectName, number: usize) -> Result<Outcome, String> {
        let mut event = case.event.clone();
        let is_canonical = dialect == DialectName::Canonical;
        let ids = if is_canonical { &["session_id", "run_id"][..] } else { &["session_id"] };
        for id in ids {
            event.entry(*id).or_insert_with(|| format!("case-{number}").into());
        }
        let bytes = Value::Object(event).to_string();
        let mut event =
            self.orchestrator.read(dialect, bytes.as_bytes()).map_err(|error| error.to_string())?;
        let links = Some(&case.links).filter(|links| !links.is_empty());
        let directory = links.map(|links| CaseDirectory::new(&self.root, number, links)).transpose()?;
        if let Some(directory) = &directory {
            event.cwd.get_or_insert_with(|| directory.cwd());
        }
        let answer = self.orchestrator.dispatch_in(&self.workspace, event).await;
        answer.map_err(|error| error.to_string())
    }

    fn judge(
        &self,
        file: &Path,
        case: &Case,
        answer: Result<Outcome, String>,
        duration: Duration,
    ) -> CaseResult {
        let result = CaseResult {
            file: display_path(file),
            name: case.name.clone(),
            duration,
            ..CaseResult::default()
        };
        match answer {
            Err(error) => CaseResult { error: Some(error), ..result },
            Ok(outcome) => {
                let shown = self.redactor.outcome(&outcome).into_owned();
                let differences = case.expect.differences(&outcome, &shown);
                CaseResult { passed: differences.is_empty(), differences, outcome: Some(shown), ..result }
            }
        }
    }
}

impl TestReport {
    fn is_success(&self) -> bool {
        let all_passed = self.cases.iter().all(|case| case.passed);
        all_passed && !self.cases.is_empty() && self.unusable.is_empty()
    }

    fn page(&self, screen: &Screen) -> String {
        let (paint, width) = (screen.out.paint, screen.table_width());
        let mut page = Page::default();
        let mut file = None;
        for case in &self.cases {
            if file.replace(&case.file) != Some(&case.file) {
                page.line(&escape::line(&case.file));
            }
            let mark = if case.passed { paint.green("ok  ") } else { paint.red("FAIL") };
            let took = paint.dim(&precise_duration(case.duration));
            page.line(&format!("  {mark}  {}  {took}", escape::line(&case.name)));
            if let Some(error) = &case.error {
                let text = wrap::hanging(&escape::block(error, 0), width, INDENT);
                page.line(&format!("{:INDENT$}no outcome: {text}", ""));
            }
            for Difference { part, expected, found } in &case.differences {
                page.line(&format!("{:INDENT$}{}", "", escape::line(part)));
                for (label, value) in [("expected", expected), ("found   ", found)] {
                    let text = wrap::hanging(&escape::json(&value.to_string()), width, INDENT + 12);
                    page.line(&format!("{:INDENT$}  {label}  {text}", ""));
                }
            }
        }
        let failed = self.cases.iter().filter(|case| !case.passed).count();
        let summary = format!("{}, {failed} failed", plural(self.cases.len(), "case"));
        page.line(&if failed > 0 { paint.red(&summary) } else { summary });
        page.into_text()
    }
}

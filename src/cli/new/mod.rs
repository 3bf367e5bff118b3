//! `new`: create a hook file and a script that work at once. Runs nothing.

mod files;
mod skeleton;
mod templates;

use std::{borrow::Cow, path::Path};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use serde::Serialize;

#[cfg(feature = "daemon")]
pub(super) use skeleton::sample_event;

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{JsonFlag, WorkspaceFlags},
    paths::{display_path, shell_quoted},
    screen::Screen,
    table::Page,
    trust::{self, NewTrust},
    workspace::{LocatedWorkspace, WorkspaceOrigin},
    wrap,
};
use crate::{
    config::TrustPolicy,
    model::{EventKind, HookName, Severity, path_texts},
};
use files::{FileResult, FileStatus};
use skeleton::{HandlerType, HookSkeleton, ProcessMode, ScriptLanguage};

const FOOTER: &str = "\
Examples:
  hookyard new my-guard
  hookyard new my-guard --type command --language python --mode worker
  hookyard new end-of-run --event run_completed,run_failed --language node
  hookyard new no-force-push --type rule
  hookyard new judge --type prompt --config hookyard.yaml --workspace ~/projects/shop

The new hook passes `hookyard check`. It blocks one made-up command, or reports that it saw the event. Existing files \
are never overwritten.";

/// Create a working hook: a hook file and a script
///
/// Writes into `.openharness/hooks/` of the workspace, with the JSON Schema for editors and, for `--mode worker`, the
/// SDK of the worker protocol.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct NewCommand {
    /// Name of the hook: 1 to 64 of `A-Z a-z 0-9 . _ -`, not beginning with `.`
    #[arg(value_name = "NAME")]
    name: String,

    /// Type of handler
    #[arg(long = "type", short = 't', value_name = "TYPE", default_value = "command")]
    kind: HandlerType,

    /// Language of a command's script; default: `sh`
    #[arg(long, short, value_name = "LANGUAGE")]
    language: Option<ScriptLanguage>,

    /// Event to run for; repeat it or separate several with commas; default: `before_tool_dispatch`
    #[arg(long, short, value_name = "KIND", value_delimiter = ',', value_parser = kinds())]
    event: Vec<EventKind>,

    /// How a command's process is started; default: `oneshot`
    #[arg(long, short, value_name = "MODE")]
    mode: Option<ProcessMode>,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

fn kinds() -> impl TypedValueParser<Value = EventKind> {
    let names = EventKind::ALL.iter().map(|kind| kind.as_str());
    PossibleValuesParser::new(names).try_map(|name| EventKind::from_name(&name).ok_or("not an event kind"))
}

/// The result as JSON.
#[derive(Serialize)]
struct NewReport<'a> {
    name: &'a str,
    workspace: Cow<'a, str>,
    chosen: &'static str,
    written: Vec<Cow<'a, str>>,
    kept: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<&'a str>,
    event: &'a serde_json::Value,
    next: &'a [String],
}

impl NewCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        if let Some(flag) = self.misplaced() {
            let help = "remove it, or use `--type command`";
            screen.error(&format!("`{flag}` needs `--type command`"), Some(help));
            return Ok(Exit::Usage);
        }
        if let Err((what, help)) = check_name(&self.name) {
            screen.error(&what, Some(help));
            return Ok(Exit::Usage);
        }
        let (found, chosen) = LocatedWorkspace::find_or_current_dir(&self.workspace, screen)?;
        let loaded = found.load();
        if let Some(twin) = loaded.hooks.iter().find(|hook| hook.name.as_str() == self.name) {
            let place = twin.source.file.as_deref().map_or_else(|| "this workspace".to_owned(), display_path);
            let what = format!("a hook `{}` already exists in {place}", self.name);
            return Err(CliError::with_help(
                what,
                "choose another name: of two hooks with the same name, neither runs",
            ));
        }
        let skeleton = self.skeleton(&found);
        let written = files::write(&found.root, &skeleton.files)?;
        let trust = match found.settings.trust {
            TrustPolicy::Off => NewTrust::Given,
            TrustPolicy::Enforce => {
                let is_new = |file: &&FileResult| file.status == FileStatus::Written;
                let paths: Vec<&Path> =
                    written.iter().filter(is_new).map(|file| file.path.as_path()).collect();
                trust::agree_to_new(&found, &self.name, &paths, screen)?
            }
        };
        let next = self.next(&found, &skeleton, &trust);
        let summary = NewSummary {
            new: &self,
            found: &found,
            chosen,
            skeleton: &skeleton,
            written: &written,
            next: &next,
        };
        summary.print(screen)?;
        // Errors in other hooks are not shown; that no hook of the workspace runs concerns the new one.
        let mut after = found.load();
        after.diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Info);
        found.note_problems(&after.diagnostics, &after.files, screen);
        Ok(Exit::Done)
    }

    /// A flag of commands, given for another type.
    fn misplaced(&self) -> Option<&'static str> {
        let flags = [("--language", self.language.is_some()), ("--mode", self.mode.is_some())];
        flags.into_iter().find(|(_, given)| *given && self.kind != HandlerType::Command).map(|(flag, _)| flag)
    }

    fn skeleton(&self, found: &LocatedWorkspace) -> HookSkeleton {
        let mut events = Vec::new();
        for kind in &self.event {
            if !events.contains(kind) {
                events.push(*kind);
            }
        }
        if events.is_empty() {
            events.push(EventKind::BeforeToolDispatch);
        }
        let request = skeleton::SkeletonRequest {
            name: &self.name,
            kind: self.kind,
            language: self.language.unwrap_or_default(),
            start: self.mode.unwrap_or_default(),
            events,
            model: found.settings.models.keys().next().map(String::as_str),
        };
        request.skeleton()
    }

    /// What to type next.
    fn next(&self, found: &LocatedWorkspace, skeleton: &HookSkeleton, trust: &NewTrust) -> Vec<String> {
        let workspace = found.flag();
        let given = self.workspace.settings.config.as_deref();
        let needs_settings = skeleton.model.is_some() || skeleton.server.is_some();
        let config = given.or(needs_settings.then_some(Path::new("hookyard.yaml")));
        let config = config.map(|config| format!(" --config {}", shell_quoted(config))).unwrap_or_default();
        let flags = workspace + &config;
        let server = skeleton.server.as_ref().map(|server| {
            let place = found.root.join(server);
            format!("python3 {} &", shell_quoted(&place))
        });
        let fire = format!("echo '{}' | hookyard fire --event -{flags}", skeleton.event);
        let check = format!("hookyard check{flags}");
        let trust = match trust {
            NewTrust::Given => None,
            NewTrust::Asked => Some(format!("hookyard trust{flags}")),
            NewTrust::Digest(digest) => Some(format!("hookyard trust{flags} --yes {digest}")),
        };
        [trust, Some(check), server, Some(fire)].into_iter().flatten().collect()
    }
}

/// Checks the name. One that begins with `.` would make a hidden file, which is not read.
fn check_name(name: &str) -> Result<(), (String, &'static str)> {
    const HELP: &str = "use 1 to 64 of `A-Z a-z 0-9 . _ -`, not beginning with `.`";
    match HookName::new(name) {
        Err(error) => Err((format!("NAME {error}"), HELP)),
        Ok(_) if name.starts_with('.') => Err((format!("NAME `{name}` begins with `.`"), HELP)),
        Ok(_) => Ok(()),
    }
}

/// What was written, and what to do next.
struct NewSummary<'a> {
    new: &'a NewCommand,
    found: &'a LocatedWorkspace,
    chosen: WorkspaceOrigin,
    skeleton: &'a HookSkeleton,
    written: &'a [FileResult],
    next: &'a [String],
}

impl NewSummary<'_> {
    fn print(&self, screen: &Screen) -> Result<(), CliError> {
        if self.new.output.json {
            screen.print_json(&self.report())
        } else {
            screen.print(&self.page(screen))
        }
    }

    fn with(&self, status: FileStatus) -> Vec<&Path> {
        let of = |written: &&FileResult| written.status == status;
        self.written.iter().filter(of).map(|written| written.path.as_path()).collect()
    }

    /// The entry that the settings need, unless they have the model, or allow the server.
    fn entry(&self) -> Option<String> {
        if self.skeleton.server.is_some() {
            let allow = &self.found.settings.http.allow;
            return (!allow.contains(&skeleton::server_target())).then(skeleton::settings_for_server);
        }
        let model = self.skeleton.model.as_deref()?;
        (!self.found.settings.models.contains_key(model)).then(|| skeleton::settings_for(model))
    }

    fn report(&self) -> serde_json::Value {
        let entry = self.entry();
        let mut kept = self.with(FileStatus::Kept);
        kept.extend(self.with(FileStatus::KeptDifferent));
        let written = self.with(FileStatus::Written);
        let report = NewReport {
            name: &self.new.name,
            workspace: self.found.root.to_string_lossy(),
            chosen: match self.chosen {
                WorkspaceOrigin::Given => "given",
                WorkspaceOrigin::Nearest => "nearest",
                WorkspaceOrigin::CurrentDirectory => "here",
            },
            written: path_texts(&written),
            kept: path_texts(&kept),
            model: self.skeleton.model.as_deref(),
            settings: entry.as_deref(),
            event: &self.skeleton.event,
            next: self.next,
        };
        serde_json::to_value(report).unwrap_or_default()
    }

    fn page(&self, screen: &Screen) -> String {
        let mut page = Page::default();
        let why = match self.chosen {
            WorkspaceOrigin::Given => "as given",
            WorkspaceOrigin::Nearest => "the nearest with hooks",
            WorkspaceOrigin::CurrentDirectory => "the current directory: neither it nor one above has hooks",
        };
        let place = format!("workspace {} ({why})", escape::path(&self.found.root));
        page.line(&wrap::hanging(&place, screen.table_width(), 2));
        for FileResult { path, status } in self.written {
            page.line(&format!("{} {}", screen.out.paint.green(status.as_str()), display_path(path)));
            if *status == FileStatus::KeptDifferent {
                let note = "note: it differs from the one of this version; to replace it, remove it and run this again";
                page.line(&wrap::hanging(&format!("  {note}"), screen.table_width(), 2));
            }
        }
        for remark in &self.skeleton.remarks {
            page.line(&format!("\n{}", wrap::hanging(remark, screen.table_width(), 0)));
        }
        if let Some(entry) = self.entry() {
            let what = if self.skeleton.server.is_some() {
                "Hooks of a workspace may not ask servers on this machine unless the settings allow it. Add this to \
                 the settings, for example to `hookyard.yaml`, and pass `--config hookyard.yaml`:"
            } else {
                "Add this model to the settings, for example to `hookyard.yaml`, and pass \
                 `--config hookyard.yaml`; or change `model_ref` to a model of the settings:"
            };
            page.line(&format!("\n{}\n\n{}", wrap::hanging(what, screen.table_width(), 0), indented(&entry)));
        } else if let Some(model) = &self.skeleton.model {
            let what = format!("It uses the model `{}` of the settings.", escape::line(model));
            page.line(&format!("\n{}", wrap::hanging(&what, screen.table_width(), 0)));
        }
        page.line("\nNext:");
        for command in self.next {
            page.line(&format!("  {}", escape::line(command)));
        }
        page.into_text()
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

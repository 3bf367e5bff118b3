//! `new`: a hook file and what it runs, to be changed into one's own. Owns what can be asked for and what is told
//! afterwards; refuses to overwrite anything, and runs nothing.

mod files;
mod skeleton;

use std::path::{Path, PathBuf};

use clap::{
    Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use serde::Serialize;

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{JsonFlag, WorkspaceFlags},
    page::Page,
    paths::{display_path, shell_quoted},
    screen::Screen,
    workspace::{LocatedWorkspace, WorkspaceOrigin},
    wrap,
};
use crate::{
    dialect::OPENHARNESS_KINDS,
    model::{EventKind, HookName, Severity},
};
use files::{FileResult, FileStatus};
use skeleton::HookSkeleton;

const EXAMPLES: &str = "\
Examples:
  hookyard new my-guard
  hookyard new my-guard --type command --language python --mode worker
  hookyard new end-of-run --event run_completed,run_failed --language node
  hookyard new judge --type prompt --config hookyard.yaml --workspace ~/projects/shop

What is written passes the check, and blocks one made-up command or
tells that it saw the event. Files that are there already are never
overwritten.";

/// Writes a hook file and a script that work at once
///
/// They come into `.openharness/hooks/` of the workspace, with the schema that lets an editor help with the hook
/// file; for `--mode worker` also the functions that speak the worker protocol.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NewCommand {
    /// The hook's name: 1 to 64 of `A-Z a-z 0-9 . _ -`, not beginning with `.`
    #[arg(value_name = "NAME")]
    name: String,

    /// What the hook is
    #[arg(long = "type", short = 't', value_name = "TYPE", default_value = "command")]
    kind: HandlerType,

    /// What the script of a command is written in; `sh` if left out
    #[arg(long, short, value_name = "LANGUAGE")]
    language: Option<ScriptLanguage>,

    /// The events it runs for, several with commas or again; `before_tool_dispatch` if left out
    #[arg(long, short, value_name = "KIND", value_delimiter = ',', value_parser = kinds())]
    event: Vec<EventKind>,

    /// How the process of a command is started; `oneshot` if left out
    #[arg(long, short, value_name = "MODE")]
    mode: Option<ProcessMode>,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

fn kinds() -> impl TypedValueParser<Value = EventKind> {
    let names = OPENHARNESS_KINDS.iter().map(|kind| kind.as_str());
    PossibleValuesParser::new(names).try_map(|name| EventKind::from_name(&name).ok_or("no kind of event"))
}

/// The types of handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum HandlerType {
    /// A program
    Command,
    /// A request to a web server
    Http,
    /// A question to a language model
    Prompt,
    /// A task for an agent
    Agent,
}

/// The languages of scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum ScriptLanguage {
    /// The POSIX shell; with `--mode worker` it needs `jq`
    #[default]
    Sh,
    /// Python 3
    Python,
    /// JavaScript, for Node
    Node,
}

/// How a command's process is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum ProcessMode {
    /// One for each event
    #[default]
    Oneshot,
    /// One for each event, started before it
    Prespawn,
    /// One for many events
    Worker,
}

/// What was done, as programs see it.
#[derive(Serialize)]
struct NewReport<'a> {
    name: &'a str,
    workspace: &'a Path,
    chosen: &'static str,
    written: Vec<&'a Path>,
    kept: Vec<&'a Path>,
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
            let help = "leave it out, or write `--type command`";
            screen.error(&format!("`{flag}` is for hooks of `--type command`"), Some(help));
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
            let what = format!("there is a hook `{}` already, in {place}", self.name);
            return Err(CliError::with_help(
                what,
                "choose another name: of two hooks with one name none runs",
            ));
        }
        let skeleton = self.skeleton(&found)?;
        let written = files::write(&found.root, &skeleton.files)?;
        let next = self.next(&found, &skeleton);
        let told = NewSummary {
            new: &self,
            found: &found,
            chosen,
            skeleton: &skeleton,
            written: &written,
            next: &next,
        };
        told.tell(screen)?;
        // Other hooks' mistakes are theirs; that no hook of the workspace runs concerns the new one.
        let mut after = found.load();
        after.diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Info);
        found.note_problems(&after.diagnostics, &after.files, screen);
        Ok(Exit::Done)
    }

    /// A flag that is for another type.
    fn misplaced(&self) -> Option<&'static str> {
        let flags = [("--language", self.language.is_some()), ("--mode", self.mode.is_some())];
        flags.into_iter().find(|(_, given)| *given && self.kind != HandlerType::Command).map(|(flag, _)| flag)
    }

    fn skeleton(&self, found: &LocatedWorkspace) -> Result<HookSkeleton, CliError> {
        let mut events = self.event.clone();
        if events.is_empty() {
            events.push(EventKind::BeforeToolDispatch);
        }
        let mut seen = Vec::new();
        events.retain(|kind| {
            !seen.contains(kind) && {
                seen.push(*kind);
                true
            }
        });
        let order = skeleton::SkeletonRequest {
            name: &self.name,
            kind: self.kind,
            language: self.language.unwrap_or_default(),
            start: self.mode.unwrap_or_default(),
            events,
            model: found.settings.models.keys().next().map(String::as_str),
        };
        order.skeleton().map_err(|error| CliError::new(format!("the schema cannot be written: {error}")))
    }

    /// What to type next.
    fn next(&self, found: &LocatedWorkspace, skeleton: &HookSkeleton) -> Vec<String> {
        let workspace = found.flag();
        let given = self.workspace.settings.config.as_deref();
        let config = given.or(skeleton.model.as_ref().map(|_| Path::new("hookyard.yaml")));
        let config = config.map(|config| format!(" --config {}", shell_quoted(config))).unwrap_or_default();
        let flags = workspace + &config;
        let server = skeleton.server.as_ref().map(|server| {
            let place = found.root.join(server);
            format!("python3 {} &", shell_quoted(&place))
        });
        let fire = format!("echo '{}' | hookyard fire --event -{flags}", skeleton.event);
        let check = format!("hookyard check{flags}");
        [Some(check), server, Some(fire)].into_iter().flatten().collect()
    }
}

/// Refuses what is no name, or would make a hidden file, which is no hook file.
fn check_name(name: &str) -> Result<(), (String, &'static str)> {
    const HELP: &str = "use 1 to 64 of `A-Z a-z 0-9 . _ -`, not beginning with `.`";
    match HookName::new(name) {
        Err(error) => Err((format!("NAME {error}"), HELP)),
        Ok(_) if name.starts_with('.') => Err((format!("NAME `{name}` begins with `.`"), HELP)),
        Ok(_) => Ok(()),
    }
}

/// What was done, and how to go on.
struct NewSummary<'a> {
    new: &'a NewCommand,
    found: &'a LocatedWorkspace,
    chosen: WorkspaceOrigin,
    skeleton: &'a HookSkeleton,
    written: &'a [FileResult],
    next: &'a [String],
}

impl NewSummary<'_> {
    fn tell(&self, screen: &Screen) -> Result<(), CliError> {
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

    /// The entry that the settings need, unless the model is one of theirs.
    fn entry(&self) -> Option<String> {
        let model = self.skeleton.model.as_deref()?;
        (!self.found.settings.models.contains_key(model)).then(|| skeleton::settings_for(model))
    }

    fn report(&self) -> serde_json::Value {
        let entry = self.entry();
        let mut kept = self.with(FileStatus::Kept);
        kept.extend(self.with(FileStatus::KeptOther));
        let report = NewReport {
            name: &self.new.name,
            workspace: &self.found.root,
            chosen: match self.chosen {
                WorkspaceOrigin::Given => "given",
                WorkspaceOrigin::Nearest => "nearest",
                WorkspaceOrigin::Here => "here",
            },
            written: self.with(FileStatus::Written),
            kept,
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
            WorkspaceOrigin::Here => "the current directory: neither it nor one above has hooks",
        };
        let place = format!("workspace {} ({why})", escape::path(&self.found.root));
        page.line(&wrap::hanging(&place, screen.table_width(), 2));
        for FileResult { path, status } in self.written {
            page.line(&format!("{} {}", screen.out.paint.green(status.as_str()), display_path(path)));
            if *status == FileStatus::KeptOther {
                let note =
                    "note: it is not the one of this version; remove it and run this again to have that";
                page.line(&wrap::hanging(&format!("  {note}"), screen.table_width(), 2));
            }
        }
        for remark in &self.skeleton.remarks {
            page.line(&format!("\n{}", wrap::hanging(remark, screen.table_width(), 0)));
        }
        if let Some(entry) = self.entry() {
            let what = "The settings must have this model, or another one that `model_ref` then names. In \
                        `hookyard.yaml`, say, which `--config hookyard.yaml` names:";
            page.line(&format!("\n{}\n\n{}", wrap::hanging(what, screen.table_width(), 0), indented(&entry)));
        } else if let Some(model) = &self.skeleton.model {
            let what = format!("It asks the model `{}` of the settings.", escape::line(model));
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

/// A path below the directory of hooks.
fn in_hooks(rest: &str) -> PathBuf {
    Path::new(".openharness/hooks").join(rest)
}

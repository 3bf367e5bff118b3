//! `bundle diff`: what is different between two archives, by hooks and by files.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Serialize;
use similar::TextDiff;

use super::{
    super::{
        escape,
        exit::{CliError, CliResult, Exit},
        flags::JsonFlag,
        paint::Paint,
        screen::Screen,
        table::Page,
    },
    signed_file::{BundleOnDisk, refused},
};
use crate::{
    bundle::{BundleChanges, BundlePath, VerifiedBundle, changes_between},
    config,
    model::Hook,
};

/// The largest file whose lines are compared, in bytes.
const LARGEST_TEXT: usize = 256 << 10;

const FOOTER: &str = "\
Examples:
  hookyard bundle diff guards-411.tar.gz guards-412.tar.gz
  hookyard bundle diff guards-411.tar.gz guards-412.tar.gz --json | jq '.hooks.changed'

Exit codes: 0 nothing is different; 1 something is.";

/// Show what is different between two archives
///
/// Names the hooks that are new, gone or changed, and shows the lines of their files. Checks no signature.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct DiffAction {
    /// The archive before
    #[arg(value_name = "A")]
    before: PathBuf,

    /// The archive after
    #[arg(value_name = "B")]
    after: PathBuf,

    #[command(flatten)]
    output: JsonFlag,
}

/// What is different, by the names of hooks and the paths of files.
#[derive(Debug, Default, Serialize)]
struct DiffReport {
    before: String,
    after: String,
    hooks: NameChanges,
    files: NameChanges,
    required: NameChanges,
    expires: [Option<String>; 2],
    min_hookyard: [String; 2],
}

#[derive(Debug, Default, Serialize)]
struct NameChanges {
    added: Vec<String>,
    removed: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<String>,
}

impl NameChanges {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    fn lines(&self, page: &mut Page, label: &str, paint: Paint) {
        let marked = [("+", &self.added), ("-", &self.removed), ("~", &self.changed)];
        for (mark, names) in marked {
            for name in names {
                let line = format!("{mark} {label} {}", escape::line(name));
                page.line(&match mark {
                    "+" => paint.green(&line),
                    "-" => paint.red(&line),
                    _ => paint.yellow(&line),
                });
            }
        }
    }
}

impl DiffAction {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let before = BundleOnDisk::read(&self.before)?;
        let after = BundleOnDisk::read(&self.after)?;
        let changes = changes_between(&before.bundle, &after.bundle);
        let hooks = hook_changes(
            &hooks_of(&before.bundle, &self.before)?,
            &hooks_of(&after.bundle, &self.after)?,
            &changes,
        );
        let report = DiffReport {
            before: before.title(),
            after: after.title(),
            hooks,
            files: NameChanges {
                added: texts(&changes.added),
                removed: texts(&changes.removed),
                changed: texts(&changes.changed),
            },
            required: NameChanges {
                added: changes.newly_required.clone(),
                removed: changes.no_longer_required.clone(),
                changed: Vec::new(),
            },
            expires: [&before, &after]
                .map(|found| found.bundle.manifest.expires.map(|moment| moment.to_string())),
            min_hookyard: [&before, &after].map(|found| found.bundle.manifest.min_hookyard.clone()),
        };
        if self.output.json {
            screen.print_json(&report)?;
        } else {
            screen.print(&view(&report, &changes, (&before.bundle, &after.bundle), screen))?;
        }
        let is_same = before.archive == after.archive;
        Ok(if is_same { Exit::Done } else { Exit::Failed })
    }
}

/// The hooks by their names, each with the digest of its definition and its file.
type KnownHooks = BTreeMap<String, (Option<String>, String)>;

fn hooks_of(bundle: &VerifiedBundle, file: &Path) -> Result<KnownHooks, CliError> {
    let environment = |name: &str| std::env::var(name).ok();
    let checked = config::check_bundle(bundle, &super::signed_file::settings_of_maker(), &environment);
    let hooks = checked.map_err(|refusal| refused(file, &refusal))?.hooks;
    Ok(hooks.iter().map(|hook| (hook.name.to_string(), known(hook))).collect())
}

/// The digest of the definition, and the directory of the workspace in the bundle, whose scripts it may run.
fn known(hook: &Hook) -> (Option<String>, String) {
    let file = hook.source.file.as_deref().unwrap_or(Path::new(""));
    let root = file.ancestors().find(|above| above.ends_with(".openharness")).and_then(Path::parent);
    let name = root.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    (hook.execution.definition.as_deref().map(str::to_owned), name)
}

/// A hook whose definition is the same has changed if a script beside it has.
fn hook_changes(before: &KnownHooks, after: &KnownHooks, files: &BundleChanges) -> NameChanges {
    let has_new_script = |directory: &str| {
        let touched = files.changed.iter().chain(&files.added).chain(&files.removed);
        let mut scripts = touched.filter(|path| !path.as_str().contains(".openharness/hooks/"));
        scripts.any(|path| path.as_str().split('/').next() == Some(directory))
    };
    let mut changes = NameChanges::default();
    for (name, (digest, directory)) in after {
        match before.get(name) {
            None => changes.added.push(name.clone()),
            Some((known, _)) if known != digest => changes.changed.push(name.clone()),
            Some(_) if has_new_script(directory) => changes.changed.push(format!("{name} (files beside it)")),
            Some(_) => {}
        }
    }
    changes.removed = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
    changes
}

fn texts(paths: &[BundlePath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

fn view(
    report: &DiffReport,
    changes: &BundleChanges,
    (before, after): (&VerifiedBundle, &VerifiedBundle),
    screen: &Screen,
) -> String {
    let paint = screen.out.paint;
    let mut page = Page::default();
    page.line(&paint.bold(&format!("{} -> {}", report.before, report.after)));
    report.hooks.lines(&mut page, "hook", paint);
    report.required.lines(&mut page, "required", paint);
    report.files.lines(&mut page, "file", paint);
    let [former, new] = &report.expires;
    if former != new {
        let shown = |moment: &Option<String>| moment.clone().unwrap_or_else(|| "never".to_owned());
        page.line(&format!("~ expires {} -> {}", shown(former), shown(new)));
    }
    if report.hooks.is_empty() && report.files.is_empty() && report.required.is_empty() {
        page.line("no hook and no file is different");
    }
    for path in &changes.changed {
        let text = |bundle: &VerifiedBundle| {
            let file = bundle.files.iter().find(|file| file.path == *path)?;
            (file.bytes.len() <= LARGEST_TEXT).then(|| String::from_utf8(file.bytes.clone()).ok())?
        };
        let (Some(old), Some(new)) = (text(before), text(after)) else { continue };
        let lines = TextDiff::from_lines(&old, &new).unified_diff().context_radius(2).to_string();
        page.line(&paint.bold(&format!("\n{path}")));
        page.block(&escape::block(&lines, 0));
    }
    page.into_text()
}

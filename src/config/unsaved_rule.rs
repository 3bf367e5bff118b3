//! The text of a rule hook: as it is in force, and as it would be read if it were saved.

use std::{collections::BTreeSet, path::Path};

use super::{
    Settings, account::referenced_variable, digests::sha256, discover::WORKSPACE_DIRECTORY,
    hook_checks::configure, resolver::ReferenceSources, workspace_files::WorkspaceFiles,
};
use crate::{
    dialect::Document,
    model::{Diagnostic, DialectName, Handler, Hook, Scope, Workspace},
    registry::Snapshot,
    root_dir::LastLink,
};

/// Why the text of a rule hook is not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoRuleText {
    /// Its rules are not in a file of their own.
    #[error("`{0}` is no rule of a hook file")]
    NoRule(String),
    /// The file is not the one that was loaded.
    #[error("the file of `{0}` is not as it was loaded")]
    Changed(String),
    /// It cannot be read.
    #[error("the file of `{0}` cannot be read: {1}")]
    Unreadable(String, String),
}

/// The text of a rule hook, as it is in force. Reads its file.
///
/// Returns an error if the file is not as it was loaded.
pub(crate) fn rule_text(hook: &Hook, of_snapshot: &Workspace) -> Result<String, NoRuleText> {
    let name = hook.name.to_string();
    let is_rule = matches!(hook.handler, Handler::Rule(_)) && hook.dialect.name() == DialectName::OpenHarness;
    let Some(file) = hook.source.file.as_deref().filter(|_| is_rule) else {
        return Err(NoRuleText::NoRule(name));
    };
    let root = hook.workspace(of_snapshot).root.clone();
    // Hooks of bundles and of the machine are in directories of their own.
    let root = if file.starts_with(&root) { Some(root) } else { workspace_of(file) };
    let workspace =
        root.ok_or_else(|| std::io::ErrorKind::NotFound.into()).and_then(|root| WorkspaceFiles::open(&root));
    let read = workspace.map_err(|error| crate::model::io_reason(&error)).and_then(|workspace| {
        workspace.read(file.to_owned(), LastLink::Refused).map_err(|diagnostic| diagnostic.message)
    });
    let bytes = match read {
        Ok(file) => file.bytes,
        Err(why) => return Err(NoRuleText::Unreadable(name, why)),
    };
    if hook.execution.definition.as_deref() != Some(&sha256(&bytes)) {
        return Err(NoRuleText::Changed(name));
    }
    String::from_utf8(bytes).map_err(|_| NoRuleText::NoRule(name))
}

/// The directory whose hook file a file is.
fn workspace_of(file: &Path) -> Option<std::path::PathBuf> {
    let own = file.ancestors().find(|above| above.ends_with(WORKSPACE_DIRECTORY))?;
    own.parent().map(Path::to_owned)
}

/// A text that was read as a rule hook.
#[derive(Debug)]
pub(crate) enum UnsavedRule {
    /// The hook, with what looks wrong in it.
    Read(Box<Hook>, Vec<Diagnostic>),
    /// What is wrong with it.
    Wrong(Vec<Diagnostic>),
    /// It has a handler of another type.
    OtherHandler(String),
}

/// Reads a text as the hook file that it would be in a workspace, in the place of a hook that is in force, if there is one.
/// Nothing is kept, and secrets are not looked up.
pub(crate) fn read_unsaved_rule(
    text: &str,
    replaced: Option<&Hook>,
    snapshot: &Snapshot,
    settings: &Settings,
) -> UnsavedRule {
    let of_snapshot = snapshot.workspace();
    let workspace = replaced.map_or(&**of_snapshot, |hook| hook.workspace(of_snapshot));
    let new = || workspace.root.join(WORKSPACE_DIRECTORY).join("hooks/unsaved.yaml").into();
    let file = replaced.and_then(|hook| hook.source.file.clone()).unwrap_or_else(new);
    if let Some(other) = handler_type(text.as_bytes(), &file).filter(|kind| kind != "rule") {
        return UnsavedRule::OtherHandler(other);
    }
    let environment = &|name: &str| referenced_variable(settings, &|name| std::env::var(name).ok(), name);
    let project_roots = snapshot.project_roots();
    let sources = ReferenceSources { workspace, settings, environment, models: &|_| false, project_roots };
    let key = (file.to_path_buf(), DialectName::OpenHarness, Scope::Project, None);
    let (hooks, mut diagnostics) = sources.read(text.as_bytes(), &key, BTreeSet::new());
    let mut hooks: Vec<Hook> = hooks.into_iter().collect();
    diagnostics.extend(configure(&mut hooks, &settings.handlers));
    let Some(mut hook) = hooks.pop() else { return UnsavedRule::Wrong(diagnostics) };
    if !matches!(hook.handler, Handler::Rule(_)) {
        return UnsavedRule::OtherHandler(hook.handler.kind().to_string());
    }
    if let Some(replaced) = replaced {
        let (variables, source) = (hook.execution.variables, replaced.source.clone());
        hook.execution = replaced.execution.clone();
        (hook.execution.variables, hook.execution.definition) = (variables, None);
        hook.source = crate::model::HookSource { content: None, ..source };
    }
    UnsavedRule::Read(Box::new(hook), diagnostics)
}

/// The type of the handler in a hook file, as it is written.
fn handler_type(bytes: &[u8], file: &Path) -> Option<String> {
    let document = Document::parse(bytes, file).ok()?;
    let handler = document.root()?.get("handler")?.as_mapping()?;
    handler.get("type")?.as_text().map(str::to_owned)
}

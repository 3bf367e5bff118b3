//! What policies in Rego are given of an event: the JSON that the hooks of its agent get, and beside it the canonical names.

use std::borrow::Cow;

use serde::Deserialize;

use super::super::{catalog::named, event_table::FACT_FIELDS};
use crate::{
    model::{Dialect, DialectName, Draft, Json, Target, Workspace},
    rule::{
        normalized_path,
        rego::{InputField, PolicyInput},
    },
};

/// The keys of a tool's input that name the file it is about.
#[derive(Deserialize, Default)]
struct FileKeys<'j> {
    #[serde(borrow, default)]
    file_path: Option<Cow<'j, str>>,
    #[serde(borrow, default)]
    notebook_path: Option<Cow<'j, str>>,
    #[serde(borrow, default)]
    path: Option<Cow<'j, str>>,
}

/// What policies are given of an event, in the form of a dialect or in that of its host.
pub(super) fn of(draft: &Draft, place: &Workspace, form: Option<DialectName>) -> PolicyInput {
    let host = draft.event().dialect;
    let dialect: &dyn Dialect = match form.unwrap_or(host) {
        // Its events are written for hooks as those of OpenHarness are.
        DialectName::Canonical => named(DialectName::OpenHarness),
        form => named(form),
    };
    PolicyInput { document: dialect.envelope(draft, place), more: canonical(draft, place) }
}

/// The canonical names and their values.
fn canonical(draft: &Draft, place: &Workspace) -> Vec<(&'static str, InputField)> {
    let event = draft.event();
    let workspace_id = event.workspace_id.as_ref().unwrap_or(&place.id);
    let root = place.root.to_string_lossy();
    let cwd = event.cwd.as_deref().unwrap_or(&root);
    let mut more = vec![
        ("event", text(event.kind.as_str())),
        ("agent_dialect", text(event.dialect.as_str())),
        ("workspace_id", text(workspace_id.as_str())),
        ("workspace_root", text(&root)),
        ("session_id", text(event.session_id.as_str())),
        ("run_id", text(event.run_id.as_str())),
        ("cwd", text(cwd)),
    ];
    more.extend(event.tool_call_id.as_ref().map(|id| ("tool_call_id", text(id.as_str()))));
    let facts = FACT_FIELDS.iter().filter_map(|fact| Some((fact.name, text((fact.get)(&event.attributes)?))));
    more.extend(facts);
    if let Some((written, path)) = draft.target(Target::ToolInput).and_then(|input| file_of(input, cwd)) {
        more.push(("original_file_path", InputField::Text(written)));
        more.push(("resolved_file_path", InputField::Text(path)));
    }
    let targets = Target::ALL.into_iter().filter_map(|target| Some((target, draft.target(target)?)));
    more.extend(targets.map(|(target, json)| (target.as_str(), InputField::Json(json.clone()))));
    more
}

fn text(text: &str) -> InputField {
    InputField::Text(text.to_owned())
}

/// The file that a tool's input names, as it is written, and from the working directory on. Symbolic links are not followed:
/// policies read nothing but the event.
fn file_of(input: &Json, cwd: &str) -> Option<(String, String)> {
    let keys: FileKeys<'_> = serde_json::from_str(input.as_str()).ok()?;
    let written = keys.file_path.or(keys.notebook_path).or(keys.path)?;
    let path = normalized_path(&written, cwd);
    Some((written.into_owned(), path))
}

//! Where a rule would stand, and the text of its file.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    super::{connect::AgentSettingsFile, guard::GuardFailures},
    key::key_of,
};
use crate::{
    dialect::{Document, Value},
    model::{Delivery, DialectName, Frequency, Handler, Hook, Literals, Scope},
    registry::Snapshot,
};

/// Where hook files are in a workspace.
const DIRECTORY: &str = ".openharness/hooks";

/// Where a rule would stand.
#[derive(Debug)]
pub(super) enum RulePlace {
    /// In the file of the hook, in place of its handler.
    InFile { before: String, path: PathBuf },
    /// In a new file, and the hook is switched off in the settings, which have this name for it.
    Instead { path: PathBuf, key: String },
    /// Nowhere that can be written: why.
    ByHand(String),
}

/// A hook file.
#[derive(Serialize)]
struct RuleHookFile<'a> {
    name: &'a str,
    events: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<String>,
    handler: serde_yaml::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_error: Option<&'static str>,
}

/// The text of the file that would have the rule, and where it is.
pub(super) fn written_as(
    hook: &Hook,
    handler: &serde_yaml::Value,
    failures: GuardFailures,
    snapshot: &Snapshot,
    root: &Path,
) -> Result<(String, RulePlace), String> {
    let is_of_here = matches!(hook.source.scope, Scope::Project | Scope::Local) && hook.distance() == 0;
    if !is_of_here {
        return Err("the hook is not of this workspace".to_owned());
    }
    if hook.dialect.name() == DialectName::OpenHarness {
        let file = hook.source.file.as_deref().ok_or("the hook has no file")?;
        let path = root.join(file);
        let is_yaml = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
        let read = AgentSettingsFile::read(&path, root).map_err(|_| "its file cannot be replaced")?;
        let before = read.bytes.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|_| is_yaml);
        let before = before.ok_or("its file is not in YAML")?;
        let after = replaced(&before, &path, handler, failures)
            .ok_or("its file is written in a way that is not changed safely")?;
        return Ok((after, RulePlace::InFile { before, path }));
    }
    let execution = &hook.execution;
    let is_plain = execution.condition.is_none()
        && execution.host_event.is_none()
        && execution.plugin.is_none()
        && execution.frequency == Frequency::Always
        && execution.delivery == Delivery::Awaited;
    if !is_plain {
        return Err("its settings say more of when it runs than a hook file can".to_owned());
    }
    let matcher = match hook.matcher.as_ref().map(|matcher| matcher.literals()) {
        None => None,
        Some(Some(Literals::Exact(names))) => {
            let names: BTreeSet<String> = names.iter().map(|name| regex_syntax::escape(name)).collect();
            let names: Vec<String> = names.into_iter().collect();
            Some(format!("^({})$", names.join("|")))
        }
        Some(_) => return Err("its matcher is more than names of tools".to_owned()),
    };
    let name = free_name(hook, snapshot, root);
    let text = hook_file(hook, &name, matcher, handler.clone(), failures)?;
    let path = root.join(DIRECTORY).join(format!("{name}.yaml"));
    Ok((text, RulePlace::Instead { path, key: key_of(hook, snapshot) }))
}

/// The text of a hook file with a rule.
fn hook_file(
    hook: &Hook,
    name: &str,
    matcher: Option<String>,
    handler: serde_yaml::Value,
    failures: GuardFailures,
) -> Result<String, String> {
    let on_error = match failures {
        GuardFailures::As(policy) => policy,
        GuardFailures::AsBefore => hook.on_error,
    };
    let file = RuleHookFile {
        name,
        events: hook.events.iter().map(|kind| kind.as_str().to_owned()).collect(),
        matcher,
        handler,
        on_error: Some(on_error.as_str()),
    };
    serde_yaml::to_string(&file).map_err(|error| format!("it cannot be written: {error}"))
}

/// A name for a new hook: that of its script, or else its own.
fn free_name(hook: &Hook, snapshot: &Snapshot, root: &Path) -> String {
    let script = match &hook.handler {
        Handler::Command(command) => command.line.scripts().first().map(|script| (*script).to_owned()),
        _ => None,
    };
    let stem =
        script.as_deref().and_then(|script| Path::new(script).file_stem()?.to_str().map(str::to_owned));
    let stem = stem.unwrap_or_else(|| hook.name.as_str().to_owned());
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let stem: String =
        stem.chars().map(plain).collect::<String>().trim_matches('-').chars().take(48).collect();
    let is_free = |name: &String| {
        let file = root.join(DIRECTORY).join(format!("{name}.yaml"));
        file.symlink_metadata().is_err()
            && !snapshot.hooks().iter().any(|known| known.hook.name.as_str() == name)
    };
    let numbered = (2..100).map(|number| format!("{stem}-{number}"));
    std::iter::once(stem.clone()).chain(numbered).find(is_free).unwrap_or(stem)
}

/// A hook file with a rule in place of its handler; everything else stays. None if that cannot be done safely.
pub(in crate::cli) fn replaced(
    before: &str,
    path: &Path,
    handler: &serde_yaml::Value,
    failures: GuardFailures,
) -> Option<String> {
    let document = Document::parse(before.as_bytes(), path).ok()?;
    let value = document.root()?.get("handler")?;
    let written = serde_yaml::to_string(handler).ok()?;
    let lines: Vec<String> = written.lines().map(|line| format!("  {line}")).collect();
    let start = start_of_line(before, &value)?;
    let kept = before[..start + length_of_block(&before[start..])].trim_end().len();
    let rest = &before[kept..];
    let mut after = format!("{}handler:\n{}", &before[..start], lines.join("\n"));
    after.push_str(if rest.is_empty() { "\n" } else { rest });
    let on_error = document.root()?.get("on_error").is_some();
    if let (GuardFailures::As(policy), false) = (failures, on_error) {
        if !after.ends_with('\n') {
            after.push('\n');
        }
        after.extend(["on_error: ", policy.as_str(), "\n"]);
    }
    is_meant(before, &after, handler).then_some(after)
}

/// How long the first key of a text is, with its value: the lines that follow and begin with a blank, or are empty.
fn length_of_block(text: &str) -> usize {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().map_or(0, str::len);
    let more = lines.take_while(|line| line.starts_with([' ', '\t', '\n', '\r']));
    first + more.map(str::len).sum::<usize>()
}

/// Where the line with the key begins, if the key begins it.
fn start_of_line(text: &str, value: &Value<'_>) -> Option<usize> {
    let key = value.key_span().range().start;
    let start = text[..key].rfind('\n').map_or(0, |at| at + 1);
    (start == key).then_some(start)
}

/// Whether a changed file says the same as before, but for its handler and its policy.
fn is_meant(before: &str, after: &str, handler: &serde_yaml::Value) -> bool {
    let read = |text: &str| serde_yaml::from_str::<serde_yaml::Mapping>(text).ok();
    let (Some(mut was), Some(mut is)) = (read(before), read(after)) else { return false };
    let has_handler = is.remove("handler").as_ref() == Some(handler);
    was.remove("handler");
    if !was.contains_key("on_error") {
        is.remove("on_error");
    }
    has_handler && was == is
}

//! What a workspace is for, whose hooks it runs, and which hooks it must have.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use crate::{
    dialect::{Mapping, NativeDialect, Value, natives},
    model::{
        Delivery, Diagnostic, DialectName, EventKind, FailurePolicy, Frequency, Hook, HookName, Severity,
        Workspace, WorkspaceId,
    },
    registry::{MissingHook, RequiredEvents},
};

/// What a workspace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkspaceKind {
    /// Work on files; hooks run.
    #[default]
    Project,
    /// Conversation; hooks never run.
    Chat,
}

impl WorkspaceKind {
    /// All kinds.
    pub(super) const ALL: [Self; 2] = [Self::Project, Self::Chat];

    /// The word for it in settings files.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Chat => "chat",
        }
    }

    /// The value of a settings file, or `None` if it is wrong, which is recorded in the document.
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|kind| (kind.as_str(), kind)))
    }
}

/// The dialects whose hooks a workspace runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DialectSelection {
    /// All of which there are hooks.
    #[default]
    Auto,
    /// These.
    Only(Vec<DialectName>),
}

impl DialectSelection {
    /// Whether hooks of a dialect run.
    pub fn has(&self, name: DialectName) -> bool {
        match self {
            Self::Auto => true,
            Self::Only(names) => names.contains(&name),
        }
    }

    /// The value of a settings file, or `None` if it is wrong, which is recorded in the document.
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        match value.as_text() {
            Some("auto") => return Some(Self::Auto),
            Some(_) => {
                value.error("dialects", "`dialects` is neither `auto` nor a list", "write `[claude]`, say");
                return None;
            }
            None => {}
        }
        let known: Vec<_> = DialectName::ALL
            .iter()
            .filter(|name| **name != DialectName::Canonical)
            .map(|name| (name.as_str(), *name))
            .collect();
        value.list()?.iter().map(|item| item.choice(&known)).collect::<Option<_>>().map(Self::Only)
    }
}

/// The keys of a requirement.
const KEYS: [&str; 4] = ["hook", "sha256", "events", "workspaces"];

/// A hook that must be in force.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequiredHook {
    /// Its name; `None` means any hook with the definition.
    pub hook: Option<HookName>,
    /// The SHA-256 of its definition, in hexadecimal digits; `None` means any.
    pub sha256: Option<String>,
    /// The events for which it is required; `None` means its own events, or all of them if it is missing.
    pub events: Option<RequiredEvents>,
    /// The ids of the workspaces in which it is required; `None` means all.
    pub workspaces: Option<Vec<String>>,
}

impl RequiredHook {
    /// A hook that is required in every workspace, for all its events.
    pub fn new(hook: HookName) -> Self {
        Self { hook: Some(hook), sha256: None, events: None, workspaces: None }
    }

    /// Its name, or one made of the digest of its definition.
    fn shown(&self) -> Option<HookName> {
        let of_digest = || HookName::new(format!("sha256.{}", self.sha256.as_deref()?.get(..16)?)).ok();
        self.hook.clone().or_else(of_digest)
    }

    /// Whether it is required in a workspace. It then is in every workspace nested in that one.
    pub fn applies_to(&self, workspace: &WorkspaceId) -> bool {
        self.workspaces.as_ref().is_none_or(|ids| ids.iter().any(|id| id == workspace.as_str()))
    }
}

impl RequiredHook {
    /// The value of a settings file, or `None` if it is wrong, which is recorded in the document.
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        if value.as_text().is_some() {
            return hook_name(value).map(Self::new);
        }
        let mapping = value.mapping()?;
        mapping.allow_only(&KEYS);
        let sha256 = match mapping.get("sha256").filter(|value| !value.is_null()) {
            Some(value) => Some(digest(&value)?),
            None => None,
        };
        let hook = match mapping.get("hook").filter(|value| !value.is_null()) {
            Some(value) => Some(hook_name(&value)?),
            None if sha256.is_some() => None,
            None => Some(hook_name(&mapping.require("hook", "hook: guard")?)?),
        };
        let events = match mapping.get("events").filter(|value| !value.is_null()) {
            Some(value) => Some(events(&value)?),
            None => None,
        };
        Some(Self { hook, sha256, events, workspaces: workspaces(&mapping)? })
    }
}

fn hook_name(value: &Value<'_>) -> Option<HookName> {
    let name = HookName::new(value.text()?);
    if let Err(error) = &name {
        let message = format!("the name of a required hook {error}");
        value.error("name", message, "write names as `hookyard list` shows them");
    }
    name.ok()
}

fn digest(value: &Value<'_>) -> Option<String> {
    let text = value.text()?;
    let is_digest = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_digest {
        let message = "`sha256` must be 64 hexadecimal digits in lower case";
        value.error("sha256", message, "copy it from `hookyard list --json`");
    }
    is_digest.then(|| text.to_owned())
}

/// The names of the events for which a hook can be required: of kinds, and of host events of the dialects.
pub(super) fn required_event_names() -> BTreeSet<&'static str> {
    let kinds = EventKind::ALL.iter().filter(|kind| kind.is_interceptor()).map(|kind| kind.as_str());
    kinds.chain(natives().flat_map(NativeDialect::stoppable_host_events)).collect()
}

/// The events of a list: kinds, and names of host events.
fn events(value: &Value<'_>) -> Option<RequiredEvents> {
    let choices: Vec<_> = required_event_names().into_iter().map(|name| (name, name)).collect();
    let mut found = RequiredEvents::default();
    for item in value.list()? {
        found.add(item.choice(&choices)?);
    }
    Some(found)
}

#[expect(clippy::option_option, reason = "no workspaces and wrong ones are different things")]
fn workspaces(mapping: &Mapping<'_>) -> Option<Option<Vec<String>>> {
    let Some(value) = mapping.get("workspaces").filter(|value| !value.is_null()) else { return Some(None) };
    let ids = value.list()?;
    ids.iter().map(|id| id.text().map(str::to_owned)).collect::<Option<_>>().map(Some)
}

/// Has the required hooks of a workspace fail closed, and returns those that are not in force, with a diagnostic
/// each. `diagnostics` are those of the load.
pub(crate) fn require(
    required: &[RequiredHook],
    workspace: &Workspace,
    outer: &[Arc<Workspace>],
    hooks: &mut [Hook],
    diagnostics: &[Diagnostic],
) -> (Vec<MissingHook>, Vec<Diagnostic>) {
    let mut missing = Vec::new();
    let is_meant = |requirement: &&RequiredHook| {
        requirement.applies_to(&workspace.id) || outer.iter().any(|outer| requirement.applies_to(&outer.id))
    };
    let mut reports = Vec::new();
    for requirement in required.iter().filter(is_meant) {
        let hook = meant_hook(hooks, requirement);
        let own = hook.as_ref().map(|hook| RequiredEvents::of(hook)).filter(|events| !events.is_empty());
        let wanted = requirement.events.clone().or(own).unwrap_or_else(RequiredEvents::all);
        let found = match hook {
            Some(hook) => {
                reports.extend(always(hook));
                missing_part(hook, requirement, wanted)
            }
            None => Some((wanted, absence(requirement, diagnostics))),
        };
        let missing_hook = |(events, why)| Some(MissingHook { hook: requirement.shown()?, events, why });
        missing.extend(found.and_then(missing_hook));
    }
    reports.extend(missing.iter().map(|missing| report(missing, &workspace.root)));
    (missing, reports)
}

/// The hook that a requirement names. Of several with the same definition, one that is in force.
fn meant_hook<'h>(hooks: &'h mut [Hook], requirement: &RequiredHook) -> Option<&'h mut Hook> {
    let is_meant = |hook: &Hook| match &requirement.hook {
        Some(name) => hook.name == *name,
        None => {
            requirement.sha256.is_some()
                && requirement.sha256.as_deref() == hook.execution.definition.as_deref()
        }
    };
    let in_force = hooks.iter().position(|hook| is_meant(hook) && defect(hook, requirement).is_none());
    let meant = in_force.or_else(|| hooks.iter().position(is_meant))?;
    hooks.get_mut(meant)
}

/// Has a required hook run for every event: one that had run would not be there for later ones. Returns a warning if
/// that changes anything.
fn always(hook: &mut Hook) -> Option<Diagnostic> {
    if hook.execution.frequency == Frequency::Always {
        return None;
    }
    hook.execution.frequency = Frequency::Always;
    let message = format!("the required hook `{}` runs for every event, not once in a run", hook.name);
    let file = hook.source.file.as_deref()?;
    let diagnostic = Diagnostic::of_file(Severity::Warning, "required-once", file, message);
    let help = "remove `once`, or take it from `required` in the operator's settings";
    Some(Diagnostic { line: hook.source.line, column: 1, ..diagnostic.help(help) })
}

/// The events for which a hook that is there is not in force, and why; for the others it fails closed from now on.
fn missing_part(
    hook: &mut Hook,
    requirement: &RequiredHook,
    wanted: RequiredEvents,
) -> Option<(RequiredEvents, String)> {
    if let Some(defect) = defect(hook, requirement) {
        return Some((wanted, defect));
    }
    hook.on_error = FailurePolicy::Deny;
    hook.on_timeout = FailurePolicy::Deny;
    hook.execution.required = true;
    let uncovered = wanted.without(&RequiredEvents::of(hook));
    (!uncovered.is_empty()).then(|| (uncovered, "these are not among its events".to_owned()))
}

/// Why a hook that is there is in force for no event.
fn defect(hook: &Hook, requirement: &RequiredHook) -> Option<String> {
    let definition = hook.execution.definition.as_deref();
    if let Some(switch) = hook.execution.switches.disabled_by.as_ref().filter(|_| !hook.enabled) {
        Some(format!("{switch} switches it off"))
    } else if !hook.enabled {
        Some("it is disabled; set `enabled: true`".to_owned())
    } else if let Some(refusal) = hook.trust.refusal() {
        Some(refusal.to_owned())
    } else if hook.execution.delivery == Delivery::Detached {
        Some("nobody waits for it; remove `async`".to_owned())
    } else if requirement.sha256.is_some() && requirement.sha256.as_deref() != definition {
        let found = definition.unwrap_or("unknown");
        Some(format!("its definition is not the required one; its SHA-256 is {found}"))
    } else {
        let feature = hook.handler.missing_feature();
        feature.map(|feature| format!("this build of hookyard lacks the feature `{feature}`"))
    }
}

/// Why no hook of a name or with a definition is loaded.
fn absence(requirement: &RequiredHook, diagnostics: &[Diagnostic]) -> String {
    let Some(name) = &requirement.hook else {
        return "no hook has this definition; add it, or remove its `sha256` from `required`".to_owned();
    };
    let errors = || diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let quoted = format!("`{name}`");
    let broken = errors().find(|error| error.message.contains(&quoted)).or_else(|| errors().next());
    match broken {
        Some(error) => format!("no hook of this name is loaded, and {error}"),
        None => "no hook has this name; add it, or remove it from `required`".to_owned(),
    }
}

fn report(missing: &MissingHook, root: &Path) -> Diagnostic {
    let message = format!("the required hook `{}` is not in force: {}", missing.hook, missing.why);
    Diagnostic::of_file(Severity::Error, Diagnostic::REQUIRED_MISSING, root, message)
        .help("its events are blocked until it is; `required` is in the operator's settings, or in the signed bundle")
}

/// What becomes of the rules of a file with hooks that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum BrokenFilePolicy {
    /// Those that it last had stay in force.
    #[default]
    Keep,
    /// The events that they guarded are blocked.
    Deny,
}

impl BrokenFilePolicy {
    /// Both policies.
    pub(in crate::config) const ALL: [Self; 2] = [Self::Keep, Self::Deny];

    /// The word for it in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Deny => "deny",
        }
    }
}

/// Whether hooks of workspaces need trust before they run. Hooks of the user's own and of managed files never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TrustPolicy {
    /// They run only as a person has agreed to.
    #[default]
    Enforce,
    /// They run as they are.
    Off,
}

impl TrustPolicy {
    /// Both policies.
    pub(in crate::config) const ALL: [Self; 2] = [Self::Enforce, Self::Off];

    /// The word for it in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Off => "off",
        }
    }
}

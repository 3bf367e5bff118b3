//! What a workspace is for, whose hooks it runs, and which hooks it must have.

use std::path::Path;

use crate::{
    dialect::{Mapping, Value},
    model::{
        Delivery, Diagnostic, DialectName, EventKind, EventKinds, FailurePolicy, Hook, HookName, Severity,
        Workspace, WorkspaceId,
    },
    registry::MissingHook,
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
const KEYS: [&str; 3] = ["hook", "events", "workspaces"];

/// A hook that must be in force.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequiredHook {
    /// Its name.
    pub hook: HookName,
    /// The interceptor events for which it is required; `None` means its own events, or all of them if it is missing.
    pub events: Option<EventKinds>,
    /// The ids of the workspaces in which it is required; `None` means all.
    pub workspaces: Option<Vec<String>>,
}

impl RequiredHook {
    /// A hook that is required in every workspace, for all its events.
    pub fn new(hook: HookName) -> Self {
        Self { hook, events: None, workspaces: None }
    }

    /// Whether it is required in a workspace.
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
        let hook = hook_name(&mapping.require("hook", "hook: guard")?)?;
        let events = match mapping.get("events").filter(|value| !value.is_null()) {
            Some(value) => Some(events(&value)?),
            None => None,
        };
        Some(Self { hook, events, workspaces: workspaces(&mapping)? })
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

/// The interceptor events of a list.
fn events(value: &Value<'_>) -> Option<EventKinds> {
    let known: Vec<EventKind> = EventKind::ALL.iter().copied().filter(|kind| kind.is_interceptor()).collect();
    let choices: Vec<_> = known.iter().map(|kind| (kind.as_str(), *kind)).collect();
    value.list()?.iter().map(|item| item.choice(&choices)).collect()
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
    hooks: &mut [Hook],
    diagnostics: &[Diagnostic],
) -> (Vec<MissingHook>, Vec<Diagnostic>) {
    let mut missing = Vec::new();
    for requirement in required.iter().filter(|requirement| requirement.applies_to(&workspace.id)) {
        let hook = hooks.iter_mut().find(|hook| hook.name == requirement.hook);
        let own = hook.as_ref().map(|hook| interceptors(hook.events)).filter(|events| !events.is_empty());
        let wanted = requirement.events.or(own).unwrap_or_else(all_interceptors);
        let found = match hook {
            Some(hook) => missing_part(hook, wanted),
            None => Some((wanted, absence(&requirement.hook, diagnostics))),
        };
        missing.extend(found.map(|(events, why)| MissingHook {
            hook: requirement.hook.clone(),
            events,
            why,
        }));
    }
    let reports = missing.iter().map(|missing| report(missing, &workspace.root)).collect();
    (missing, reports)
}

/// The events for which a hook that is there is not in force, and why; for the others it fails closed from now on.
fn missing_part(hook: &mut Hook, wanted: EventKinds) -> Option<(EventKinds, String)> {
    let defect = if let Some(switch) = hook.execution.switches.disabled_by.as_ref().filter(|_| !hook.enabled)
    {
        Some(format!("{switch} switches it off"))
    } else if !hook.enabled {
        Some("it is disabled; set `enabled: true`".to_owned())
    } else if let Some(refusal) = hook.trust.refusal() {
        Some(refusal.to_owned())
    } else if hook.execution.delivery == Delivery::Detached {
        Some("nobody waits for it; remove `async`".to_owned())
    } else {
        let feature = hook.handler.missing_feature();
        feature.map(|feature| format!("this build of hookyard lacks the feature `{feature}`"))
    };
    if let Some(defect) = defect {
        return Some((wanted, defect));
    }
    hook.on_error = FailurePolicy::Deny;
    hook.on_timeout = FailurePolicy::Deny;
    hook.execution.required = true;
    let uncovered: EventKinds = wanted.iter().filter(|kind| !hook.events.contains(*kind)).collect();
    (!uncovered.is_empty()).then(|| (uncovered, "these are not among its events".to_owned()))
}

fn interceptors(events: EventKinds) -> EventKinds {
    events.iter().filter(|kind| kind.is_interceptor()).collect()
}

fn all_interceptors() -> EventKinds {
    EventKind::ALL.iter().copied().filter(|kind| kind.is_interceptor()).collect()
}

/// Why no hook of a name is loaded.
fn absence(name: &HookName, diagnostics: &[Diagnostic]) -> String {
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
        .help("its events are blocked until it is; `required` is in the operator's settings")
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

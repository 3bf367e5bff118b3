//! The immutable hooks of one workspace at one version, in the order in which they run.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use super::{
    index::{Index, IndexBuilder},
    plan::{Explanation, Plan, SkipReason, SkippedHook, deduplicated, is_left_to_host},
    registered_hook::{MissingHook, RegisteredHook},
};
#[cfg(feature = "daemon")]
use crate::model::HookName;
use crate::model::{Event, EventKind, Hook, Level, Redactor, Workspace};

/// The hooks of one workspace at one version.
#[derive(Debug)]
pub struct Snapshot {
    version: u64,
    workspace: Arc<Workspace>,
    hooks: Vec<Arc<RegisteredHook>>,
    indexes: Vec<Index>,
    /// Of the host events that some hook names, the hooks that want them.
    host_events: HashMap<Arc<str>, Index>,
    /// The secrets of all hooks.
    redactor: Redactor,
    /// The required hooks that are not in force.
    missing: Vec<MissingHook>,
    /// A hash over the contents of its hooks.
    content: Arc<str>,
    /// The directories from which its hooks take no programs.
    project_roots: Arc<[PathBuf]>,
    /// Whether a rule of its hooks asks where links lead.
    follows_links: bool,
}

impl Snapshot {
    /// Orders the hooks and prepares their look-up.
    ///
    /// Hooks run in this order: by level (host, managed, user, outer workspaces from the outermost inwards, the workspace),
    /// in a workspace by scope (project, local), then dialect, then priority (lower first), then file, then position in
    /// the file, then name. A hook's execution policy may give it the turn of another scope.
    pub fn new(version: u64, workspace: Arc<Workspace>, mut hooks: Vec<Hook>) -> Self {
        hooks.sort_by(|a, b| {
            let turn = |hook: &Hook| hook.execution.order_scope.unwrap_or(hook.source.scope);
            let level = |hook: &Hook| match hook.source.bundle {
                Some(_) => Level::Bundle,
                None => turn(hook).level(hook.distance()),
            };
            let rank = |hook: &Hook| (level(hook), turn(hook), hook.dialect.name(), hook.priority);
            let place = |hook: &Hook| (hook.source.file.clone(), hook.source.position);
            rank(a).cmp(&rank(b)).then_with(|| place(a).cmp(&place(b))).then_with(|| a.name.cmp(&b.name))
        });
        let hooks: Vec<_> = hooks
            .into_iter()
            .enumerate()
            .map(|(rank, hook)| {
                Arc::new(RegisteredHook { rank, redactor: Redactor::of(&hook.handler), hook })
            })
            .collect();
        let indexes = EventKind::ALL.iter().map(|kind| index(*kind, None, &hooks)).collect();
        let named = hooks.iter().filter_map(|registered| registered.hook.execution.host_event.as_ref());
        let host_events =
            named.map(|name| (Arc::clone(name), index(EventKind::HostEvent, Some(name), &hooks))).collect();
        let redactor = Redactor::of_all(hooks.iter().map(|registered| &registered.hook.handler));
        let (missing, content) = (Vec::new(), Arc::default());
        let project_roots = Arc::from([workspace.root.clone()]);
        let follows_links = hooks.iter().any(|registered| registered.hook.link_needs().is_some());
        Self {
            version,
            workspace,
            hooks,
            indexes,
            host_events,
            redactor,
            missing,
            content,
            project_roots,
            follows_links,
        }
    }

    /// The same hooks, with the required ones that are not in force.
    #[must_use]
    pub(crate) fn with_missing(self, missing: Vec<MissingHook>) -> Self {
        Self { missing, ..self }
    }

    /// The same hooks, with a hash over their contents.
    #[must_use]
    pub(crate) fn with_content(self, content: Arc<str>) -> Self {
        Self { content, ..self }
    }

    /// The same hooks, with the directories of the project: its hooks take no programs from these.
    #[must_use]
    pub(crate) fn with_project_roots(self, project_roots: Arc<[PathBuf]>) -> Self {
        Self { project_roots, ..self }
    }

    /// The same with another hook in the place of the one of a name, if there is one.
    #[cfg(feature = "daemon")]
    pub(crate) fn with_hook(&self, replaced: Option<&HookName>, hook: Hook) -> Self {
        let others = self.hooks.iter().map(|registered| &registered.hook);
        let others = others.filter(|other| Some(&other.name) != replaced);
        let hooks = others.cloned().chain([hook]).collect();
        Self::new(self.version, Arc::clone(&self.workspace), hooks)
            .with_missing(self.missing.clone())
            .with_content(Arc::clone(&self.content))
            .with_project_roots(Arc::clone(&self.project_roots))
    }

    /// Whether a rule of its hooks asks where links lead.
    pub(crate) fn follows_links(&self) -> bool {
        self.follows_links
    }

    /// A hash over the definitions and scripts of its hooks: the same in every process that has the same. Empty where
    /// nobody computed it.
    pub fn content(&self) -> &Arc<str> {
        &self.content
    }

    /// The required hooks that are not in force. Their events are blocked.
    pub fn missing_hooks(&self) -> &[MissingHook] {
        &self.missing
    }

    /// A required hook whose absence blocks an event.
    pub(crate) fn missing_for(&self, event: &Event) -> Option<&MissingHook> {
        let mut missing = self.missing.iter().filter(|_| event.is_interceptor());
        missing.find(|missing| missing.blocks(event))
    }

    /// Grows with every reload; see [`content`](Self::content) for what is in force.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Where its hooks run.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Every hook, in the order in which they run.
    pub fn hooks(&self) -> &[Arc<RegisteredHook>] {
        &self.hooks
    }

    /// The directories from which its hooks take no programs.
    pub(crate) fn project_roots(&self) -> &Arc<[PathBuf]> {
        &self.project_roots
    }

    /// Removes the secrets of all hooks from texts about events, since one hook may print the secret of another.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// What runs for an event.
    pub fn plan(&self, event: &Event) -> Plan {
        let named = event.host_event.as_ref().and_then(|host| self.host_events.get(&host.name));
        let index = named.unwrap_or(&self.indexes[event.kind as usize]);
        let selected = index.select(event.match_text());
        if selected.is_empty() {
            return Plan::default();
        }
        let hooks = selected.into_iter().map(|rank| Arc::clone(&self.hooks[rank as usize]));
        let wanted = |registered: &Arc<RegisteredHook>| {
            let hook = &registered.hook;
            !is_left_to_host(hook, event, &self.workspace)
                && hook.execution.condition.as_ref().is_none_or(|condition| condition.holds(event))
        };
        let wanted = deduplicated(hooks.filter(wanted).collect());
        Plan::new(event, wanted.into_iter())
    }

    /// What runs for an event, and why the rest does not.
    pub fn explain(&self, event: &Event) -> Explanation {
        let plan = self.plan(event);
        let skip = |hook: &Arc<RegisteredHook>| {
            Some(SkippedHook {
                why: SkipReason::of(hook, event, &self.workspace, &plan)?,
                hook: Arc::clone(hook),
            })
        };
        let skipped = self.hooks.iter().filter_map(skip).collect();
        Explanation { plan, skipped }
    }
}

/// The index of a kind; of the hooks that want one host event only, those that want the named one are in it.
fn index(kind: EventKind, host_event: Option<&Arc<str>>, hooks: &[Arc<RegisteredHook>]) -> Index {
    let mut builder = IndexBuilder::default();
    for (rank, registered) in (0..).zip(hooks) {
        let hook = &registered.hook;
        let elsewhere = hook.execution.host_event.as_ref().is_some_and(|name| Some(name) != host_event);
        if !hook.enabled || !hook.events.contains(kind) || elsewhere {
            continue;
        }
        match &hook.matcher {
            Some(matcher) if hook.dialect.match_field(kind).is_some() => builder.add(matcher, rank),
            _ => builder.add_always(rank),
        }
    }
    builder.build()
}

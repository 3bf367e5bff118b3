//! When and how a hook runs, beyond its events and its matcher.

use std::{
    fmt,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Delivery, Event, OuterWorkspace, Scope};

/// When and how a hook runs, beyond the rules of its dialect.
#[derive(Debug, Clone, Default)]
pub struct ExecutionPolicy {
    /// The name of the only host event it runs for; without one, it runs for every host event.
    pub host_event: Option<Arc<str>>,
    /// A condition on the event, besides the matcher.
    pub condition: Option<Arc<dyn Condition>>,
    /// Of the hooks of one dialect with the same key, only the first runs for an event.
    pub dedup_key: Option<Arc<str>>,
    /// How often it runs.
    pub frequency: Frequency,
    /// Whether the host waits for it. A detached hook has no influence on the outcome.
    pub delivery: Delivery,
    /// Whether it may run in parallel with other hooks of its dialect.
    pub concurrency: Concurrency,
    /// How many parallel hooks of its dialect run for one event at the same time; without it, all.
    pub max_parallel: Option<NonZeroUsize>,
    /// The scope that decides its position in the order of hooks, where it is not its own.
    pub order_scope: Option<Scope>,
    /// The workspace that the hook is of, where that is around the one it runs for.
    pub outer: Option<OuterWorkspace>,
    /// The SHA-256 of its definition, in hexadecimal digits; none for native hooks.
    pub definition: Option<Arc<str>>,
    /// The variables of the environment that its definition names, with the values it was read with. With other values
    /// it is another hook.
    pub variables: Vec<(String, String)>,
    /// Whether the operator requires it: every failure of it blocks the event.
    pub required: bool,
    /// The switches of settings files that name it.
    pub switches: HookSwitches,
    /// Whether the agent in whose settings it is configured runs it itself for its own events.
    pub host_runs: HostRuns,
    /// The plugin of an agent that it is of.
    pub plugin: Option<Arc<PluginSource>>,
}

/// Whether the agent in whose settings a hook is configured runs it itself for its own events. hookyard then leaves it out
/// for these events, so that it runs once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HostRuns {
    /// Not as far as hookyard knows.
    #[default]
    Never,
    /// Not, because it does not read the file, which hookyard does.
    NotRead,
    /// In every session.
    Always,
    /// In sessions whose project is the hook's own workspace.
    InProject,
    /// In sessions that began before hookyard took the hook over, as `relay` says of each event.
    BeforeAdoption,
    /// In every session, and hookyard runs it for no event at all: it is the entry by which its agent asks hookyard.
    Entry,
}

impl HostRuns {
    /// Whether it is the agent that runs the hook now.
    pub(crate) fn is_by_agent(self) -> bool {
        matches!(self, Self::Always | Self::InProject | Self::Entry)
    }
}

impl ExecutionPolicy {
    /// Whether its agent would not find the plugin that it is of without a file.
    pub(crate) fn is_listed_in(&self, file: &Path) -> bool {
        self.plugin.as_ref().is_some_and(|plugin| plugin.listed_in.iter().any(|known| known == file))
    }
}

/// The plugin of an agent that hooks come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PluginSource {
    /// Its name for its agent.
    pub id: Arc<str>,
    /// Its name in those of its hooks.
    pub(crate) label: Arc<str>,
    /// The variables of its files.
    pub(crate) variables: Vec<PluginVariable>,
    /// The files without which its agent does not find it.
    pub(crate) listed_in: Vec<PathBuf>,
    /// Whether they are replaced in every text of its files.
    pub(crate) replaces_texts: bool,
}

/// A variable in the files of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PluginVariable {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// Whether its commands have it in their environment.
    pub(crate) is_set: bool,
}

/// The switches of settings files that name a hook.
#[derive(Debug, Clone, Default)]
pub struct HookSwitches {
    /// The one that switches it off, as key and file.
    pub disabled_by: Option<Arc<str>>,
    /// Those that would switch it off if they had the authority, as key and file.
    pub without_effect: Vec<Arc<str>>,
}

/// Two conditions are the same if they read the same.
impl PartialEq for ExecutionPolicy {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            host_event,
            condition,
            dedup_key,
            frequency,
            delivery,
            concurrency,
            max_parallel,
            order_scope,
            outer,
            // Every change that matters is in another field.
            definition: _,
            variables,
            required,
            switches,
            host_runs,
            plugin,
        } = self;
        let text = |condition: &Option<Arc<dyn Condition>>| condition.as_ref().map(|known| known.text());
        *host_event == other.host_event
            && text(condition) == text(&other.condition)
            && *dedup_key == other.dedup_key
            && *frequency == other.frequency
            && *delivery == other.delivery
            && *concurrency == other.concurrency
            && *max_parallel == other.max_parallel
            && *order_scope == other.order_scope
            && *outer == other.outer
            && *variables == other.variables
            && *required == other.required
            && switches.disabled_by == other.switches.disabled_by
            && *host_runs == other.host_runs
            && *plugin == other.plugin
    }
}

/// Whether a hook may run in parallel with other hooks of its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Concurrency {
    /// In parallel, where the dialect runs hooks in parallel.
    #[default]
    Shared,
    /// Exclusively: the hooks of its dialect run one after the other for the event.
    Exclusive,
}

/// How often a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Frequency {
    /// For every event it matches.
    #[default]
    Always,
    /// For the first such event of a run.
    OncePerRun,
}

/// A condition on an event's payload.
pub trait Condition: fmt::Debug + Send + Sync {
    /// Whether the event meets it.
    fn holds(&self, event: &Event) -> bool;

    /// Its description, as it follows "needs" in the output of `explain`.
    fn text(&self) -> String;
}

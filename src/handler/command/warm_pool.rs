//! Processes that are kept between events: the workers or spares of each hook, and for how long they are valid.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{command_files::CommandFiles, environment::stable_variables};
use crate::{
    handler::runner::Invocation,
    model::{Approval, CommandHandler, Handler, Hook, HookName},
    registry::RegisteredHook,
};

/// The processes that are kept for one hook.
pub(super) trait WarmProcesses {
    /// Whether they are of no more use, so that the next reload starts afresh.
    fn is_spent(&self) -> bool;

    /// Ends them at once, and for good.
    fn stop(&self);
}

/// Kept processes by hook. Few hooks have any, so a linear search does.
#[derive(Debug)]
pub(super) struct WarmPool<T>(Mutex<Vec<WarmEntry<T>>>);

/// The processes of one definition of one hook, in one workspace and with one environment.
#[derive(Debug)]
struct WarmEntry<T> {
    root: PathBuf,
    hook: HookName,
    handler: CommandHandler,
    variables: Vec<(&'static str, String)>,
    /// What they were started under.
    approval: Approval,
    /// The files of the definition as they were when it was first used.
    files: CommandFiles,
    processes: Arc<T>,
}

impl<T> Default for WarmPool<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: WarmProcesses> WarmPool<T> {
    /// The processes kept for a hook; created on first use.
    pub(super) fn of(
        &self,
        invocation: &Invocation,
        handler: &CommandHandler,
        approval: &Approval,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let name = &invocation.hook.hook.name;
        let mut entries = self.0.lock();
        let known = entries.iter().find(|entry| {
            entry.hook == *name
                && entry.root == invocation.root
                && entry.handler == *handler
                && entry.approval == *approval
                && entry.variables.iter().eq(stable_variables(&invocation.environment))
        });
        if let Some(entry) = known {
            return Arc::clone(&entry.processes);
        }
        let processes = Arc::new(make());
        entries.push(WarmEntry {
            root: invocation.root.clone(),
            hook: name.clone(),
            handler: handler.clone(),
            variables: stable_variables(&invocation.environment).cloned().collect(),
            approval: approval.clone(),
            files: CommandFiles::of(handler),
            processes: Arc::clone(&processes),
        });
        processes
    }

    /// Drops the processes of hooks of a workspace that are gone or were changed. Events in flight keep theirs until
    /// they are done.
    pub(super) fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        self.0.lock().retain(|entry| entry.root != root || entry.is_valid(hooks));
    }

    /// What is found of the processes of each hook.
    pub(super) fn each<R>(&self, find: impl Fn(&Path, &HookName, &T) -> Option<R>) -> Vec<R> {
        let entries = self.0.lock();
        entries.iter().filter_map(|entry| find(&entry.root, &entry.hook, &entry.processes)).collect()
    }

    /// Ends everything.
    pub(super) fn stop(&self) {
        for entry in std::mem::take(&mut *self.0.lock()) {
            entry.processes.stop();
        }
    }
}

impl<T: WarmProcesses> WarmEntry<T> {
    /// Whether the hook is unchanged, with its files, and its processes are of use.
    fn is_valid(&self, hooks: &[Arc<RegisteredHook>]) -> bool {
        hooks.iter().any(|known| self.is_of(&known.hook))
            && !self.processes.is_spent()
            && self.files == CommandFiles::of(&self.handler)
    }

    fn is_of(&self, hook: &Hook) -> bool {
        hook.enabled
            && hook.trust.approval().as_ref() == Some(&self.approval)
            && hook.name == self.hook
            && matches!(&hook.handler, Handler::Command(handler) if *handler == self.handler)
    }
}

//! What stands ready for hooks between their events. Owns to which hook it belongs and how long; refuses to know
//! what it is.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{files::Files, runner::lasting};
use crate::{
    handler::Invocation,
    model::{CommandHandler, Handler, HookName},
    registry::RegisteredHook,
};

/// Something that stands ready for the events of one hook.
pub(super) trait Ready {
    /// Whether it is of no more use and a reload should try again.
    fn is_spent(&self) -> bool;

    /// Ends it at once, and for good.
    fn stop(&self);
}

/// What stands ready, by hook. There are few such hooks, so they are searched one by one.
#[derive(Debug)]
pub(super) struct Standing<T>(Mutex<Vec<Entry<T>>>);

/// Belongs to one definition of one hook in one workspace and one environment.
#[derive(Debug)]
struct Entry<T> {
    root: PathBuf,
    hook: HookName,
    handler: CommandHandler,
    variables: Vec<(&'static str, String)>,
    /// The files of the definition as they were when it was first used.
    files: Files,
    ready: Arc<T>,
}

impl<T> Default for Standing<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Ready> Standing<T> {
    /// What stands ready for a hook; made, if there is nothing yet.
    pub(super) fn of(
        &self,
        invocation: &Invocation,
        handler: &CommandHandler,
        make: impl FnOnce() -> T,
    ) -> Arc<T> {
        let name = &invocation.hook.hook.name;
        let mut entries = self.entries();
        let known = entries.iter().find(|entry| {
            entry.hook == *name
                && entry.root == invocation.root
                && entry.handler == *handler
                && entry.variables.iter().eq(lasting(&invocation.environment))
        });
        if let Some(entry) = known {
            return Arc::clone(&entry.ready);
        }
        let ready = Arc::new(make());
        entries.push(Entry {
            root: invocation.root.clone(),
            hook: name.clone(),
            handler: handler.clone(),
            variables: lasting(&invocation.environment).cloned().collect(),
            files: Files::of(handler),
            ready: Arc::clone(&ready),
        });
        ready
    }

    /// Gives up what belongs to hooks of a workspace that are no longer there or no longer the same. Events under
    /// way keep it until they are done.
    pub(super) fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        self.entries().retain(|entry| {
            let stays = |known: &Arc<RegisteredHook>| {
                known.hook.enabled
                    && known.hook.name == entry.hook
                    && matches!(&known.hook.handler, Handler::Command(handler) if *handler == entry.handler)
            };
            entry.root != root
                || (hooks.iter().any(stays)
                    && !entry.ready.is_spent()
                    && entry.files == Files::of(&entry.handler))
        });
    }

    /// Ends everything.
    pub(super) fn stop(&self) {
        for entry in std::mem::take(&mut *self.entries()) {
            entry.ready.stop();
        }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

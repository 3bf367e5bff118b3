//! What the rest of the daemon has to do with the watching: it says which workspaces came or went, and may ask how the
//! watching goes. Refuses to act.

use std::{
    collections::BTreeSet,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::model::WorkspaceId;

/// How the watching goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watching {
    /// Nobody wants it.
    Off,
    /// Everything is watched.
    On,
    /// Something cannot be watched; the log says why.
    Partly,
}

/// Which workspaces are to be looked at.
#[derive(Debug)]
pub(super) enum Wanted {
    /// These.
    Some(BTreeSet<WorkspaceId>),
    /// All of them.
    All,
}

/// How the watching goes, and what it is to look at.
#[derive(Debug)]
pub(in crate::daemon) struct WatchState {
    again: Notify,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    watching: Watching,
    wanted: Wanted,
}

impl WatchState {
    /// The watching that the settings want, or don't.
    pub(in crate::daemon) fn new(is_wanted: bool) -> Self {
        let watching = if is_wanted { Watching::On } else { Watching::Off };
        Self { again: Notify::new(), now: Mutex::new(Now { watching, wanted: Wanted::All }) }
    }

    /// Has a workspace looked at for files to watch: it came, went, or was read again.
    pub(in crate::daemon) fn look_at(&self, id: &WorkspaceId) {
        let mut now = self.now();
        // Without anybody to look, they would only gather.
        if now.watching == Watching::Off {
            return;
        }
        if let Wanted::Some(ids) = &mut now.wanted {
            ids.insert(id.clone());
        }
        drop(now);
        self.again.notify_one();
    }

    /// The same for all of them.
    pub(in crate::daemon) fn look_at_all(&self) {
        self.now().wanted = Wanted::All;
        self.again.notify_one();
    }

    /// `on`, `off` or `partly`.
    pub(in crate::daemon) fn word(&self) -> &'static str {
        match self.now().watching {
            Watching::Off => "off",
            Watching::On => "on",
            Watching::Partly => "partly",
        }
    }

    /// Waits until something is to be looked at, and takes it.
    pub(super) async fn wanted(&self) -> Wanted {
        self.again.notified().await;
        mem::replace(&mut self.now().wanted, Wanted::Some(BTreeSet::new()))
    }

    /// Says how the watching goes from now on. Returns how it went before.
    pub(super) fn set(&self, watching: Watching) -> Watching {
        mem::replace(&mut self.now().watching, watching)
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

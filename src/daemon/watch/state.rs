//! What the rest of the daemon has to do with the watching: it says which workspaces came or went, and may ask how the
//! watching goes. Refuses to act.

use std::{collections::BTreeSet, mem};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::model::WorkspaceId;

/// How the watching goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchCoverage {
    /// Nobody wants it.
    Off,
    /// Everything is watched.
    Full,
    /// Something cannot be watched; the log says why.
    Partial,
}

/// Which workspaces are to be looked at.
#[derive(Debug)]
pub(super) enum RescanRequest {
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
    watching: WatchCoverage,
    wanted: RescanRequest,
}

impl WatchState {
    /// The watching that the settings want, or don't.
    pub(in crate::daemon) fn new(is_wanted: bool) -> Self {
        let watching = if is_wanted { WatchCoverage::Full } else { WatchCoverage::Off };
        Self { again: Notify::new(), now: Mutex::new(Now { watching, wanted: RescanRequest::All }) }
    }

    /// Has a workspace looked at for files to watch: it came, went, or was read again.
    pub(in crate::daemon) fn rescan(&self, id: &WorkspaceId) {
        let mut now = self.now();
        // Without anybody to look, they would only gather.
        if now.watching == WatchCoverage::Off {
            return;
        }
        if let RescanRequest::Some(ids) = &mut now.wanted {
            ids.insert(id.clone());
        }
        drop(now);
        self.again.notify_one();
    }

    /// The same for all of them.
    pub(in crate::daemon) fn rescan_all(&self) {
        self.now().wanted = RescanRequest::All;
        self.again.notify_one();
    }

    /// `on`, `off` or `partly`.
    pub(in crate::daemon) fn as_str(&self) -> &'static str {
        match self.now().watching {
            WatchCoverage::Off => "off",
            WatchCoverage::Full => "on",
            WatchCoverage::Partial => "partly",
        }
    }

    /// Waits until something is to be looked at, and takes it.
    pub(super) async fn next_request(&self) -> RescanRequest {
        self.again.notified().await;
        mem::replace(&mut self.now().wanted, RescanRequest::Some(BTreeSet::new()))
    }

    /// Says how the watching goes from now on. Returns how it went before.
    pub(super) fn set(&self, watching: WatchCoverage) -> WatchCoverage {
        mem::replace(&mut self.now().watching, watching)
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock()
    }
}

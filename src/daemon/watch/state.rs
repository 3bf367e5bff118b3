//! The watcher's side that the rest of the daemon sees: rescan requests go in, the coverage comes out.

use std::{collections::BTreeSet, mem};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::model::WorkspaceId;

/// How much of the hook files is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchCoverage {
    /// Nothing: the settings turn it off.
    Off,
    /// Everything is watched.
    Full,
    /// Not everything can be watched; the log has the reason.
    Partial,
}

/// The workspaces whose watches are to be updated.
#[derive(Debug)]
pub(super) enum RescanRequest {
    Some(BTreeSet<WorkspaceId>),
    All,
}

/// The coverage, and the pending rescan request.
#[derive(Debug)]
pub(in crate::daemon) struct WatchState {
    requested: Notify,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    coverage: WatchCoverage,
    request: RescanRequest,
}

impl WatchState {
    /// `is_enabled` is the setting `watch`.
    pub(in crate::daemon) fn new(is_enabled: bool) -> Self {
        let coverage = if is_enabled { WatchCoverage::Full } else { WatchCoverage::Off };
        let inner = Inner { coverage, request: RescanRequest::All };
        Self { requested: Notify::new(), inner: Mutex::new(inner) }
    }

    /// Requests a rescan of a workspace that was registered, removed or reloaded.
    pub(in crate::daemon) fn rescan(&self, id: &WorkspaceId) {
        let mut inner = self.inner.lock();
        // Without a loop to take them, requests would pile up.
        if inner.coverage == WatchCoverage::Off {
            return;
        }
        if let RescanRequest::Some(ids) = &mut inner.request {
            ids.insert(id.clone());
        }
        drop(inner);
        self.requested.notify_one();
    }

    /// Requests a rescan of all workspaces.
    pub(in crate::daemon) fn rescan_all(&self) {
        self.inner.lock().request = RescanRequest::All;
        self.requested.notify_one();
    }

    /// `on`, `off` or `partly`.
    pub(in crate::daemon) fn as_str(&self) -> &'static str {
        match self.inner.lock().coverage {
            WatchCoverage::Off => "off",
            WatchCoverage::Full => "on",
            WatchCoverage::Partial => "partly",
        }
    }

    /// Waits for a request and takes it.
    pub(super) async fn next_request(&self) -> RescanRequest {
        self.requested.notified().await;
        mem::replace(&mut self.inner.lock().request, RescanRequest::Some(BTreeSet::new()))
    }

    /// Sets the coverage. Returns the previous one.
    pub(super) fn set_coverage(&self, coverage: WatchCoverage) -> WatchCoverage {
        mem::replace(&mut self.inner.lock().coverage, coverage)
    }
}

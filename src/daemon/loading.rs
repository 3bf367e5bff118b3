//! Whether the workspaces are loaded, which events wait for, and a start that is stopped before they are.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

use super::error::ApiError;
use crate::{config::SetKey, platform::ProcessHandle};

/// How far the workspaces are loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LoadProgress {
    UnderWay,
    Done,
    /// The daemon stops before they are loaded.
    Abandoned,
    /// The daemon does not start, for this reason.
    Failed(Arc<str>),
}

/// The first loading of the workspaces.
#[derive(Debug)]
pub(super) struct Loading(watch::Sender<LoadProgress>);

impl Loading {
    pub(super) fn begin() -> Self {
        Self(watch::channel(LoadProgress::UnderWay).0)
    }

    pub(super) fn finish(&self) {
        self.0.send_replace(LoadProgress::Done);
    }

    /// The daemon stops before.
    pub(super) fn abandon(&self) {
        self.0.send_replace(LoadProgress::Abandoned);
    }

    /// The daemon does not start.
    pub(super) fn fail(&self, why: &str) {
        self.0.send_replace(LoadProgress::Failed(why.into()));
    }

    /// Why the daemon does not start, if it does not.
    pub(super) fn failure(&self) -> Option<ApiError> {
        match &*self.0.borrow() {
            LoadProgress::Failed(why) => Some(ApiError::not_started(why)),
            _ => None,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        *self.0.borrow() == LoadProgress::Done
    }

    /// Waits until the workspaces are loaded.
    ///
    /// Returns an error if that takes longer than the limit, or if the daemon stops before or does not start.
    pub(super) async fn done(&self, limit: Duration) -> Result<(), ApiError> {
        if self.is_done() {
            return Ok(());
        }
        let mut progress = self.0.subscribe();
        let ended = progress.wait_for(|progress| *progress != LoadProgress::UnderWay);
        // `self` is the sender, so the channel does not close meanwhile.
        let ended = timeout(limit, ended).await.map_err(|_| ApiError::starting())?;
        let ended = ended.map_or(LoadProgress::Abandoned, |progress| progress.clone());
        match ended {
            LoadProgress::Done => Ok(()),
            LoadProgress::Failed(why) => Err(ApiError::not_started(&why)),
            LoadProgress::UnderWay | LoadProgress::Abandoned => Err(ApiError::shutting_down()),
        }
    }
}

/// A start that can be stopped.
#[derive(Debug, Default)]
pub(crate) struct StoppableStart {
    listens: AtomicBool,
    /// The process of the daemon that is being replaced. While it runs, those who wait are its to answer.
    predecessor: Mutex<Option<ProcessHandle>>,
    stop: CancellationToken,
    /// Which settings were set, and where, if that is known.
    set_keys: OnceLock<Vec<SetKey>>,
}

impl StoppableStart {
    /// A start with settings that come from these places.
    #[cfg(feature = "cli")]
    pub(crate) fn with_settings(set: Vec<SetKey>) -> Self {
        Self { set_keys: set.into(), ..Self::default() }
    }

    /// Hands on which settings were set, before anybody can ask.
    pub(super) fn tell_settings(&self, to: &OnceLock<Vec<SetKey>>) {
        if let Some(set) = self.set_keys.get() {
            // A daemon starts once.
            to.set(set.clone()).ok();
        }
    }

    /// Asks the start to stop. Returns whether it goes on until those who wait for an answer have one; otherwise, or when
    /// asked again, it can be dropped.
    #[cfg(feature = "cli")]
    pub(crate) fn stop(&self) -> bool {
        let is_alone = self.predecessor.lock().as_ref().is_none_or(ProcessHandle::has_ended);
        let goes_on = self.listens.load(Ordering::Acquire) && is_alone && !self.is_stopped();
        self.stop.cancel();
        goes_on
    }

    /// Whether it was asked to stop.
    #[cfg(feature = "cli")]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Another daemon has the listeners as well, until it ends or this one accepts connections.
    pub(super) fn replaces(&self, process: ProcessHandle) {
        *self.predecessor.lock() = Some(process);
    }

    /// From here on those who wait are this daemon's to answer, whatever becomes of the one that it replaces.
    pub(super) fn accepts(&self) {
        *self.predecessor.lock() = None;
    }

    /// From here on hosts can connect, and wait for an answer.
    pub(super) fn listens(&self) {
        self.listens.store(true, Ordering::Release);
    }

    pub(super) async fn stopped(&self) {
        self.stop.cancelled().await;
    }
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use rustix::process::getpid;

    use super::*;
    use crate::platform::raw;

    #[test]
    fn a_start_goes_on_after_the_first_request_to_stop_and_never_after_the_second() {
        let start = StoppableStart::default();
        start.listens();
        assert!(start.stop(), "hosts wait for their answers");
        assert!(start.is_stopped());
        assert!(!start.stop() && !start.stop());
    }

    #[test]
    fn a_start_that_no_host_waits_for_ends_at_the_first_request_to_stop() {
        assert!(!StoppableStart::default().stop(), "nobody can connect yet");

        let running = || ProcessHandle::open(raw(getpid())).unwrap();
        let replacing = StoppableStart::default();
        replacing.listens();
        replacing.replaces(running());
        assert!(!replacing.stop(), "the daemon that it replaces answers");

        let begun = StoppableStart::default();
        begun.listens();
        begun.replaces(running());
        begun.accepts();
        assert!(begun.stop(), "its hosts wait for it alone");
        assert!(!begun.stop());
    }
}

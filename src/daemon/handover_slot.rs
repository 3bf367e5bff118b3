//! Who accepts connections: this daemon, one that replaces it, or nobody; and what it keeps to be replaced.

use std::{
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::{OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, watch};

use super::{
    handed_over::{ListenerOwner, ListenerRole},
    socket::SocketFile,
};

/// A listener as a successor gets it.
#[derive(Debug)]
pub(super) struct HandoverListener {
    pub(super) role: ListenerRole,
    pub(super) owner: ListenerOwner,
    pub(super) descriptor: OwnedFd,
}

/// Who accepts connections: a handover and a stop exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Commitment {
    /// This daemon.
    Free,
    /// A successor was told to begin, and has not said that it did.
    Committed,
    /// The successor.
    HandedOver,
    /// Nobody else: this daemon stops.
    Refused,
}

/// What a daemon keeps to be replaced.
#[derive(Debug)]
pub(super) struct HandoverSlot {
    listeners: Mutex<Vec<HandoverListener>>,
    /// The files of the Unix sockets.
    files: Mutex<Vec<SocketFile>>,
    /// Locked while a successor takes over.
    under_way: Arc<tokio::sync::Mutex<()>>,
    /// Written while a successor takes over, so that no workspace is registered or removed without it.
    registration: Arc<RwLock<()>>,
    commitment: watch::Sender<Commitment>,
    /// Whether a successor was told to begin, for requests to read.
    is_engaged: AtomicBool,
}

impl Default for HandoverSlot {
    fn default() -> Self {
        Self {
            listeners: Mutex::default(),
            files: Mutex::default(),
            under_way: Arc::default(),
            registration: Arc::default(),
            commitment: watch::Sender::new(Commitment::Free),
            is_engaged: AtomicBool::new(false),
        }
    }
}

impl HandoverSlot {
    pub(super) fn keep(&self, listeners: Vec<HandoverListener>, files: Vec<SocketFile>) {
        *self.listeners.lock() = listeners;
        *self.files.lock() = files;
    }

    /// Closes the listeners, which are open as long as they are kept.
    pub(super) fn close(&self) {
        self.listeners.lock().clear();
    }

    /// Calls a function with the listeners.
    pub(super) fn with_listeners<T>(&self, use_them: impl FnOnce(&[HandoverListener]) -> T) -> T {
        use_them(&self.listeners.lock())
    }

    /// Begins a handover, unless one is under way.
    pub(super) fn begin(&self) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.under_way).try_lock_owned().ok()
    }

    /// Permits a change of the registered workspaces while the guard lives, unless a handover is under way.
    pub(super) fn registration(&self) -> Option<OwnedRwLockReadGuard<()>> {
        Arc::clone(&self.registration).try_read_owned().ok()
    }

    /// Keeps the registered workspaces as they are, once the changes under way are done.
    pub(super) async fn freeze_registrations(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.registration).write_owned().await
    }

    /// Lets a successor begin. From here on requests wait until it has, or has not. Returns whether it may.
    pub(super) fn commit(&self) -> bool {
        let may_begin = self.change(Commitment::Free, Commitment::Committed);
        if may_begin {
            self.is_engaged.store(true, Ordering::Release);
            self.files.lock().iter().for_each(SocketFile::leave);
        }
        may_begin
    }

    /// The successor has begun.
    pub(super) fn conclude(&self) {
        self.close();
        self.change(Commitment::Committed, Commitment::HandedOver);
    }

    /// The successor has not begun.
    pub(super) fn abort(&self) {
        if *self.commitment.borrow() == Commitment::Committed {
            self.files.lock().iter().for_each(SocketFile::own);
            self.is_engaged.store(false, Ordering::Release);
            self.change(Commitment::Committed, Commitment::Free);
        }
    }

    /// Whether a successor was told to begin.
    pub(super) fn is_engaged(&self) -> bool {
        self.is_engaged.load(Ordering::Acquire)
    }

    /// Whether a successor accepts connections.
    pub(super) fn is_handed_over(&self) -> bool {
        *self.commitment.borrow() == Commitment::HandedOver
    }

    /// Waits until it is known who accepts connections. Returns whether a successor does.
    pub(super) async fn settled(&self) -> bool {
        let mut changes = self.commitment.subscribe();
        let settled = changes.wait_for(|commitment| *commitment != Commitment::Committed).await;
        // `self` has the sender, so there is always a value.
        settled.is_ok_and(|commitment| *commitment == Commitment::HandedOver)
    }

    /// Keeps successors from taking over from now on. Returns whether one has.
    pub(super) async fn refuse(&self) -> bool {
        loop {
            if self.settled().await {
                return true;
            }
            if self.change(Commitment::Free, Commitment::Refused)
                || *self.commitment.borrow() == Commitment::Refused
            {
                return false;
            }
        }
    }

    fn change(&self, from: Commitment, to: Commitment) -> bool {
        self.commitment.send_if_modified(|commitment| {
            let changes = *commitment == from;
            if changes {
                *commitment = to;
            }
            changes
        })
    }
}

/// What the accept loops do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceptPhase {
    /// Accept connections.
    Open,
    /// Leave connections in the listeners: a successor is about to accept them.
    Paused,
    /// The daemon takes no more events.
    Draining,
    /// The daemon stops, and answers the connections that wait in its own listeners.
    Closing,
    /// A successor accepts connections.
    HandedOver,
}

/// What one accept loop does in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceptStep {
    Accept,
    Wait,
    /// End, after the connections that wait.
    AcceptWaiting,
    /// End, and leave the connections that wait to whoever has the listener too.
    Leave,
}

/// What an accept loop does. A listener of the service manager that takes events leaves them to the next daemon; others
/// tell how the daemon is until it ends.
pub(super) fn accept_step(phase: AcceptPhase, owner: ListenerOwner, takes_events: bool) -> AcceptStep {
    match (phase, owner) {
        (AcceptPhase::Paused, _) => AcceptStep::Wait,
        (AcceptPhase::HandedOver, _) | (AcceptPhase::Closing, ListenerOwner::ServiceManager) => {
            AcceptStep::Leave
        }
        (AcceptPhase::Draining, ListenerOwner::ServiceManager) if takes_events => AcceptStep::Leave,
        (AcceptPhase::Closing, ListenerOwner::Daemon) => AcceptStep::AcceptWaiting,
        (AcceptPhase::Open | AcceptPhase::Draining, _) => AcceptStep::Accept,
    }
}

/// The phase, for the accept loops to follow.
#[derive(Debug, Clone)]
pub(super) struct AcceptGate(watch::Sender<AcceptPhase>);

impl AcceptGate {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(AcceptPhase::Open))
    }

    pub(super) fn set(&self, phase: AcceptPhase) {
        self.0.send_replace(phase);
    }

    /// Accepts connections again, unless the daemon stops meanwhile.
    pub(super) fn reopen(&self) {
        self.0.send_if_modified(|phase| {
            let is_paused = *phase == AcceptPhase::Paused;
            if is_paused {
                *phase = AcceptPhase::Open;
            }
            is_paused
        });
    }

    pub(super) fn follow(&self) -> watch::Receiver<AcceptPhase> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_and_a_handover_exclude_each_other() {
        let slot = HandoverSlot::default();
        assert!(slot.commit());
        assert!(slot.is_engaged());
        slot.abort();
        assert!(!slot.is_engaged());
        assert!(!slot.refuse().await);
        assert!(!slot.commit(), "it stops");
        let slot = HandoverSlot::default();
        assert!(slot.commit());
        let refused = async {
            let mut refused = std::pin::pin!(slot.refuse());
            assert!(futures_util::poll!(refused.as_mut()).is_pending(), "nobody knows yet who accepts");
            slot.conclude();
            refused.await
        };
        assert!(refused.await);
        slot.abort();
        assert!(slot.is_handed_over(), "what is handed over does not come back");
    }

    #[tokio::test]
    async fn registrations_and_a_handover_exclude_each_other() {
        let slot = HandoverSlot::default();
        let registering = slot.registration();
        assert!(registering.is_some());
        let freezing = async {
            let mut freezing = std::pin::pin!(slot.freeze_registrations());
            assert!(futures_util::poll!(freezing.as_mut()).is_pending());
            drop(registering);
            freezing.await
        };
        let frozen = freezing.await;
        assert!(slot.registration().is_none());
        drop(frozen);
        assert!(slot.registration().is_some());
    }

    #[test]
    fn connections_are_left_to_whoever_can_answer_them() {
        use AcceptPhase::{Closing, Draining, HandedOver, Open, Paused};
        use ListenerOwner::{Daemon, ServiceManager};
        for (phase, owner, takes_events, expected) in [
            (Open, Daemon, true, AcceptStep::Accept),
            (Open, ServiceManager, true, AcceptStep::Accept),
            (Paused, Daemon, true, AcceptStep::Wait),
            (Draining, Daemon, true, AcceptStep::Accept),
            (Draining, ServiceManager, true, AcceptStep::Leave),
            (Draining, ServiceManager, false, AcceptStep::Accept),
            (Closing, Daemon, false, AcceptStep::AcceptWaiting),
            (Closing, ServiceManager, false, AcceptStep::Leave),
            (HandedOver, Daemon, true, AcceptStep::Leave),
        ] {
            assert_eq!(accept_step(phase, owner, takes_events), expected, "{phase:?} {owner:?}");
        }
    }
}

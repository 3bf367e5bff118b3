//! What an orchestrator keeps on disk: the store of the state of runs, opened, given to another process, and asked how it
//! is; the records of the last good rules; and the courier, which delivers events of the outbox again.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    time::Instant,
};

use super::{
    error::StartError,
    handle::{Inner, Orchestrator},
};
use crate::{
    config::{LastGoodError, LastGoodStore},
    model::{HookName, RunKey},
    registry::{MissingHook, Plan, Snapshot},
    run::{
        Caller, Courier, DueEvent, EventRequest, EventSender, InFlightGuard, Outbox, OutboxLimits, RunMessage,
    },
    store::{DeliveryProgress, StoreError, StoreStatus},
    supervisor::PublishedSnapshot,
};
#[cfg(feature = "daemon")]
use crate::{
    run::OutboxOwner,
    store::{OutboxChange, OutboxStore, RecordError, RowReceiver, RunStore, StoredRun},
};

/// The wait before an event is tried again for which there was no room.
const ROOM_PAUSE: Duration = Duration::from_secs(1);

/// How long an event waits for a workspace that no settings declare. Its host may register it after a restart.
const WORKSPACE_PATIENCE: Duration = Duration::from_mins(5);

/// How often a workspace of the settings is looked for that is not loaded. It is noticed at once when it is.
const WORKSPACE_PAUSE: Duration = Duration::from_mins(1);

/// Where changes go once another process has the store.
#[cfg(feature = "daemon")]
#[derive(Debug)]
pub(crate) struct SuccessorStores {
    pub(crate) runs: Arc<dyn RunStore>,
    pub(crate) outbox: Arc<dyn OutboxStore>,
}

impl Orchestrator {
    /// Opens all that is kept in a directory.
    pub(super) async fn open_data(&self, data: PathBuf) -> Result<(), StartError> {
        self.open_store(data.clone(), Courier::Own).await?;
        Ok(self.open_last_good(&data)?)
    }

    /// Opens the store in a directory and takes over what it has. What was kept in memory until now stays; halts among it
    /// are stored.
    pub(crate) async fn open_store(&self, data: PathBuf, courier: Courier) -> Result<(), StoreError> {
        let context = Arc::clone(&self.0.context);
        let limits = self.outbox_limits();
        let opened = tokio::task::spawn_blocking(move || context.open_store(&data, limits, courier)).await;
        // It ends without a result only if it panicked, which nothing in it does.
        opened.expect("the store opens or says why not")?;
        self.start_courier();
        Ok(())
    }

    /// Opens the records of the last good rules in a directory. Workspaces that are loaded from now on use them.
    ///
    /// Returns an error if they cannot be kept there.
    pub(crate) fn open_last_good(&self, data: &Path) -> Result<(), LastGoodError> {
        // Set once: a second call would find the same directory.
        drop(self.0.last_good.set(LastGoodStore::open(data)?));
        Ok(())
    }

    /// Takes over the records of the last good rules from the directory of a daemon that is replaced, if it has another one.
    #[cfg(feature = "daemon")]
    pub(crate) fn import_last_good(&self, former: Option<&Path>) {
        if let (Some(last_good), Some(former)) = (self.0.last_good.get(), former)
            && let Err(error) = last_good.import(former)
        {
            tracing::error!(%error, "files that are broken now are without their last good rules");
        }
    }

    fn outbox_limits(&self) -> OutboxLimits {
        let settings = &self.0.settings.outbox;
        OutboxLimits {
            size: settings.max_size,
            dead: settings.dead_letters.get(),
            dead_size: settings.dead_size,
        }
    }

    /// Delivers events of the outbox again from now on.
    pub(crate) fn start_courier(&self) {
        if let Some(outbox) = self.0.context.outbox.load_full() {
            tokio::spawn(deliver(Arc::downgrade(&self.0), outbox));
        }
    }

    /// Sends all changes to the store of another process from now on, and closes this one's, so that the other may open it.
    /// Returns its directory. If the other process does not open the same one, all that is known of runs is sent.
    #[cfg(feature = "daemon")]
    pub(crate) async fn hand_store_over(
        &self,
        successor: SuccessorStores,
        opens_the_same: bool,
    ) -> Option<PathBuf> {
        let context = Arc::clone(&self.0.context);
        let handed_over = tokio::task::spawn_blocking(move || {
            let data = context.hand_store_over(successor.runs, successor.outbox);
            let is_there = data.is_some() && opens_the_same;
            let saved = if is_there { Vec::new() } else { context.directory.save_all() };
            (data, saved)
        });
        // It ends without a result only while the runtime shuts down.
        let (data, saved) = handed_over.await.ok()?;
        // An error means that an actor has ended, which has stored its state before.
        futures_util::future::join_all(saved).await;
        data
    }

    /// Opens the store again that was handed over, and takes over what it has. Changes go to it once
    /// [`Orchestrator::set_store`] is called. Events of its outbox wait for the courier.
    #[cfg(feature = "daemon")]
    pub(crate) async fn reopen_store(
        &self,
        data: PathBuf,
        outbox: OutboxOwner,
    ) -> Result<Arc<dyn RunStore>, StoreError> {
        let (context, limits) = (Arc::clone(&self.0.context), self.outbox_limits());
        let opened = tokio::task::spawn_blocking(move || context.reopen_store(&data, limits, outbox)).await;
        opened.expect("the store opens or says why not")
    }

    /// Sends changes to this store from now on, or to none.
    #[cfg(feature = "daemon")]
    pub(crate) fn set_store(&self, store: Option<Arc<dyn RunStore>>) {
        #[cfg(feature = "cluster")]
        let store = store.map(|own| self.shared_store(own));
        self.0.context.directory.set_store(store);
    }

    /// Takes over the state of a run that another daemon has changed. Returns once the store has it in hand.
    #[cfg(feature = "daemon")]
    pub(crate) async fn adopt_run(&self, key: RunKey, run: StoredRun) {
        if let Some(saved) = self.0.context.directory.adopt(&key, run) {
            // An error means that the run's actor has ended, and with it what it knew.
            drop(saved.await);
        }
    }

    /// Forgets a run that another daemon has forgotten, unless it goes on here.
    #[cfg(feature = "daemon")]
    pub(crate) fn adopt_forgotten(&self, key: &RunKey) {
        self.0.context.directory.adopt_forgotten(key);
    }

    /// Ends a run that has ended in another daemon, unless it goes on here.
    #[cfg(feature = "daemon")]
    pub(crate) fn adopt_ended(&self, key: &RunKey) {
        self.0.context.directory.end(key);
    }

    /// Keeps events in memory only from now on: their store cannot be opened again.
    #[cfg(feature = "daemon")]
    pub(crate) fn give_up_outbox(&self) {
        self.0.context.outbox.store(None);
    }

    /// Takes over a change of the outbox of another daemon. The receiver is notified when an added event is on disk.
    ///
    /// Returns an error if the change cannot be read.
    #[cfg(feature = "daemon")]
    pub(crate) fn adopt_event(
        &self,
        id: u64,
        change: OutboxChange,
    ) -> Result<Option<RowReceiver>, RecordError> {
        match self.0.context.outbox.load_full() {
            Some(outbox) => outbox.adopt(id, change),
            None => Ok(None),
        }
    }

    /// This daemon accepts events from now on, beside those that the other one still accepts.
    #[cfg(feature = "daemon")]
    pub(crate) fn leave_event_ids(&self) {
        if let Some(outbox) = self.0.context.outbox.load_full() {
            outbox.leave_ids();
        }
    }

    /// Delivers again what another daemon has left.
    #[cfg(feature = "daemon")]
    pub(crate) fn release_outbox(&self) {
        if let Some(outbox) = self.0.context.outbox.load_full() {
            outbox.release();
        }
    }

    /// Returns once everything that had to be stored at once is stored, or cannot be.
    #[cfg(feature = "daemon")]
    pub(crate) async fn store_flushed(&self) {
        if let Some(store) = self.0.context.directory.store() {
            // An error means that the store is closed.
            drop(store.flushed().await);
        }
    }

    /// How the store is, if there is one.
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "the daemon shows it"))]
    pub(crate) fn store_status(&self) -> Option<StoreStatus> {
        self.0.context.directory.store().map(|store| store.status())
    }
}

/// Delivers what is due until the outbox is closed.
async fn deliver(orchestrator: Weak<Inner>, outbox: Arc<Outbox>) {
    while let Some(place) = outbox.place().await
        && let Some(due) = outbox.next().await
        && let Some(inner) = orchestrator.upgrade()
    {
        #[cfg(feature = "cluster")]
        let Some((due, place)) = inner.forward(&outbox, due, place) else { continue };
        inner.deliver_again(&outbox, due, place).await;
    }
}

/// A required hook that is not in force and has not seen an event yet. Which required hooks wanted the event is known since
/// it was accepted; where no other hook wants it, any may be the one.
fn missing_hook<'s>(
    snapshot: &'s Snapshot,
    plan: &Plan,
    progress: &DeliveryProgress,
) -> Option<&'s MissingHook> {
    let missing = snapshot.missing_hooks();
    let is_planned = |name: &HookName| plan.steps().iter().any(|step| step.hook.name == *name);
    let has_seen_it = |name: &HookName| progress.done.contains(name) || is_planned(name);
    let owed = progress.required.iter().find(|name| !has_seen_it(name));
    if owed.is_none() && !plan.is_empty() {
        return None;
    }
    // A hook that is required by its definition goes by another name.
    missing.iter().find(|missing| Some(&missing.hook) == owed).or_else(|| missing.first())
}

impl Inner {
    /// Gives an event to its hooks again, by the hooks that are loaded now.
    async fn deliver_again(&self, outbox: &Arc<Outbox>, due: DueEvent, place: OwnedSemaphorePermit) {
        let Some(published) = self.registry.load().find(Some(&due.workspace)).cloned() else {
            return self.wait_for_workspace(outbox, &due);
        };
        let PublishedSnapshot { snapshot, meters } = published;
        let has_moved = |root: &str| root != snapshot.workspace().root.to_string_lossy();
        if due.progress.root.as_deref().is_some_and(has_moved) {
            return outbox.workspace_moved(due.id);
        }
        let plan = snapshot.plan(&due.event);
        let plan = plan.filter(&due.event, |hook| !due.progress.done.contains(&hook.name));
        let missing = missing_hook(&snapshot, &plan, &due.progress);
        match missing {
            Some(missing) if plan.is_empty() => return outbox.undeliverable(&due, &missing.reason()),
            None if plan.is_empty() => return outbox.unwanted(due.id),
            _ => {}
        }
        let missing = missing.map(|missing| (missing.hook.clone(), missing.reason()));
        let key = RunKey::new(&due.workspace, &due.event.run_id);
        let Ok(permit) = self.admit(EventSender::Outbox, true) else {
            return outbox.postpone(due.id, ROOM_PAUSE);
        };
        let Ok(lease) = self.lease(&key, EventSender::Outbox, true).await else {
            return outbox.postpone(due.id, ROOM_PAUSE);
        };
        let detached = self.admit_detached(&plan, &lease, &permit);
        let Some((event, ticket)) = outbox.begin(&due, place).await else { return };
        if let Some((hook, why)) = missing {
            ticket.miss(hook, &why);
        }
        let actor = lease.actor().clone();
        // Nobody waits for the outcome.
        let (waiter, _) = oneshot::channel();
        let request = EventRequest {
            // It repeats an event that may have an outcome already.
            key: None,
            event: Arc::new(event),
            plan,
            snapshot,
            meters,
            accepted: Instant::now(),
            caller: Caller { waiter, guard: Arc::new(InFlightGuard { _lease: lease, permit }) },
            detached,
            ticket: Some(ticket.sent()),
            claim: None,
        };
        // A send fails only if the actor has just died; the ticket goes with the message, and the event is tried again.
        drop(actor.cast(RunMessage::Dispatch(Box::new(request))));
    }

    /// Has an event wait for its workspace, or gives it up.
    fn wait_for_workspace(&self, outbox: &Outbox, due: &DueEvent) {
        if self.settings.workspaces.contains_key(&due.workspace) {
            return outbox.wait_for_workspace(due.id, WORKSPACE_PAUSE);
        }
        let waited = due.without_workspace.map_or(Duration::ZERO, |since| since.elapsed());
        match WORKSPACE_PATIENCE.checked_sub(waited).filter(|left| !left.is_zero()) {
            Some(left) => outbox.wait_for_workspace(due.id, left),
            None => outbox.no_workspace(due.id),
        }
    }
}

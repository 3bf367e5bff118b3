//! The last steps of a start: the workspaces are loaded and connections accepted.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::time::sleep;

#[cfg(feature = "cluster")]
use super::cluster;
use super::{
    admission::Admission,
    bundle,
    connections::OpenListener,
    handed_over::ListenerOwner,
    handover::{Replacement, serve_predecessor},
    loading::StoppableStart,
    routes,
    server::Daemon,
    ship::state_line,
    socket::SocketFile,
    start_error::{ReplaceError, ServeError},
    state::DaemonState,
    watch::{self, WatchContext},
};
use crate::{Orchestrator, StartError, StoreError, config, model::WorkspaceId, run::Courier};

/// How often the store is opened that a killed daemon had open.
const MAX_STORE_OPENS: u32 = 50;

/// Between two attempts.
const STORE_PAUSE: Duration = Duration::from_millis(100);

/// A listener and its share.
type AdmittedListener = (OpenListener, Admission);

impl Daemon {
    /// Accepts connections and loads the workspaces: hosts wait meanwhile, and are not refused. If the daemon is to stop
    /// meanwhile, they get their answers and nothing is loaded.
    pub(super) async fn begin(
        &mut self,
        listeners: Vec<AdmittedListener>,
        start: &StoppableStart,
    ) -> Result<(), ServeError> {
        self.accept(listeners)?;
        tokio::select! {
            biased;
            () = start.stopped() => self.state.abandon_loading(),
            () = self.state.stop_requested.cancelled() => self.state.abandon_loading(),
            () = self.load() => {
                self.follow_changes();
                #[cfg(feature = "cluster")]
                self.follow_cluster();
                self.state.set_loaded();
            }
        }
        Ok(())
    }

    /// Loads the workspaces, and the halts of the cluster.
    async fn load(&self) {
        self.state.register_workspaces().await;
        #[cfg(feature = "cluster")]
        cluster::ready(&self.state.orchestrator).await;
    }

    /// Loads the workspaces and accepts connections in place of another daemon. What takes time comes first; nobody waits
    /// for it. If the other daemon has ended and this one is to stop meanwhile, those who wait get their answers and nothing is
    /// loaded.
    pub(super) async fn take_over(
        &mut self,
        listeners: Vec<AdmittedListener>,
        (mut replacement, data): (Replacement, Option<PathBuf>),
        start: &StoppableStart,
    ) -> Result<(), ServeError> {
        let files = self.own_files(&listeners);
        tokio::select! {
            biased;
            () = start.stopped() => {
                self.state.abandon_loading();
                self.accept(listeners)?;
                files.iter().for_each(SocketFile::own);
                return Ok(());
            }
            prepared = self.prepare_to_replace(&mut replacement, data) => prepared?,
        }
        start.accepts();
        self.state.set_loaded();
        self.accept(listeners)?;
        replacement.started().await;
        files.iter().for_each(SocketFile::own);
        self.predecessor.spawn(finish_predecessor(replacement, Arc::clone(&self.state)));
        Ok(())
    }

    /// Loads the workspaces and takes over the store, until this daemon may accept connections.
    async fn prepare_to_replace(
        &mut self,
        replacement: &mut Replacement,
        data: Option<PathBuf>,
    ) -> Result<(), ServeError> {
        let registered = replacement.workspaces().await?;
        if let Some(data) = &data {
            // No lock is on these records: the workspaces need them now.
            self.state.orchestrator.open_last_good(data).map_err(StartError::from)?;
            self.state.orchestrator.import_last_good(replacement.data());
        }
        self.register_again(&registered)?;
        self.state.register_workspaces().await;
        self.follow_changes();
        let registered_now = replacement.released(data.as_deref()).await?;
        if let Some(registered_now) = registered_now
            && registered_now != registered
        {
            self.state.registrations.lock().clear();
            self.register_again(&registered_now)?;
            for (id, _) in registered.iter().filter(|(id, body)| registered_now.get(id) != Some(*body)) {
                self.state.orchestrator.unregister(id).await;
            }
            self.state.register_workspaces().await;
        }
        if let Some(data) = &data {
            let courier = replacement.courier(data);
            open_store(&self.state.orchestrator, data, courier, replacement).await?;
        }
        #[cfg(feature = "cluster")]
        {
            cluster::join(&self.state.orchestrator, &self.state.settings).await?;
            cluster::ready(&self.state.orchestrator).await;
            self.follow_cluster();
        }
        Ok(replacement.may_begin(&self.state.orchestrator).await?)
    }

    /// Has the workspaces registered that clients of the other daemon have registered.
    fn register_again(&self, registrations: &BTreeMap<WorkspaceId, Value>) -> Result<(), ReplaceError> {
        for (id, body) in registrations {
            let registered = routes::register_again(&self.state, id, body.clone());
            registered.map_err(|why| ReplaceError::Workspace { id: id.clone(), why })?;
        }
        Ok(())
    }

    /// Loads workspaces again whose files change, and those that could not be loaded; ships what is to be shipped.
    fn follow_changes(&mut self) {
        self.tasks.spawn(Arc::clone(&self.state).retry_until_loaded());
        if let Some(shipping) = self.state.observers.shipping.clone() {
            let state = Arc::clone(&self.state);
            self.tasks.spawn(async move {
                // A daemon that does not get so far judges nothing.
                if state.loading.done(Duration::MAX).await.is_ok() {
                    shipping.run(|| state_line(&state)).await;
                }
            });
        }
        if self.state.bundle.is_some() {
            self.tasks.spawn(bundle::follow(Arc::clone(&self.state)));
        }
        if self.state.settings.watch {
            self.tasks.spawn(watch::watch(watch_context(&self.state)));
        }
    }

    /// Says to other nodes what this one is at, and asks how the store of the cluster is.
    #[cfg(feature = "cluster")]
    fn follow_cluster(&mut self) {
        if self.state.settings.cluster.is_shared() {
            self.tasks.spawn(cluster::watch_sync(self.state.settings.cluster.clone()));
            self.tasks.spawn(cluster::serve(Arc::clone(&self.state)));
        }
    }

    /// Accepts connections, and keeps the listeners for a daemon that replaces this one.
    fn accept(&mut self, listeners: Vec<AdmittedListener>) -> Result<(), ServeError> {
        let kept = listeners.iter().map(|(open, _)| open.for_handover()).collect::<Result<_, _>>();
        self.state.handover.keep(kept.map_err(ServeError::Descriptor)?, self.own_files(&listeners));
        for (listener, admission) in listeners {
            self.accept_loops.spawn(self.connections.clone().accept(listener, admission));
        }
        Ok(())
    }

    /// The files of the sockets that belong to the daemon. The first listeners are those of the sockets.
    fn own_files(&self, listeners: &[AdmittedListener]) -> Vec<SocketFile> {
        let sockets = self.sockets.iter().zip(listeners);
        let owned = sockets.filter(|(_, (open, _))| open.owner == ListenerOwner::Daemon);
        owned.map(|(socket, _)| socket.file.clone()).collect()
    }
}

/// Opens the store. A daemon that was killed may need a moment to give it up.
pub(super) async fn open_store(
    orchestrator: &Orchestrator,
    data: &Path,
    courier: Courier,
    replacement: &Replacement,
) -> Result<(), StartError> {
    let mut attempts = if replacement.has_ended() { MAX_STORE_OPENS } else { 1 };
    loop {
        attempts -= 1;
        match orchestrator.open_store(data.to_owned(), courier).await {
            Err(StoreError::InUse { .. }) if attempts > 0 => sleep(STORE_PAUSE).await,
            opened => return Ok(opened?),
        }
    }
}

/// Takes in what the other daemon's last events change, and what it leaves in the outbox when it has ended.
async fn finish_predecessor(replacement: Replacement, state: Arc<DaemonState>) {
    serve_predecessor(replacement, state.orchestrator.clone()).await;
    state.register_workspaces_of_outbox().await;
    state.orchestrator.release_outbox();
}

fn watch_context(state: &DaemonState) -> WatchContext {
    WatchContext {
        orchestrator: state.orchestrator.clone(),
        system: config::system_directory(&state.settings),
        home: state.home.clone(),
        state: Arc::clone(&state.watch),
    }
}

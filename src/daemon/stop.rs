//! Stops a daemon: from the lame duck phase to the last connection.

#[cfg(feature = "cli")]
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};
#[cfg(feature = "cli")]
use tokio_util::sync::CancellationToken;

use super::{
    connections::CLOSE_TIMEOUT,
    handover_slot::AcceptPhase,
    server::Daemon,
    ship::state_line,
    socket::Socket,
    state::{DaemonPhase, Observers},
};

/// How long idle connections to a daemon that was replaced stay open: their clients may be about to send something.
const OPEN_CONNECTIONS_TIMEOUT: Duration = Duration::from_secs(10);

/// How often an idle daemon looks whether it is used, within the time after which it ends.
#[cfg(feature = "cli")]
const IDLE_LOOKS: u32 = 10;

/// The shortest and the longest time between two such looks.
#[cfg(feature = "cli")]
const SHORTEST_IDLE_PAUSE: Duration = Duration::from_millis(10);
#[cfg(feature = "cli")]
const LONGEST_IDLE_PAUSE: Duration = Duration::from_secs(10);

impl Daemon {
    /// Waits until a client of the API asks the daemon to stop, with `POST /v1/drain`. The program then calls
    /// [`Daemon::stop`].
    pub async fn stop_requested(&self) {
        self.state.stop_requested.cancelled().await;
    }

    /// Waits until nothing has used the daemon for this long: no event came, no run is at work, and nobody reads the stream.
    #[cfg(feature = "cli")]
    pub(crate) async fn idle_for(&self, limit: Duration) {
        let pause = (limit / IDLE_LOOKS).clamp(SHORTEST_IDLE_PAUSE, LONGEST_IDLE_PAUSE);
        let mut last_use = Instant::now();
        let mut events = 0;
        while last_use.elapsed() < limit {
            sleep(pause).await;
            let now = self.state.activity.events();
            let is_at_work = self.orchestrator().in_flight() > 0
                || self.orchestrator().run_count().active > 0
                || self.state.stream_readers.load(Ordering::Relaxed) > 0;
            if std::mem::replace(&mut events, now) != now || is_at_work {
                last_use = Instant::now();
            }
        }
    }

    /// A token that ends the lame duck phase of [`Daemon::stop`] before its time.
    #[cfg(feature = "cli")]
    pub(crate) fn lameduck_over(&self) -> CancellationToken {
        self.state.lameduck_over.clone()
    }

    /// Stops the daemon. For `listen.lameduck` it still takes events, and says that it is not ready. Then it takes no more
    /// events, lets those in flight finish until the deadline, cancels the rest, kills their processes, closes every
    /// connection, and flushes the audit, the traces and what is shipped. Returns whether everything finished in time.
    pub async fn stop(mut self, deadline: Duration) -> bool {
        if !self.state.handover.is_handed_over() && self.state.loading.is_done() {
            self.be_lame_duck().await;
        }
        let begun = Instant::now();
        let is_replaced = self.state.handover.refuse().await;
        self.state.set_phase(DaemonPhase::Draining);
        if is_replaced {
            // What comes on open connections is forwarded until they end, each with its next response.
            self.connections.tasks.close();
            drop(timeout(OPEN_CONNECTIONS_TIMEOUT.min(deadline), self.connections.tasks.wait()).await);
        } else {
            self.state.accept_gate.set(AcceptPhase::Draining);
        }
        // A daemon that this one has replaced may still report halts.
        let left = deadline.saturating_sub(begun.elapsed());
        drop(timeout(left, self.predecessor.join_next()).await);
        let left = deadline.saturating_sub(begun.elapsed());
        let finished = self.state.orchestrator.shutdown(left).await;
        if !is_replaced {
            // Before the listeners close: whoever comes now finds no socket, and knows that no hook has run.
            self.sockets.iter().for_each(Socket::remove);
            self.state.handover.close();
            self.state.accept_gate.set(AcceptPhase::Closing);
            while self.accept_loops.join_next().await.is_some() {}
        }
        self.state.closing.cancel();
        self.connections.tasks.close();
        // A client that does not read its response must not keep the daemon running.
        drop(timeout(CLOSE_TIMEOUT, self.connections.tasks.wait()).await);
        self.tasks.shutdown().await;
        self.state.denials.close();
        let Observers { audit, tracer, shipping, .. } = self.state.observers.clone();
        if let Some(tracer) = tracer {
            tracer.close().await;
        }
        if let Some(audit) = audit {
            // Fails only while the runtime shuts down, when nobody waits for the result.
            drop(spawn_blocking(move || audit.close()).await);
        }
        if let Some(shipping) = shipping {
            shipping.close(state_line(&self.state)).await;
        }
        finished
    }

    /// Takes events for `listen.lameduck`, while clients and balancers turn to others.
    async fn be_lame_duck(&self) {
        let Some(lameduck) = self.state.settings.listen.lameduck else { return };
        let lameduck_ms = u64::try_from(lameduck.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(lameduck_ms, "about to stop: events are still taken, and `/readyz` says no");
        self.state.begin_draining();
        tokio::select! {
            () = sleep(lameduck) => {}
            () = self.state.lameduck_over.cancelled() => {}
        }
    }
}

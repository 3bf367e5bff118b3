//! Metrics of the workers of one hook, and of the invocations that wait for them or for the hook's own limit.

use std::{fmt, sync::Arc};

use metrics::{Counter, Gauge};

use super::{
    labels::{Degradation, WorkerState},
    names,
};

/// The metric handles of the workers of one hook.
pub(crate) struct WorkerMeters {
    states: [Gauge; WorkerState::ALL.len()],
    degraded: [Gauge; Degradation::ALL.len()],
    restarts: Counter,
}

impl WorkerMeters {
    pub(super) fn resolve(name: &str) -> Self {
        Self {
            states: WorkerState::ALL.map(|state| names::WORKERS.gauge([name, state.as_str()])),
            degraded: Degradation::ALL.map(|why| {
                let gauge = names::WORKERS_DEGRADED.gauge([name, why.as_str()]);
                gauge.increment(0.0);
                gauge
            }),
            restarts: names::WORKER_RESTARTS.counter([name]),
        }
    }

    /// Handles that nobody reads, of workers of no registered hook.
    pub(crate) fn unread() -> Self {
        Self {
            states: WorkerState::ALL.map(|_| Gauge::noop()),
            degraded: Degradation::ALL.map(|_| Gauge::noop()),
            restarts: Counter::noop(),
        }
    }

    /// Counts a worker that failed.
    pub(crate) fn failed(&self) {
        self.restarts.increment(1);
    }
}

impl fmt::Debug for WorkerMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerMeters").finish_non_exhaustive()
    }
}

/// The workers of one hook do or do not serve; dropping it counts them as serving.
pub(crate) struct WorkersDegraded {
    meters: Arc<WorkerMeters>,
    degradation: Option<Degradation>,
}

impl WorkersDegraded {
    /// Workers that serve.
    pub(crate) fn serving(meters: &Arc<WorkerMeters>) -> Self {
        Self { meters: Arc::clone(meters), degradation: None }
    }

    /// Counts them so from now on.
    pub(crate) fn set(&mut self, now: Option<Degradation>) {
        if self.degradation == now {
            return;
        }
        if let Some(before) = self.degradation {
            self.meters.degraded[before as usize].decrement(1.0);
        }
        if let Some(now) = now {
            self.meters.degraded[now as usize].increment(1.0);
        }
        self.degradation = now;
    }
}

impl Drop for WorkersDegraded {
    fn drop(&mut self) {
        self.set(None);
    }
}

impl fmt::Debug for WorkersDegraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkersDegraded").field(&self.degradation).finish()
    }
}

/// The gauge of the invocations of one hook that wait before they get to their pool.
#[derive(Clone)]
pub(crate) struct WaitingGauge(Gauge);

/// RAII guard: one more invocation waits for as long as it lives.
pub(crate) struct WaitingThere(Gauge);

impl WaitingGauge {
    pub(super) fn resolve(name: &str) -> Self {
        let gauge = names::HOOK_WAITING.gauge([name]);
        gauge.increment(0.0);
        Self(gauge)
    }

    /// Counts one more.
    pub(crate) fn enter(&self) -> WaitingThere {
        self.0.increment(1.0);
        WaitingThere(self.0.clone())
    }
}

impl Drop for WaitingThere {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl fmt::Debug for WaitingGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitingGauge")
    }
}

/// A worker is there, in some state, for as long as this value lives.
pub(crate) struct WorkerThere {
    meters: Arc<WorkerMeters>,
    state: WorkerState,
}

impl WorkerThere {
    /// Counts one more, which is starting.
    pub(crate) fn starting(meters: &Arc<WorkerMeters>) -> Self {
        let state = WorkerState::Starting;
        meters.states[state as usize].increment(1.0);
        Self { meters: Arc::clone(meters), state }
    }

    /// Counts it in another state from now on.
    pub(crate) fn enter(&mut self, state: WorkerState) {
        if self.state != state {
            self.meters.states[self.state as usize].decrement(1.0);
            self.meters.states[state as usize].increment(1.0);
            self.state = state;
        }
    }
}

impl Drop for WorkerThere {
    fn drop(&mut self) {
        self.meters.states[self.state as usize].decrement(1.0);
    }
}

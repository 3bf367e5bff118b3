//! Gauges that are computed when somebody collects the metrics, so that no event pays for them.

use std::collections::HashSet;

use super::{handle::Orchestrator, load_report::LoadReport};
#[cfg(feature = "store")]
use crate::run::OutboxCounts;
use crate::{
    config::{self, BrokenFilePolicy},
    handler::command,
    model::{DialectName, Hook, TrustState},
    telemetry::{HookState, RunGaugeState},
};

impl Orchestrator {
    /// Sets the gauges of pools, queues, runs, sessions and hooks to their current values. A program that collects
    /// the metrics itself calls this before it reads them; the daemon does so for `/metrics`. In a process with more
    /// than one orchestrator, a gauge is the sum of what each of them set last.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let orchestrator = hookyard::Orchestrator::builder().start().await?;
    /// orchestrator.update_gauges();
    /// # Ok(())
    /// # }
    /// ```
    pub fn update_gauges(&self) {
        let context = &self.0.context;
        let meters = &context.meters;
        let count = self.run_count();
        meters.set_runs(RunGaugeState::Active, count.active);
        meters.set_runs(RunGaugeState::Passivated, count.known.saturating_sub(count.active));
        meters.set_sessions(context.directory.sessions());
        meters.processes.set_terminating(command::unreaped());
        context.pools.sample();
        if let Some(status) = context.directory.store().map(|store| store.status()) {
            meters.set_unsaved_runs(status.unsaved_halts, status.unsaved);
        }
        #[cfg(feature = "cluster")]
        if let Some(shared) = context.cluster.get() {
            let (halts, unstored) = shared.counts();
            meters.set_cluster(shared.is_fresh(), halts, unstored);
        }
        #[cfg(feature = "store")]
        if let Some(outbox) = context.outbox.load_full() {
            let OutboxCounts { under_way, waiting, dead, oldest } = outbox.counts();
            let records = [("under_way", under_way), ("waiting", waiting), ("dead", dead)];
            meters.set_outbox(records, oldest.unwrap_or_default());
        }
        self.update_hook_gauges();
    }

    /// Sets the gauges of how many hooks there are, by dialect and state.
    fn update_hook_gauges(&self) {
        let snapshots = self.snapshots();
        let reports = self.load_reports();
        let missing = snapshots.iter().map(|snapshot| snapshot.missing_hooks().len());
        self.0.context.meters.set_required_missing(missing.sum());
        let kept = |policy| {
            reports.values().flat_map(|report| &report.kept).filter(move |kept| kept.policy == policy)
        };
        self.0.context.meters.set_broken_files(
            kept(BrokenFilePolicy::Keep).count(),
            kept(BrokenFilePolicy::Deny).count(),
            reports.values().map(|report| report.lost().count()).sum(),
        );
        let broken: Vec<_> = reports.values().flat_map(dialects_of_broken_files).collect();
        for dialect in DialectName::ALL {
            let hooks = snapshots.iter().flat_map(|snapshot| snapshot.hooks()).map(|known| &known.hook);
            let own = hooks.filter(|hook| hook.dialect.name() == *dialect);
            let (enabled, disabled): (Vec<&Hook>, Vec<_>) = own.partition(|hook| hook.enabled);
            let (approved, refused): (Vec<&Hook>, Vec<_>) =
                enabled.into_iter().partition(|hook| hook.trust.approval().is_some());
            let untrusted = refused.iter().filter(|hook| hook.trust.state() != Some(TrustState::Broken));
            let untrusted = untrusted.count();
            let invalid = broken.iter().filter(|broken| *broken == dialect).count();
            self.0.context.meters.set_hooks(*dialect, |state| match state {
                HookState::Enabled => approved.len(),
                HookState::Disabled => disabled.len(),
                HookState::Untrusted => untrusted,
                HookState::Invalid => invalid,
            });
        }
    }
}

/// The dialects of the files with errors, once for each file.
fn dialects_of_broken_files(report: &LoadReport) -> impl Iterator<Item = DialectName> + use<> {
    let files: HashSet<_> = report.errors().map(|error| error.file.as_path()).collect();
    files.into_iter().map(config::dialect_of_file).collect::<Vec<_>>().into_iter()
}

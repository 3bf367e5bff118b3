//! Metrics that say how things are, not what happened: set when somebody asks for them, so that no event pays for them.
//! Refuses to ask by itself.

use std::collections::HashSet;

use super::{LoadReport, Orchestrator};
use crate::{
    config,
    handler::command,
    model::DialectName,
    telemetry::{HookState, RunGaugeState},
};

impl Orchestrator {
    /// Sets the gauges that are not set where they change: pools, queues, runs, sessions and hooks. A program that
    /// collects the metrics itself calls this before it reads them; the daemon does so for `/metrics`. Where a process
    /// has more than one orchestrator, a gauge is the sum of what each of them said last.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let orchestrator = hookyard::Orchestrator::builder().start().await?;
    /// orchestrator.sample_metrics();
    /// # Ok(())
    /// # }
    /// ```
    pub fn sample_metrics(&self) {
        let context = &self.0.context;
        let (meters, count) = (&context.meters, self.run_count());
        meters.set_runs(RunGaugeState::Active, count.active);
        meters.set_runs(RunGaugeState::Passivated, count.known.saturating_sub(count.active));
        meters.set_sessions(context.directory.sessions());
        meters.processes.set_terminating(command::dying());
        context.pools.sample();
        self.sample_hooks();
    }

    /// Has the metrics say how many hooks there are.
    pub(super) fn sample_hooks(&self) {
        let (snapshots, reports) = (self.snapshots(), self.load_reports());
        let hooks = || snapshots.iter().flat_map(|snapshot| snapshot.hooks()).map(|known| &known.hook);
        let broken: Vec<_> = reports.values().flat_map(broken).collect();
        for dialect in DialectName::ALL {
            let own = || hooks().filter(|hook| hook.dialect.name() == *dialect);
            let enabled = own().filter(|hook| hook.enabled).count();
            let invalid = broken.iter().filter(|broken| *broken == dialect).count();
            self.0.context.meters.set_hooks(*dialect, |state| match state {
                HookState::Enabled => enabled,
                HookState::Disabled => own().count() - enabled,
                HookState::Untrusted => 0,
                HookState::Invalid => invalid,
            });
        }
    }
}

/// The dialects of the files with errors, once for each file.
fn broken(report: &LoadReport) -> impl Iterator<Item = DialectName> + use<> {
    let files: HashSet<_> = report.errors().map(|error| error.file.as_path()).collect();
    files.into_iter().map(config::dialect_of_file).collect::<Vec<_>>().into_iter()
}

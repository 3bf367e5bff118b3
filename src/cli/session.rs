//! An orchestrator at work for one command. Owns its end, after the work or at a signal; refuses to let a
//! hook outlive the command.

use std::time::Duration;

use super::{
    escape,
    exit::{CliError, Exit},
    interrupt::StopSignals,
    screen::Screen,
    workspace::LocatedWorkspace,
};
use crate::{LoadReport, Orchestrator, model::WorkspaceId};

/// How long hooks are given once nobody waits for them any more; their processes are asked to end at once.
const ABORT_GRACE: Duration = Duration::from_secs(3);

/// An orchestrator with one workspace.
#[derive(Debug)]
pub(super) struct CommandSession {
    pub(super) orchestrator: Orchestrator,
    pub(super) workspace: WorkspaceId,
    pub(super) report: LoadReport,
    interrupt: StopSignals,
    deadline: Duration,
}

impl CommandSession {
    /// Starts an orchestrator for a workspace.
    ///
    /// Returns an error if it does not start.
    pub(super) async fn start(found: &LocatedWorkspace) -> Result<Self, CliError> {
        let started = Orchestrator::builder().workspace(&found.root).settings(found.settings.clone()).start();
        let trouble = |error: &dyn std::fmt::Display| {
            CliError::new(format!("hookyard did not start: {}", escape::line(&error.to_string())))
        };
        let orchestrator = started.await.map_err(|error| trouble(&error))?;
        let loaded = orchestrator.load_reports().into_iter().next();
        let (workspace, report) = loaded.ok_or_else(|| trouble(&"the workspace was not loaded"))?;
        let interrupt = StopSignals::listen().map_err(|error| trouble(&error))?;
        Ok(Self { orchestrator, workspace, report, interrupt, deadline: found.settings.shutdown_deadline })
    }

    /// Does some work, or gives it up at a signal.
    ///
    /// Returns how the program ends if a signal came first.
    pub(super) async fn until_interrupted<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Exit> {
        tokio::select! {
            done = work => Ok(done),
            exit = self.interrupt.next() => Err(exit),
        }
    }

    /// Waits for hooks of lifecycle events that nobody waited for, then stops.
    pub(super) async fn stop(mut self, screen: &Screen) -> Result<(), Exit> {
        let orchestrator = self.orchestrator.clone();
        let deadline = self.deadline;
        match self.until_interrupted(orchestrator.shutdown(deadline)).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let seconds = deadline.as_secs_f64();
                screen.note(&format!("note: hooks that nobody waited for were stopped after {seconds} s"));
                Ok(())
            }
            Err(exit) => Err(exit),
        }
    }

    /// Ends what is under way after a signal; a second signal ends the program without waiting for it. `when`
    /// tells how far the work was.
    pub(super) async fn abort(mut self, exit: Exit, when: &str, screen: &Screen) -> Exit {
        screen.note(&format!("interrupted {when}; stopping the hooks that run"));
        let orchestrator = self.orchestrator.clone();
        match self.until_interrupted(orchestrator.shutdown(ABORT_GRACE)).await {
            Ok(_) => exit,
            Err(second) => second,
        }
    }
}

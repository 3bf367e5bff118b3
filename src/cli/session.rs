//! An orchestrator for the time of one command, and the signals that ask one to stop. It is shut down at the end or at a
//! signal, so that no hook outlives the command.

use std::{fmt::Display, io, time::Duration};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    escape,
    exit::{CliError, Exit},
    screen::Screen,
    workspace::LocatedWorkspace,
};
use crate::{
    LoadReport, Orchestrator,
    config::LoadOptions,
    model::{Redactor, WorkspaceId},
};

/// How long hooks may take to end after a signal. Their processes are asked to end at once.
pub(super) const ABORT_GRACE: Duration = Duration::from_secs(3);

/// An orchestrator with one workspace.
#[derive(Debug)]
pub(super) struct CommandSession {
    pub(super) orchestrator: Orchestrator,
    pub(super) workspace: WorkspaceId,
    pub(super) report: LoadReport,
    /// Removes the secrets of the hooks from what people see.
    pub(super) redactor: Redactor,
    signals: StopSignals,
    deadline: Duration,
}

impl CommandSession {
    /// Starts an orchestrator for a workspace.
    ///
    /// Returns an error if it does not start.
    pub(super) async fn start(found: &LocatedWorkspace) -> Result<Self, CliError> {
        let (id, workspace) = found.declared();
        let builder =
            Orchestrator::builder().load_options(LoadOptions::OF_COMMANDS).workspace_with(id, workspace);
        let builder = builder.settings(found.settings.clone());
        let orchestrator = builder.start().await.map_err(|error| start_error(&error))?;
        let loaded = orchestrator.load_reports().into_iter().next();
        let (workspace, report) = loaded.ok_or_else(|| start_error(&"the workspace was not loaded"))?;
        let snapshot = orchestrator.snapshot(Some(&workspace));
        let redactor = snapshot.map(|snapshot| snapshot.redactor().clone()).unwrap_or_default();
        let signals = StopSignals::listen().map_err(|error| start_error(&error))?;
        let deadline = found.settings.shutdown_deadline;
        Ok(Self { orchestrator, workspace, report, redactor, signals, deadline })
    }

    /// Waits for some work, or for a signal.
    ///
    /// Returns the exit code if a signal came first.
    pub(super) async fn until_signal<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Exit> {
        tokio::select! {
            done = work => Ok(done),
            exit = self.signals.next() => Err(exit),
        }
    }

    /// How long hooks that run in the background may take at the end.
    #[cfg(feature = "daemon")]
    pub(super) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Waits for hooks that run in the background, then stops.
    pub(super) async fn stop(mut self, screen: &Screen) -> Result<(), Exit> {
        let orchestrator = self.orchestrator.clone();
        let deadline = self.deadline;
        if !self.until_signal(orchestrator.shutdown(deadline)).await? {
            let seconds = deadline.as_secs_f64();
            screen.note(&format!("note: background hooks were stopped after {seconds} s"));
        }
        Ok(())
    }

    /// Stops the hooks after a signal; a second signal ends the program without waiting for them. `progress` says how
    /// far the work was.
    pub(super) async fn abort(mut self, exit: Exit, progress: &str, screen: &Screen) -> Exit {
        screen.note(&format!("interrupted {progress}; stopping running hooks"));
        let orchestrator = self.orchestrator.clone();
        match self.until_signal(orchestrator.shutdown(ABORT_GRACE)).await {
            Ok(_) => exit,
            Err(second) => second,
        }
    }
}

/// The error of an orchestrator that did not start.
pub(super) fn start_error(error: &dyn Display) -> CliError {
    CliError::new(format!("hookyard did not start: {}", escape::line(&error.to_string())))
}

/// Listens for SIGINT, SIGTERM and, unless it means a reload, SIGHUP.
#[derive(Debug)]
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` where a hangup means a reload.
    hangup: Option<Signal>,
}

impl StopSignals {
    /// Replaces the default action, which would end the program and leave hooks running.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { hangup: Some(signal(SignalKind::hangup())?), ..Self::for_service()? })
    }

    /// The same for a service, which reloads at a hangup.
    pub(super) fn for_service() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// Waits for the next signal, and returns the exit code for it.
    pub(super) async fn next(&mut self) -> Exit {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            () = recv(self.hangup.as_mut()) => SignalKind::hangup(),
        };
        Exit::Signal(u8::try_from(kind.as_raw_value()).unwrap_or(u8::MAX))
    }
}

/// Waits for a signal; without one to listen for, never returns.
async fn recv(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

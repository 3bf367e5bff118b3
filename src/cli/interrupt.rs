//! The signals that ask a command to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::exit::Exit;

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

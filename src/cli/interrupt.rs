//! The signals that end a command before its work is done. Owns their handlers, which are installed only
//! while there are hooks to stop; refuses to stop anything itself.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::exit::Exit;

/// Waits for the signals that ask a program to end.
#[derive(Debug)]
pub(super) struct StopSignals {
    ctrl_c: Signal,
    terminate: Signal,
    /// None where a hangup means something else.
    hangup: Option<Signal>,
}

impl StopSignals {
    /// Takes the signals over from the system, which would end the program and leave hooks behind.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self { hangup: Some(signal(SignalKind::hangup())?), ..Self::for_service()? })
    }

    /// The same for a service, which reads its files again at a hangup.
    pub(super) fn for_service() -> io::Result<Self> {
        Ok(Self {
            ctrl_c: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// Waits for the next signal, and tells how the program ends with it.
    pub(super) async fn next(&mut self) -> Exit {
        let kind = tokio::select! {
            _ = self.ctrl_c.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            () = next(self.hangup.as_mut()) => SignalKind::hangup(),
        };
        Exit::Signal(u8::try_from(kind.as_raw_value()).unwrap_or(u8::MAX))
    }
}

/// Waits for a signal, for ever if it is not listened to.
async fn next(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

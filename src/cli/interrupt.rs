//! The signals that end a command before its work is done. Owns their handlers, which are installed only
//! while there are hooks to stop; refuses to stop anything itself.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::exit::Exit;

/// Waits for the signals that ask a program to end.
#[derive(Debug)]
pub(super) struct Interrupt {
    ctrl_c: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Interrupt {
    /// Takes the signals over from the system, which would end the program and leave hooks behind.
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            ctrl_c: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal, and tells how the program ends with it.
    pub(super) async fn next(&mut self) -> Exit {
        let kind = tokio::select! {
            _ = self.ctrl_c.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        };
        Exit::Signal(u8::try_from(kind.as_raw_value()).unwrap_or(u8::MAX))
    }
}

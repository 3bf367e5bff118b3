//! What a worker ends with, by what it did last, and what becomes of its open events.

use tokio::time::Instant;

use super::{
    super::{health::WorkerEnd, limits::StderrLogging, pipes::Remainder, protocol},
    WorkerLoop,
};

impl WorkerLoop {
    /// The end of a worker that violated the protocol.
    pub(super) fn protocol_error(&self, why: String) -> WorkerEnd {
        if self.is_ready() { WorkerEnd::Protocol(why) } else { WorkerEnd::NoHello(why) }
    }

    /// The end of a worker that wrote something else than a message.
    pub(super) fn invalid_line(&self, line: &[u8], why: &str) -> WorkerEnd {
        match self.config.stderr_logging {
            StderrLogging::Shown => self.protocol_error(format!("{why}: `{}`", protocol::excerpt(line))),
            StderrLogging::Withheld => self.protocol_error(why.to_owned()),
        }
    }

    /// The end of a worker without a hello, with its error message if it wrote one.
    pub(super) fn no_hello(&mut self, why: &str) -> WorkerEnd {
        let message = self.log.error_line(self.config.stderr_logging);
        WorkerEnd::NoHello(message.map_or_else(|| why.to_owned(), |message| format!("{why}: {message}")))
    }

    /// The end of a worker that closed its stdout.
    pub(super) fn stdout_closed(&mut self, remainder: Remainder) -> WorkerEnd {
        match remainder {
            Remainder::PartialLine => self.protocol_error("it ended within a line".to_owned()),
            Remainder::Nothing if !self.is_ready() => self.no_hello("it ended without a hello"),
            Remainder::Nothing => WorkerEnd::Died("it exited or closed its standard output".to_owned()),
        }
    }

    /// Sends failures to those who still wait. What the worker had not begun goes to another one.
    pub(super) fn fail_open_events(&mut self, end: &WorkerEnd) {
        let now = Instant::now();
        while let Some((is_late, open)) = self.open.take_first(now) {
            open.answer(Err(end.failure(is_late)));
            if self.open.is_in_order() && end.proves_order() {
                break;
            }
        }
        self.open.abandon();
    }
}
